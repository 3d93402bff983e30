// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/narrow_float.hpp"

/// Types of tensor elements and the semantics of their operations, described in `docs/concepts/number_types.md`.
namespace tunewright::program {

/// A new type needs a row here, in the reference evaluator and in each code generator. Its number is part of content
/// hashes, so append new types at the end.
enum class ScalarType : std::uint8_t { Bool, Int32, Int64, Float32, Float64, Float16, BFloat16, Int8, UInt8 };

inline constexpr std::size_t scalar_type_count = 9;

[[nodiscard]] constexpr std::string_view name(ScalarType type) noexcept {
  constexpr std::string_view names[scalar_type_count] = {"bool",    "int32",    "int64", "float32", "float64",
                                                         "float16", "bfloat16", "int8",  "uint8"};
  return names[static_cast<std::size_t>(type)];
}
[[nodiscard]] constexpr std::size_t size_in_bytes(ScalarType type) noexcept {
  constexpr std::size_t sizes[scalar_type_count] = {1, 4, 8, 4, 8, 2, 2, 1, 1};
  return sizes[static_cast<std::size_t>(type)];
}
[[nodiscard]] constexpr bool is_float(ScalarType type) noexcept {
  return type >= ScalarType::Float32 && type <= ScalarType::BFloat16;
}
/// Whether a type is a 16-bit floating-point type, which kernels compute in float32 and round.
[[nodiscard]] constexpr bool is_narrow_float(ScalarType type) noexcept {
  return type == ScalarType::Float16 || type == ScalarType::BFloat16;
}

/// Whether every value of `from` is one of `type`.
[[nodiscard]] constexpr bool holds(ScalarType type, ScalarType from) noexcept {
  if (type == from) return true;
  if (type == ScalarType::Float16 && from == ScalarType::BFloat16) return false;  // for their range
  if (is_float(from) && !is_float(type)) return false;
  if (from == ScalarType::Int8 && type == ScalarType::UInt8) return false;
  constexpr std::uint8_t digits[scalar_type_count] = {1, 31, 63, 24, 53, 11, 8, 7, 8};  // in binary, without the sign
  return digits[static_cast<std::size_t>(type)] >= digits[static_cast<std::size_t>(from)];
}

/// The type to which two operands are widened: the wider one and, of two as wide, the next that holds both. An integer
/// of 32 or 64 bits beside a narrower floating-point number stays an integer.
[[nodiscard]] constexpr ScalarType common_type(ScalarType a, ScalarType b) noexcept {
  if (a == b) return a;
  constexpr std::uint8_t widths[scalar_type_count] = {0, 2, 3, 5, 6, 4, 4, 1, 1};
  const std::uint8_t width_a = widths[static_cast<std::size_t>(a)];
  const std::uint8_t width_b = widths[static_cast<std::size_t>(b)];
  if (width_a == width_b) return is_float(a) ? ScalarType::Float32 : ScalarType::Int32;
  return width_a < width_b ? b : a;
}

/// Default accumulator of products: float32 for 16-bit floating-point types, int32 for 8-bit integers, else the type
/// itself.
[[nodiscard]] constexpr ScalarType accumulator_type(ScalarType type) noexcept {
  if (is_narrow_float(type)) return ScalarType::Float32;
  return type == ScalarType::Int8 || type == ScalarType::UInt8 ? ScalarType::Int32 : type;
}

/// Distance from 1 to the next larger number of a floating-point type; 0 for others.
[[nodiscard]] constexpr double epsilon(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::Float16: return Half::epsilon;
    case ScalarType::BFloat16: return BFloat::epsilon;
    case ScalarType::Float32: return static_cast<double>(std::numeric_limits<float>::epsilon());
    case ScalarType::Float64: return std::numeric_limits<double>::epsilon();
    default: return 0;
  }
}

/// Least and largest number of a type; infinite for floating-point types. That of int64 is 2^63, the double nearest to
/// its largest number, which is not one of them.
[[nodiscard]] constexpr double lowest(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::Bool:
    case ScalarType::UInt8: return 0;
    case ScalarType::Int8: return -128;
    case ScalarType::Int32: return -0x1p31;
    case ScalarType::Int64: return -0x1p63;
    default: return -std::numeric_limits<double>::infinity();
  }
}
[[nodiscard]] constexpr double highest(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::Bool: return 1;
    case ScalarType::UInt8: return 255;
    case ScalarType::Int8: return 127;
    case ScalarType::Int32: return 0x1p31 - 1;
    case ScalarType::Int64: return 0x1p63;
    default: return std::numeric_limits<double>::infinity();
  }
}

/// A number of type int64 as it is stored: 2^63 stands for 2^63 - 1.
[[nodiscard]] constexpr std::int64_t as_int64(double number) noexcept {
  return number >= 0x1p63 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(number);
}

/// Whether `value` is a number of the type: any is one of a floating-point type, of others integers that it holds.
[[nodiscard]] inline bool is_number_of(double value, ScalarType type) noexcept {
  if (is_float(type)) return true;
  const bool is_below = type == ScalarType::Int64 ? value < highest(type) : value <= highest(type);
  return std::trunc(value) == value && value >= lowest(type) && is_below;
}

/// The result of an operation of type `type` whose exact result is `value`: floating-point types round to nearest, ties
/// to even; integers truncate and wrap around. A double represents the values of every type, so int64 is exact up to
/// 2^53 and does not wrap.
[[nodiscard]] double rounded(double value, ScalarType type) noexcept;

/// `value` of type `from` cast to `to`. From floating point to integers: truncates, saturates at the ends of the type,
/// and turns NaN into zero; between integers: keeps the lower bits; to floating point: rounds to nearest, ties to even;
/// to Booleans: nonzero is true.
[[nodiscard]] double converted(double value, ScalarType from, ScalarType to) noexcept;

/// The product of two numbers of `type`, also if it has more digits than a double.
[[nodiscard]] double product(double a, double b, ScalarType type) noexcept;

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::program {

TUNEWRIGHT_INLINE double rounded(double value, ScalarType type) noexcept {
  const auto wrapped = [value](double count, double least) {
    if (!std::isfinite(value)) return 0.0;  // of a division by zero, which means nothing
    const double whole = std::trunc(value);
    return whole - std::floor((whole - least) / count) * count;
  };
  switch (type) {
    case ScalarType::Bool: return value != 0 ? 1 : 0;
    case ScalarType::Int8: return wrapped(0x1p8, -128);
    case ScalarType::UInt8: return wrapped(0x1p8, 0);
    case ScalarType::Int32: return wrapped(0x1p32, -0x1p31);
    case ScalarType::Int64: return std::trunc(value);
    case ScalarType::Float16: return static_cast<double>(Half(value));
    case ScalarType::BFloat16: return static_cast<double>(BFloat(value));
    case ScalarType::Float32: return static_cast<double>(static_cast<float>(value));
    case ScalarType::Float64: break;
  }
  return value;
}

TUNEWRIGHT_INLINE double converted(double value, ScalarType from, ScalarType to) noexcept {
  if (!is_float(from) || is_float(to) || to == ScalarType::Bool) return rounded(value, to);
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  return whole < lowest(to) ? lowest(to) : whole > highest(to) ? highest(to) : whole;
}

TUNEWRIGHT_INLINE double product(double a, double b, ScalarType type) noexcept {
  if (type != ScalarType::Int32) return rounded(a * b, type);
  const auto low_bits = static_cast<std::uint32_t>(static_cast<std::int64_t>(a) * static_cast<std::int64_t>(b));
  return static_cast<double>(static_cast<std::int32_t>(low_bits));
}

}  // namespace tunewright::program

#endif
