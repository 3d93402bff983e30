// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/schedule/kinds.hpp"
#include "tunewright/schedule/step.hpp"

/// Steps as JSON: an array of arrays, each headed by the primitive's name and followed by its fields in
/// declaration order, e.g. `["split", 2, 0, [4, 8], 128, 64, "serial"]`. Enumerations are written by name, a
/// location as "root", "inline" or `[stage, iterator]`.
namespace tunewright::schedule {

namespace detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

[[noreturn]] inline void refuse_json(const nlohmann::json& json, const std::string& wanted) {
  throw ScheduleError(ScheduleFault::Malformed, "'" + json.dump() + "' where " + wanted + " belongs");
}

template <class Enum>
[[nodiscard]] Enum enum_from_name(const nlohmann::json& json) {
  const auto& names = []() -> const auto& {
    if constexpr (std::is_same_v<Enum, LoopKind>)
      return loop_kind_names;
    else
      return scope_names;
  }
  ();
  for (std::size_t value = 0; json.is_string() && value < names.size(); ++value) {
    if (names[value] == json.get_ref<const std::string&>()) return static_cast<Enum>(value);
  }
  refuse_json(json,
              std::is_same_v<Enum, LoopKind> ? "the name of a loop kind" : "the name of a memory scope");
}

template <class T>
[[nodiscard]] T integer_from_json(const nlohmann::json& json) {
  if (!json.is_number_integer()) refuse_json(json, "an integer");
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<T>::max()}) {
    refuse_json(json, "a smaller integer");
  }
  if (!json.is_number_unsigned() && std::is_unsigned_v<T>)
    refuse_json(json, "an integer that is not negative");
  return json.get<T>();
}

template <class T>
[[nodiscard]] nlohmann::json field_to_json(const T& value) {
  if constexpr (std::is_same_v<T, Location>) {
    if (value.kind == Location::Kind::Root) return "root";
    if (value.kind == Location::Kind::Inline) return "inline";
    return nlohmann::json::array({value.stage, value.iter});
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(schedule::name(value));
  } else if constexpr (is_vector<T>) {
    nlohmann::json array = nlohmann::json::array();
    for (const auto& element : value) array.push_back(field_to_json(element));
    return array;
  } else {
    return value;
  }
}

[[nodiscard]] inline Location location_from_json(const nlohmann::json& json) {
  if (json == "root") return {Location::Kind::Root, 0, 0};
  if (json == "inline") return {Location::Kind::Inline, 0, 0};
  if (!json.is_array() || json.size() != 2) refuse_json(json, "\"root\", \"inline\" or [stage, iterator]");
  return {Location::Kind::At, integer_from_json<TensorId>(json[0]), integer_from_json<IterId>(json[1])};
}

template <class T>
void field_from_json(const nlohmann::json& json, T& value) {
  if constexpr (std::is_same_v<T, Location>) {
    value = location_from_json(json);
  } else if constexpr (std::is_enum_v<T>) {
    value = enum_from_name<T>(json);
  } else if constexpr (is_vector<T>) {
    if (!json.is_array()) refuse_json(json, "an array");
    value.clear();
    for (const nlohmann::json& element : json) field_from_json(element, value.emplace_back());
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) refuse_json(json, "true or false");
    value = json.get<bool>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) refuse_json(json, "a string");
    value = json.get<std::string>();
  } else {
    value = integer_from_json<T>(json);
  }
}

/// One default step of every primitive.
template <std::size_t... I>
[[nodiscard]] std::array<Step, sizeof...(I)> default_steps(std::index_sequence<I...>) {
  return {Step(std::in_place_index<I>)...};
}

/// A default step of the primitive called `tag`.
[[nodiscard]] inline Step step_named(std::string_view tag) {
  for (const Step& step : default_steps(std::make_index_sequence<std::variant_size_v<Step>>())) {
    if (describe(step, [](std::string_view own, const auto&...) { return own; }) == tag) return step;
  }
  throw ScheduleError(ScheduleFault::Unsupported,
                      "'" + std::string(tag) + "' is not a scheduling primitive");
}

[[nodiscard]] inline Step step_from_json(const nlohmann::json& row) {
  if (!row.is_array() || row.empty() || !row[0].is_string()) {
    refuse_json(row, "a step, [name, field, ..]");
  }
  Step step = step_named(row[0].get_ref<const std::string&>());
  describe(step, [&](std::string_view tag, auto&... fields) {
    if (row.size() != 1 + sizeof...(fields)) {
      refuse_json(row, std::string(tag) + " with " + std::to_string(sizeof...(fields)) + " fields");
    }
    std::size_t field = 0;
    (field_from_json(row[++field], fields), ...);
  });
  return step;
}

}  // namespace detail

[[nodiscard]] inline nlohmann::json to_json(const std::vector<Step>& steps) {
  nlohmann::json array = nlohmann::json::array();
  for (const Step& step : steps) {
    nlohmann::json row = nlohmann::json::array();
    describe(step, [&](std::string_view tag, const auto&... fields) {
      row.push_back(std::string(tag));
      (row.push_back(detail::field_to_json(fields)), ...);
    });
    array.push_back(std::move(row));
  }
  return array;
}

/// Throws `ScheduleError` (`Unsupported` for an unknown primitive, `Malformed` for anything else that is not
/// as `to_json` writes it). Whether the steps fit a program is found out by replaying them.
[[nodiscard]] inline std::vector<Step> steps_from_json(const nlohmann::json& array) {
  if (!array.is_array()) detail::refuse_json(array, "an array of steps");
  std::vector<Step> steps;
  for (const nlohmann::json& row : array) steps.push_back(detail::step_from_json(row));
  return steps;
}

}  // namespace tunewright::schedule
