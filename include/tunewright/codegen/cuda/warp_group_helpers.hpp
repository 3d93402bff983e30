// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tunewright/codegen/cuda/tensor_helpers.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Device functions for `wgmma.mma_async`, which the 128 threads of a warp group execute together: it multiplies
/// matrices in shared memory (`loops/device/core_matrices.hpp`) asynchronously. PTX ISA, section "Asynchronous
/// Warpgroup Level Matrix Multiply-Accumulate Instructions"; the comments below name its subsections.
///
/// A warp group is four consecutive warps, the first with a number divisible by 4 ("Warpgroup"): one row of ThreadX,
/// which has 128 threads. Either all of them execute an instruction, or none.
///
/// Warp w of the group has rows 16 w to 16 w + 15 of the sums. For each group of 8 columns, its lanes hold the same
/// elements as lanes of `mma.sync` ("Register Fragments").
namespace tunewright::codegen::cuda {

namespace detail {
[[nodiscard]] inline TensorHelper of_warp_groups(const std::string& result, const std::string& name,
                                                 const std::string& parameters, const std::string& body) {
  constexpr unsigned since = 90;
  return {name, "__device__ __forceinline__ " + result + " " + name + "(" + parameters + ") {\n" + body + "}\n", since};
}

/// A function that describes the matrix at an address; every field of a descriptor omits the lowest four of 18 bits.
[[nodiscard]] inline TensorHelper descriptor(const std::string& name, const std::string& leading,
                                             const std::string& stride, const std::string& mode) {
  return of_warp_groups("unsigned long long", name, "const void* first, int " + leading + ", int " + stride,
                        "  const unsigned place = (unsigned)__cvta_generic_to_shared(first);\n"
                        "  return (unsigned long long)((place & 0x3ffff) >> 4) |\n"
                        "         (unsigned long long)((" +
                            leading +
                            " & 0x3ffff) >> 4) << 16 |\n"
                            "         (unsigned long long)((" +
                            stride + " & 0x3ffff) >> 4) << 32" + mode + ";\n");
}
}  // namespace detail

/// Makes stores of the threads, and completed `cp.async` copies (those that are not bulk copies write like stores),
/// visible to the tensor cores, which read through the async proxy ("Async Proxy"). A barrier follows, so that it holds
/// for all threads. No fence is needed before memory that products have read is overwritten: their completion is
/// sufficient.
[[nodiscard]] inline TensorHelper show_stores_helper() {
  return detail::of_warp_groups("void", "show_stores_to_tensor_units", "",
                                "  asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n");
}

/// Orders products after all earlier accesses of the threads to the sums ("wgmma.fence"). Consecutive products of one
/// shape add to the same sums without another fence.
[[nodiscard]] inline TensorHelper begin_products_helper() {
  return detail::of_warp_groups("void", "begin_products", "",
                                "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n");
}

/// Commits all products since the last call as one group.
[[nodiscard]] inline TensorHelper commit_products_helper() {
  return detail::of_warp_groups("void", "commit_products", "",
                                "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n");
}

/// Waits for all groups of products except the latest `under_way`. The sums of other products must not be accessed
/// ("wgmma.wait_group").
[[nodiscard]] inline TensorHelper wait_for_products_helper(std::uint32_t under_way) {
  const std::string number = std::to_string(under_way);
  return detail::of_warp_groups("void", under_way == 0 ? "wait_for_products" : "wait_for_products_but_" + number, "",
                                "  asm volatile(\"wgmma.wait_group.sync.aligned " + number + ";\" ::: \"memory\");\n");
}

/// `name(sums)` prevents the compiler from moving accesses to the sums of a fragment across it.
[[nodiscard]] inline TensorHelper keep_sums_helper(const FragmentType& type,
                                                   const schedule::TensorIntrinsic& intrinsic) {
  const auto count = static_cast<unsigned>(intrinsic.sums_of_thread());
  return detail::of_warp_groups(
      "void", "keep_" + std::string(type.sums) + "_n" + std::to_string(intrinsic.n),
      std::string(type.spelling) + " (&sums)[" + std::to_string(count) + "]",
      "  asm volatile(\"\" : " + detail::operands("+" + detail::register_of(type), "sums", count) +
          " :: \"memory\");\n");
}

/// The descriptor of a matrix that begins at `first`, a multiple of 16 bytes. The arguments are distances between core
/// matrices in bytes; every field omits the lowest four of 18 bits ("Matrix Descriptor Format"). Bits 62 and 63 are 0:
/// no swizzling, for which the base offset has no meaning.
///
/// Bits 16 to 29 are the leading dimension byte offset, bits 32 to 45 the stride dimension byte offset. Without
/// swizzling, the former is along terms and the latter along rows of `a` or columns of `b`, for either order of
/// elements ("Canonical Layouts": ((8,m),(T,2k)):((1T,SBO),(1,LBO)) and ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))). In
/// swizzled layouts with contiguous rows or columns they are exchanged. CUTLASS uses the same rule (`make_gmma_desc`),
/// although the comments on its bit fields describe only the swizzled layouts.
[[nodiscard]] inline TensorHelper describe_matrix_helper() {
  return detail::descriptor("describe_matrix", "along_terms", "along_lines", "");
}

/// Where the element of swizzled rows of 128 bytes is that would be `at` elements from the first: its piece of 16 bytes
/// is exchanged with another one of its row ("Shared Memory Matrix Layout": 128B swizzle).
[[nodiscard]] inline TensorHelper swizzle_helper(std::size_t element_bytes) {
  const std::string row = std::to_string(loops::swizzled_row_bytes / static_cast<std::int64_t>(element_bytes)),
                    piece = std::to_string(loops::matrix_row_bytes / static_cast<std::int64_t>(element_bytes));
  return detail::of_warp_groups("int", "swizzled_" + std::to_string(element_bytes), "int at",
                                "  return at ^ (at / " + row + " % 8 * " + piece + ");\n");
}

/// The descriptor of a matrix in swizzled rows of 128 bytes, by its address without swizzling. `along_rows` is the
/// distance of matrices whose rows continue those of another, `along_columns` of those with the next eight rows. The
/// number in bits 62 and 63 is 1: "128-Byte swizzle". The base offset is 0, for rows are counted from addresses that
/// are multiples of 1024, not from the first row of the matrix.
[[nodiscard]] inline TensorHelper describe_swizzled_matrix_helper() {
  return detail::descriptor("describe_swizzled_matrix", "along_rows", "along_columns", " | 1ull << 62");
}

/// `name(sums, a, b)` adds the product of two described matrices to the sums. If terms are not contiguous in memory,
/// which is possible for 16-bit types, the instruction transposes ("wgmma.mma_async": imm-trans-a and imm-trans-b,
/// which 8-bit types do not have, nor imm-scale-a and imm-scale-b).
[[nodiscard]] inline TensorHelper multiply_described_helper(const schedule::TensorIntrinsic& intrinsic,
                                                            const FragmentType& a, const FragmentType& b,
                                                            bool a_by_columns, bool b_by_columns) {
  const auto count = static_cast<unsigned>(intrinsic.sums_of_thread());
  const bool bytes = a.ptx.ends_with("8");
  const auto number = [](auto value) { return std::to_string(value); };
  const std::string shape = "m" + number(intrinsic.m) + "n" + number(intrinsic.n) + "k" + number(intrinsic.k);
  const std::string types = std::string(a.sums) + "." + std::string(a.ptx) + "." + std::string(b.ptx);
  const std::string orders = bytes ? "" : detail::order_of(a_by_columns) + "_" + detail::order_of(b_by_columns) + "_";
  // Signs of the factors and, for 16-bit types, whether they are transposed.
  const std::string how =
      bytes ? "" : std::string(", 1, 1, ") + (a_by_columns ? "1" : "0") + ", " + (b_by_columns ? "0" : "1");
  return detail::of_warp_groups(
      "void", "multiply_" + orders + std::string(a.ptx) + "_" + std::string(b.ptx) + "_n" + number(intrinsic.n),
      std::string(a.spelling) + " (&sums)[" + number(count) + "], unsigned long long a, unsigned long long b",
      "  asm volatile(\"{ .reg .pred adds; setp.ne.b32 adds, 1, 0; wgmma.mma_async.sync.aligned." + shape + "." +
          types + " " + detail::numbered(0, count) + ", %" + number(count) + ", %" + number(count + 1) + ", adds" +
          how + "; }\"\n    : " + detail::operands("+" + detail::register_of(a), "sums", count) +
          "\n    : \"l\"(a), \"l\"(b));\n");
}

}  // namespace tunewright::codegen::cuda
