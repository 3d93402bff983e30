// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tunewright/detail/config.hpp"

/// Text from outside (names, compilers' messages) may be no UTF-8, and JSON is. Readers and writers repair it rather
/// than lose what it stands beside: U+FFFD replaces what is no character.
namespace tunewright::json {

/// Whether every character takes one byte, as in nearly all texts.
[[nodiscard]] constexpr bool is_ascii(std::string_view text) noexcept {
  unsigned bits = 0;
  for (const char c : text) bits |= static_cast<unsigned char>(c);
  return bits < 0x80;
}

/// The code point at `at`, which moves behind it; U+FFFD for bytes that are no character of UTF-8.
[[nodiscard]] char32_t next_code_point(std::string_view text, std::size_t& at);

/// Appends the character at `at`, which moves behind it, or U+FFFD.
void append_character(std::string& out, std::string_view text, std::size_t& at);

/// The text as UTF-8. Texts that differ only in what is no character may become equal.
[[nodiscard]] std::string repaired(std::string_view text);

}  // namespace tunewright::json

#if TUNEWRIGHT_DEFINES(core)

#include <array>
#include <cstdint>

namespace tunewright::json {

TUNEWRIGHT_INLINE char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<std::uint8_t>(text[at++]);
  if (lead < 0x80) return lead;
  if (lead < 0xc0 || lead >= 0xf8) return U'\uFFFD';
  const std::size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  char32_t code = lead & (0x3fU >> more);
  std::size_t read = 0;
  for (; read < more && at < text.size() && (static_cast<std::uint8_t>(text[at]) & 0xc0U) == 0x80U; ++read)
    code = (code << 6) | (static_cast<std::uint8_t>(text[at++]) & 0x3fU);
  // Surrogates and numbers beyond Unicode are no characters. Overlong encodings are not UTF-8 either.
  constexpr std::array<char32_t, 4> least{0, 0x80, 0x800, 0x10000};
  const bool whole = read == more && code >= least[more];
  return whole && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? code : U'\uFFFD';
}

TUNEWRIGHT_INLINE void append_character(std::string& out, std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  if (next_code_point(text, at) == U'\uFFFD')
    out += "\xef\xbf\xbd";
  else
    out += text.substr(begin, at - begin);
}

TUNEWRIGHT_INLINE std::string repaired(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::string whole;
  whole.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append_character(whole, text, at);
  return whole;
}

}  // namespace tunewright::json

#endif
