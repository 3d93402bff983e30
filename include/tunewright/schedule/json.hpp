// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/schedule/kinds.hpp"
#include "tunewright/schedule/step.hpp"

/// Steps as JSON: an array of arrays, each with the name of the primitive followed by its fields in declaration order,
/// e.g. `["split",2,0,[4,8],128,64,"serial"]`. Enumerations are written by name, a location as "root", "inline" or
/// `[stage,iterator]`, pipelining as `[depth,asynchronous]`.
namespace tunewright::schedule {

namespace detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// Separates two values of a list; no value ends in an opening bracket.
inline void write_separator(std::string& out) {
  if (out.back() != '[') out += ',';
}

template <class T>
void write_field(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, Location>) {
    if (value.kind == Location::Kind::At)
      write_field(out, std::vector{value.stage, value.iter});
    else
      json::write(out, std::string_view(value.kind == Location::Kind::Root ? "root" : "inline"));
  } else if constexpr (std::is_same_v<T, Pipelining>) {
    out += '[';
    write_field(out, value.depth);
    out += ',';
    write_field(out, value.asynchronous);
    out += ']';
  } else if constexpr (std::is_enum_v<T>) {
    json::write(out, schedule::name(value));
  } else if constexpr (is_vector<T>) {
    out += '[';
    for (const auto& element : value) {
      write_separator(out);
      write_field(out, element);
    }
    out += ']';
  } else {
    json::write(out, value);
  }
}

using json::Scanner;

[[nodiscard]] constexpr const auto& names_of(LoopKind) noexcept { return loop_kind_names; }
[[nodiscard]] constexpr const auto& names_of(Scope) noexcept { return scope_names; }

template <class T>
void read_field(Scanner& in, T& value) {
  if constexpr (std::is_same_v<T, Location>) {
    if (in.peek() == '[') {
      value.kind = Location::Kind::At;
      in.expect('[');
      read_field(in, value.stage);
      in.expect(',');
      read_field(in, value.iter);
      in.expect(']');
    } else {
      const std::string_view place = in.plain_string();
      if (place != "root" && place != "inline") in.fail("expected \"root\", \"inline\" or [stage, iterator]");
      value = {place == "root" ? Location::Kind::Root : Location::Kind::Inline, 0, 0};
    }
  } else if constexpr (std::is_same_v<T, Pipelining>) {
    in.expect('[');
    read_field(in, value.depth);
    in.expect(',');
    read_field(in, value.asynchronous);
    in.expect(']');
  } else if constexpr (std::is_enum_v<T>) {
    const std::string_view written = in.plain_string();
    std::size_t number = 0;
    const auto& names = names_of(value);
    while (number < names.size() && names[number] != written) ++number;
    if (number == names.size()) in.fail("expected the name of a loop kind or of a memory scope");
    value = static_cast<T>(number);
  } else if constexpr (is_vector<T>) {
    value.clear();
    in.array([&] { read_field(in, value.emplace_back()); });
  } else if constexpr (std::is_same_v<T, bool>) {
    value = in.boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    in.string(value);
  } else {
    value = in.integer<T>();
  }
}

/// One default step of every primitive.
template <std::size_t... I>
[[nodiscard]] std::array<Step, sizeof...(I)> default_steps(std::index_sequence<I...>) {
  return {Step(std::variant_alternative_t<I, Step>{})...};
}

/// A default step of the primitive with name `tag`.
[[nodiscard]] Step step_named(std::string_view tag);

[[nodiscard]] Step read_step(Scanner& in);

}  // namespace detail

/// One line of JSON without spaces.
[[nodiscard]] std::string to_json(const std::vector<Step>& steps);

/// Parses the result of `to_json`. Throws `ScheduleError` (`Unsupported` for an unknown primitive, `Malformed` for
/// anything else). Does not check whether the steps fit a program; replaying does.
[[nodiscard]] std::vector<Step> steps_from_json(std::string_view text);

}  // namespace tunewright::schedule

#if TUNEWRIGHT_DEFINES(schedule)

namespace tunewright::schedule::detail {

TUNEWRIGHT_INLINE Step step_named(std::string_view tag) {
  for (const Step& step : default_steps(std::make_index_sequence<std::variant_size_v<Step>>())) {
    if (describe(step, [](std::string_view own, const auto&...) { return own; }) == tag) return step;
  }
  throw ScheduleError(ScheduleFault::Unsupported, "'" + std::string(tag) + "' is not a scheduling primitive");
}

TUNEWRIGHT_INLINE Step read_step(Scanner& in) {
  in.expect('[');
  Step step = step_named(in.plain_string());
  describe(step, [&in](std::string_view, auto&... fields) { ((in.expect(','), read_field(in, fields)), ...); });
  in.expect(']');
  return step;
}

}  // namespace tunewright::schedule::detail

namespace tunewright::schedule {

TUNEWRIGHT_INLINE std::string to_json(const std::vector<Step>& steps) {
  std::string out = "[";
  for (const Step& step : steps) {
    detail::write_separator(out);
    describe(step, [&out](std::string_view tag, const auto&... fields) {
      out += '[';
      json::write(out, tag);
      ((out += ',', detail::write_field(out, fields)), ...);
      out += ']';
    });
  }
  out += ']';
  return out;
}

TUNEWRIGHT_INLINE std::vector<Step> steps_from_json(std::string_view text) {
  detail::Scanner in(text);
  std::vector<Step> steps;
  try {
    in.array([&] { steps.push_back(detail::read_step(in)); });
    in.expect_end();
  } catch (const FormatError& error) {
    throw ScheduleError(ScheduleFault::Malformed, "no list of steps: " + std::string(error.what()));
  }
  return steps;
}

}  // namespace tunewright::schedule

#endif
