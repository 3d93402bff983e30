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

namespace tunewright::study {

/// Numbers of trials, both ends included.
struct TrialRange {
  std::size_t first = 0;
  std::size_t last = 0;
  [[nodiscard]] std::size_t size() const { return last - first + 1; }
  bool operator==(const TrialRange&) const = default;
};

/// The expected result of random search without replacement in a space with known latencies: the baseline of
/// performance scores. It is calculated, so it has no variance and needs no repetitions.
///
/// With the N valid latencies sorted from worst to best, d[0] to d[N-1], the expected best of M random trials is
///
///   d[min(N - 1, round(M (N + 1) / (M + 1)))]
///
/// which is the result of `best_after`; halves round to the even number. `trials_to` is its inverse except for
/// rounding. M (N + 1) / (M + 1) is the expected rank of the best, counted from 1; used as an index from 0, it is one
/// configuration too good. The formula is the published one, so that scores are comparable.
///
/// Willemsen et al., A Methodology for Comparing Auto-Tuning Optimization Algorithms, Future Generation Computer
/// Systems 159, 2024, doi 10.1016/j.future.2024.05.021. The results equal those of the authors' program,
/// autotuning_methodology 1.1.0, except for a widened `range`: that program takes the minimum of a number of trials and
/// a latency, this one the minimum of two numbers of trials.
///
/// Failed configurations are omitted, as if random search never drew them. A recipe whose failed trials count as trials
/// is therefore compared with a baseline that never fails, which is the stricter rule.
///
/// Cost: O(N log N) to construct, at most O(log N) per query. Deterministic.
class RandomSearch {
 public:
  /// Takes the latencies of all configurations in seconds, in any order. Infinity and NaN mean failed configurations.
  /// Throws `std::invalid_argument` if none is valid, and for latencies of 0 or less.
  explicit RandomSearch(std::vector<double> latencies_s) : ascending_(std::move(latencies_s)) {
    const std::size_t configurations = ascending_.size();
    for (std::size_t i = 0; i < configurations; ++i) {
      if (!(ascending_[i] <= 0)) continue;
      throw std::invalid_argument("configuration " + std::to_string(i) + " of the space takes " +
                                  number_text(ascending_[i]) + " s; give positive latencies, infinity for a failure");
    }
    std::erase_if(ascending_, [](double latency) { return !std::isfinite(latency); });
    if (ascending_.empty()) {
      throw std::invalid_argument("none of the " + std::to_string(configurations) +
                                  " latencies of the space is finite; give a space with a valid configuration");
    }
    std::sort(ascending_.begin(), ascending_.end());
  }

  /// Latencies of the valid configurations in seconds, best first.
  [[nodiscard]] std::span<const double> ascending() const { return ascending_; }
  [[nodiscard]] double optimum_s() const { return ascending_.front(); }
  [[nodiscard]] double worst_s() const { return ascending_.back(); }

  /// The median of the valid configurations; for an even number the mean of the two in the middle.
  [[nodiscard]] double median_s() const {
    const std::size_t n = ascending_.size();
    return (ascending_[(n - 1) / 2] + ascending_[n / 2]) / 2;
  }

  /// The expected latency of random search in seconds after so many trials; the worst one after none.
  [[nodiscard]] double best_after(std::size_t trials) const {
    const auto m = static_cast<double>(trials);
    const auto n = static_cast<double>(ascending_.size());
    // Halves round to the even number in the default rounding mode.
    const double from_worst = std::min(n - 1, std::nearbyint(m * (n + 1) / (m + 1)));
    return ascending_[ascending_.size() - 1 - static_cast<std::size_t>(from_worst)];
  }

  /// The latency in seconds at `share` of the way from the median, at 0, to the optimum, at 1. Throws
  /// `std::invalid_argument` for a share outside [0, 1].
  [[nodiscard]] double latency_at(double share) const {
    if (!(share >= 0 && share <= 1)) {
      throw std::invalid_argument("share " + number_text(share) +
                                  " of the way from the median to the optimum is none; give a value in [0, 1]");
    }
    return optimum_s() + (median_s() - optimum_s()) * (1 - share);
  }

  /// Trials after which random search is expected at `latency_at(share)`: ceil(i / (N + 1 - i)) for the first i with
  /// d[i] <= latency_at(share). If that d[i] is the optimum, a share below 1 stops one configuration before it.
  ///
  /// Throws `std::invalid_argument` for a share outside [0, 1], and for a share below 1 if all latencies are equal,
  /// because then there is nothing to search.
  [[nodiscard]] std::size_t trials_to(double share) const {
    const std::size_t n = ascending_.size();
    const auto slower = std::upper_bound(ascending_.begin(), ascending_.end(), latency_at(share));
    auto i = static_cast<std::size_t>(ascending_.end() - slower);
    if (share < 1 && ascending_[n - 1 - i] == optimum_s()) {
      if (i == 0) {
        throw std::invalid_argument("all " + std::to_string(n) + " valid configurations take " +
                                    number_text(optimum_s()) +
                                    " s, so any trial finds the optimum; leave the space out");
      }
      --i;
    }
    const std::size_t rest = n + 1 - i;
    return (i + rest - 1) / rest;
  }

  /// The trials over which searches are compared: from `trials_to(from_share)` to `trials_to(to_share)`. If these are
  /// fewer than 2 trials apart, the range gets one more trial on either side, or both at the end if it starts at 0. It
  /// never exceeds `trials_to(1)`.
  ///
  /// Throws `std::invalid_argument` as `trials_to` does, and if `from_share` exceeds `to_share`.
  [[nodiscard]] TrialRange range(double from_share = 0.5, double to_share = 0.95) const {
    TrialRange trials{trials_to(from_share), trials_to(to_share)};
    if (from_share > to_share) {
      throw std::invalid_argument("a range from share " + number_text(from_share) + " to share " +
                                  number_text(to_share) + " is empty; give the smaller share first");
    }
    if (trials.last - trials.first < 2) {
      const bool grows_at_both_ends = trials.first > 0;
      trials.last = std::min(trials_to(1), trials.last + (grows_at_both_ends ? 1 : 2));
      if (grows_at_both_ends) --trials.first;
    }
    return trials;
  }

  /// Number of configurations faster than `latency_s`, which must be the latency of a configuration. Throws
  /// `std::invalid_argument` with the latency if it is not, because the searches must have run on this space.
  [[nodiscard]] std::size_t faster_than(double latency_s) const {
    const auto found = std::lower_bound(ascending_.begin(), ascending_.end(), latency_s);
    if (found == ascending_.end() || *found != latency_s) {
      throw std::invalid_argument("no configuration of the space has the latency of " + number_text(latency_s) +
                                  " s; give searches that replayed the latencies of this space");
    }
    return static_cast<std::size_t>(found - ascending_.begin());
  }

 private:
  std::vector<double> ascending_;
};

}  // namespace tunewright::study
