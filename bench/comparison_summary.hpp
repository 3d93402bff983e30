// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tunewright::bench {

/// What a run of many comparisons comes down to: ratios of the other time, such as that of a library, to ours; above 1
/// is faster.
class ComparisonSummary {
 public:
  /// `ratio` must be positive.
  void add(std::string kernel, double ratio) { ratios_.emplace_back(std::move(kernel), ratio); }
  /// A kernel that could not be compared: no other ran, or none of ours.
  void add_failure(std::string kernel) { failures_.push_back(std::move(kernel)); }

  [[nodiscard]] std::size_t compared() const noexcept { return ratios_.size(); }
  [[nodiscard]] const std::vector<std::string>& failures() const noexcept { return failures_; }
  /// 0 when nothing was compared.
  [[nodiscard]] double geometric_mean() const {
    if (ratios_.empty()) return 0;
    double logarithms = 0;
    for (const auto& [kernel, ratio] : ratios_) logarithms += std::log(ratio);
    return std::exp(logarithms / static_cast<double>(ratios_.size()));
  }
  [[nodiscard]] std::size_t below(double ratio) const {
    return static_cast<std::size_t>(
        std::count_if(ratios_.begin(), ratios_.end(), [&](const auto& entry) { return entry.second < ratio; }));
  }
  /// The kernels with the smallest ratios, smallest first.
  [[nodiscard]] std::vector<std::pair<std::string, double>> weakest(std::size_t count) const {
    std::vector<std::pair<std::string, double>> sorted = ratios_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    sorted.resize(std::min(count, sorted.size()));
    return sorted;
  }

 private:
  std::vector<std::pair<std::string, double>> ratios_;
  std::vector<std::string> failures_;
};

}  // namespace tunewright::bench
