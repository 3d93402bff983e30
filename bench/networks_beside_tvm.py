#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks, tuned by us and by TVM's tuner, MetaSchedule, with as many trials for each task, in turns.

    python3 networks_beside_tvm.py --bench=BUILD/bench/bench_end_to_end [--networks=resnet50] [--trials=16]
                                   [--rounds=11] [--layout=NHWC|NCHW] [--minutes=15] [--threads=N] [--seed=1]
                                   [--timeout=30] [--out=FILE]

For each network (resnet50, mobilenet_v2) the same architecture is written as an ONNX file with made-up weights. TVM
imports it, converts its convolutions to --layout, and tunes each of its tasks with --trials; bench_end_to_end tunes
ours with as many trials a task on average, and for at most --minutes. Then both run in turns, --rounds times, with
batch 1, float32 and the same number of threads, as in networks_beside_libraries.py: an inference is a whole call, with
inputs copied in and outputs copied out. A line for each network:

    ours_ms, tvm_ms           medians of the turns
    ratio                     tvm / ours, median of the turns [quartiles]; above 1, ours is faster
    ours_s, tvm_s             seconds of tuning
    ours_trials, tvm_trials   measured, with the failed ones in brackets
    ours_tasks, tvm_tasks     how many there are; TVM's without a trial that ran, in brackets, stay as they are

--out has all turns as JSON. TVM's outputs are checked against onnxruntime's. TVM may reorder weights ahead of time.

Run it on an idle machine: TVM's search measures in processes of its own, which lose time to whatever else runs. On a
busy one its candidates are not even compiled within its limit of 30 seconds, which --timeout extends.

Needs what networks_beside_libraries.py and kernels_beside_tvm.py need: pip install torch torchvision onnx onnxscript
onnxruntime apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1 xgboost psutil cloudpickle
"""

import argparse
import os
import sys
import tempfile
import time

from kernels_beside_tvm import Tally, compare_all, measuring, ms, sides, tvm
from networks_beside_libraries import model_of, np, onnxruntime, torch
from our_side import Served, checked, turn_of, usual_threads

import onnx
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

NETWORKS = ["resnet50", "mobilenet_v2"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program bench_end_to_end")
    parser.add_argument("--networks", default="resnet50", help="separated by commas: " + ", ".join(NETWORKS))
    parser.add_argument("--trials", type=int, default=16, help="for each task, of both sides")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--layout", default="NHWC", choices=["NHWC", "NCHW"], help="of TVM's convolutions")
    parser.add_argument("--minutes", type=int, default=15, help="at most, for our search")
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--seed", type=int, default=1, help="of TVM's search")
    parser.add_argument("--timeout", type=int, default=30, help="seconds in which TVM compiles or runs a candidate")
    parser.add_argument("--out", default="")
    return checked(parser, "bench_end_to_end", ("trials", "rounds", "minutes", "threads", "seed", "timeout"),
                   "networks", NETWORKS)


class TvmNetwork:
    """A network that TVM tuned and compiled. The passes are those of its own `static_shape_tuning_pipeline`, which does
    not tell what a search measured."""

    def __init__(self, path, target, given):
        module = relax.transform.DecomposeOpsForInference()(from_onnx(onnx.load(path)))
        if given.layout == "NHWC":
            module = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]})(module)
        self.tally = Tally()
        start = time.perf_counter()
        with target, tempfile.TemporaryDirectory() as folder:
            module = tvm.transform.Sequential([
                relax.transform.CanonicalizeBindings(),
                relax.get_pipeline("zero"),
                relax.transform.AttachAttrLayoutFreeBuffers(),
            ])(module)
            extracted = ms.relax_integration.extract_tasks(module, target)
            tasks, weights = ms.relax_integration.extracted_tasks_to_tune_contexts(extracted, folder, seed=given.seed)
            database = ms.database.JSONDatabase(work_dir=folder)
            ms.tune.tune_tasks(
                tasks=tasks, task_weights=weights, work_dir=folder, database=database,
                max_trials_global=given.trials * len(tasks), max_trials_per_task=given.trials,
                num_trials_per_iter=min(64, given.trials), **measuring(self.tally, given.timeout))
            self.search_s = time.perf_counter() - start
            self.tasks = len(tasks)
            self.untuned = [task.task_name for i, task in enumerate(tasks) if i not in self.tally.lowest_s]
            with database:
                module = relax.transform.MetaScheduleApplyDatabase()(module)
            module = tvm.transform.Sequential([
                relax.transform.SplitLayoutRewritePreproc(),
                relax.transform.FoldConstant(),
            ])(module)
        self.machine = relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())

    def run(self, inputs):
        out = self.machine["main"](*[tvm.runtime.tensor(value) for value in inputs])
        return out.numpy() if hasattr(out, "numpy") else out[0].numpy()


def compare(network, target, given):
    model, inputs = model_of(network)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, network + ".onnx")
        torch.onnx.export(model.eval(), inputs, path, dynamo=False)
        values = [value.numpy() for value in inputs]
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        expected = session.run(None, {at.name: value for at, value in zip(session.get_inputs(), values)})[0]
        del session  # and its threads
        theirs = TvmNetwork(path, target, given)
    error = float(np.abs(theirs.run(values) - expected).max() / np.abs(expected).max())
    if not error < 1e-3:
        raise RuntimeError(f"TVM's outputs are not those of onnxruntime: they differ by {error:.2g} of the largest")

    def run_theirs():
        start = time.perf_counter()
        theirs.run(values)
        return time.perf_counter() - start

    command = [given.bench, "--serve", f"--benchmark_filter={network}", f"--minutes={given.minutes}",
               f"--trials={given.trials}", f"--threads={given.threads}"]
    with Served(command) as ours:
        both = (ours.seconds, run_theirs)
        turns = [[turn_of(side, warm_ups=3, inferences=5) for side in both] for _ in range(given.rounds + 1)][1:]
    return {
        "network": network, "threads": given.threads, "tvm": tvm.__version__, "target": str(target),
        "layout": given.layout, "trials_per_task": given.trials, "minutes": given.minutes, "turns_s": turns,
        "ours_search_s": ours.found["seconds"], "ours_trials": int(ours.found["trials"]),
        "ours_failed": int(ours.found["failed"]), "ours_tasks": int(ours.found["tasks"]),
        "tvm_search_s": theirs.search_s, "tvm_trials": theirs.tally.trials, "tvm_failed": theirs.tally.failed,
        "tvm_first_failure": theirs.tally.first_failure, "tvm_tasks": theirs.tasks, "tvm_untuned": theirs.untuned,
        "tvm_relative_error": error}


def report(result):
    print(f"{result['network']} {result['layout']} {sides(result)} ours_tasks={result['ours_tasks']} "
          f"tvm_tasks={result['tvm_tasks']} ({len(result['tvm_untuned'])})", flush=True)
    if result["tvm_untuned"]:
        print(f"{result['network']}: TVM has no schedule of {', '.join(result['tvm_untuned'])}", file=sys.stderr)


if __name__ == "__main__":
    options = arguments()
    compare_all(options.networks, compare, report, options)
