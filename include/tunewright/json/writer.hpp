// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "tunewright/detail/config.hpp"

/// Appends JSON to strings. Numbers are written in the shortest form that is read back as the same value; text that is
/// not UTF-8 is repaired, as `repaired` does.
namespace tunewright::json {

void write(std::string& out, double value);

template <class Int>
  requires(std::is_integral_v<Int>)
void write(std::string& out, Int value) {
  if constexpr (std::is_same_v<Int, bool>) {
    out += value ? "true" : "false";
  } else {
    char text[24];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
}

void write(std::string& out, std::string_view text);

/// Writes `[a, b, c]`; `element(value)` writes each element.
template <class Values, class F>
void write_array(std::string& out, const Values& values, const F& element) {
  out += '[';
  bool first = true;
  for (const auto& value : values) {
    if (!first) out += ", ";
    first = false;
    element(value);
  }
  out += ']';
}
template <class Values>
void write_array(std::string& out, const Values& values) {
  write_array(out, values, [&out](const auto& value) { write(out, value); });
}

/// Writes `{"a": 1, "b": 2}` from pairs of name and value; `member(value)` writes each value.
template <class Members, class F>
void write_object(std::string& out, const Members& members, const F& member) {
  out += '{';
  bool first = true;
  for (const auto& [name, value] : members) {
    if (!first) out += ", ";
    first = false;
    write(out, std::string_view(name));
    out += ": ";
    member(value);
  }
  out += '}';
}
template <class Members>
void write_object(std::string& out, const Members& members) {
  write_object(out, members, [&out](const auto& value) { write(out, value); });
}

}  // namespace tunewright::json

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/json/utf8.hpp"

namespace tunewright::json {

TUNEWRIGHT_INLINE void write(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    char text[32];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
}

TUNEWRIGHT_INLINE void write(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x80) {
      append_character(out, text, at);
      continue;
    }
    ++at;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr std::string_view digits = "0123456789abcdef";
          out += "\\u00";
          out += digits[static_cast<unsigned char>(c) >> 4];
          out += digits[static_cast<unsigned char>(c) & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

}  // namespace tunewright::json

#endif
