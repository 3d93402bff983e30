// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/study/course.hpp"

/// Running time of searches to a target. Searches that do not reach it count as unfinished: omitting them would favour
/// a recipe that either succeeds at once or never.
namespace tunewright::study {

/// The effort of a search.
enum class Effort {
  Trials,   ///< measurements, failed ones included
  Seconds,  ///< wall-clock time since the search began
};

/// The effort of `run` until it reached `target_s`, a latency in seconds; empty if it did not.
[[nodiscard]] inline std::optional<double> effort_to(const Course& run, double target_s, Effort effort) {
  const std::optional<Improvement> reached = run.reaching(target_s);
  if (!reached) return std::nullopt;
  return effort == Effort::Trials ? static_cast<double>(reached->trial) : reached->elapsed_s;
}

/// The total effort of `run`.
[[nodiscard]] inline double effort_of(const Course& run, Effort effort) {
  return effort == Effort::Trials ? static_cast<double>(run.trials) : run.elapsed_s;
}

/// Results of several searches for one target.
struct RunningTime {
  double expected = 0;      ///< trials or seconds to one success; infinite without any
  std::size_t reached = 0;  ///< searches that reached the target
  std::size_t runs = 0;     ///< all of them
  [[nodiscard]] double success_rate() const { return static_cast<double>(reached) / static_cast<double>(runs); }
};

/// Expected running time: the average effort until the target is reached if every unsuccessful search is followed by
/// another one.
///
///   ERT = (sum over all searches of the effort until success, or until the end without) / (number of successes)
///
/// Auger and Hansen, Performance Evaluation of an Advanced Local Search Evolutionary Algorithm, CEC 2005; Hansen et
/// al., Anytime Performance Assessment in Blackbox Optimization Benchmarking, IEEE Transactions on Evolutionary
/// Computation 26, 2022.
///
/// `target_s` is a latency in seconds; any latency at most as large reaches it. The searches are of one recipe on one
/// problem. Throws `std::invalid_argument` for no searches. Cost: linear in the improvements. Deterministic.
[[nodiscard]] inline RunningTime running_time(std::span<const Course> runs, double target_s, Effort effort) {
  if (runs.empty()) throw std::invalid_argument("the running time of 0 searches was asked for; give at least 1");
  RunningTime result{.runs = runs.size()};
  double spent = 0;
  for (const Course& run : runs) {
    const std::optional<double> success = effort_to(run, target_s, effort);
    if (success) ++result.reached;
    spent += success ? *success : effort_of(run, effort);
  }
  result.expected = result.reached > 0 ? spent / static_cast<double>(result.reached) : Course::infinity;
  return result;
}

/// Share of the searches that reached `target_s`, a latency in seconds. Throws `std::invalid_argument` for no searches.
[[nodiscard]] inline double success_rate(std::span<const Course> runs, double target_s) {
  return running_time(runs, target_s, Effort::Trials).success_rate();
}

/// The searches of one recipe on one problem and their target latencies in seconds.
struct TargetedRuns {
  std::span<const Course> runs{};
  std::span<const double> targets_s{};
};

/// Share of (search, target) pairs reached within an effort: the empirical distribution of running times, a step
/// function from 0 to the share of all reached pairs.
class RunningTimeDistribution {
 public:
  struct Step {
    double effort = 0;  ///< trials or seconds
    double share = 0;   ///< of the pairs, reached within so much
    bool operator==(const Step&) const = default;
  };

  /// Pools the pairs of all `problems` with equal weight. A pair that is not reached counts as a pair but adds no step.
  ///
  /// Hansen et al., 2022 (see `running_time`), whose distributions add simulated restarts; these do not. Throws
  /// `std::invalid_argument` for no pairs. Cost: O(P log P) for P pairs. Deterministic.
  RunningTimeDistribution(std::span<const TargetedRuns> problems, Effort effort) {
    std::vector<double> efforts;
    for (const TargetedRuns& problem : problems) {
      pairs_ += problem.runs.size() * problem.targets_s.size();
      for (const Course& run : problem.runs)
        for (const double target : problem.targets_s)
          if (const auto success = effort_to(run, target, effort)) efforts.push_back(*success);
    }
    if (pairs_ == 0) {
      throw std::invalid_argument("the " + std::to_string(problems.size()) +
                                  " problems have 0 pairs of a search and a target; give at least 1 of each");
    }
    std::sort(efforts.begin(), efforts.end());
    for (std::size_t at = 0; at < efforts.size(); ++at) {
      const bool last_of_equals = at + 1 == efforts.size() || efforts[at + 1] != efforts[at];
      if (last_of_equals) steps_.push_back({efforts[at], static_cast<double>(at + 1) / static_cast<double>(pairs_)});
    }
  }
  /// The same for one problem.
  RunningTimeDistribution(const TargetedRuns& problem, Effort effort)
      : RunningTimeDistribution(std::span(&problem, 1), effort) {}

  /// Steps at which the share rises, by effort; empty if no pair is reached. They are part of the distribution:
  /// those of a temporary do not compile, since a loop over them would outlive it.
  [[nodiscard]] std::span<const Step> steps() const& { return steps_; }
  std::span<const Step> steps() && = delete;

  /// Number of pairs, reached or not.
  [[nodiscard]] std::size_t pairs() const { return pairs_; }

  /// Share of the pairs reached within `effort`, in [0, 1]. Larger is better.
  [[nodiscard]] double within(double effort) const {
    const auto later = std::upper_bound(steps_.begin(), steps_.end(), effort,
                                        [](double limit, const Step& step) { return limit < step.effort; });
    return later == steps_.begin() ? 0 : std::prev(later)->share;
  }

 private:
  std::vector<Step> steps_;
  std::size_t pairs_ = 0;
};

}  // namespace tunewright::study
