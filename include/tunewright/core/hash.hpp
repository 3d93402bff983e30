// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// 64-bit mixer (the finaliser of SplitMix64): every input bit changes about half of the output bits.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Order-dependent content hash, equal on every platform, compiler and run: it never uses addresses, `std::hash` or
/// byte order. It is the key of tasks and candidates in journals.
class StableHash {
 public:
  constexpr StableHash& add(std::uint64_t value) noexcept {
    state_ = mix64(state_ ^ (value + 0x9e3779b97f4a7c15ULL)) + 0x9e3779b97f4a7c15ULL * ++count_;
    return *this;
  }
  constexpr StableHash& add(std::int64_t value) noexcept { return add(static_cast<std::uint64_t>(value)); }
  constexpr StableHash& add(int value) noexcept { return add(static_cast<std::int64_t>(value)); }
  constexpr StableHash& add(unsigned value) noexcept { return add(static_cast<std::uint64_t>(value)); }
  constexpr StableHash& add(double value) noexcept { return add(std::bit_cast<std::uint64_t>(value)); }
  constexpr StableHash& add(std::string_view text) noexcept {
    add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return mix64(state_ ^ count_); }

 private:
  std::uint64_t state_ = 0x6a09e667f3bcc908ULL;
  std::uint64_t count_ = 0;
};

/// Sixteen lower-case hexadecimal digits, the form of hashes in journals and file names.
[[nodiscard]] inline std::string to_hex(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t digit = 16; digit-- > 0; value >>= 4) text[digit] = "0123456789abcdef"[value & 15U];
  return text;
}

/// Reads such digits. Throws `std::runtime_error`, which names `field`, for any other text.
[[nodiscard]] std::uint64_t from_hex(std::string_view text, std::string_view field);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <cstddef>
#include <stdexcept>

namespace tunewright {

TUNEWRIGHT_INLINE std::uint64_t from_hex(std::string_view text, std::string_view field) {
  std::uint64_t value = 0;
  for (const char c : text) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (text.size() != 16 || digit == std::string_view::npos) {
      throw std::runtime_error("'" + std::string(field) + "' is '" + std::string(text) +
                               "', not 16 hexadecimal digits");
    }
    value = value * 16 + digit;
  }
  if (text.empty()) throw std::runtime_error("'" + std::string(field) + "' is empty");
  return value;
}

}  // namespace tunewright

#endif
