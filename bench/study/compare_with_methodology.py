#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Performance scores of finished searches by the program of the paper that defines the score.

    python3 compare_with_methodology.py CACHE RUNS [--problem NAME] [--from 0.5] [--to 0.95]
                                        [--seconds [--points N] [--bagging]]

CACHE is a Kernel Tuner cache file (.json or .json.gz) of a whole space; the objective is its "time", the mean of the
repeats in milliseconds. RUNS has a search on each line, in JSON:

    {"recipe": "ansor", "problem": "convolution", "seed": 1, "trials": 64, "improvements": [[1, 0.2, 0.0021], ...]}

with improvements of trial, seconds since the search began and best latency in seconds. Lines of another problem are
skipped; without --problem all lines have to name the same one. It prints a recipe and its score on each line, which
are those of include/tunewright/study/performance_score.hpp: over trials, or with --seconds over seconds, of which it
looks at N evenly spaced points, 1000 unless given.

The curves, the baseline and the shares of the way to the optimum come from the package autotuning_methodology (pip
install autotuning_methodology==1.1.0): Willemsen et al., A Methodology for Comparing Auto-Tuning Optimization
Algorithms, FGCS 2024, doi 10.1016/j.future.2024.05.021. Three things are done here because the package does not do
them: a search that ended early keeps its best latency, the worst configuration stands for searches none of which has
a valid trial yet (over seconds for each that has none), and a range of fewer than two trials is widened by trials
alone (the package compares their number with a latency).

Over seconds the package has two ways to put searches together: medians, and falling curves through the evaluations of
samples of the searches, averaged ("bagging", its default, which is another each time). Scores are by medians; with
--bagging they are by the other way, for comparison. Both are given each search at the points of the range, because RUNS
has only evaluations that were faster than all before. A trial of CACHE costs its compile_time and benchmark_time,
failed ones as well.
"""

import argparse
import functools
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
    """Statistics of a space whose latencies, and what it took to measure each, are known already, where the package
    would read its own format."""

    def __init__(self, latencies, costs_s=None):
        valid = np.sort(latencies[~np.isnan(latencies)])
        if len(valid) == 0:
            sys.exit(f"none of the {len(latencies)} configurations of the cache is valid")
        self.minimization = True
        self.objective_performances_total = latencies
        self.objective_performances_total_sorted = valid
        self.objective_performances_total_sorted_nan = np.concatenate([valid, latencies[np.isnan(latencies)]])
        if costs_s is not None:
            self.size = len(costs_s)
            self.objective_times_total = costs_s
            self.objective_times_total_sorted = np.sort(costs_s)

    def trials(self, start, end):
        """Every number of trials over which searches are compared."""
        first, last = self.cutoff_point(start)[1], self.cutoff_point(end)[1]
        if last - first < 2:
            last = min(self.cutoff_point(1.0)[1], last + (1 if first > 0 else 2))
            first = max(0, first - 1)
        return np.arange(first, last + 1)

    def seconds(self, start, end, points):
        """Evenly spaced times over which searches are compared."""
        trials = self.trials(start, end)
        first, last = (self.cutoff_point_time_from_fevals(int(trial)) for trial in (trials[0], trials[-1]))
        return np.linspace(first, last, points)


def read_space(path):
    """Latencies in milliseconds, NaN for a configuration that failed, and what measuring each took, in seconds."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        text = file.read()
    try:
        cache = json.loads(text)["cache"]
    except json.JSONDecodeError:  # a session that was interrupted leaves the braces open
        cache = json.loads(text.rstrip().rstrip(",") + "}}")["cache"]
    costs_ms = [record.get("compile_time", 0) + record.get("benchmark_time", 0) for record in cache.values()]
    times = [record["time"] for record in cache.values()]
    failed = [not isinstance(time, (int, float)) or not time < OLD_MARK_OF_FAILURE for time in times]
    latencies = np.array([np.nan if bad else time for time, bad in zip(times, failed)], dtype=float)
    return latencies, np.array(costs_ms, dtype=float) / 1e3


def read_runs(path, problem):
    """Searches by recipe, in the order in which recipes are met, each as (trial, seconds, best latency)."""
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
                    recipes[run["recipe"]].append([(int(t), at_s, best_s) for t, at_s, best_s in run["improvements"]])
            except (KeyError, TypeError, ValueError) as error:
                sys.exit(f"{path}:{number}: this is no search: {error!r}")
    if len(problems) != 1:
        found = ", ".join(sorted(problems)) or "none"
        sys.exit(f"{path}: one problem is wanted, these were found: {found}; name one with --problem")
    return recipes


def bests(improvements, ascending, effort, places):
    """Best latency in milliseconds at each of the rising `places`, NaN before the first valid one; `effort` is 0 where
    these are trials and 1 where they are seconds."""
    curve = np.full(len(places), np.nan)
    for improvement in improvements:
        best_s = improvement[2]
        wanted = best_s * 1e3  # which may not be the very number that was divided
        nearest = ascending[np.argmin(np.abs(ascending - wanted))]
        if not abs(nearest - wanted) <= 1e-9 * wanted:
            sys.exit(f"no configuration of the cache takes {best_s} s; were the searches on this space and its 'time'?")
        curve[np.searchsorted(places, improvement[effort]) :] = nearest
    return curve


def algorithm(numbers, times, table):
    """Searches as the package wants them: trials, seconds and best latencies of each, (places, searches)."""
    results = SimpleNamespace(
        fevals_results=numbers,
        objective_time_results=times,
        objective_time_results_per_key=times[None],
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
    return StochasticOptimizationAlgorithm(description)


def curve_over_trials(runs, ascending, trials):
    """The curve of the searches by the package."""
    counted = np.arange(1.0, trials[-1] + 1)
    table = np.column_stack([bests(run, ascending, 0, counted) for run in runs])
    table[np.isnan(table).all(axis=1)] = ascending[-1]
    numbers = np.tile(counted[:, None], (1, table.shape[1]))
    wanted = trials[trials > 0]
    _, _, curve, _, _ = algorithm(numbers, numbers, table).get_curve_over_fevals(
        wanted, dist=ascending, return_split=False
    )
    return np.concatenate([[ascending[-1]] * (len(trials) - len(wanted)), curve])


def curve_over_seconds(runs, ascending, seconds, bagging=False):
    """The curve of the searches by the package."""
    table = np.column_stack([bests(run, ascending, 1, seconds) for run in runs])
    table[np.isnan(table)] = ascending[-1]
    numbers = np.tile(np.arange(1.0, len(seconds) + 1)[:, None], (1, table.shape[1]))
    times = np.tile(seconds[:, None], (1, table.shape[1]))
    _, _, curve, _, _ = algorithm(numbers, times, table).get_curve_over_time(
        seconds, dist=ascending, confidence_level=0.95, return_split=False, use_bagging=bagging
    )
    return curve


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", help="Kernel Tuner cache file of the whole space")
    parser.add_argument("runs", help="finished searches, JSON lines")
    parser.add_argument("--problem", help="problem in RUNS that CACHE records")
    parser.add_argument("--from", dest="start", type=float, default=0.5, help="share of the way where the range starts")
    parser.add_argument("--to", dest="end", type=float, default=0.95, help="and where it ends")
    parser.add_argument("--seconds", action="store_true", help="score over seconds, not over trials")
    parser.add_argument("--points", type=int, default=1000, help="of the range of seconds that are looked at")
    parser.add_argument("--bagging", action="store_true", help="the package's default way of curves over seconds")
    arguments = parser.parse_args()

    recipes = read_runs(arguments.runs, arguments.problem)
    warnings.simplefilter("ignore")  # the package tells of ranges that it cuts
    space = Space(*read_space(arguments.cache))
    baseline = RandomSearchCalculatedBaseline(space)
    try:
        trials = space.trials(arguments.start, arguments.end)
        seconds = space.seconds(arguments.start, arguments.end, arguments.points)
    except ValueError as error:
        sys.exit(f"{arguments.cache}: {error.args[0]}")
    if arguments.seconds:
        find_curve = functools.partial(curve_over_seconds, bagging=arguments.bagging)
        kind, places, what = "time", seconds, "seconds"
    else:
        kind, places, find_curve, what = "fevals", trials, curve_over_trials, "trials"
    first, last = (round(float(place), 3) for place in (places[0], places[-1]))
    print(f"# {len(baseline.dist_ascending)} valid configurations, {what} {first:g} to {last:g}", file=sys.stderr)
    for recipe, runs in recipes.items():
        curve = find_curve(runs, baseline.dist_ascending, places)
        try:
            scores = baseline.get_standardised_curve(places, curve, x_type=kind)
        except ValueError:  # the package divides by the distance from random search to the optimum
            sys.exit(f"{arguments.cache}: random search is expected at the optimum within {what} {first:g} to {last:g}")
        print(f"{recipe}\t{np.mean(scores):.12f}")


if __name__ == "__main__":
    main()
