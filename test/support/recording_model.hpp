// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/feature_batch.hpp"

namespace tunewright::test {

/// A cost model that remembers what it was trained on and scores `slope * first column + mean label`.
struct RecordingModel {
  float slope = 1;

  std::size_t fits = 0;
  FeatureBatch x{};
  std::vector<float> y{};
  std::vector<std::uint32_t> group{};

  void predict(const FeatureBatch& programs, std::span<float> score) const {
    float mean = 0;
    for (const float label : y) mean += label / static_cast<float>(y.size());
    for (std::size_t p = 0; p < programs.programs(); ++p) {
      const auto row = programs.program(p);
      score[p] = row.empty() ? -std::numeric_limits<float>::infinity() : slope * row[0] + mean;
    }
  }
  void fit(const FeatureBatch& programs, std::span<const float> labels, std::span<const std::uint32_t> groups) {
    ++fits;
    x = programs;
    y.assign(labels.begin(), labels.end());
    group.assign(groups.begin(), groups.end());
  }
};

inline FeatureBatch one_column(std::span<const float> values) {
  FeatureBatch x(1);
  for (const float value : values) x.append_program(std::span(&value, 1));
  return x;
}
inline FeatureBatch one_column(std::initializer_list<float> values) {
  return one_column(std::span(values.begin(), values.size()));
}

}  // namespace tunewright::test
