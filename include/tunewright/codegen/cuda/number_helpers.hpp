// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// Device functions of numbers: operations that C++ defines in another way than `docs/concepts/number_types.md`.
namespace tunewright::codegen::cuda {

/// A function, overloaded for the types that it takes.
struct NumberHelper {
  std::string_view name;
  std::string_view definition;
};

/// `wrapping_quotient(x, d)` is x / d, also for the least x and -1.
inline constexpr NumberHelper wrapping_quotient_helper{
    "wrapping_quotient",
    "__device__ __forceinline__ int wrapping_quotient(int x, int d) { return d == -1 ? (int)-(unsigned)x : x / d; }\n"
    "__device__ __forceinline__ long long wrapping_quotient(long long x, long long d) {\n"
    "  return d == -1 ? (long long)-(unsigned long long)x : x / d;\n}\n\n"};

/// `wrapping_abs(x)` is |x|, and the least x itself for that.
inline constexpr NumberHelper wrapping_abs_helper{
    "wrapping_abs",
    "__device__ __forceinline__ int wrapping_abs(int x) { return x < 0 ? (int)-(unsigned)x : x; }\n"
    "__device__ __forceinline__ long long wrapping_abs(long long x) {\n"
    "  return x < 0 ? (long long)-(unsigned long long)x : x;\n}\n\n"};

/// `towards_odd(x)` is x as a float, or, if x is none, the adjacent float whose last bit is set. Rounding that to fewer
/// bits gives the same as rounding x once.
inline constexpr NumberHelper towards_odd_helper{
    "towards_odd",
    "// Rounded once more, to fewer bits, it is what x would be rounded to.\n"
    "__device__ __forceinline__ float towards_odd(double x) {\n"
    "  const float y = __double2float_rz(x);\n"
    "  return (double)y == x ? y : __int_as_float(__float_as_int(y) | 1);\n}\n"
    "__device__ __forceinline__ float towards_odd(int x) {\n"
    "  const float y = __int2float_rz(x);\n"
    "  return (int)y == x ? y : __int_as_float(__float_as_int(y) | 1);\n}\n"
    "__device__ __forceinline__ float towards_odd(long long x) {\n"
    "  const float y = __ll2float_rz(x);\n"
    "  return (long long)y == x ? y : __int_as_float(__float_as_int(y) | 1);\n}\n\n"};

/// `zero_if_nan(x)` is 0 for what is no number: conversions to integers do not make it that.
inline constexpr NumberHelper zero_if_nan_helper{
    "zero_if_nan", "__device__ __forceinline__ double zero_if_nan(double x) { return x == x ? x : 0.0; }\n\n"};

}  // namespace tunewright::codegen::cuda
