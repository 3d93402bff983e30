// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

/// Statistics of timings. Interference only ever adds time and comes in bursts, so means and standard deviations follow the
/// burst; the median and the deviation around it ignore up to half of the values.
namespace tunewright::stats {

/// Middle value; of an even count the mean of the two middle ones. Throws `std::invalid_argument` for no values.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("the median of 0 values was asked for; give at least 1");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}
[[nodiscard]] inline double median(std::span<const double> values) {
  return median(std::vector<double>(values.begin(), values.end()));
}

/// Median of |value - median(values)|; multiply by 1.4826 to compare with a standard deviation.
[[nodiscard]] inline double median_absolute_deviation(std::span<const double> values) {
  const double middle = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return median(std::move(distances));
}

}  // namespace tunewright::stats
