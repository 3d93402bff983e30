// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"

/// Statistics of timings. Interference only adds time and comes in bursts, which distort means and standard deviations;
/// the median and the deviation around it ignore up to half of the values. The minimum is not used: it decreases with
/// the number of repeats, which would favour candidates measured more often, and a single clock glitch determines it.
/// NaN has no place among other values: all functions throw `std::invalid_argument` for it.
namespace tunewright::stats {

/// Middle value; the mean of the two middle ones for an even count. Throws `std::invalid_argument` for no values.
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] inline double median(std::span<const double> values) {
  return median(std::vector<double>(values.begin(), values.end()));
}

/// Median of |value - median(values)|; multiply by 1.4826 to compare with a standard deviation.
[[nodiscard]] double median_absolute_deviation(std::span<const double> values);

/// The results of `median` and `median_absolute_deviation` for the same values.
struct MedianAndDeviation {
  double median = 0;
  double deviation = 0;
};

/// Computes both with one sort, while separate calls select three times: importers of logs call it for every record.
/// Sorts the values. Throws `std::invalid_argument` for no values.
[[nodiscard]] MedianAndDeviation median_and_deviation(std::span<double> values);

/// Value below which the share `level` in [0, 1] of the values lies, linear between neighbours: sorted value
/// number level * (n - 1), counted from 0. Between a finite and an infinite neighbour it is the infinite one. Throws
/// `std::invalid_argument` for no values and for a level outside [0, 1].
[[nodiscard]] double quantile(std::vector<double> values, double level);

/// Interval that contains the true median with probability `coverage`.
struct MedianInterval {
  double low = 0;
  double high = 0;
  double coverage = 0;
};

/// The narrowest pair of order statistics, with equally many values outside on either side, that covers the median with
/// at least `confidence`:
///
///   P(x_(j) <= median <= x_(n+1-j)) = 1 - 2 P(Binomial(n, 1/2) <= j - 1)
///
/// It assumes independent repeats but no distribution (it also holds for skewed ones, for which an interval based on a
/// standard deviation is wrong), and needs no resampling and no random numbers. With too few values (less than 6 for
/// 0.95) no pair is wide enough: it returns the smallest and the largest, with their `coverage` 1 - 2^(1-n). Cost: O(n
/// log n). Throws `std::invalid_argument` for no values and for a confidence outside (0, 1).
[[nodiscard]] MedianInterval median_interval(std::vector<double> values, double confidence = 0.95);

}  // namespace tunewright::stats

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::stats::robust_detail {

/// Throws `std::invalid_argument` if there is no value or one is NaN. `what` is the question, for messages.
inline void check_values(const char* what, std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument(std::string(what) + " of 0 values was asked for; give at least 1");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) continue;
    throw std::invalid_argument(std::string(what) + " was asked for, but value " + std::to_string(i) + " of " +
                                std::to_string(values.size()) + " is not a number (NaN); leave it out");
  }
}

/// Infinities are at no distance from themselves, where their difference is NaN.
[[nodiscard]] inline double distance(double value, double middle) {
  return value == middle ? 0 : std::abs(value - middle);
}

}  // namespace tunewright::stats::robust_detail

namespace tunewright::stats {

TUNEWRIGHT_INLINE double median(std::vector<double> values) {
  robust_detail::check_values("the median", values);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

TUNEWRIGHT_INLINE double median_absolute_deviation(std::span<const double> values) {
  const double middle = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(robust_detail::distance(value, middle));
  return median(std::move(distances));
}

TUNEWRIGHT_INLINE MedianAndDeviation median_and_deviation(std::span<double> values) {
  robust_detail::check_values("the median", values);
  const std::size_t n = values.size();
  constexpr std::size_t few = 64;
  if (n > few) {
    std::sort(values.begin(), values.end());
  } else {  // counts how many are smaller, without a branch to predict
    std::array<std::size_t, few> rank{};
    std::array<double, few> sorted;
    for (std::size_t i = 1; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::size_t before = values[i] < values[j] ? 1 : 0;
        rank[j] += before;
        rank[i] += 1 - before;
      }
    }
    for (std::size_t i = 0; i < n; ++i) sorted[rank[i]] = values[i];
    std::copy_n(sorted.begin(), n, values.begin());
  }
  const auto middle_of = [n](double below, double at) { return n % 2 == 1 ? at : 0.5 * (below + at); };
  const double middle = middle_of(values[(n - 1) / 2], values[n / 2]);
  // The distances ascend to the left and to the right of the middle.
  std::size_t left = n / 2, right = n / 2;
  double below = 0, at = 0;
  for (std::size_t i = 0; i <= n / 2; ++i) {
    below = at;
    const bool goes_left = left > 0 && (right == n || robust_detail::distance(values[left - 1], middle) <
                                                          robust_detail::distance(values[right], middle));
    at = robust_detail::distance(goes_left ? values[--left] : values[right++], middle);
  }
  return {middle, middle_of(below, at)};
}

TUNEWRIGHT_INLINE double quantile(std::vector<double> values, double level) {
  robust_detail::check_values("a quantile", values);
  if (!(level >= 0 && level <= 1)) {
    throw std::invalid_argument("quantile level " + std::to_string(level) + " is not a share; give a value in [0, 1]");
  }
  const double position = level * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  const double share = position - static_cast<double>(below);
  // The difference of equal infinities is NaN.
  if (share == 0 || std::isinf(*at)) return *at;
  return *at + share * (*std::min_element(at + 1, values.end()) - *at);
}

TUNEWRIGHT_INLINE MedianInterval median_interval(std::vector<double> values, double confidence) {
  robust_detail::check_values("a median interval", values);
  if (!(confidence > 0 && confidence < 1)) {
    throw std::invalid_argument("confidence " + std::to_string(confidence) +
                                " is not a probability; give a value in (0, 1)");
  }
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const auto size = static_cast<double>(n);
  MedianInterval interval{values.front(), values.back(), 0};
  double tail = 0;  // P(Binomial(n, 1/2) <= j - 1)
  for (std::size_t j = 1; 2 * j <= n + 1; ++j) {
    const auto k = static_cast<double>(j - 1);
    tail += std::exp(std::lgamma(size + 1) - std::lgamma(k + 1) - std::lgamma(size - k + 1) - size * std::log(2.0));
    const double coverage = std::max(0.0, 1 - 2 * tail);
    if (j > 1 && coverage < confidence) break;
    interval = {values[j - 1], values[n - j], coverage};
  }
  return interval;
}

}  // namespace tunewright::stats

#endif
