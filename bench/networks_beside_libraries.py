#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks, ours beside onnxruntime and OpenVINO, in turns.

    python3 networks_beside_libraries.py --bench=BUILD/bench/bench_end_to_end [--networks=A,B] [--minutes=15]
                                         [--evict=WHAT] [--journals=DIR] [--rounds=21] [--threads=N]

For each network (resnet50, mobilenet_v2, bert_base, gpt2_decode) the same architecture is written as an ONNX file with
made-up weights, and tuned by bench_end_to_end for at most --minutes, with its --evict, after what its journals have;
with --minutes=0 it is taken from these as it is.
Then all sides run in turns, --rounds times, with batch 1, float32 and the same number of threads. A turn waits until
the threads of the other side sleep, warms up by three inferences and is the median of five in a row. A line for each
network with the counters of its search, and one for each network and library:

    <network> <library> <version> ours_ms=… theirs_ms=… ratio=<theirs / ours, median of the turns> [quartiles]

onnxruntime runs as it is by default, and once more with threads pinned as ours are, each to a core of its own.
Latencies are medians. A ratio above 1 means that ours is faster. Sizes: images of 224x224, 128 tokens for BERT, one
token after 128 others for GPT-2, with its caches as inputs and outputs on both sides. An inference is a whole call, with
inputs copied in, words looked up and outputs copied out, on both sides.

Needs torch, torchvision, onnx and onnxruntime; openvino where it is to be compared, too.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

from our_side import Served, checked, one_per_core, quartiles, turn_of, usual_threads

try:
    import numpy as np
    import onnxruntime
    import torch
    import torchvision
except ImportError as error:
    sys.exit(f"{error}; install what is compared with: pip install torch torchvision onnx onnxscript onnxruntime openvino")


NETWORKS = ["resnet50", "mobilenet_v2", "bert_base", "gpt2_decode"]


class Attention(torch.nn.Module):
    """Of one layer; `past` are keys and values of earlier tokens, heads side by side."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(hidden, 3 * hidden)
        self.out = torch.nn.Linear(hidden, hidden)

    def forward(self, x, past=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        split = lambda t: t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
        scores = split(q) @ split(k).transpose(2, 3) / (q.shape[-1] / self.heads) ** 0.5
        mixed = (scores.softmax(dim=-1) @ split(v)).transpose(1, 2).reshape(x.shape)
        return self.out(mixed), k, v


class Block(torch.nn.Module):
    def __init__(self, hidden, heads, norm_first, approximate):
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(hidden, heads)
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)])
        self.grow = torch.nn.Linear(hidden, 4 * hidden)
        self.gelu = torch.nn.GELU(approximate=approximate)
        self.shrink = torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x, past=None):
        if self.norm_first:
            mixed, k, v = self.attention(self.norms[0](x), past)
            x = x + mixed
            return x + self.shrink(self.gelu(self.grow(self.norms[1](x)))), k, v
        mixed, k, v = self.attention(x)
        x = self.norms[0](x + mixed)
        return self.norms[1](x + self.shrink(self.gelu(self.grow(x)))), k, v


class Bert(torch.nn.Module):
    def __init__(self, hidden=768, heads=12, layers=12, vocabulary=30522, positions=512):
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, hidden)
        self.positions = torch.nn.Parameter(torch.randn(positions, hidden))
        self.types = torch.nn.Parameter(torch.randn(hidden))
        self.norm = torch.nn.LayerNorm(hidden)
        self.blocks = torch.nn.ModuleList([Block(hidden, heads, False, "none") for _ in range(layers)])
        self.pooler = torch.nn.Linear(hidden, hidden)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.positions[: ids.shape[1]] + self.types)
        for block in self.blocks:
            x, _, _ = block(x)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt2Step(torch.nn.Module):
    def __init__(self, hidden=768, heads=12, layers=12, vocabulary=50257, positions=1024, past=128):
        super().__init__()
        self.past = past
        self.words = torch.nn.Embedding(vocabulary, hidden)
        self.positions = torch.nn.Parameter(torch.randn(positions, hidden))
        self.blocks = torch.nn.ModuleList([Block(hidden, heads, True, "tanh") for _ in range(layers)])
        self.norm = torch.nn.LayerNorm(hidden)

    def forward(self, ids, *caches):
        x = self.words(ids) + self.positions[self.past : self.past + 1]
        grown = []
        for i, block in enumerate(self.blocks):
            x, k, v = block(x, (caches[2 * i], caches[2 * i + 1]))
            grown += [k, v]
        return (self.norm(x) @ self.words.weight.T, *grown)


def model_of(network):
    """The model and its inputs."""
    torch.manual_seed(1)
    if network == "resnet50":
        return torchvision.models.resnet50(), (torch.randn(1, 3, 224, 224),)
    if network == "mobilenet_v2":
        return torchvision.models.mobilenet_v2(), (torch.randn(1, 3, 224, 224),)
    if network == "bert_base":
        return Bert(), (torch.randint(0, 30522, (1, 128)),)
    if network == "gpt2_decode":
        return Gpt2Step(), (torch.randint(0, 50257, (1, 1)), *[torch.randn(1, 128, 768) for _ in range(24)])
    sys.exit(f"there is no network '{network}'; there are resnet50, mobilenet_v2, bert_base, gpt2_decode")


def libraries(path, inputs, threads):
    """(name, version, function that runs the file once)."""
    allowed, cores = os.sched_getaffinity(0), one_per_core()

    def run_by_onnxruntime(pinned):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        if pinned:  # as ours are; it counts processors from 1, and the caller is one of its threads
            helpers = ";".join(str(processor + 1) for processor in cores[1:threads])
            options.add_session_config_entry("session.intra_op_thread_affinities", helpers)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feeds = {given.name: value.numpy() for given, value in zip(session.get_inputs(), inputs)}
        return lambda: session.run(None, feeds)

    yield "onnxruntime", onnxruntime.__version__, run_by_onnxruntime(False)
    if threads > 1:
        run = run_by_onnxruntime(True)
        os.sched_setaffinity(0, cores[:1])
        yield "onnxruntime_pinned", onnxruntime.__version__, run
        os.sched_setaffinity(0, allowed)
    try:
        import openvino
    except ImportError:
        print("openvino is not installed and is left out: pip install openvino", file=sys.stderr)
        return
    core = openvino.Core()
    compiled = core.compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    values = [value.numpy() for value in inputs]
    yield "openvino", openvino.__version__.split("-")[0], lambda: request.infer(values)


def compare(network, options):
    model, inputs = model_of(network)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, network + ".onnx")
        torch.onnx.export(model.eval(), inputs, path, dynamo=False)
        command = [options.bench, "--serve", f"--benchmark_filter={network}", f"--minutes={options.minutes}",
                   f"--threads={options.threads}"]
        if options.evict:
            command.append(f"--evict={options.evict}")
        if options.journals:
            command.append(f"--journals={options.journals}")
        with Served(command) as ours:
            def run_theirs(run):
                start = time.perf_counter()
                run()
                return time.perf_counter() - start

            print(f"{network} " + " ".join(f"{key}={value}" for key, value in sorted(ours.found.items())), flush=True)
            for name, version, run in libraries(path, inputs, options.threads):
                seconds = {"ours": [], "theirs": []}
                for turn in range(options.rounds + 1):
                    mine, theirs = (turn_of(side, warm_ups=3, inferences=5) for side in (ours.seconds, lambda: run_theirs(run)))
                    if turn > 0:
                        seconds["ours"].append(mine)
                        seconds["theirs"].append(theirs)
                low, middle, high = quartiles([b / a for a, b in zip(seconds["ours"], seconds["theirs"])])
                print(f"{network} {name} {version} ours_ms={1e3 * statistics.median(seconds['ours']):.2f} "
                      f"theirs_ms={1e3 * statistics.median(seconds['theirs']):.2f} "
                      f"ratio={middle:.3f} [{low:.3f}, {high:.3f}]", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--minutes", type=int, default=15)
    parser.add_argument("--evict", default="")
    parser.add_argument("--journals", default="")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=usual_threads())
    options = checked(parser, "bench_end_to_end", ["rounds", "threads"], "networks", NETWORKS)
    for network in options.networks:
        compare(network, options)


if __name__ == "__main__":
    main()
