#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels that our tuner finds beside those that TVM's tuner, MetaSchedule, finds, in one run.

    python3 kernels_beside_tvm.py --bench=BUILD/bench/bench_cpu_kernels [--kernels=A,B] [--trials=512]
                                  [--our_trials=100] [--rounds=21] [--threads=N] [--seed=1] [--timeout=30]
                                  [--out=FILE]

Each side searches for the same computation, for the instructions of this machine and the same number of threads: ours
for --our_trials trials, TVM for --trials with its own settings. Then the fastest that each found take turns, --rounds
times. A turn waits until the threads of the other side sleep, warms up, and is the median of five repeats of at least 2
ms. A line for each kernel:

    ours_ms, tvm_ms           medians of the turns, one call on warm caches
    ratio                     tvm / ours, median of the turns [quartiles]; above 1, ours is faster
    ours_s, tvm_s             seconds of searching, for TVM with its extraction of tasks and its XGBoost
    ours_trials, tvm_trials   measured, with the failed ones in brackets
    tvm_search_ms             the lowest time that TVM saw in its own search, one mean of at least 100 ms
    ratio_search              the same / ours: the number that is the most favourable to TVM

--out has all turns as JSON. TVM's result is checked against numpy, ours is checked while it is tuned. Weights of
convolutions are constants on both sides, and may be reordered ahead of time.

Run it on an idle machine: TVM's search measures in processes of its own, which lose time to whatever else runs. On a
busy one its candidates are not even compiled within its limit of 30 seconds, which --timeout extends.

Needs TVM: pip install apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1 xgboost psutil cloudpickle
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import traceback

from our_side import Served, checked, quartiles, usual_threads


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program bench_cpu_kernels")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="names of the suite, separated by commas")
    parser.add_argument("--trials", type=int, default=512, help="TVM's")
    parser.add_argument("--our_trials", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--seed", type=int, default=1, help="of both searches")
    parser.add_argument("--timeout", type=int, default=30, help="seconds in which TVM compiles or runs a candidate")
    parser.add_argument("--out", default="")
    return checked(parser, "bench_cpu_kernels", ("trials", "our_trials", "rounds", "threads", "seed", "timeout"),
                   "kernels", KERNELS)


def product(m, n, k):
    """C = A B."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c]), [(m, k), (k, n), (m, n)], lambda a, b: a @ b


def convolution(size, channels_in, channels_out, kernel):
    """Stride 1 and as much padding as keeps the size, channels last; the weight is a constant."""
    edge = kernel // 2
    shapes = [(1, size, size, channels_in), (kernel, kernel, channels_in, channels_out), (1, size, size, channels_out)]
    data, weight = te.placeholder(shapes[0], name="data"), te.placeholder(shapes[1], name="weight")
    out = topi.nn.conv2d(data, weight, 1, edge, 1, data_layout="NHWC", kernel_layout="HWIO", out_dtype="float32")
    function = te.create_prim_func([data, weight, out]).with_attr("layout_free_buffers", [1])

    def expected(data, weight):
        padded = np.pad(data, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        taps = [(i, j) for i in range(kernel) for j in range(kernel)]
        return sum(padded[:, i:i + size, j:j + size] @ weight[i, j] for i, j in taps)

    return function, shapes, expected


KERNELS = {
    "matmul/512x512x512": lambda: product(512, 512, 512),
    "matmul/1024x1024x1024": lambda: product(1024, 1024, 1024),
    "matmul/128x3072x768": lambda: product(128, 3072, 768),
    "conv2d_resnet50/56x56x64_64_k3_s1": lambda: convolution(56, 64, 64, 3),
}


class Tally:
    """What a search of TVM measured."""

    def __init__(self):
        self.trials, self.failed, self.lowest_s, self.first_failure = 0, 0, {}, ""

    def add(self, task, built, ran):
        self.trials += 1
        error = built.error_msg or ran.error_msg
        if error:
            self.failed += 1
            self.first_failure = self.first_failure or str(error).strip()
        else:
            seconds = statistics.mean(float(second) for second in ran.run_secs)
            self.lowest_s[task] = min(seconds, self.lowest_s.get(task, seconds))


def measuring(tally, timeout_s):
    """How TVM's search measures, which is what it does without being told but for the limit, and that it is counted."""

    @derived_object
    class Counting(ms.measure_callback.PyMeasureCallback):
        def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
            for built, ran in zip(builder_results, runner_results):
                tally.add(int(task_id), built, ran)

    return {
        "builder": ms.builder.LocalBuilder(max_workers=ms.utils.cpu_count(logical=False), timeout_sec=timeout_s),
        "runner": ms.runner.LocalRunner(timeout_sec=timeout_s),
        "measure_callbacks": [*ms.measure_callback.MeasureCallback.create("default"), Counting()]}


def host_target(threads):
    """TVM's target of this machine; kernels and the processes that measure them run with as many threads."""
    os.environ["TVM_NUM_THREADS"] = str(threads)  # read when the first kernel runs
    return tvm.target.Target({"kind": "llvm", "mcpu": llvm_get_system_cpu(), "num-cores": threads})


class TvmKernel:
    """A computation that TVM tuned and compiled."""

    def __init__(self, name, target, given):
        function, shapes, expected = KERNELS[name]()
        self.tally = Tally()
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            database = ms.tir_integration.tune_tir(
                function, target, folder, given.trials, num_trials_per_iter=min(64, given.trials), seed=given.seed,
                **measuring(self.tally, given.timeout))
            self.search_s = time.perf_counter() - start
            schedule = ms.tir_integration.compile_tir(database, function, target)
        if schedule is None:
            raise RuntimeError(f"no trial of TVM's {self.tally.trials} succeeded; the first error: "
                               f"{self.tally.first_failure}")
        rng = np.random.default_rng(0)
        arrays = [rng.uniform(-1, 1, extents).astype(np.float32) for extents in shapes]
        tensors = [tvm.runtime.tensor(array) for array in arrays]
        tvm.compile(schedule.mod, target=target)["main"](*tensors)
        if not np.allclose(tensors[-1].numpy(), expected(*arrays[:-1]), rtol=1e-4, atol=1e-3):
            raise RuntimeError(f"TVM's kernel of {name} does not compute what numpy does")
        # As its search measures: reordering weights is no part of a call, which reads them in their new shape.
        ahead = tvm.s_tir.transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(schedule.mod)
        main = ahead["main"]
        read = [[int(extent) for extent in parameter.shape] for parameter in main.params]
        tensors = [tvm.runtime.tensor(rng.uniform(-1, 1, extents).astype(np.float32)) for extents in read]
        module = tvm.compile(ahead, target=target).jit()
        evaluator = module.time_evaluator("main", tvm.cpu(), number=1, repeat=8, min_repeat_ms=2)
        self.seconds = lambda: statistics.median(evaluator(*tensors).results[3:])


def compare(name, target, given):
    command = [given.bench, f"--serve={name}", f"--trials={given.our_trials}", f"--threads={given.threads}",
               f"--seed={given.seed}"]
    with Served(command) as ours:
        theirs = TvmKernel(name, target, given)
        turns = []
        for turn in range(given.rounds + 1):
            pair = []
            for seconds in (ours.seconds, theirs.seconds):
                time.sleep(0.05)
                pair.append(seconds())
            if turn > 0:
                turns.append(pair)
        return {
            "kernel": name, "threads": given.threads, "tvm": tvm.__version__, "target": str(target),
            "turns_s": turns, "tvm_search_lowest_s": theirs.tally.lowest_s[0],
            "ours_search_s": ours.found["seconds"], "tvm_search_s": theirs.search_s,
            "ours_trials": int(ours.found["trials"]), "ours_failed": int(ours.found["failed"]),
            "tvm_trials": theirs.tally.trials, "tvm_failed": theirs.tally.failed,
            "tvm_first_failure": theirs.tally.first_failure}


def sides(result):
    """What is told of both sides of a comparison: latencies, their ratio, seconds and trials."""
    ours, theirs = (statistics.median(side) for side in zip(*result["turns_s"]))
    low, middle, high = quartiles([b / a for a, b in result["turns_s"]])
    if result["tvm_failed"]:
        print(f"the first of TVM's failed trials: {result['tvm_first_failure']}", file=sys.stderr)
    return (f"ours_ms={1e3 * ours:.3f} tvm_ms={1e3 * theirs:.3f} ratio={middle:.3f} [{low:.3f}, {high:.3f}] "
            f"ours_s={result['ours_search_s']:.1f} tvm_s={result['tvm_search_s']:.1f} "
            f"ours_trials={result['ours_trials']} ({result['ours_failed']}) "
            f"tvm_trials={result['tvm_trials']} ({result['tvm_failed']})")


def report(result):
    ours = statistics.median(mine for mine, _ in result["turns_s"])
    lowest = result["tvm_search_lowest_s"]
    print(f"{result['kernel']} {sides(result)} tvm_search_ms={1e3 * lowest:.3f} ratio_search={lowest / ours:.3f}",
          flush=True)


def compare_all(names, compare, report, given):
    """Each of `names` on its own; the exit status is 1 if one could not be compared."""
    target = host_target(given.threads)
    print(f"TVM {tvm.__version__}, {target}, {given.threads} threads", flush=True)
    results, failed = [], False
    for name in names:
        try:
            results.append(compare(name, target, given))
            report(results[-1])
        except Exception as error:  # of any kind that TVM throws; the others are still compared
            failed = True
            traceback.print_exc()
            print(f"{name} was not compared: {error}", flush=True)
            results.append({"name": name, "error": str(error)})
        if given.out:
            with open(given.out, "w") as file:
                json.dump(results, file, indent=1)
    sys.exit(failed)


try:
    import numpy as np
    import tvm
    import xgboost  # noqa: F401: of TVM's search
    from tvm import te, topi
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms
    from tvm.target.codegen import llvm_get_system_cpu
except ImportError as error:
    sys.exit(f"{error}; install what is compared with: pip install apache-tvm==0.27.0.post1 "
             "apache-tvm-ffi==0.1.14.post1 xgboost psutil cloudpickle")

if __name__ == "__main__":
    options = arguments()
    compare_all(options.kernels, compare, report, options)
