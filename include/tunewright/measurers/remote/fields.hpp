// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Serialization that does not depend on the machine: numbers in their own width, little-endian; booleans as one byte;
/// strings and vectors after their length in 32 bits; a struct as its members in the order of `fields(archive, value)`.
/// docs/design/remote_protocol.md lists the structs of all messages.
namespace tunewright::measurers::remote {

/// A conversation that cannot continue; the message says why.
class ConversationFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bytes that violate the protocol; the message says how.
class ProtocolError : public ConversationFailed {
 public:
  using ConversationFailed::ConversationFailed;
};

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

template <class T>
inline constexpr bool is_plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Appends values.
class FieldWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  [[nodiscard]] std::vector<char> take() && { return std::move(bytes_); }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (is_plain<T>) {
      const auto* from = reinterpret_cast<const char*>(&value);
      bytes_.insert(bytes_.end(), from, from + sizeof value);
    } else {
      fields(*this, value);
    }
  }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  template <class T>
  void put(const std::vector<T>& values) {
    if (values.size() > 0xffffffffU) throw std::length_error("a vector of 2^32 elements or more does not travel");
    put(static_cast<std::uint32_t>(values.size()));
    if constexpr (is_plain<T>) {
      const auto* from = reinterpret_cast<const char*>(values.data());
      bytes_.insert(bytes_.end(), from, from + values.size() * sizeof(T));
    } else {
      for (const T& value : values) put(value);
    }
  }

  std::vector<char> bytes_;
};

/// A text of another machine as one that may stand in a message, a journal and on a terminal: control characters, those
/// of UTF-8's second block included, become blanks.
[[nodiscard]] inline std::string without_control_characters(std::span<const char> text) {
  std::string cleaned(text.begin(), text.end());
  unsigned char before = 0;
  for (std::size_t i = 0; i < cleaned.size(); ++i) {
    const auto c = static_cast<unsigned char>(cleaned[i]);
    if (c < 0x20 || c == 0x7f) cleaned[i] = ' ';
    if (before == 0xc2 && c >= 0x80 && c < 0xa0) cleaned[i - 1] = cleaned[i] = ' ';
    before = c;
  }
  return cleaned;
}

/// Reads what `FieldWriter` wrote; texts are without control characters. Throws `ProtocolError` if the bytes end too
/// early. Memory is allocated only for bytes that exist, never because of a length field.
class FieldReader {
 public:
  explicit FieldReader(std::span<const char> bytes) : left_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  /// Throws `ProtocolError` unless all bytes were read.
  void expect_end() const {
    if (!left_.empty()) throw ProtocolError(std::to_string(left_.size()) + " bytes too many in a message");
  }

 private:
  std::span<const char> take(std::size_t count) {
    if (count > left_.size()) throw ProtocolError("a message ends too early");
    const std::span<const char> taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = take(1).front() != 0;
    } else if constexpr (is_plain<T>) {
      std::memcpy(&value, take(sizeof value).data(), sizeof value);
    } else {
      fields(*this, value);
    }
  }
  void get(std::string& text) {
    std::uint32_t count = 0;
    get(count);
    text = without_control_characters(take(count));
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::uint32_t count = 0;
    get(count);
    values.clear();
    if constexpr (is_plain<T>) {
      const std::span<const char> bytes = take(std::size_t{count} * sizeof(T));
      values.resize(count);
      if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      for (std::uint32_t i = 0; i < count; ++i) get(values.emplace_back());
    }
  }

  std::span<const char> left_;
};

template <class T>
[[nodiscard]] std::vector<char> to_bytes(const T& value) {
  FieldWriter writer;
  writer(value);
  return std::move(writer).take();
}

/// Throws `ProtocolError` unless the bytes are exactly one `T`.
template <class T>
[[nodiscard]] T from_bytes(std::span<const char> bytes) {
  FieldReader reader(bytes);
  T value{};
  reader(value);
  reader.expect_end();
  return value;
}

}  // namespace tunewright::measurers::remote
