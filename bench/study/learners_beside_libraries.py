#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our trees and networks beside XGBoost, LightGBM and PyTorch on a CPU: time and accuracy on the same rows, in one run.

    python3 learners_beside_libraries.py --learners=PROGRAM [--threads=1,2] [--turns=7] [--data=DIR] [--seed=7]
                                         [--trees=A,B] [--networks=A,B] [--programs=1024,8192] [--epochs=2]

PROGRAM is bench/study/learners of a release build. It makes the rows, which all sides read, and fits ours. The sides
take turns, so that whatever else the machine does meets all of them. A table goes to the standard output: for each side
the median wall time and, of the ratio ours / theirs of each turn, the median and in brackets the quartiles. Below 1
ours is faster. Ratios marked `cpu` are of the time of all processors: on a busy machine the better ones for one thread,
while for several they count threads that spin while they wait for each other.

Trees: whole fits with the preparation of the data, and prediction of held out rows.
- The same rounds, depth, learning rate, bins, penalties and threads. LightGBM grows leaf by leaf, to at most as many
  leaves as the depth allows; whether it takes rows or columns it finds out itself, unless --lightgbm_rows says it.
- `one_row`: one statement a program, and each library's own squared error. `summed`: two to five statements, of which
  the scores are added, and Ansor's loss; the libraries get gradients from a function of a few lines of NumPy, as Ansor
  gives them. `tenset`: the same with squared error and TenSet's 300 rounds.
- Accuracy on the held out programs: pairs of a task in the right order, and the root of the mean squared error.

Networks: whole trainings of some epochs from the same first weights, with the same batches in the same order, and
prediction of held out programs.
- Sizes, losses and mini-batches are the defaults of our models, but that PrimitiveAttention takes mini-batches of 128.
- PyTorch runs eagerly with the fused Adam; its rows are chosen and scaled before the clock starts, ours are not.
- `loss` of the held out, and `correlation` of the scores that both sides end with. After a few steps it is 1 but for
  the seventh digit; later on a ranking loss amplifies what rounding did to a rank.

Without --data, rows are those of bench/synthetic_programs.hpp. With it, they are 30 records of every log of
roller-tvm-logs in DIR, a tenth of each task held out, and `one_row` is left out: recorded programs have several
statements. A library that is not installed is left out, and said so; when none is there, the program ends with 77.
"""

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time

MISSING = 77
TREES = {
    "one_row": {"rounds": 100, "gamma": 1e-3, "squared": True, "single_statement": True},
    "summed": {"rounds": 100, "gamma": 1e-4, "squared": False, "single_statement": False},
    "tenset": {
        "rounds": 300,
        "learning_rate": 0.2,
        "min_child_weight": 2,
        "gamma": 3e-3,
        "squared": True,
        "single_statement": False,
    },
}
TREE_DEFAULTS = {"max_depth": 6, "max_bins": 256, "learning_rate": 0.1, "min_child_weight": 0, "lambda": 1}
NETWORKS = {  # rows, programs of a training
    "mlp": ("statements", 4096),
    "pattern_aware": ("movements", 2048),
    "primitive_attention": ("primitives", 512),
    "bilstm_attention": ("statements", 1024),
}
HELD_OUT = {"trees": 4000, "networks": 512}


def installed(name, without="it is left out"):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"{error}: {without}; pip install {name}", file=sys.stderr)
        return None


class Learners:
    """The program that fits ours."""

    def __init__(self, program, folder):
        self.folder = folder
        try:
            self.process = subprocess.Popen([program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            sys.exit(f"{error}; give --learners the program bench/study/learners of a release build")

    def ask(self, what, **request):
        with contextlib.suppress(BrokenPipeError):  # there will be no answer
            self.process.stdin.write(json.dumps({"do": what} | request) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the program of --learners ended with {self.process.wait()} when it was asked for {what}")
        answer = json.loads(line)
        if "error" in answer:
            sys.exit(f"{what}: {answer['error']}")
        return answer

    def path(self, name):
        return os.path.join(self.folder, name)

    def scores(self):
        return np.fromfile(self.path("scores.f32"), np.float32)


def rmse(score, truth):
    return float(np.sqrt(np.mean((score.astype(np.float64) - truth) ** 2)))


def pairwise_accuracy(score, truth, group):
    """As stats::pairwise_accuracy: pairs of a task that differ in truth; equal scores are half right."""
    total = 0.0
    for one in np.unique(group):
        s, y = score[group == one], truth[group == one]
        first, second = np.nonzero(y[:, None] > y[None, :])
        right = np.mean((s[first] > s[second]) + 0.5 * (s[first] == s[second])) if len(first) else 0.5
        total += len(s) * right
    return total / len(score)


# ---- trees ----


class Rows:
    """What was written for all sides."""

    def __init__(self, path):
        data = np.load(path)
        self.x, self.held_out = data["features_train"], data["features_held_out"]
        self.y, self.truth = data["labels_train"], data["labels_held_out"]
        self.group = data["groups_held_out"]
        self.offsets, self.held_out_offsets = data["offsets_train"], data["offsets_held_out"]
        self.counts = np.diff(self.offsets.astype(np.int64))
        self.one_row = len(self.x) == len(self.y)

    def sums(self, of_rows):
        return np.add.reduceat(of_rows, self.held_out_offsets[:-1]) if not self.one_row else of_rows

    def slopes(self, squared):
        """Gradients and hessians of the rows, given their scores."""
        weight = np.ones_like(self.y) if squared else self.y
        hessian = np.repeat(weight, self.counts)

        def of(scores, _):
            gradient = (np.add.reduceat(scores, self.offsets[:-1]) - self.y) * weight
            return np.repeat(gradient.astype(np.float32), self.counts), hessian

        return of


def fit_xgboost(rows, options, threads):
    parameters = {
        "tree_method": "hist",
        "max_bin": options["max_bins"],
        "max_depth": options["max_depth"],
        "eta": options["learning_rate"],
        "gamma": options["gamma"],
        "min_child_weight": options["min_child_weight"],
        "lambda": options["lambda"],
        "base_score": 0,
        "nthread": threads,
        "verbosity": 0,
        "disable_default_eval_metric": 1,
    }
    began = now()
    if rows.one_row and options["squared"]:
        matrix = xgboost.QuantileDMatrix(rows.x, rows.y, max_bin=options["max_bins"], nthread=threads)
        booster = xgboost.train(parameters | {"objective": "reg:squarederror"}, matrix, options["rounds"])
    else:
        matrix = xgboost.QuantileDMatrix(rows.x, max_bin=options["max_bins"], nthread=threads)
        booster = xgboost.train(parameters, matrix, options["rounds"], obj=rows.slopes(options["squared"]))
    fit_times = now() - began
    return fit_times, lambda: booster.inplace_predict(rows.held_out, predict_type="margin")


def fit_lightgbm(rows, options, threads):
    own = rows.one_row and options["squared"]
    parameters = {
        "objective": "regression" if own else rows.slopes(options["squared"]),
        "num_leaves": 2 ** options["max_depth"],
        "max_depth": options["max_depth"],
        "max_bin": options["max_bins"],
        "learning_rate": options["learning_rate"],
        "min_gain_to_split": options["gamma"],
        "min_sum_hessian_in_leaf": options["min_child_weight"],
        "min_data_in_leaf": 1,
        "lambda_l2": options["lambda"],
        "boost_from_average": False,
        "num_threads": threads,
        "verbosity": -1,
    }
    if options["lightgbm_rows"] != "auto":
        parameters[f"force_{options['lightgbm_rows']}_wise"] = True
    began = now()
    data = lightgbm.Dataset(rows.x, rows.y if own else np.zeros(len(rows.x), np.float32), params=parameters)
    booster = lightgbm.train(parameters, data, options["rounds"])
    fit_times = now() - began
    return fit_times, lambda: booster.predict(rows.held_out, raw_score=True, num_threads=threads)


def turn_of_library(fit, rows, options, threads):
    fit_times, predict = fit(rows, options, threads)
    least, scores = least_of_five(lambda: rows.sums(predict()))
    return times("fit", fit_times) | times("predict", least), np.asarray(scores, np.float32)


def now():
    """Wall time, and time of all processors."""
    return np.array([time.perf_counter(), time.process_time()])


def least_of_five(work):
    least = np.inf
    for _ in range(5):
        began = now()
        result = work()
        least = np.minimum(least, now() - began)
    return least, result


def times(what, wall_and_cpu):
    return {what + "_s": wall_and_cpu[0], what + "_cpu_s": wall_and_cpu[1]}


def quartiles(values):
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def milliseconds(turns, what):
    return f"{1e3 * np.median([turn[what] for turn in turns]):.4g}"


def ratios(ours, theirs, what):
    return quartiles([one[what] / other[what] for one, other in zip(ours, theirs)])


def compare_trees(learners, name, programs, threads, arguments, libraries):
    options = TREE_DEFAULTS | TREES[name]
    single = options.pop("single_statement")
    request = {"rows": "statements", "seed": arguments.seed}
    if arguments.data:
        request |= {"root": arguments.data, "pool": "gpu", "split": "within_task", "records": 30}
    else:
        request |= {"programs": programs, "held_out": HELD_OUT["trees"], "tasks": 4, "single_statement": single}
    made = learners.ask("data", **request)
    rows = Rows(learners.path("data.npz"))
    turns, scores = {"ours": []} | {library: [] for library in libraries}, {}
    for turn in range(arguments.turns + 1):  # the first one warms up
        taken = {"ours": learners.ask("gbdt", threads=threads, **options)}
        scores["ours"] = learners.scores()
        for library, fit in libraries.items():
            told = options | {"lightgbm_rows": arguments.lightgbm_rows}
            taken[library], scores[library] = turn_of_library(fit, rows, told, threads)
        for side in turns if turn > 0 else ():
            turns[side].append(taken[side])
    for side, of_side in turns.items():
        accuracy = 100 * pairwise_accuracy(scores[side], rows.truth, rows.group)
        cells = [name, f"{made['programs']}", f"{threads}", side]
        cells += [milliseconds(of_side, what) for what in ("fit_s", "predict_s")]
        for what in ("fit_s", "fit_cpu_s", "predict_s"):
            cells.append("" if side == "ours" else ratios(turns["ours"], of_side, what))
        print_row(*cells, f"{accuracy:.1f}", f"{rmse(scores[side], rows.truth):.4f}")


# ---- networks ----


def compare_networks(learners, name, threads, arguments):
    rows, programs = NETWORKS[name]
    request = {"rows": rows, "seed": arguments.seed}
    if arguments.data:
        request |= {"root": arguments.data, "pool": "gpu", "split": "within_task", "records": 30}
    else:
        request |= {"programs": programs, "held_out": HELD_OUT["networks"], "tasks": 4, "single_statement": False}
    made = learners.ask("data", **request)
    training = learners.ask("start", network=name, epochs=arguments.epochs, seed=1)
    data = np.load(learners.path("data.npz"))
    order = np.fromfile(learners.path("order.u32"), np.uint32).reshape(arguments.epochs, -1)
    torch_side = torch_networks.Side(name, data, learners.path("start.safetensors"), order, training)
    ours, theirs = [], []
    for turn in range(arguments.turns + 1):
        answer = learners.ask("train", threads=threads, epochs=arguments.epochs)
        scores = learners.scores()
        training_times = torch_side.train(threads, now)
        predict_times, their_scores = least_of_five(lambda: torch_side.predict(threads))
        if turn > 0:
            ours.append(answer)
            theirs.append(times("train", training_times) | times("predict", predict_times))
    truth, group = data["labels_held_out"], data["groups_held_out"]
    cells = [name, f"{made['programs']}", f"{threads}"]
    for what in ("train", "predict"):
        cells += [milliseconds(one, what + "_s") for one in (ours, theirs)]
        cells += [ratios(ours, theirs, what + clock) for clock in ("_s", "_cpu_s")]
    cells += [f"{100 * pairwise_accuracy(one, truth, group):.1f}" for one in (scores, their_scores)]
    cells += [f"{torch_side.loss(one, truth):.4g}" for one in (scores, their_scores)]
    print_row(*cells, f"{np.corrcoef(scores, their_scores)[0, 1]:.7f}")


def print_row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def print_head(*cells):
    print()
    print_row(*cells)
    print_row(*("---" for _ in cells))


def names_of(known):
    def parse(text):
        chosen = [name for name in text.split(",") if name]
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no '{name}'; choose from {', '.join(known)}")
        return chosen

    return parse


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' was given; give a positive whole number")
    return int(text)


def numbers(text):
    return [positive(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", required=True, help="the program bench/study/learners of a release build")
    parser.add_argument("--data", help="folder that has roller-tvm-logs/")
    parser.add_argument("--seed", type=int, default=7, help="of the rows and of what is held out")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--turns", type=positive, default=7, help="after one that warms up")
    parser.add_argument("--trees", type=names_of(TREES), default=list(TREES), help="these; none if empty")
    parser.add_argument("--networks", type=names_of(NETWORKS), default=list(NETWORKS), help="these; none if empty")
    parser.add_argument("--programs", type=numbers, default=[1024, 8192], help="that trees learn from")
    parser.add_argument("--epochs", type=positive, default=2, help="of networks")
    parser.add_argument("--lightgbm_rows", choices=["auto", "row", "col"], default="auto")
    arguments = parser.parse_args()
    if arguments.data and "one_row" in arguments.trees:
        print("one_row is left out: the programs of --data have several statements", file=sys.stderr)
        arguments.trees = [name for name in arguments.trees if name != "one_row"]

    global np, xgboost, lightgbm, torch_networks
    np = installed("numpy", "nothing can be compared")
    if np is None:
        sys.exit(MISSING)
    xgboost, lightgbm, torch = installed("xgboost"), installed("lightgbm"), installed("torch")
    libraries = {}
    if xgboost:
        libraries["XGBoost"] = fit_xgboost
    if lightgbm:
        libraries["LightGBM"] = fit_lightgbm
    if not libraries and not torch:
        print("none of the libraries is installed: there is nothing to compare with", file=sys.stderr)
        sys.exit(MISSING)
    if torch:
        torch_networks = importlib.import_module("torch_networks")
    versions = [f"{module.__name__} {module.__version__}" for module in (xgboost, lightgbm, torch) if module]
    print(", ".join(versions), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        learners = Learners(arguments.learners, folder)
        if libraries and arguments.trees:
            print_head(
                "trees", "programs", "threads", "", "fit, ms", "predict, ms", "fit, ours / theirs", "cpu",
                "predict, ours / theirs", "accuracy, %", "RMSE",
            )  # fmt: skip
            for name in arguments.trees:
                for programs in [0] if arguments.data else arguments.programs:
                    for threads in arguments.threads:
                        compare_trees(learners, name, programs, threads, arguments, libraries)
        if torch and arguments.networks:
            print_head(
                "network", "programs", "threads", "train, ms", "PyTorch", "ours / PyTorch", "cpu", "predict, ms",
                "PyTorch", "ours / PyTorch", "cpu", "accuracy, %", "PyTorch", "loss", "PyTorch", "correlation",
            )  # fmt: skip
            for name in arguments.networks:
                for threads in arguments.threads:
                    compare_networks(learners, name, threads, arguments)


if __name__ == "__main__":
    main()
