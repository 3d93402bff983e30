// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::models {

/// Throws std::invalid_argument unless a label is from 0 to `most`.
void check_label(const char* who, float label, std::size_t program, float most = most_label);

/// Checks the training data of a network. `y` is (P, heads); with several heads, NaN is an unknown label. Throws
/// std::invalid_argument.
void check_lesson(const char* who, const FeatureBatch& x, std::span<const float> y, std::size_t heads,
                  std::span<const std::uint32_t> group);

/// The groups numbered by first appearance, 0, 1, ..., so that random draws for a group do not depend on its number.
[[nodiscard]] std::vector<std::uint32_t> numbered_by_appearance(std::span<const std::uint32_t> group);

/// Labels (P, heads) with known values only for head 0.
struct LabelsOfFirstHead {
  std::vector<float> all;
  operator std::span<const float>() const noexcept { return all; }
};
[[nodiscard]] LabelsOfFirstHead first_of(std::span<const float> y, std::size_t heads);

void check_head(const char* who, std::size_t head, std::size_t heads);

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

#include <unordered_map>

#include "tunewright/core/number_text.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void check_label(const char* who, float label, std::size_t program, float most) {
  if (label >= 0 && label <= most) return;  // not for NaN
  throw std::invalid_argument(std::string(who) + "::fit: label " + number_text(static_cast<double>(label)) +
                              " of program " + std::to_string(program) +
                              "; labels are throughput / best of task, at most 1, 0 for a failed candidate");
}

TUNEWRIGHT_INLINE void check_lesson(const char* who, const FeatureBatch& x, std::span<const float> y, std::size_t heads,
                                    std::span<const std::uint32_t> group) {
  if (heads > 1 && y.size() % heads != 0) {
    throw std::invalid_argument(std::string(who) + "::fit: " + std::to_string(y.size()) +
                                " labels are not whole rows of " + std::to_string(heads) +
                                "; pass one label a head for every program, NaN where it is not known");
  }
  check_fit_sizes(who, x, y.size() / heads, group.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (heads == 1 || !std::isnan(y[i])) check_label(who, y[i], i / heads);
  }
  const std::span<const float> values = x.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      throw std::invalid_argument(std::string(who) + "::fit: column " + std::to_string(i % x.columns()) + " of row " +
                                  std::to_string(i / x.columns()) + " is not a number; use features that are");
    }
  }
}

TUNEWRIGHT_INLINE std::vector<std::uint32_t> numbered_by_appearance(std::span<const std::uint32_t> group) {
  std::unordered_map<std::uint32_t, std::uint32_t> number_of;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(group.size());
  for (const std::uint32_t g : group)
    numbers.push_back(number_of.try_emplace(g, static_cast<std::uint32_t>(number_of.size())).first->second);
  return numbers;
}

TUNEWRIGHT_INLINE LabelsOfFirstHead first_of(std::span<const float> y, std::size_t heads) {
  LabelsOfFirstHead labels{std::vector<float>(y.size() * heads, std::numeric_limits<float>::quiet_NaN())};
  for (std::size_t p = 0; p < y.size(); ++p) labels.all[p * heads] = y[p];
  return labels;
}

TUNEWRIGHT_INLINE void check_head(const char* who, std::size_t head, std::size_t heads) {
  if (head < heads) return;
  throw std::invalid_argument(std::string(who) + "::predict_head: head " + std::to_string(head) +
                              " of a model that has " + std::to_string(heads) + "; heads are numbered from 0");
}

}  // namespace tunewright::models

#endif
