// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tunewright/codegen/cuda/tensor_helpers.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Device functions around `wgmma.mma_async`, which the 128 threads of a warp group run together: it multiplies
/// matrices of shared memory (`loops/device/core_matrices.hpp`) while the threads go on. PTX ISA, section "Asynchronous
/// Warpgroup Level Matrix Multiply-Accumulate Instructions", here by its subsections.
///
/// A warp group is four warps in a row, the first of them with a number that 4 divides ("Warpgroup"): those of one row
/// of ThreadX, which has 128 threads. All of them run each instruction, or none does.
///
/// Warp w of the group has rows 16 w to 16 w + 15 of the sums. Its lanes have of them what lanes of `mma.sync` have of
/// 16 rows and 8 columns, for one eight of columns after the other ("Register Fragments").
namespace tunewright::codegen::cuda {

namespace detail {
[[nodiscard]] inline TensorHelper of_warp_groups(const std::string& result, const std::string& name,
                                                 const std::string& parameters, const std::string& body) {
  constexpr unsigned since = 90;
  return {name, "__device__ __forceinline__ " + result + " " + name + "(" + parameters + ") {\n" + body + "}\n", since};
}
}  // namespace detail

/// Tensor units, which read through the async proxy, see what a thread has stored, or waited for (`cp.async` that is
/// not bulk writes as stores do), only after this ("Async Proxy"). Barriers come behind it, so that it holds for all
/// threads. Nothing like it is needed before memory that products have read is written again: that they are complete
/// says as much.
[[nodiscard]] inline TensorHelper show_stores_helper() {
  return detail::of_warp_groups("void", "show_stores_to_tensor_units", "",
                                "  asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n");
}

/// Lets products start after everything that the threads have done with the sums so far ("wgmma.fence"). Products of
/// one shape that follow one another add to the same sums without another fence.
[[nodiscard]] inline TensorHelper begin_products_helper() {
  return detail::of_warp_groups("void", "begin_products", "",
                                "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n");
}

/// Makes one group of the products that have been started since the last call.
[[nodiscard]] inline TensorHelper commit_products_helper() {
  return detail::of_warp_groups("void", "commit_products", "",
                                "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n");
}

/// Waits for all groups of products but the latest ones, as many as `under_way`. Sums of those that nobody has waited
/// for are out of reach ("wgmma.wait_group").
[[nodiscard]] inline TensorHelper wait_for_products_helper(std::uint32_t under_way) {
  const std::string number = std::to_string(under_way);
  return detail::of_warp_groups("void", under_way == 0 ? "wait_for_products" : "wait_for_products_but_" + number, "",
                                "  asm volatile(\"wgmma.wait_group.sync.aligned " + number + ";\" ::: \"memory\");\n");
}

/// `name(sums)` lets no compiler move the sums of a fragment from one side of it to the other.
[[nodiscard]] inline TensorHelper keep_sums_helper(const FragmentType& type,
                                                   const schedule::TensorIntrinsic& intrinsic) {
  const auto count = static_cast<unsigned>(intrinsic.sums_of_thread());
  return detail::of_warp_groups(
      "void", "keep_" + std::string(type.sums) + "_n" + std::to_string(intrinsic.n),
      std::string(type.spelling) + " (&sums)[" + std::to_string(count) + "]",
      "  asm volatile(\"\" : " + detail::operands("+" + detail::register_of(type), "sums", count) +
          " :: \"memory\");\n");
}

/// Describes a matrix that begins at `first`, a multiple of 16 bytes. Core matrices are so many bytes apart; every
/// field leaves out the lowest four bits of 18 ("Matrix Descriptor Format"). Bits 62 and 63 are 0: nothing is swizzled,
/// and the base offset, which goes with that, means nothing.
///
/// Bits 16 to 29 have the leading dimension byte offset, 32 to 45 the stride dimension byte offset. Without swizzling
/// the first is along terms and the second along rows of `a` or columns of `b`, whichever of them are neighbours
/// ("Canonical Layouts": ((8,m),(T,2k)):((1T,SBO),(1,LBO)) and ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))). Where lines are
/// neighbours, swizzled layouts have them the other way round; CUTLASS makes its descriptors by the same rule
/// (`make_gmma_desc`), which the comments on its bit fields tell of the swizzled ones alone.
[[nodiscard]] inline TensorHelper describe_matrix_helper() {
  return detail::of_warp_groups("unsigned long long", "describe_matrix",
                                "const void* first, int along_terms, int along_lines",
                                "  const unsigned place = (unsigned)__cvta_generic_to_shared(first);\n"
                                "  return (unsigned long long)((place & 0x3ffff) >> 4) |\n"
                                "         (unsigned long long)((along_terms & 0x3ffff) >> 4) << 16 |\n"
                                "         (unsigned long long)((along_lines & 0x3ffff) >> 4) << 32;\n");
}

/// `name(sums, a, b)` adds the product of two matrices that are described to the sums. Where terms are not neighbours
/// in memory, which 16 bits allow, the instruction transposes ("wgmma.mma_async": imm-trans-a and imm-trans-b, which
/// bytes do not have, as they have no imm-scale-a and imm-scale-b).
[[nodiscard]] inline TensorHelper multiply_described_helper(const schedule::TensorIntrinsic& intrinsic,
                                                            const FragmentType& a, const FragmentType& b,
                                                            bool a_by_columns, bool b_by_columns) {
  const auto count = static_cast<unsigned>(intrinsic.sums_of_thread());
  const bool bytes = a.ptx.ends_with("8");
  const auto number = [](auto value) { return std::to_string(value); };
  const std::string shape = "m" + number(intrinsic.m) + "n" + number(intrinsic.n) + "k" + number(intrinsic.k);
  const std::string types = std::string(a.sums) + "." + std::string(a.ptx) + "." + std::string(b.ptx);
  const std::string orders = bytes ? "" : detail::order_of(a_by_columns) + "_" + detail::order_of(b_by_columns) + "_";
  // Signs of the factors and, for 16 bits, whether they are transposed.
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
