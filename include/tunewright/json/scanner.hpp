// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Input that violates a format; the message names the column and what was expected.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace json {

/// Reads JSON of a known shape directly into values, without building a tree: several times as fast as a general
/// parser, which matters for logs of millions of lines.
///
/// Each call consumes one value or throws `FormatError` with the column. `NaN`, `Infinity` and `-Infinity`, as written
/// by Python, are numbers. Strings and keys that are not UTF-8 are repaired, as `repaired` does; `plain_string` and
/// `skip_value` give the bytes of the text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  [[noreturn]] void fail(std::string_view expected) const;

  /// The next character that is not white space, without consuming it; '\0' at the end.
  char peek();
  bool accept(char c);
  void expect(char c) {
    if (!accept(c)) fail_expecting(c);
  }
  /// Throws unless only white space is left.
  void expect_end() {
    if (peek() != '\0' || at_ != end_) fail("expected the end of the record");
  }

  [[nodiscard]] const char* position() const noexcept { return at_; }
  /// Moves ahead, for callers that know the skipped text.
  void skip_to(const char* position) noexcept { at_ = position; }

  template <class Int = std::int64_t>
  Int integer() {
    peek();
    int value = 0;
    const char* at = at_;
    const bool negative = at < end_ && *at == '-';
    if (std::is_unsigned_v<Int> && negative) fail("expected an integer that is not negative");
    at += negative;
    const char* const digits = at;
    for (; at < end_ && at < digits + 9 && *at >= '0' && *at <= '9'; ++at) value = 10 * value + (*at - '0');
    if (at == digits || at == end_ || (*at != ',' && *at != ']')) return long_integer<Int>();
    at_ = at;
    return static_cast<Int>(negative ? -value : value);
  }

  double number();

  bool boolean();
  void null();

  void string(std::string& into);
  std::string string();
  /// The characters between the quotes, for strings without escapes only.
  std::string_view plain_string();

  /// Calls `element()` once per element, which must consume it.
  template <class F>
  void array(const F& element) {
    expect('[');
    if (accept(']')) return;
    do {
      element();
    } while (accept(','));
    expect(']');
  }
  /// Calls `member(key)` once per member, which must consume the value. The key is valid until `member` returns.
  template <class F>
  void object(const F& member) {
    expect('{');
    if (accept('}')) return;
    std::string unescaped;
    do {
      const std::string_view name = key(unescaped);
      expect(':');
      member(name);
    } while (accept(','));
    expect('}');
  }
  /// Appends the elements of an array of integers.
  template <class Vector>
  void integers(Vector& into) {
    array([&] { into.push_back(integer<typename Vector::value_type>()); });
  }

  /// Consumes any value and returns its text. Within an object or array, it only checks strings and brackets, because
  /// most of a file may be skipped.
  std::string_view skip_value();

 private:
  /// A key, as a view of the text or, if it has escapes or is no ASCII, of `unescaped`.
  std::string_view key(std::string& unescaped);
  // Rare cases are separate functions, so that the common ones are small enough to be inlined.
  char peek_further();
  [[noreturn]] void fail_expecting(char c) const { fail(std::string("expected '") + c + "'"); }

  template <class Int>
  Int long_integer() {
    Int value{};
    const auto [stop, error] = std::from_chars(at_, end_, value);
    if (error == std::errc::result_out_of_range) fail("the integer is too large");
    if (error != std::errc()) fail("expected an integer");
    if (stop < end_ && (*stop == '.' || *stop == 'e' || *stop == 'E')) fail("expected an integer, not a fraction");
    at_ = stop;
    return value;
  }

  void literal(std::string_view text);
  double word(std::string_view text, bool not_a_number);
  /// Sets the high bit of every byte of `eight` that equals `c`, and no other bit.
  static constexpr std::uint64_t bytes_equal(std::uint64_t eight, char c) {
    constexpr std::uint64_t ones = 0x0101010101010101, low = 0x7f * ones;
    eight ^= ones * static_cast<unsigned char>(c);
    return ~(((eight & low) + low) | eight | low);
  }
  static constexpr auto string_ends = [](std::uint64_t eight) {
    return bytes_equal(eight, '"') | bytes_equal(eight, '\\');
  };
  static constexpr auto structure = [](std::uint64_t eight) {
    const std::uint64_t curly =
        eight | 0x2020202020202020;  // maps square brackets to curly ones, and curly ones to themselves
    return bytes_equal(eight, '"') | bytes_equal(curly, '{') | bytes_equal(curly, '}');
  };
  /// Moves to the next character that `wanted` marks, or to the end; processes eight characters at a time.
  template <class Wanted>
  void find(const Wanted& wanted) {
    for (; end_ - at_ >= 8; at_ += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, at_, 8);
      if (const std::uint64_t found = wanted(eight)) {
        at_ += (std::endian::native == std::endian::little ? std::countr_zero(found) : std::countl_zero(found)) / 8;
        return;
      }
    }
    while (at_ < end_ && wanted(static_cast<unsigned char>(*at_)) == 0) ++at_;
  }
  void skip_string();
  void skip_nested();
  unsigned hex4();
  static void append_utf8(std::string& into, unsigned code);
  void escape(std::string& into);

  const char* begin_;
  const char* at_;
  const char* end_;
};

}  // namespace json
}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/json/utf8.hpp"

namespace tunewright::json {

TUNEWRIGHT_INLINE void Scanner::fail(std::string_view expected) const {
  throw FormatError("column " + std::to_string(at_ - begin_ + 1) + ": " + std::string(expected) +
                    (at_ == end_ ? ", but the text ends" : ""));
}

TUNEWRIGHT_INLINE char Scanner::peek() {
  if (at_ < end_ && *at_ == ' ') ++at_;  // usually at most one
  if (at_ < end_ && *at_ > ' ') return *at_;
  return peek_further();
}

TUNEWRIGHT_INLINE bool Scanner::accept(char c) {
  if (at_ < end_ && *at_ == c) return ++at_, true;  // usually there is no white space before it
  if (peek() != c || at_ == end_) return false;
  ++at_;
  return true;
}

TUNEWRIGHT_INLINE double Scanner::number() {
  const char first = peek();
  if (first == 'N' || first == 'I') return word(first == 'N' ? "NaN" : "Infinity", first == 'N');
  if (first == '-' && end_ - at_ > 1 && at_[1] == 'I') {
    ++at_;
    return -word("Infinity", false);
  }
  if (first != '-' && (first < '0' || first > '9')) fail("expected a number");
  double value = 0;
  const auto [stop, error] = std::from_chars(at_, end_, value);
  if (error != std::errc()) fail("expected a number");
  at_ = stop;
  return value;
}

TUNEWRIGHT_INLINE bool Scanner::boolean() {
  const char first = peek();
  if (first == 't') return literal("true"), true;
  if (first == 'f') return literal("false"), false;
  fail("expected true or false");
}

TUNEWRIGHT_INLINE void Scanner::null() {
  peek();
  literal("null");
}

TUNEWRIGHT_INLINE void Scanner::string(std::string& into) {
  into.clear();
  expect('"');
  for (const char* from = at_;;) {
    find(string_ends);
    into.append(from, at_);
    if (at_ == end_) fail("expected the end of a string");
    if (*at_++ == '"') break;
    escape(into);
    from = at_;
  }
  if (!is_ascii(into)) into = repaired(into);
}

TUNEWRIGHT_INLINE std::string Scanner::string() {
  std::string text;
  string(text);
  return text;
}

TUNEWRIGHT_INLINE std::string_view Scanner::plain_string() {
  expect('"');
  const char* from = at_;
  find(string_ends);
  if (at_ == end_ || *at_ == '\\') fail("expected a string without escapes");
  return {from, static_cast<std::size_t>(at_++ - from)};
}

TUNEWRIGHT_INLINE std::string_view Scanner::key(std::string& unescaped) {
  peek();
  const char* const from = at_;
  expect('"');
  find(string_ends);
  const std::string_view name(from + 1, static_cast<std::size_t>(at_ - from - 1));
  if (at_ < end_ && *at_ == '"' && is_ascii(name)) {
    ++at_;
    return name;
  }
  at_ = from;
  string(unescaped);
  return unescaped;
}

TUNEWRIGHT_INLINE std::string_view Scanner::skip_value() {
  const char first = peek();
  const char* from = at_;
  switch (first) {
    case '{':
    case '[': skip_nested(); break;
    case '"': skip_string(); break;
    case 't':
    case 'f': boolean(); break;
    case 'n': null(); break;
    default: number();
  }
  return {from, static_cast<std::size_t>(at_ - from)};
}

TUNEWRIGHT_INLINE char Scanner::peek_further() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  return at_ < end_ ? *at_ : '\0';
}

TUNEWRIGHT_INLINE void Scanner::literal(std::string_view text) {
  if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, text.size()) != text) {
    fail("expected " + std::string(text));
  }
  at_ += text.size();
}

TUNEWRIGHT_INLINE double Scanner::word(std::string_view text, bool not_a_number) {
  literal(text);
  return not_a_number ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
}

TUNEWRIGHT_INLINE void Scanner::skip_string() {
  for (++at_;; at_ += 2) {
    find(string_ends);
    if (at_ < end_ && *at_ == '"') break;
    if (end_ - at_ < 2) {  // nothing follows the backslash
      at_ = end_;
      fail("expected the end of a string");
    }
  }
  ++at_;
}

TUNEWRIGHT_INLINE void Scanner::skip_nested() {
  constexpr std::size_t deepest = 1024;
  std::uint64_t curly = 0;             // one bit per level, for the innermost 64 levels
  std::vector<std::uint64_t> outside;  // the same for every 64 outer levels
  std::size_t depth = 0;
  do {
    find(structure);
    if (at_ == end_) fail((curly & 1) != 0 ? "expected '}'" : "expected ']'");
    const char c = *at_;
    if (c == '"') {
      skip_string();
    } else if (c == '{' || c == '[') {
      if (depth == deepest) fail("nested too deeply");
      if (depth > 0 && depth % 64 == 0) outside.push_back(curly);
      ++depth;
      curly = curly << 1 | (c == '{' ? 1 : 0);
      ++at_;
    } else {
      if ((curly & 1) != (c == '}' ? 1 : 0)) fail((curly & 1) != 0 ? "expected '}'" : "expected ']'");
      curly >>= 1;
      --depth;
      if (depth > 0 && depth % 64 == 0) {
        curly = outside.back();
        outside.pop_back();
      }
      ++at_;
    }
  } while (depth > 0);
}

TUNEWRIGHT_INLINE unsigned Scanner::hex4() {
  if (end_ - at_ < 4) fail("expected four hexadecimal digits");
  unsigned code = 0;
  const auto [stop, error] = std::from_chars(at_, at_ + 4, code, 16);
  if (error != std::errc() || stop != at_ + 4) fail("expected four hexadecimal digits");
  at_ = stop;
  return code;
}

TUNEWRIGHT_INLINE void Scanner::append_utf8(std::string& into, unsigned code) {
  const auto put = [&into](unsigned byte) { into += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

TUNEWRIGHT_INLINE void Scanner::escape(std::string& into) {
  if (at_ == end_) fail("expected an escaped character");
  switch (const char c = *at_++) {
    case 'n': into += '\n'; return;
    case 't': into += '\t'; return;
    case 'r': into += '\r'; return;
    case 'b': into += '\b'; return;
    case 'f': into += '\f'; return;
    case '"':
    case '\\':
    case '/': into += c; return;
    case 'u': break;
    default: fail("unknown escape");
  }
  unsigned code = hex4();
  if (code >= 0xD800 && code < 0xDC00) {  // first half of a surrogate pair
    if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') fail("expected the second half of a surrogate pair");
    at_ += 2;
    const unsigned low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("expected the second half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code < 0xE000) {
    fail("half of a surrogate pair");
  }
  append_utf8(into, code);
}

}  // namespace tunewright::json

#endif
