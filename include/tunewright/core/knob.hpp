// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tunewright {

/// How the values of a knob compare.
enum class KnobScale : std::uint8_t {
  Linear,    ///< by their difference: flags, counts of a few
  Log2,      ///< by their ratio: tile sizes, numbers of threads
  Category,  ///< not at all: names, orders, layouts
};

/// One number that every configuration of a space carries.
struct Knob {
  std::string name;
  KnobScale scale = KnobScale::Linear;
  std::vector<double> values{};           ///< that occur, ascending; may stay empty unless it is a Category
  std::vector<std::string> categories{};  ///< names of `values`, where they number categories; else empty
  bool operator==(const Knob&) const = default;
};

/// The scale that suits numbers: Log2 where none is negative and the largest is at least eight, otherwise
/// Linear. Numbers do not tell whether they stand for categories.
[[nodiscard]] inline KnobScale suitable_scale(std::span<const double> values) {
  if (values.empty()) return KnobScale::Linear;
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  return *least >= 0 && *largest >= 8 ? KnobScale::Log2 : KnobScale::Linear;
}

}  // namespace tunewright
