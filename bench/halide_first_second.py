#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one second of searching finds beside what Halide's autoscheduler chooses without a measurement.

    python3 halide_first_second.py --bench=BUILD/bench/bench_cpu_kernels [--isa=native|avx2|sse4.2] [--threads=N]
                                   [--seconds=1] [--rounds=5] [--kernels=A,B]

For each kernel, Halide's Adams2019 autoscheduler schedules the same computation for the same instructions and number of
threads, and Halide compiles it. Then both sides take turns, --rounds times: bench_cpu_kernels searches for --seconds
with a fresh tuner, another seed in each round, and times what it knows to be the fastest by then; Halide's kernel is
timed for as long. A table has a line for each kernel:

    ours_ms, halide_ms    medians over the rounds, one call on warm caches
    ratio                 halide / ours, median over the rounds [lowest, highest]; above 1, ours is faster
    trials                measured within --seconds, median over the rounds
    halide_s              seconds that scheduling and compiling took

The last line is the geometric mean of the ratios. Halide's results are checked against numpy, ours are checked by
bench_cpu_kernels. Convolutions differ in two respects: Halide gets the image padded, because its autoscheduler takes a
minute where padding is part of the computation, and ours pads it; weights are constants on our side and may be packed
when a network is loaded, and Halide reads them as they are.

Needs the package halide, which brings its autoschedulers: pip install halide==21.0.0
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from our_side import checked, usual_threads


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the program bench_cpu_kernels")
    parser.add_argument("--isa", default="native", choices=["native", "avx2", "sse4.2"])
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kernels", default=",".join(KERNELS), help="names of the suite, separated by commas")
    return checked(parser, "bench_cpu_kernels", ("threads", "seconds", "rounds"), "kernels", KERNELS)


def product(m, n, k, batch=None):
    """C = A B, for each matrix of a batch."""
    given = inputs((batch, m, k), (batch, k, n))
    a, b = given
    x, y, z = hl.Var("x"), hl.Var("y"), hl.Var("z")
    r = hl.RDom([(0, k)], "r")
    sums = hl.Func("sums")
    at = [x, y] + ([z] if batch else [])
    rest = at[2:]
    sums[tuple(at)] = hl.f32(0)
    sums[tuple(at)] += a[tuple([r, y] + rest)] * b[tuple([x, r] + rest)]
    return given, copied(sums, at, (batch, m, n)), lambda a, b: a @ b


def convolution(size, channels_in, channels_out, kernel):
    """3x3 and the like, stride 1, channels last, of an image that is padded already."""
    wide = size + kernel - 1
    given = inputs((wide, wide, channels_in), (kernel, kernel, channels_in, channels_out))
    data, weight = given
    c, x, y = hl.Var("c"), hl.Var("x"), hl.Var("y")
    r = hl.RDom([(0, channels_in), (0, kernel), (0, kernel)], "r")
    sums = hl.Func("sums")
    sums[c, x, y] = hl.f32(0)
    sums[c, x, y] += data[r.x, x + r.y, y + r.z] * weight[c, r.x, r.y, r.z]

    def expected(data, weight):
        taps = [(i, j) for i in range(kernel) for j in range(kernel)]
        return sum(data[i:i + size, j:j + size] @ weight[i, j] for i, j in taps)

    return given, copied(sums, [c, x, y], (size, size, channels_out)), expected


def softmax(rows, columns):
    """exp(x - max) / sum of exp(x - max), of each row."""
    given = inputs((rows, columns))
    (data,) = given
    x, y = hl.Var("x"), hl.Var("y")
    r = hl.RDom([(0, columns)], "r")
    largest, power, total = hl.Func("largest"), hl.Func("power"), hl.Func("total")
    largest[y] = hl.f32(-math.inf)
    largest[y] = hl.max(largest[y], data[r, y])
    power[x, y] = hl.exp(data[x, y] - largest[y])
    total[y] = hl.f32(0)
    total[y] += power[r, y]
    out = hl.Func("out")
    out[x, y] = power[x, y] / total[y]
    out.set_estimates([(0, columns), (0, rows)])

    def expected(data):
        powers = np.exp(data - data.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return given, (out, (rows, columns)), expected


def inputs(*shapes):
    """Inputs of float32 and their shapes, known when compiling; the last axis is Halide's first, and None is no axis."""
    given = {}
    for number, shape in enumerate(shapes):
        shape = tuple(extent for extent in shape if extent)
        image = hl.ImageParam(hl.Float(32), len(shape), f"input{number}")
        for axis, extent in enumerate(reversed(shape)):
            image.dim(axis).set_bounds(0, extent)
        image.set_estimates([(0, extent) for extent in reversed(shape)])
        given[image] = shape
    return given


def copied(sums, variables, shape):
    """An output that reads the sums, so that they have a place of their own while they are computed."""
    out = hl.Func("out")
    out[tuple(variables)] = sums[tuple(variables)]
    shape = tuple(extent for extent in shape if extent)
    out.set_estimates([(0, extent) for extent in reversed(shape)])
    return out, shape


KERNELS = {
    "matmul/1024x1024x1024": lambda: product(1024, 1024, 1024),
    "matmul/128x3072x768": lambda: product(128, 3072, 768),
    "batch_matmul/12x128x64x128": lambda: product(128, 64, 128, batch=12),
    "conv2d_resnet50/28x28x128_128_k3_s1": lambda: convolution(28, 128, 128, 3),
    "memory_softmax/1024x1024": lambda: softmax(1024, 1024),
}


class HalideKernel:
    """A computation that Halide scheduled and compiled."""

    def __init__(self, name, target, threads):
        parameters, (out, shape), expected = KERNELS[name]()
        start = time.perf_counter()
        pipeline = hl.Pipeline(out)
        pipeline.apply_autoscheduler(target, hl.AutoschedulerParams("Adams2019", {"parallelism": str(threads)}))
        self.call = pipeline.compile_to_callable(list(parameters), target)
        self.seconds = time.perf_counter() - start
        rng = np.random.default_rng(0)
        arrays = [rng.uniform(-1, 1, extents).astype(np.float32) for extents in parameters.values()]
        result = np.full(shape, np.nan, np.float32)
        self.buffers = [hl.Buffer(array) for array in [*arrays, result]]
        self.call(*self.buffers)
        if not np.allclose(result, expected(*arrays), rtol=1e-4, atol=1e-3):
            raise RuntimeError(f"Halide's kernel of {name} does not compute what numpy does")

    def milliseconds(self):
        """The median of at least eleven repeats of at least 2 ms, and as many as take 0.2 s, after warming up for 20 ms."""

        def repeat(calls):
            start = time.perf_counter()
            for _ in range(calls):
                self.call(*self.buffers)
            return (time.perf_counter() - start) / calls

        start, each = time.perf_counter(), repeat(1)
        while time.perf_counter() - start < 0.02:
            each = repeat(1)
        calls = max(1, math.ceil(2e-3 / each))
        repeats, start = [], time.perf_counter()
        while len(repeats) < 11 or time.perf_counter() - start < 0.2:
            repeats.append(repeat(calls))
        return 1e3 * statistics.median(repeats)


def halide_target(isa):
    if isa == "native":
        return hl.get_host_target()
    features = {"avx2": "-avx-avx2-f16c-fma-sse41", "sse4.2": "-sse41"}[isa]
    return hl.Target("x86-64-linux" + features)


def searched(given, name, seed):
    """What bench_cpu_kernels found: its entry of Google Benchmark's output."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result.json"
        command = [
            given.bench, f"--isa={given.isa}", f"--threads={given.threads}", f"--seconds_per_kernel={given.seconds}",
            "--trials=1000000000",  # time alone ends the search
            f"--seed={seed}", f"--benchmark_filter=^{name}/", f"--benchmark_out={out}", "--benchmark_out_format=json"
        ]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        results = json.loads(out.read_text())["benchmarks"] if run.returncode == 0 else []
    found = [one for one in results if one["name"].startswith(name + "/") and "error_message" not in one]
    if not found:
        sys.exit(f"{' '.join(command)} gave no result of {name}:\n{run.stdout}")
    return found[0]


def main():
    given = options()
    # Halide reads it when its first kernel runs.
    os.environ["HL_NUM_THREADS"] = str(given.threads)
    plugin = next(pathlib.Path(hl.__file__).parent.rglob("libautoschedule_adams2019.*"), None)
    if plugin is None:
        sys.exit("this package halide comes without the autoscheduler Adams2019; take pip install halide==21.0.0")
    hl.load_plugin(str(plugin))
    target = halide_target(given.isa)
    print(f"Halide's target: {target}, {given.threads} threads")
    print(f"{'kernel':38} {'ours_ms':>9} {'halide_ms':>9} {'ratio':>6} {'[lowest, highest]':>18} {'trials':>6} {'halide_s':>8}")
    ratios = []
    for name in given.kernels:
        halide = HalideKernel(name, target, given.threads)
        ours, theirs, trials = [], [], []
        for seed in range(1, given.rounds + 1):
            result = searched(given, name, seed)
            ours.append(result["real_time"])  # milliseconds
            trials.append(result["trials"])
            theirs.append(halide.milliseconds())
        each = [b / a for a, b in zip(ours, theirs)]
        ratios.append(statistics.median(each))
        print(
            f"{name:38} {statistics.median(ours):9.3f} {statistics.median(theirs):9.3f} {ratios[-1]:6.2f} "
            f"{f'[{min(each):.2f}, {max(each):.2f}]':>18} {statistics.median(trials):6.0f} {halide.seconds:8.2f}",
            flush=True)
    print(f"{'geometric mean':38} {'':9} {'':9} {statistics.geometric_mean(ratios):6.2f}")


try:
    import halide as hl
    import numpy as np
except ImportError as error:
    sys.exit(f"{error}; install what is compared with: pip install halide==21.0.0")

if __name__ == "__main__":
    main()
