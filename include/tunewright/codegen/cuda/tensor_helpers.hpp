// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tunewright/codegen/cuda/types.hpp"
#include "tunewright/program/expr.hpp"

/// Device functions for tensor core instructions, as inline PTX, so that no header is needed. The 32 threads of a warp
/// call them together; the device decides which elements of a fragment each thread holds.
namespace tunewright::codegen::cuda {

/// The type of factors in fragments of 16 x 16 elements: PTX ISA, section "Matrix Fragments for WMMA".
struct FragmentType {
  std::string_view scalar;    ///< name of the scalar type
  std::string_view ptx;       ///< PTX type of an element
  unsigned registers = 0;     ///< 32-bit registers of a factor per thread
  std::string_view sums;      ///< PTX type of the sums
  std::string_view spelling;  ///< C++ type of a sum
  unsigned since = 0;         ///< compute capability, times ten
};

inline constexpr std::array fragment_types = std::to_array<FragmentType>({
    {"float16", "f16", 8, "f32", "float", 70},
    {"bfloat16", "bf16", 4, "f32", "float", 80},
    {"int8", "s8", 2, "s32", "int", 72},
    {"uint8", "u8", 2, "s32", "int", 72},
});
inline constexpr unsigned registers_of_sums = 8;

/// Throws `Unsupported` for a type that no instruction multiplies.
[[nodiscard]] inline const FragmentType& fragment_type(program::ScalarType type) {
  for (const FragmentType& row : fragment_types) {
    if (row.scalar == program::name(type)) return row;
  }
  throw Unsupported("no fragments of type " + std::string(program::name(type)) +
                    "; give it a row in codegen/cuda/tensor_helpers.hpp");
}

namespace detail {
/// Operands "%first, %first+1, .." for `count` elements of an array in inline assembly.
[[nodiscard]] inline std::string numbered(unsigned first, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += (i == 0 ? "%" : ", %") + std::to_string(first + i);
  return "{" + text + "}";
}
[[nodiscard]] inline std::string operands(const std::string& constraint, const std::string& name, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i == 0 ? "\"" : ", \"") + constraint + "\"(" + name + "[" + std::to_string(i) + "])";
  return text;
}
[[nodiscard]] inline std::string register_of(const FragmentType& type) { return type.sums == "f32" ? "f" : "r"; }
[[nodiscard]] inline std::string order_of(bool by_columns) { return by_columns ? "col" : "row"; }
}  // namespace detail

/// A device function and its name.
struct TensorHelper {
  std::string name;
  std::string definition;
  unsigned since = 0;  ///< compute capability, times ten
};

/// `name(fragment, address, pitch)` loads a factor, matrix "a" or "b", from shared memory.
[[nodiscard]] inline TensorHelper load_helper(const FragmentType& type, char matrix, bool by_columns) {
  const std::string which(1, matrix), order = detail::order_of(by_columns), ptx(type.ptx);
  TensorHelper helper{"load_" + which + "_" + order + "_" + ptx, "", type.since};
  const unsigned n = type.registers;
  helper.definition = "__device__ __forceinline__ void " + helper.name + "(unsigned (&fragment)[" + std::to_string(n) +
                      "], const void* first, int pitch) {\n  asm volatile(\"wmma.load." + which + ".sync.aligned." +
                      order + ".m16n16k16.shared." + ptx + " " + detail::numbered(0, n) + ", [%" + std::to_string(n) +
                      "], %" + std::to_string(n + 1) + ";\"\n    : " + detail::operands("=r", "fragment", n) +
                      "\n    : \"r\"((unsigned)__cvta_generic_to_shared(first)), \"r\"(pitch) : \"memory\");\n}\n";
  return helper;
}

/// `name(sums, a, b)` adds the product of two factors to the sums.
[[nodiscard]] inline TensorHelper multiply_helper(const FragmentType& type, bool a_by_columns, bool b_by_columns) {
  const std::string orders = detail::order_of(a_by_columns) + "_" + detail::order_of(b_by_columns), ptx(type.ptx);
  TensorHelper helper{"multiply_" + orders + "_" + ptx, "", type.since};
  const std::string sums(type.sums), n = std::to_string(type.registers);
  const std::string in_and_out = detail::numbered(0, registers_of_sums);
  const std::string types = ptx == "f16" ? ".f32.f32" : "." + sums + "." + ptx + "." + ptx + "." + sums;
  helper.definition = "__device__ __forceinline__ void " + helper.name + "(" + std::string(type.spelling) +
                      " (&sums)[8], const unsigned (&a)[" + n + "], const unsigned (&b)[" + n +
                      "]) {\n  asm volatile(\"wmma.mma.sync.aligned." + detail::order_of(a_by_columns) + "." +
                      detail::order_of(b_by_columns) + ".m16n16k16" + types + " " + in_and_out + ", " +
                      detail::numbered(registers_of_sums, type.registers) + ", " +
                      detail::numbered(registers_of_sums + type.registers, type.registers) + ", " + in_and_out +
                      ";\"\n    : " + detail::operands("+" + detail::register_of(type), "sums", registers_of_sums) +
                      "\n    : " + detail::operands("r", "a", type.registers) + ", " +
                      detail::operands("r", "b", type.registers) + ");\n}\n";
  return helper;
}

/// `name(first, sums)` stores the sums to shared memory as 16 rows of 16.
[[nodiscard]] inline TensorHelper store_helper(const FragmentType& type) {
  TensorHelper helper{"store_" + std::string(type.sums), "", type.since};
  const unsigned n = registers_of_sums;
  helper.definition = "__device__ __forceinline__ void " + helper.name + "(" + std::string(type.spelling) +
                      "* first, const " + std::string(type.spelling) +
                      " (&sums)[8]) {\n  asm volatile(\"wmma.store.d.sync.aligned.row.m16n16k16.shared." +
                      std::string(type.sums) + " [%8], " + detail::numbered(0, n) +
                      ", %9;\"\n    :\n    : " + detail::operands(detail::register_of(type), "sums", n) +
                      ", \"r\"((unsigned)__cvta_generic_to_shared(first)), \"r\"(16) : \"memory\");\n}\n";
  return helper;
}

}  // namespace tunewright::codegen::cuda
