// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "tunewright/codegen/statement_plan.hpp"
#include "tunewright/program/scalar_type.hpp"

/// Scalar types in CUDA C++.
namespace tunewright::codegen::cuda {

/// The properties of one scalar type.
struct CudaType {
  std::string_view scalar;    ///< name of the scalar type
  std::string_view spelling;  ///< in CUDA C++
  std::string_view vector;    ///< prefix of the built-in vector types; empty: none has 16 bytes
  unsigned bytes = 4;
  bool emulated = false;  ///< stored in 16 bits, computed in float and rounded after each operation
  /// The type in which sums, differences and products are computed, because they wrap around and C++ leaves those of
  /// int that overflow undefined; empty: they fit what C++ computes them in.
  std::string_view modular{};
};

inline constexpr std::array cuda_types = std::to_array<CudaType>({
    {"bool", "bool", "", 1, false},
    {"int8", "signed char", "", 1, false},
    {"uint8", "unsigned char", "", 1, false},
    {"int32", "int", "int", 4, false, "unsigned"},
    {"int64", "long long", "longlong", 8, false, "unsigned long long"},
    {"float16", "half", "", 2, true},
    {"bfloat16", "bfloat16", "", 2, true},
    {"float32", "float", "float", 4, false},
    {"float64", "double", "double", 8, false},
});

/// Throws `Unsupported` for a scalar type without a row.
[[nodiscard]] inline const CudaType& cuda_type(program::ScalarType type) {
  for (const CudaType& row : cuda_types) {
    if (row.scalar == program::name(type)) return row;
  }
  throw Unsupported("CUDA code for type " + std::string(program::name(type)) +
                    " is not generated; give it a row in codegen/cuda/types.hpp");
}

/// Maximum number of lanes of one access: 16 bytes.
[[nodiscard]] inline std::int64_t max_lanes(const CudaType& type) { return 16 / static_cast<std::int64_t>(type.bytes); }

[[nodiscard]] inline std::string vector_type(const CudaType& type, std::int64_t lanes) {
  if (!type.vector.empty()) return std::string(type.vector) + std::to_string(lanes);
  return "Vector<" + std::string(type.spelling) + ", " + std::to_string(lanes) + ">";
}

[[nodiscard]] inline std::string lane_of(const CudaType& type, const std::string& vector, std::int64_t lane) {
  if (!type.vector.empty()) return vector + "." + "xyzw"[lane];
  return vector + ".lane[" + std::to_string(lane) + "]";
}

namespace detail {
template <class T>
[[nodiscard]] std::string floating_literal(T value, std::string_view suffix, std::string_view infinity) {
  if (std::isnan(value)) return "(" + std::string(infinity) + " - " + std::string(infinity) + ")";
  if (std::isinf(value)) return (value < 0 ? "-" : "") + std::string(infinity);
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + std::string(suffix);
}
[[nodiscard]] inline std::string integer_literal(double value, double lowest, double highest, const std::string& least,
                                                 const std::string& greatest, std::string_view suffix) {
  if (value <= lowest) return least;
  if (value >= highest) return greatest;
  return std::to_string(static_cast<std::int64_t>(value)) + std::string(suffix);
}
}  // namespace detail

/// A constant of a type. Integers saturate, so that an infinite identity becomes their minimum or maximum.
[[nodiscard]] inline std::string literal(double value, const CudaType& type) {
  if (type.scalar == "bool") return value != 0 ? "true" : "false";
  if (type.scalar == "int8") return detail::integer_literal(value, -128, 127, "-128", "127", "");
  if (type.scalar == "uint8") return detail::integer_literal(value, 0, 255, "0", "255", "");
  if (type.scalar == "int32")
    return detail::integer_literal(value, -2147483648.0, 2147483647.0, "(-2147483647 - 1)", "2147483647", "");
  if (type.scalar == "int64")
    return detail::integer_literal(value, -9223372036854775808.0, 9223372036854775807.0, "(-9223372036854775807LL - 1)",
                                   "9223372036854775807LL", "LL");
  if (type.scalar == "float64") return detail::floating_literal(value, "", "double(INFINITY)");
  return detail::floating_literal(static_cast<float>(value), "f", "INFINITY");
}

/// Definitions that generated code uses, because it includes no headers.
inline constexpr std::string_view infinity_definition =
    "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n\n";

inline constexpr std::string_view vector_definition =
    "template <class T, int N>\nstruct alignas(sizeof(T) * N) Vector {\n  T lane[N];\n};\n\n";

inline constexpr std::string_view half_definition =
    "struct half {\n  unsigned short bits;\n};\n"
    "__device__ __forceinline__ float to_float(half x) {\n"
    "  float y;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x.bits));\n  return y;\n}\n"
    "__device__ __forceinline__ half to_half(float x) {\n"
    "  half y;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));\n  return y;\n}\n\n";

inline constexpr std::string_view bfloat16_definition =
    "struct bfloat16 {\n  unsigned short bits;\n};\n"
    "__device__ __forceinline__ float to_float(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); "
    "}\n"
    "// Rounds to nearest, ties to even; what is not a number stays so.\n"
    "__device__ __forceinline__ bfloat16 to_bfloat16(float x) {\n"
    "  bfloat16 y;\n"
    "#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800\n"
    "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));\n"
    "#else\n"
    "  const unsigned bits = __float_as_uint(x);\n"
    "  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;\n"
    "  y.bits = (unsigned short)(x != x ? (bits >> 16) | 0x40u : rounded);\n"
    "#endif\n  return y;\n}\n\n";

inline constexpr std::string_view floor_definition =
    "__device__ __forceinline__ int floor_div(int x, int d) { return x / d - (x % d < 0 ? 1 : 0); }\n"
    "__device__ __forceinline__ int floor_mod(int x, int d) { return x % d + (x % d < 0 ? d : 0); }\n"
    "__device__ __forceinline__ long long floor_div(long long x, long long d) { return x / d - (x % d < 0 ? "
    "1 : 0); }\n"
    "__device__ __forceinline__ long long floor_mod(long long x, long long d) { return x % d + (x % d < 0 ? "
    "d : 0); "
    "}\n\n";

}  // namespace tunewright::codegen::cuda
