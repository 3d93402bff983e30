// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace tunewright::data {

/// The number, if it is written as a whole one and `Whole` holds it. The conversion of nlohmann::json takes any number:
/// beyond the range that is undefined behaviour, and a negative one wraps around.
template <std::integral Whole>
[[nodiscard]] std::optional<Whole> whole_number(const nlohmann::json& value) {
  if (const auto* natural = value.get_ptr<const nlohmann::json::number_unsigned_t*>()) {
    if (std::in_range<Whole>(*natural)) return static_cast<Whole>(*natural);
  } else if (const auto* number = value.get_ptr<const nlohmann::json::number_integer_t*>()) {
    if (std::in_range<Whole>(*number)) return static_cast<Whole>(*number);
  }
  return std::nullopt;
}

}  // namespace tunewright::data
