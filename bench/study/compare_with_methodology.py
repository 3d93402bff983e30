#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Performance scores of finished searches by the program of the paper that defines the score.

    python3 compare_with_methodology.py CACHE RUNS [--problem NAME] [--from 0.5] [--to 0.95]

CACHE is a Kernel Tuner cache file (.json or .json.gz) of a whole space; the objective is its "time", the mean of the
repeats in milliseconds. RUNS has a search on each line, in JSON:

    {"recipe": "ansor", "problem": "convolution", "seed": 1, "trials": 64, "improvements": [[1, 0.2, 0.0021], ...]}

with improvements of trial, seconds since the search began and best latency in seconds. Lines of another problem are
skipped; without --problem all lines have to name the same one. It prints a recipe and its score on each line, which
are those of include/tunewright/study/performance_score.hpp.

The curves, the baseline and the shares of the way to the optimum come from the package autotuning_methodology (pip
install autotuning_methodology==1.1.0): Willemsen et al., A Methodology for Comparing Auto-Tuning Optimization
Algorithms, FGCS 2024, doi 10.1016/j.future.2024.05.021. Three things are done here because the package does not do
them: a search that ended early keeps its best latency, the worst configuration stands for searches none of which has
a valid trial yet, and a range of fewer than two trials is widened by trials alone (the package compares their number
with a latency).
"""

import argparse
import gzip
import json
import sys
import warnings
from collections import defaultdict
from types import SimpleNamespace

try:
    import numpy as np
    from autotuning_methodology.baseline import RandomSearchCalculatedBaseline
    from autotuning_methodology.curves import StochasticOptimizationAlgorithm
    from autotuning_methodology.searchspace_statistics import SearchspaceStatistics
except ImportError as error:
    sys.exit(f"{error}; install the reference program: pip install autotuning_methodology==1.1.0")

OLD_MARK_OF_FAILURE = 1e20


class Space(SearchspaceStatistics):
    """Statistics of a space whose latencies are known already, where the package would read its own format."""

    def __init__(self, latencies):
        valid = np.sort(latencies[~np.isnan(latencies)])
        if len(valid) == 0:
            sys.exit(f"none of the {len(latencies)} configurations of the cache is valid")
        self.minimization = True
        self.objective_performances_total = latencies
        self.objective_performances_total_sorted = valid
        self.objective_performances_total_sorted_nan = np.concatenate([valid, latencies[np.isnan(latencies)]])

    def trials(self, start, end):
        """Every number of trials over which searches are compared."""
        first, last = self.cutoff_point(start)[1], self.cutoff_point(end)[1]
        if last - first < 2:
            last = min(self.cutoff_point(1.0)[1], last + (1 if first > 0 else 2))
            first = max(0, first - 1)
        return np.arange(first, last + 1)


def read_space(path):
    """Latencies in milliseconds, NaN for a configuration that failed."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        text = file.read()
    try:
        cache = json.loads(text)["cache"]
    except json.JSONDecodeError:  # a session that was interrupted leaves the braces open
        cache = json.loads(text.rstrip().rstrip(",") + "}}")["cache"]
    times = [record["time"] for record in cache.values()]
    failed = [not isinstance(time, (int, float)) or not time < OLD_MARK_OF_FAILURE for time in times]
    return np.array([np.nan if bad else time for time, bad in zip(times, failed)], dtype=float)


def read_runs(path, problem):
    """Searches by recipe, in the order in which recipes are met."""
    recipes, problems = defaultdict(list), set()
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                run = json.loads(line)
                name = run["problem"]
                if problem is None or name == problem:
                    problems.add(name)
                    recipes[run["recipe"]].append([(int(trial), best_s) for trial, _, best_s in run["improvements"]])
            except (KeyError, TypeError, ValueError) as error:
                sys.exit(f"{path}:{number}: this is no search: {error!r}")
    if len(problems) != 1:
        found = ", ".join(sorted(problems)) or "none"
        sys.exit(f"{path}: one problem is wanted, these were found: {found}; name one with --problem")
    return recipes


def bests(improvements, ascending, last):
    """Best latency in milliseconds after 1 to `last` trials, NaN before the first valid one."""
    curve = np.full(last, np.nan)
    for trial, best_s in improvements:
        wanted = best_s * 1e3  # which may not be the very number that was divided
        nearest = ascending[np.argmin(np.abs(ascending - wanted))]
        if not abs(nearest - wanted) <= 1e-9 * wanted:
            sys.exit(f"no configuration of the cache takes {best_s} s; were the searches on this space and its 'time'?")
        curve[trial - 1 :] = nearest
    return curve


def median_curve(runs, ascending, trials):
    """The curve of the searches by the package."""
    last = trials[-1]
    table = np.column_stack([bests(run, ascending, last) for run in runs])  # (trials, searches)
    table[np.isnan(table).all(axis=1)] = ascending[-1]
    numbers = np.tile(np.arange(1.0, last + 1)[:, None], (1, table.shape[1]))
    results = SimpleNamespace(
        fevals_results=numbers,
        objective_time_results=numbers,
        objective_time_results_per_key=numbers[None],
        objective_performance_best_results=table,
        objective_performance_results_per_key=table[None],
    )
    description = SimpleNamespace(
        group_name="recipe",
        group_display_name="recipe",
        device_name="device",
        application_name="problem",
        stochastic=True,
        minimization=True,
        get_results=lambda: results,
    )
    counted = trials[trials > 0]
    _, _, curve, _, _ = StochasticOptimizationAlgorithm(description).get_curve_over_fevals(
        counted, dist=ascending, return_split=False
    )
    return np.concatenate([[ascending[-1]] * (len(trials) - len(counted)), curve])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", help="Kernel Tuner cache file of the whole space")
    parser.add_argument("runs", help="finished searches, JSON lines")
    parser.add_argument("--problem", help="problem in RUNS that CACHE records")
    parser.add_argument("--from", dest="start", type=float, default=0.5, help="share of the way where the range starts")
    parser.add_argument("--to", dest="end", type=float, default=0.95, help="and where it ends")
    arguments = parser.parse_args()

    recipes = read_runs(arguments.runs, arguments.problem)
    warnings.simplefilter("ignore")  # the package tells of ranges that it cuts
    space = Space(read_space(arguments.cache))
    baseline = RandomSearchCalculatedBaseline(space)
    try:
        trials = space.trials(arguments.start, arguments.end)
    except ValueError as error:
        sys.exit(f"{arguments.cache}: {error.args[0]}")
    print(f"# {len(baseline.dist_ascending)} valid configurations, trials {trials[0]} to {trials[-1]}", file=sys.stderr)
    for recipe, runs in recipes.items():
        curve = median_curve(runs, baseline.dist_ascending, trials)
        try:
            scores = baseline.get_standardised_curve(trials, curve, x_type="fevals")
        except ValueError:  # the package divides by the distance from random search to the optimum
            sys.exit(f"{arguments.cache}: random search is expected at the optimum by trial {trials[-1]} or before")
        print(f"{recipe}\t{np.mean(scores):.12f}")


if __name__ == "__main__":
    main()
