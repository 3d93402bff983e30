// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/number_text.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/study/monotone_curve.hpp"
#include "tunewright/study/random_search.hpp"

namespace tunewright::study {

/// Seconds since a search began, both ends included, looked at in so many evenly spaced points.
struct SecondsRange {
  double first_s = 0;
  double last_s = 0;
  std::size_t points = 1000;
  [[nodiscard]] double at(std::size_t point) const {
    if (point + 1 == points) return last_s;
    return first_s + static_cast<double>(point) * ((last_s - first_s) / static_cast<double>(points - 1));
  }
};

/// What trials cost in a space of which every configuration was measured: it puts calculated random search, and with it
/// the scores of searches, on an axis of seconds.
///
///   random search after t seconds  =  the same after round(max(1, t / c)) trials
///   c                              =  mean cost of a valid trial + share of failed ones * mean cost of a failed trial
///   range of seconds               =  range of trials * median cost of a trial
///
/// `RandomSearch` leaves failed configurations out, as if it never drew one; c makes it pay for them. So counts the
/// program of the methodology's authors, autotuning_methodology 1.1.0 (Willemsen et al. 2024, see `RandomSearch`). It
/// has the mean for the baseline and the median for the range. What random search really pays for a valid trial has the
/// failed ones for each valid one, not their share of all, in this place: c is a little less.
///
/// Shapes: N configurations. Cost: O(N). Deterministic.
class TrialCosts {
 public:
  /// Latencies and costs of all configurations, in seconds and in the same order; infinite latencies and NaN are those
  /// of configurations that failed. Throws `std::invalid_argument` for other than one cost a latency, for costs that
  /// are negative or not finite, and if no configuration is valid or the mean or median cost is 0.
  TrialCosts(std::span<const double> latencies_s, std::span<const double> costs_s) {
    if (latencies_s.size() != costs_s.size()) {
      throw std::invalid_argument(std::to_string(costs_s.size()) + " costs for " + std::to_string(latencies_s.size()) +
                                  " latencies of a space; give one a configuration");
    }
    double valid_s = 0, failed_s = 0;
    std::size_t failed = 0;
    for (std::size_t i = 0; i < costs_s.size(); ++i) {
      if (!(costs_s[i] >= 0 && std::isfinite(costs_s[i]))) {
        throw std::invalid_argument("configuration " + std::to_string(i) + " costs " + number_text(costs_s[i]) +
                                    " s; give what measuring it took, finite and 0 or more");
      }
      (std::isfinite(latencies_s[i]) ? valid_s : failed_s) += costs_s[i];
      failed += std::isfinite(latencies_s[i]) ? 0 : 1;
    }
    const std::size_t all = costs_s.size();
    if (failed == all) {
      throw std::invalid_argument("none of the " + std::to_string(all) +
                                  " configurations is valid; give a space with a valid one");
    }
    mean_s_ = valid_s / static_cast<double>(all - failed);
    // The share of failed ones times their mean.
    if (failed > 0) mean_s_ += failed_s / static_cast<double>(all);
    median_s_ = stats::median(costs_s);
    if (!(mean_s_ > 0 && median_s_ > 0)) {
      throw std::invalid_argument("trials of the space cost " + number_text(mean_s_) + " s on average and " +
                                  number_text(median_s_) +
                                  " s in the middle; without costs there is no axis of "
                                  "seconds, so leave them out");
    }
  }

  /// What calculated random search pays for a trial, in seconds.
  [[nodiscard]] double mean_s() const { return mean_s_; }
  /// The median cost of all configurations, in seconds.
  [[nodiscard]] double median_s() const { return median_s_; }

  /// The seconds over which searches are compared that are compared over `trials` otherwise.
  [[nodiscard]] SecondsRange range(TrialRange trials, std::size_t points = 1000) const {
    return {static_cast<double>(trials.first) * median_s_, static_cast<double>(trials.last) * median_s_, points};
  }

  /// Trials of random search within so many seconds; at least 1, halves go to the even number. Throws
  /// `std::invalid_argument` for seconds that are not finite.
  [[nodiscard]] std::size_t trials_in(double seconds) const {
    if (!std::isfinite(seconds)) {
      throw std::invalid_argument("the trials in " + number_text(seconds) + " s were asked for; give a finite time");
    }
    return static_cast<std::size_t>(std::nearbyint(std::clamp(seconds / mean_s_, 1.0, most_trials)));
  }

 private:
  static constexpr double most_trials = 1e15;  // doubles tell all numbers up to it apart

  double mean_s_ = 0, median_s_ = 0;
};

/// The latency in seconds that random search is expected to have at each point of `seconds`: a `MonotoneCurve` through
/// those after the trials that it has made at the points, as the program of the authors has it.        // [points]
///
/// Throws `std::invalid_argument` for a range that ends before it begins or never, and for fewer than two points.
[[nodiscard]] inline std::vector<double> best_over(const RandomSearch& space, const TrialCosts& costs,
                                                   const SecondsRange& seconds) {
  if (!(seconds.first_s <= seconds.last_s && std::isfinite(seconds.last_s - seconds.first_s)) || seconds.points < 2) {
    throw std::invalid_argument("a range from " + number_text(seconds.first_s) + " s to " +
                                number_text(seconds.last_s) + " s in " + std::to_string(seconds.points) +
                                " points; give two finite times, the smaller number first, and at least 2 points");
  }
  std::vector<double> trials, latency_s;
  for (std::size_t point = 0; point < seconds.points; ++point) {
    const std::size_t made = costs.trials_in(seconds.at(point));
    if (!trials.empty() && static_cast<double>(made) == trials.back()) continue;
    trials.push_back(static_cast<double>(made));
    latency_s.push_back(space.best_after(made));
  }
  if (trials.size() < 2) return std::vector<double>(seconds.points, latency_s.front());
  const SecondsRange evenly{trials.front(), trials.back(), seconds.points};
  const MonotoneCurve curve(std::move(trials), std::move(latency_s));
  std::vector<double> best;
  for (std::size_t point = 0; point < seconds.points; ++point) best.push_back(curve(evenly.at(point)));
  return best;
}

}  // namespace tunewright::study
