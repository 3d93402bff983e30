// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/study/course.hpp"
#include "tunewright/study/random_search.hpp"

namespace tunewright::study {

/// Scores the searches of one recipe in one space: their position between random search, at 0, and the optimum, at 1,
/// averaged over the relevant trials.
///
///   median(n)  best latency of the median search after n trials
///   s(n)       (median(n) - random(n)) / (optimum - random(n)); negative if worse than random search
///   score      mean of s over a range of trials
///
/// The median is over ranks, not latencies: each best latency counts as the number of faster configurations. The median
/// of an even number of searches is the mean of the two in the middle, halves round to the even rank, and the result is
/// the latency of the configuration with that rank. An outlier thus counts as one rank.
///
/// Searches without a valid trial so far are omitted; if no search has one, the worst configuration represents them. A
/// search that ended before the range keeps its best latency: stopping early has no other penalty.
///
/// Willemsen et al., A Methodology for Comparing Auto-Tuning Optimization Algorithms, FGCS 2024, doi
/// 10.1016/j.future.2024.05.021. Their program, autotuning_methodology 1.1.0, averages over seconds; these are the same
/// curves over trials, which do not depend on the machines that recorded the space and that searched.
///
/// Shapes: M trials of the range, R searches. Cost: O(M R) to construct and per score. Deterministic.
class ScoredRuns {
 public:
  /// Throws `std::invalid_argument` for no searches, for an empty range, for a latency that is not in the space, and if
  /// random search is expected to reach the optimum within the range: then no search can be better, so a space with so
  /// few latencies cannot be scored.
  ScoredRuns(const RandomSearch& space, std::span<const Course> runs, TrialRange trials)
      : ascending_(space.ascending().begin(), space.ascending().end()), runs_(runs.size()) {
    if (runs.empty()) throw std::invalid_argument("the score of 0 searches was asked for; give at least 1");
    if (trials.first > trials.last) {
      throw std::invalid_argument("the range from trial " + std::to_string(trials.first) + " to trial " +
                                  std::to_string(trials.last) + " is empty; give the smaller number first");
    }
    for (std::size_t trial = trials.first; trial <= trials.last; ++trial) {
      random_.push_back(space.best_after(trial));
      if (random_.back() == space.optimum_s()) {
        throw std::invalid_argument(
            "random search is expected at the optimum of the " + std::to_string(ascending_.size()) +
            " valid configurations after " + std::to_string(trial) +
            " trials, so nothing is ahead of it; end the range before that or leave the space out");
      }
    }
    places_.assign(trials.size() * runs_, nowhere);
    for (std::size_t run = 0; run < runs_; ++run) add(space, runs[run], run, trials);
  }

  /// The latency in seconds of the median of the chosen searches after each number of trials.                // [M]
  [[nodiscard]] std::vector<double> median_curve(std::span<const std::size_t> chosen) const {
    std::vector<double> curve(random_.size());
    std::vector<std::uint32_t> found;
    for (std::size_t at = 0; at < curve.size(); ++at) {
      found.clear();
      for (const std::size_t run : chosen)
        if (const std::uint32_t place = places_[at * runs_ + run]; place != nowhere) found.push_back(place);
      curve[at] = found.empty() ? ascending_.back() : ascending_[median_place(found)];
    }
    return curve;
  }

  /// `s` of the chosen searches.                                                                              // [M]
  [[nodiscard]] std::vector<double> standardised_curve(std::span<const std::size_t> chosen) const {
    std::vector<double> curve = median_curve(chosen);
    for (std::size_t at = 0; at < curve.size(); ++at)
      curve[at] = (curve[at] - random_[at]) / (ascending_.front() - random_[at]);
    return curve;
  }

  /// The score of the chosen searches; a search may occur several times.
  [[nodiscard]] double score(std::span<const std::size_t> chosen) const {
    const std::vector<double> curve = standardised_curve(chosen);
    return std::accumulate(curve.begin(), curve.end(), 0.0) / static_cast<double>(curve.size());
  }
  /// The score of all searches.
  [[nodiscard]] double score() const { return score(all()); }

  [[nodiscard]] std::vector<std::size_t> all() const {
    std::vector<std::size_t> every(runs_);
    std::iota(every.begin(), every.end(), std::size_t{0});
    return every;
  }

 private:
  static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();  // no valid trial so far

  void add(const RandomSearch& space, const Course& course, std::size_t run, TrialRange trials) {
    std::uint32_t place = nowhere;
    auto next = course.improvements.begin();
    for (std::size_t at = 0; at < random_.size(); ++at) {
      for (; next != course.improvements.end() && next->trial <= trials.first + at; ++next)
        place = static_cast<std::uint32_t>(space.faster_than(next->best_s));
      places_[at * runs_ + run] = place;
    }
  }

  static std::size_t median_place(std::vector<std::uint32_t>& places) {
    const auto upper = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
    std::nth_element(places.begin(), upper, places.end());
    if (places.size() % 2 == 1) return *upper;
    const double sum = static_cast<double>(*upper) + static_cast<double>(*std::max_element(places.begin(), upper));
    return static_cast<std::size_t>(std::nearbyint(sum / 2));
  }

  std::vector<double> ascending_;
  std::size_t runs_;
  std::vector<double> random_;         // [M]
  std::vector<std::uint32_t> places_;  // [M][R]
};

/// Score of `runs` over `trials`; see `ScoredRuns`.
[[nodiscard]] inline double performance_score(const RandomSearch& space, std::span<const Course> runs,
                                              TrialRange trials) {
  return ScoredRuns(space, runs, trials).score();
}

/// The same over `space.range()`: from where random search is expected half of the way from the median to the optimum
/// to where it is expected at 95 % of it.
[[nodiscard]] inline double performance_score(const RandomSearch& space, std::span<const Course> runs) {
  return performance_score(space, runs, space.range());
}

}  // namespace tunewright::study
