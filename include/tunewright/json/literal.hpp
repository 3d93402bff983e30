// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/json/scanner.hpp"

namespace tunewright::json {

/// A JSON value without objects, as in workload keys and template arguments.
struct Literal {
  using Array = std::vector<Literal>;
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array> value = nullptr;
  bool operator==(const Literal&) const = default;

  [[nodiscard]] bool is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(value); }
  [[nodiscard]] const std::int64_t* integer() const noexcept { return std::get_if<std::int64_t>(&value); }
  [[nodiscard]] const std::string* text() const noexcept { return std::get_if<std::string>(&value); }
  [[nodiscard]] const Array* array() const noexcept { return std::get_if<Array>(&value); }
};

[[nodiscard]] Literal read_literal(Scanner& in, int depth = 32);

void write(std::string& out, const Literal& literal);

/// Parses a text that is a single literal. Throws `FormatError` otherwise.
[[nodiscard]] Literal parse_literal(std::string_view text);

}  // namespace tunewright::json

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/json/writer.hpp"

namespace tunewright::json {

TUNEWRIGHT_INLINE Literal read_literal(Scanner& in, int depth) {
  if (depth == 0) in.fail("nested too deeply");
  switch (in.peek()) {
    case '"': return {in.string()};
    case 't':
    case 'f': return {in.boolean()};
    case 'n': in.null(); return {};
    case '{': in.fail("expected a value that is no object");
    case '[': {
      Literal::Array elements;
      in.array([&] { elements.push_back(read_literal(in, depth - 1)); });
      return {std::move(elements)};
    }
    default: break;
  }
  const char* from = in.position();
  const double number = in.number();
  const std::string_view text(from, static_cast<std::size_t>(in.position() - from));
  if (text.find_first_of(".eENI") != std::string_view::npos) return {number};
  in.skip_to(from);
  return {in.integer()};
}

TUNEWRIGHT_INLINE void write(std::string& out, const Literal& literal) {
  std::visit(
      [&out](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::nullptr_t>) {
          out += "null";
        } else if constexpr (std::is_same_v<T, Literal::Array>) {
          write_array(out, value, [&out](const Literal& element) { write(out, element); });
        } else if constexpr (std::is_same_v<T, std::string>) {
          write(out, std::string_view(value));
        } else if constexpr (std::is_same_v<T, double>) {
          const std::size_t size = out.size();
          write(out, value);
          if (out.find_first_of(".eNI", size) == std::string::npos)
            out += ".0";  // so that it is read as a double again
        } else {
          write(out, value);
        }
      },
      literal.value);
}

TUNEWRIGHT_INLINE Literal parse_literal(std::string_view text) {
  Scanner in(text);
  Literal literal = read_literal(in);
  in.expect_end();
  return literal;
}

}  // namespace tunewright::json

#endif
