// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace tunewright::program {

/// A 16-bit binary floating-point number in memory: a sign, `ExponentBits`, `FractionBits`; like IEEE 754 formats it
/// has subnormal numbers, infinities and NaNs. It only stores and converts; arithmetic uses wider types.
template <int ExponentBits, int FractionBits>
struct NarrowFloat {
  static_assert(1 + ExponentBits + FractionBits == 16);
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr std::uint16_t infinity_bits = ((1U << ExponentBits) - 1U) << FractionBits;
  /// Distance from 1 to the next larger number.
  static constexpr double epsilon = 1.0 / (1 << FractionBits);

  std::uint16_t bits = 0;

  constexpr NarrowFloat() = default;
  /// Rounds to nearest, ties to even. Values that exceed the largest number by half a step or more become infinite; a
  /// NaN stays NaN.
  explicit constexpr NarrowFloat(double value) noexcept : bits(nearest(value)) {}
  [[nodiscard]] static constexpr NarrowFloat from_bits(std::uint16_t bits) noexcept {
    NarrowFloat made;
    made.bits = bits;
    return made;
  }

  /// Exact.
  explicit constexpr operator double() const noexcept {
    const std::uint32_t magnitude = bits & 0x7fffU;
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    if (magnitude >= infinity_bits) {
      return static_cast<double>(
          std::bit_cast<float>(sign | 0x7f800000U | (magnitude - infinity_bits) << (23 - FractionBits)));
    }
    // Also correct for subnormal numbers, because the product is exact.
    const auto unscaled = std::bit_cast<float>(sign | magnitude << (23 - FractionBits));
    return static_cast<double>(unscaled) * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 127 - bias) << 52);
  }

  /// Equal bits; unlike numbers, zeros of different sign differ and a NaN equals itself.
  constexpr bool operator==(const NarrowFloat&) const = default;

 private:
  static constexpr std::uint16_t nearest(double value) noexcept {
    const auto raw = std::bit_cast<std::uint64_t>(value);
    const auto sign = static_cast<std::uint16_t>(raw >> 48 & 0x8000U);
    const std::uint64_t magnitude = raw & ~(std::uint64_t{1} << 63);
    const std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
    if (magnitude > infinity) return sign | infinity_bits | static_cast<std::uint16_t>(1U << (FractionBits - 1));
    const int exponent = static_cast<int>(magnitude >> 52) - 1023;
    constexpr int least = 1 - bias;  // of normal numbers; below, steps stay as they are
    const int at = exponent > least ? exponent : least;
    const int dropped = 52 - FractionBits + (at - exponent);
    if (dropped > 53) return sign;  // less than half of the smallest number
    const std::uint64_t significand =
        (magnitude & ((std::uint64_t{1} << 52) - 1)) | (exponent > -1023 ? std::uint64_t{1} << 52 : 0);
    std::uint64_t kept = significand >> dropped;
    const std::uint64_t rest = significand - (kept << dropped);
    const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
    if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
    // The leading bit of a normal number, and a carry out of the fraction, add to the exponent.
    const std::uint64_t encoded = (static_cast<std::uint64_t>(at + bias - 1) << FractionBits) + kept;
    return static_cast<std::uint16_t>(sign | (encoded < infinity_bits ? encoded : infinity_bits));
  }
};

/// IEEE 754 binary16.
using Half = NarrowFloat<5, 10>;
/// The upper half of a binary32.
using BFloat = NarrowFloat<8, 7>;

}  // namespace tunewright::program
