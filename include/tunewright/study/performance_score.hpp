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

#include "tunewright/core/number_text.hpp"
#include "tunewright/study/course.hpp"
#include "tunewright/study/random_search.hpp"
#include "tunewright/study/trial_costs.hpp"

namespace tunewright::study {

/// Searches of one recipe in one space, scored: how far they are between random search, at 0, and the optimum, at 1, on
/// average over the trials, or the seconds, that matter.
///
///   median(x)  the latency that the median search had found after x trials or seconds
///   s(x)       (median(x) - random(x)) / (optimum - random(x)); negative behind random search
///   score      mean of s over a range of x
///
/// The median is over ranks, not latencies: each best latency counts as the number of faster configurations. The median
/// of an even number of searches is the mean of the two in the middle, halves round to the even rank, and the result is
/// the latency of the configuration with that rank. An outlier thus counts as one rank.
///
/// Over trials, searches without a valid one so far are left out, and if none has one the worst configuration stands
/// for them; over seconds it stands for each of them. A search that ended before the range does keeps its best latency:
/// stopping early is not punished beyond that.
///
/// Willemsen et al., A Methodology for Comparing Auto-Tuning Optimization Algorithms, FGCS 2024, doi
/// 10.1016/j.future.2024.05.021. Their program, autotuning_methodology 1.1.0, draws curves over both and averages over
/// seconds. Scores over trials are for where the machine that recorded the space, and the one that searched, should not
/// matter. Over seconds that program has two ways: medians of the searches, and a falling curve through all evaluations
/// of samples of the searches, averaged over samples that are different every time. These are the medians.
///
/// Shapes: M trials or points of the range, R searches, I improvements of them within the range. Cost: O(M R) to make,
/// O(M + R min(M, I)) for each score. Deterministic.
class ScoredRuns {
 public:
  /// Throws `std::invalid_argument` for no searches, for an empty range, for a latency that is not in the space, and if
  /// random search is expected to reach the optimum within the range: then no search can be better, so a space with so
  /// few latencies cannot be scored.
  ScoredRuns(const RandomSearch& space, std::span<const Course> runs, TrialRange trials)
      : ascending_(space.ascending().begin(), space.ascending().end()), runs_(runs.size()) {
    check_count(runs.size());
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
    add(space, runs, nowhere, [&](const Improvement& one, std::size_t at) { return one.trial <= trials.first + at; });
  }

  /// The same over seconds: `costs` are those of the space, and `Improvement::elapsed_s` says what was known when.
  /// Throws `std::invalid_argument` likewise, and as `best_over`.
  ScoredRuns(const RandomSearch& space, const TrialCosts& costs, std::span<const Course> runs,
             const SecondsRange& seconds)
      : ascending_(space.ascending().begin(), space.ascending().end()), runs_(runs.size()) {
    check_count(runs.size());
    random_ = best_over(space, costs, seconds);
    for (std::size_t at = 0; at < random_.size(); ++at) {
      if (random_[at] > space.optimum_s()) continue;
      throw std::invalid_argument("random search is expected at the optimum of the " +
                                  std::to_string(ascending_.size()) + " valid configurations after " +
                                  number_text(seconds.at(at)) +
                                  " s, so nothing is ahead of it; end the range before that or leave the space out");
    }
    add(space, runs, static_cast<std::uint32_t>(space.faster_than(space.worst_s())),
        [&](const Improvement& one, std::size_t at) { return one.elapsed_s <= seconds.at(at); });
  }

  /// The latency in seconds of the median of the chosen searches at each trial or point of the range.         // [M]
  /// Throws `std::invalid_argument` for no searches, and `std::out_of_range` for a search that is not there.
  [[nodiscard]] std::vector<double> median_curve(std::span<const std::size_t> chosen) const {
    check_count(chosen.size());
    for (const std::size_t run : chosen) {
      if (run < runs_) continue;
      throw std::out_of_range("search " + std::to_string(run) + " of " + std::to_string(runs_) +
                              " was chosen; give positions below that");
    }
    std::vector<double> curve(random_.size());
    std::vector<std::uint32_t> found;
    for (std::size_t at = 0; at < curve.size(); ++at) {
      if (!is_new_[at]) {
        curve[at] = curve[at - 1];
        continue;
      }
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

  static void check_count(std::size_t searches) {
    if (searches == 0) throw std::invalid_argument("the score of 0 searches was asked for; give at least 1");
  }

  // `is_found(improvement, at)`: whether it was known by then.
  template <class IsFound>
  void add(const RandomSearch& space, std::span<const Course> runs, std::uint32_t without, const IsFound& is_found) {
    places_.resize(random_.size() * runs_);
    is_new_.assign(random_.size(), 0);
    is_new_[0] = 1;
    for (std::size_t run = 0; run < runs_; ++run) {
      std::uint32_t place = without;
      auto next = runs[run].improvements.begin();
      for (std::size_t at = 0; at < random_.size(); ++at) {
        for (; next != runs[run].improvements.end() && is_found(*next, at); ++next) {
          place = static_cast<std::uint32_t>(space.faster_than(next->best_s));
          is_new_[at] = 1;
        }
        places_[at * runs_ + run] = place;
      }
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
  std::vector<std::uint8_t> is_new_;   // [M], whether some place is another than before: medians are dear
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

/// Score of `runs` over the seconds in which random search makes the trials of `space.range()`, at the median cost.
[[nodiscard]] inline double performance_score_over_seconds(const RandomSearch& space, const TrialCosts& costs,
                                                           std::span<const Course> runs) {
  return ScoredRuns(space, costs, runs, costs.range(space.range())).score();
}

}  // namespace tunewright::study
