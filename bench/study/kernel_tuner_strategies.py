#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches by the strategies of Kernel Tuner, in the format of finished searches of our studies.

    python3 kernel_tuner_strategies.py --data=DIR --out=DIR [--seeds=25] [--problems=A,B] [--strategies=A,B]

DIR of --data has kernel-tuner-hub/<folder>/<device>.json.gz, Kernel Tuner cache files of whole spaces; each is a
problem named <folder>.<device>. A strategy searches it in the simulation mode of Kernel Tuner, at its default options,
for as many trials as the score of include/tunewright/study/performance_score.hpp looks at: up to where random search
is expected 95 % of the way from the median to the optimum.

Searches are appended to DIR of --out as lines of finished.kernel_tuner.jsonl, which
include/tunewright/study/finished_search.hpp describes; the recipe is called kt_<strategy>. A search that is there
already is not made again. Put into the results folder of a study of the same name (--study), they are in its report.

How it counts:
- The space is every configuration in the file, also those that failed; a strategy learns of a failure by trying. (The
  tune_cache of Kernel Tuner leaves them out.) bayes_opt of 1.5.0 takes the largest double that stands for a failure
  for a latency: after the first failure its model predicts no number any more, and it goes through the file in order.
- A trial is a configuration that was evaluated for the first time, failed or not; looking at it again is none, and
  neither is a configuration outside the space. This is the budget of Kernel Tuner, "max_fevals", too.
- Latency is the mean of the repeats, and time is what compiling and running took when the file was made; neither the
  time that a strategy thinks nor that of verification is in it.
- Strategies may end before their budget, by rules of their own: such a search has fewer trials. At their defaults,
  genetic_algorithm and pso end after a number of generations, simulated_annealing when it is cold, which is at three
  quarters of the budget, and dual_annealing counts what it repeats.
- A search depends on its strategy, problem and seed alone, on one machine with the same packages.

Needs kernel_tuner 1.5.0 (B. van Werkhoven, Kernel Tuner: A search-optimizing GPU code auto-tuner, FGCS 2019, doi
10.1016/j.future.2018.08.004) with scikit-learn for bayes_opt, and autotuning_methodology 1.1.0 for the budget. Kernel
Tuner names no best strategy; hybrid_vndx and adaptive_tabu_greywolf are its newest, described in Automated Algorithm
Design For Auto-Tuning Optimizers.
"""

import argparse
import contextlib
import functools
import gzip
import io
import json
import math
import operator
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from types import SimpleNamespace

from compare_with_methodology import OLD_MARK_OF_FAILURE, Space

try:
    import numpy as np
    from kernel_tuner import interface, util
    from kernel_tuner.searchspace import Searchspace
except ImportError as error:
    sys.exit(f"{error}; install the tuner: pip install kernel_tuner==1.5.0 scikit-learn")

RECORDED = {
    "convolution_milo": ("A100", "A4000", "MI250X", "W6600"),
    "dedispersion_milo": ("A100", "A4000", "MI250X", "W6600"),
    "convolution": ("RTX_2080_Ti", "RTX_3090"),
    "gemm": ("RTX_2080_Ti", "RTX_3090"),
}
PROBLEMS = [f"{folder}.{device}" for folder, devices in RECORDED.items() for device in devices]
STRATEGIES = [
    "random_sample",
    "genetic_algorithm",
    "simulated_annealing",
    "greedy_ils",
    "pso",
    "dual_annealing",
    "diff_evo",
    "adaptive_tabu_greywolf",
    "bayes_opt",
    "hybrid_vndx",
]
FILE_NAME = "finished.kernel_tuner.jsonl"
UNIT_S = 1e-3


class RecordedSpace(Searchspace):
    """A space of given configurations. It is made for each search, as it remembers what was asked of it and answers
    differently then. Neighbors are the same for all searches, and kept in `neighbors`."""

    def __init__(self, tune_params, records, neighbors):
        super().__init__(None, None, None, from_cache={"tune_params": tune_params, "cache": records})
        self.neighbors = neighbors
        self._modified_restrictions = lambda values: self.is_param_config_valid(tuple(values[k] for k in tune_params))

    def get_neighbors_indices_no_cache(self, param_config, neighbor_method=None, build_full_cache=False):
        key = (param_config, neighbor_method)
        if key not in self.neighbors:
            found = super().get_neighbors_indices_no_cache(param_config, neighbor_method, build_full_cache)
            if isinstance(found, np.ndarray):
                found.flags.writeable = False
            self.neighbors[key] = found
        return self.neighbors[key]


def outcome(record):
    """Latency in seconds, infinite for a failure, and what it took to find out. Sums go from first to last, as in
    include/tunewright/data/table_builder.hpp, so that both read the very same numbers."""
    price_s = record.get("compile_time", 0) * UNIT_S + record.get("benchmark_time", 0) * UNIT_S
    summary = record["time"]
    if isinstance(summary, str) or not summary < OLD_MARK_OF_FAILURE:
        return math.inf, price_s
    repeats = record.get("times") or [summary]
    # sum() is more exact from Python 3.12 on, and must not be.
    total_s = functools.reduce(operator.add, (repeat * UNIT_S for repeat in repeats), 0.0)
    return total_s / len(repeats), price_s


def read_problem(data, name):
    """A recorded space: its records as Kernel Tuner wants them, what they mean, and the trials of a search."""
    folder, _, device = name.partition(".")
    path = os.path.join(data, "kernel-tuner-hub", folder, device + ".json.gz")
    try:
        with gzip.open(path, "rt") as file:
            content = json.load(file)
    except OSError as error:
        sys.exit(f"problem {name}: {error}; give --data the folder that has kernel-tuner-hub/")
    names = content["tune_params_keys"]
    problem = SimpleNamespace(name=name, records={}, outcomes={}, neighbors={})
    problem.tune_params = {key: content["tune_params"][key] for key in names}
    for record in content["cache"].values():
        values = [record[key] for key in names]
        key = ",".join(str(value) for value in values)
        problem.outcomes[key] = latency_s, _ = outcome(record)
        kept = dict(zip(names, values))
        kept["time"] = record["time"]
        for price in ("compile_time", "verification_time", "benchmark_time"):
            kept[price] = record.get(price, 0)
        if latency_s == math.inf:
            failures = {"CompilationFailedConfig": util.CompilationFailedConfig, "InvalidConfig": util.InvalidConfig}
            kept["__error__"] = failures.get(record["time"], util.RuntimeFailedConfig)()
        problem.records[key] = kept
    latencies = np.array([latency_s for latency_s, _ in problem.outcomes.values()])
    latencies[np.isinf(latencies)] = np.nan
    problem.trials = int(Space(latencies).trials(0.5, 0.95)[-1])
    return problem


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)


def seeded_generator(make=np.random.default_rng):
    """In place of numpy.random.default_rng: a generator that is asked for without a seed follows from the seed too."""
    return lambda seed=None: make(np.random.randint(2**31) if seed is None else seed)


def evaluated(problem, strategy, seed, file):
    """Keys of what a strategy evaluated, in order, repetitions included."""
    interface.Searchspace = lambda *_, **__: RecordedSpace(problem.tune_params, problem.records, problem.neighbors)
    interface.util.process_cache = lambda *_, **__: problem.records
    seed_everything(seed)
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = interface.tune_kernel(
            "kernel",
            "",
            1,
            [],
            problem.tune_params,
            lang="CUDA",
            quiet=True,
            strategy=strategy,
            strategy_options={"max_fevals": problem.trials},
            simulation_mode=True,
            objective="time",
            cache=file,
        )
    keys = (",".join(str(result[name]) for name in problem.tune_params) for result in results)
    return [key for key in keys if key in problem.records]


def search(problem, strategy, seed, file):
    """A finished search but for its study."""
    course = {"recipe": "kt_" + strategy, "problem": problem.name, "seed": seed, "conditions": 0}
    trials, failed, elapsed_s, best_s, improvements = 0, 0, 0.0, math.inf, []
    for key in dict.fromkeys(evaluated(problem, strategy, seed, file)):
        latency_s, price_s = problem.outcomes[key]
        trials += 1
        elapsed_s += price_s
        if latency_s == math.inf:
            failed += 1
        elif latency_s < best_s:
            best_s = latency_s
            improvements.append([trials, elapsed_s, best_s])
    assert trials <= problem.trials, f"{trials} trials where {problem.trials} were allowed"
    return course | {"trials": trials, "failed": failed, "elapsed_s": elapsed_s, "improvements": improvements}


class Finished:
    """The file of finished searches."""

    def __init__(self, folder, study):
        os.makedirs(folder, exist_ok=True)
        self.path, self.study, self.known, self.torn = os.path.join(folder, FILE_NAME), study, set(), False
        if not os.path.exists(self.path):
            return
        with open(self.path) as file:
            for number, line in enumerate(file, 1):
                self.torn = not line.endswith("\n")
                try:
                    one = json.loads(line)
                    key, found = (one["recipe"], one["problem"], one["seed"]), one["study"]
                except (KeyError, TypeError, ValueError):  # a writer that was killed may have left half a line
                    if line.strip():
                        print(f"{self.path}:{number}: this is no search, and left out", file=sys.stderr)
                    continue
                if found != study:
                    sys.exit(f"{self.path} belongs to study '{found}', not to '{study}'; name another folder by --out")
                self.known.add(key)

    def add(self, one):
        line = json.dumps({"study": self.study} | one) + "\n"
        with open(self.path, "a") as file:
            file.write("\n" + line if self.torn else line)
        self.torn = False


def part(text):
    """The i-th of n parts of the searches, from i/n."""
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"'{text}' is no part of the searches; give i/n with i from 1 to n")
    return int(index) - 1, int(count)


def positive(text):
    """A count of 1 or more."""
    if not (text.isdigit() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"'{text}' is no count of searches; give 1 or more")
    return int(text)


def names(text):
    return [name for name in text.split(",") if name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder that has kernel-tuner-hub/")
    parser.add_argument("--out", required=True, help="folder of the results")
    parser.add_argument("--seeds", type=positive, default=25, help="searches for each strategy and problem")
    parser.add_argument("--problems", type=names, default=PROBLEMS, help="these, as <folder>.<device>")
    parser.add_argument("--strategies", type=names, default=STRATEGIES, help="these, as Kernel Tuner names them")
    parser.add_argument("--shard", type=part, default=(0, 1), help="i/n: the i-th of n parts of the searches")
    parser.add_argument("--study", default="recipes", help="study that the searches belong to")
    arguments = parser.parse_args()
    for strategy in arguments.strategies:
        if strategy not in interface.strategy_map:
            parser.error(f"Kernel Tuner has no strategy '{strategy}'; it has {', '.join(interface.strategy_map)}")

    finished = Finished(arguments.out, arguments.study)
    warnings.simplefilter("ignore")  # strategies tell of small spaces and of models that fit badly
    np.random.default_rng = seeded_generator()
    read = functools.cache(lambda name: read_problem(arguments.data, name))
    index, count = arguments.shard
    searches = [(s, p, n) for s in arguments.strategies for p in arguments.problems for n in range(arguments.seeds)]
    broken = 0
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write("{}")  # Kernel Tuner wants a file, and reads no more than its end
        file.flush()
        for strategy, name, seed in searches[index::count]:
            if ("kt_" + strategy, name, seed) in finished.known:
                continue
            problem = read(name)
            began = time.perf_counter()
            label = f"kt_{strategy}\t{name}\tseed {seed}"
            try:
                one = search(problem, strategy, seed, file.name)
            except Exception:  # of a strategy: the others go on
                broken += 1
                print(f"{label}\tbroke: {traceback.format_exc()}", file=sys.stderr, flush=True)
                continue
            finished.add(one)
            spent = time.perf_counter() - began
            print(f"{label}\t{one['trials']} of {problem.trials} trials\t{spent:.2f} s", file=sys.stderr, flush=True)
    if broken:
        sys.exit(f"{broken} searches broke")


if __name__ == "__main__":
    main()
