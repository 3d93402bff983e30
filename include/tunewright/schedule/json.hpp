// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/schedule/step.hpp"

/// Steps as JSON: an array of arrays, each headed by the primitive's name and followed by its fields in declaration order,
/// e.g. `["split", 2, 0, [4, 8], 128, 64]`. Enumerations are written by name.
namespace tunewright::schedule {

namespace detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

template <class Enum>
Enum enum_from_name(std::string_view text) {
  for (int value = 0; value < 64; ++value) {
    const auto candidate = static_cast<Enum>(value);
    constexpr int count = std::is_same_v<Enum, LoopKind> ? 11 : 6;
    if (value >= count) break;
    if (schedule::name(candidate) == text) return candidate;
  }
  throw ScheduleError(ScheduleFault::BadAnnotation, "'" + std::string(text) + "' is not a known loop kind or memory scope");
}

template <class T>
nlohmann::json field_to_json(const T& value) {
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

template <class T>
void field_from_json(const nlohmann::json& json, T& value) {
  if constexpr (std::is_same_v<T, Location>) {
    if (json.is_string()) {
      value.kind = json.get_ref<const std::string&>() == "inline" ? Location::Kind::Inline : Location::Kind::Root;
    } else {
      value = {Location::Kind::At, json.at(0).get<TensorId>(), json.at(1).get<IterId>()};
    }
  } else if constexpr (std::is_enum_v<T>) {
    value = enum_from_name<T>(json.get_ref<const std::string&>());
  } else if constexpr (is_vector<T>) {
    value.clear();
    for (const nlohmann::json& element : json) field_from_json(element, value.emplace_back());
  } else {
    json.get_to(value);
  }
}

template <std::size_t I = 0>
Step step_named(std::string_view tag) {
  if constexpr (I == std::variant_size_v<Step>) {
    throw ScheduleError(ScheduleFault::Unsupported, "'" + std::string(tag) + "' is not a scheduling primitive");
  } else {
    Step step(std::in_place_index<I>);
    std::string_view name;
    describe(step, [&](std::string_view own, auto&...) { name = own; });
    return name == tag ? step : step_named<I + 1>(tag);
  }
}

}  // namespace detail

[[nodiscard]] inline nlohmann::json to_json(const std::vector<Step>& steps) {
  nlohmann::json array = nlohmann::json::array();
  for (Step step : steps) {
    nlohmann::json row = nlohmann::json::array();
    describe(step, [&](std::string_view tag, const auto&... fields) {
      row.push_back(std::string(tag));
      (row.push_back(detail::field_to_json(fields)), ...);
    });
    array.push_back(std::move(row));
  }
  return array;
}

/// Throws `ScheduleError` for an unknown primitive and `nlohmann::json::exception` for fields of the wrong type; whether
/// the steps fit a program is found out by replaying them.
[[nodiscard]] inline std::vector<Step> steps_from_json(const nlohmann::json& array) {
  std::vector<Step> steps;
  for (const nlohmann::json& row : array) {
    Step step = detail::step_named(row.at(0).get_ref<const std::string&>());
    std::size_t field = 0;
    describe(step, [&](std::string_view, auto&... fields) { (detail::field_from_json(row.at(++field), fields), ...); });
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace tunewright::schedule
