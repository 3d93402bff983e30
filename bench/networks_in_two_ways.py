#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks, tuned in two ways, in turns.

    python3 networks_in_two_ways.py --bench=BUILD/bench/bench_end_to_end --journals=DIR
                                    --first="--evict=nothing" --second="--evict=constants"
                                    [--networks=A,B] [--minutes=5] [--seeds=1] [--rounds=21] [--threads=N]

Each network is tuned by bench_end_to_end for --minutes with the options of --first, then with those of --second, by each
of --seeds seeds. Journals are DIR/first-<seed> and DIR/second-<seed>; with --minutes=0 they are taken as they are. Then
the two networks run in turns, --rounds times; a turn is the median of four inferences after two that warm up. A line for
each network and seed:

    <network> <seed> first_ms=… second_ms=… ratio=<first / second, median of the turns> [quartiles] trials=<first>,<second>

A ratio above 1 means that the second way found the faster network.
"""

import argparse
import shlex
import statistics

from our_side import Served, checked, quartiles, turn_of, usual_threads

known_networks = ("resnet50", "mobilenet_v2", "bert_base", "gpt2_decode")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program bench_end_to_end")
    parser.add_argument("--journals", required=True)
    parser.add_argument("--first", required=True, help="options of bench_end_to_end")
    parser.add_argument("--second", required=True)
    parser.add_argument("--networks", default=",".join(known_networks))
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=usual_threads())
    return checked(parser, "bench_end_to_end", ("seeds", "rounds", "threads"), "networks", known_networks)


def served(given, network, seed, way, *others):
    return Served([given.bench, "--serve", f"--benchmark_filter={network}", f"--seed={seed}",
                   f"--threads={given.threads}", f"--journals={given.journals}/{way}-{seed}",
                   *shlex.split(getattr(given, way)), *others])


def compare(given, network, seed):
    if given.minutes > 0:
        for way in ("first", "second"):
            # Schedules are chosen inside the network below.
            with served(given, network, seed, way, f"--minutes={given.minutes}", "--candidates=1"):
                pass
    taken = "--minutes=0"
    with served(given, network, seed, "first", taken) as first, served(given, network, seed, "second", taken) as second:
        seconds = ([], [])
        for turn in range(given.rounds):
            for which in (turn % 2, 1 - turn % 2):
                seconds[which].append(turn_of((first, second)[which].seconds, warm_ups=2, inferences=4))
        low, middle, high = quartiles([a / b for a, b in zip(*seconds)])
        print(f"{network} {seed} first_ms={1e3 * statistics.median(seconds[0]):.2f} "
              f"second_ms={1e3 * statistics.median(seconds[1]):.2f} ratio={middle:.3f} [{low:.3f}, {high:.3f}] "
              f"trials={first.found['trials']:.0f},{second.found['trials']:.0f}", flush=True)


def main():
    given = arguments()
    for seed in range(1, given.seeds + 1):
        for network in given.networks:
            compare(given, network, seed)


if __name__ == "__main__":
    main()
