// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tunewright {

/// How to compare values of a knob.
enum class KnobScale : std::uint8_t {
  Linear,    ///< by difference: flags, small counts
  Log2,      ///< by ratio: tile sizes, numbers of threads
  Category,  ///< only for equality: names, orders, layouts
};

/// A number of every configuration of a space.
struct Knob {
  std::string name;
  KnobScale scale = KnobScale::Linear;
  std::vector<double> values{};           ///< that occur, ascending; may stay empty unless it is a Category
  std::vector<std::string> categories{};  ///< names of `values`, where they number categories; else empty
  bool operator==(const Knob&) const = default;
};

/// The scale that suits numbers: Log2 if none is negative and the largest is at least eight, otherwise Linear. Numbers
/// do not show whether they stand for categories.
[[nodiscard]] inline KnobScale suitable_scale(std::span<const double> values) {
  if (values.empty()) return KnobScale::Linear;
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  return *least >= 0 && *largest >= 8 ? KnobScale::Log2 : KnobScale::Linear;
}

}  // namespace tunewright
