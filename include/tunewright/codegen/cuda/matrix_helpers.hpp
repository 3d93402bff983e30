// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tunewright/codegen/cuda/tensor_helpers.hpp"

/// Device functions for `ldmatrix` and `mma.sync`, whose fragments have a documented layout.
///
/// Lane l of a warp has number t = l % 4 in group g = l / 4. A register of a factor holds 4 bytes, from 4 t on, of row
/// g of a matrix of 8 rows of 16 bytes. A fragment is two by two such matrices: 16 rows (of `a`; columns of `b`) by two
/// times 16 bytes of terms. The sums are two halves of 8 columns; in each half, a lane has columns 2 t and 2 t + 1 of
/// rows g and g + 8. PTX ISA, sections "Matrix Fragments for mma.m16n8k16 with floating point type", "mma.m16n8k32",
/// "mma.m16n8k8" and "mma.m8n8k16", and "Warp-level matrix load instruction: ldmatrix".
namespace tunewright::codegen::cuda {

/// 32-bit registers of a factor per thread.
inline constexpr unsigned matrix_registers = 4;

/// Row and column, in a fragment of sums, of element `part` of thread `thread`. There are 8 elements per thread of a
/// warp; in a warp group, each warp has the next 16 rows. Both are C expressions.
struct SumPlace {
  std::string row;
  std::string column;
};
[[nodiscard]] inline SumPlace place_of_sum(const std::string& thread, const std::string& part, bool of_warp_group) {
  return {(of_warp_group ? thread + " / 32 * 16 + " + thread + " % 32" : thread) + " / 4 + " + part + " / 2 % 2 * 8",
          thread + " % 4 * 2 + " + part + " % 2 + " + part + " / 4 * 8"};
}

/// `name(fragment, address, pitch)` loads a factor, matrix "a" or "b", from shared memory. Terms that are not
/// contiguous in memory, which is possible for 16-bit types, are transposed by the load.
///
/// The four matrices are loaded in register order: for `a`, two row blocks of the first terms, then those of the next
/// terms; for `b`, all terms of the first columns first. Eight lanes each provide the row addresses of one matrix.
[[nodiscard]] inline TensorHelper load_matrices_helper(const FragmentType& type, char matrix, bool by_columns) {
  constexpr unsigned ldmatrix_since = 75;
  const std::string which(1, matrix), bytes = type.ptx.ends_with("8") ? "" : "2 * ";
  const bool transposed = by_columns == (matrix == 'a');
  // In memory, the second matrix is 8 rows further if row blocks come first, otherwise 16 bytes.
  const bool down_first = !by_columns;
  TensorHelper helper{"load_matrices_" + which + "_" + detail::order_of(by_columns) + "_" + std::string(type.ptx), "",
                      ldmatrix_since};
  helper.definition =
      "__device__ __forceinline__ void " + helper.name +
      "(unsigned (&fragment)[4], const void* first, int pitch) {\n  const int lane = (int)threadIdx.x;\n"
      "  const int row = lane % 8 + lane / " +
      (down_first ? "8 % 2 * 8, column = lane / 16 * 16;\n" : "16 * 8, column = lane / 8 % 2 * 16;\n") +
      "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4" + (transposed ? ".trans" : "") +
      ".shared.b16 {%0, %1, %2, %3}, [%4];\"\n    : " + detail::operands("=r", "fragment", matrix_registers) +
      "\n    : \"r\"((unsigned)__cvta_generic_to_shared(first) + " + bytes +
      "row * pitch + column) : \"memory\");\n}\n";
  return helper;
}

namespace detail {
/// One `mma.sync` on the given registers of the arrays `sums`, `a` and `b`.
[[nodiscard]] inline std::string mma(const std::string& shape, const std::string& types, const std::string& sum,
                                     const std::vector<unsigned>& sums, const std::vector<unsigned>& a,
                                     const std::vector<unsigned>& b) {
  const auto count = [](const auto& registers) { return static_cast<unsigned>(registers.size()); };
  const auto list = [](const char* constraint, const char* name, const std::vector<unsigned>& registers) {
    std::string text;
    for (const unsigned r : registers)
      text += (text.empty() ? "\"" : ", \"") + std::string(constraint) + "\"(" + name + "[" + std::to_string(r) + "])";
    return text;
  };
  const std::string in_and_out = numbered(0, count(sums));
  return "  asm volatile(\"mma.sync.aligned." + shape + ".row.col." + types + " " + in_and_out + ", " +
         numbered(count(sums), count(a)) + ", " + numbered(count(sums) + count(a), count(b)) + ", " + in_and_out +
         ";\"\n    : " + list(("+" + sum).c_str(), "sums", sums) + "\n    : " + list("r", "a", a) + ", " +
         list("r", "b", b) + ");\n";
}
}  // namespace detail

/// `name(sums, a, b)` adds the product of two factors to the sums. Compute capability 7.5 only has smaller
/// instructions, several of which give the same result.
[[nodiscard]] inline TensorHelper multiply_matrices_helper(const FragmentType& a, const FragmentType& b) {
  const bool bytes = a.ptx.ends_with("8");
  const std::string sum = detail::register_of(a);
  const std::string types =
      std::string(a.sums) + "." + std::string(a.ptx) + "." + std::string(b.ptx) + "." + std::string(a.sums);
  TensorHelper helper{"multiply_matrices_" + std::string(a.ptx) + "_" + std::string(b.ptx), "",
                      a.since > 75 ? a.since : 75};
  std::string whole, parts;
  for (const unsigned half : {0U, 1U}) {
    const unsigned c = 4 * half, n = 2 * half;
    whole +=
        detail::mma(bytes ? "m16n8k32" : "m16n8k16", types, sum, {c, c + 1, c + 2, c + 3}, {0, 1, 2, 3}, {n, n + 1});
    for (const unsigned terms : {0U, 1U}) {
      if (!bytes) {
        parts += detail::mma("m16n8k8", types, sum, {c, c + 1, c + 2, c + 3}, {2 * terms, 2 * terms + 1}, {n + terms});
        continue;
      }
      for (const unsigned rows : {0U, 1U})
        parts += detail::mma("m8n8k16", types, sum, {c + 2 * rows, c + 2 * rows + 1}, {rows + 2 * terms}, {n + terms});
    }
  }
  helper.definition = "__device__ __forceinline__ void " + helper.name + "(" + std::string(a.spelling) +
                      " (&sums)[8], const unsigned (&a)[4], const unsigned (&b)[4]) {\n";
  helper.definition +=
      helper.since >= 80 ? whole + "}\n" : "#if __CUDA_ARCH__ >= 800\n" + whole + "#else\n" + parts + "#endif\n}\n";
  return helper;
}

}  // namespace tunewright::codegen::cuda
