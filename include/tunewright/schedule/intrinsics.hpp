// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/schedule/kinds.hpp"

/// Tensor instructions as data: what one computes, on which types, and what a processor must have for it. Code
/// generators decide how to emit one; a nest that carries one means what its loops mean, so whoever does not know it
/// runs the loops.
namespace tunewright::schedule {

using program::ScalarType;

/// Types of the factors, in either order, and of what their products are added to.
struct OperandTypes {
  ScalarType a = ScalarType::Float32;
  ScalarType b = ScalarType::Float32;
  ScalarType accumulator = ScalarType::Float32;
};

/// accumulator[i, j] += sum over r < steps * k of a[i, r] * b[r, j], for i < m and j < n.
///
/// Its loops are, from the outside in, m, steps, n and k; those of one iteration are left out.
///
/// Layouts on CPUs: elements of `a` that differ in r are neighbours. Elements of `b` are stored [steps][n][k]; where
/// there is one step also as k rows of n that are interleaved on the way in.
/// Layouts on GPUs: both operands are in shared memory, by rows or by columns; these and fragments of them begin at
/// multiples of 16 elements, of 16 bytes where the layout of fragments is known. There, bytes that are
/// multiplied together by one thread are neighbours: `a` is by rows then and `b` by columns. The sums are in
/// `Scope::Accumulator`, a fragment of m x n elements for each of them, which `threads` threads, a warp, hold together:
/// see `loops/device/fragments.hpp`.
/// Four warps, a warp group, hold the fragments of instructions that read whole matrices by their descriptors. Operands
/// of these are laid out for them (`loops/device/core_matrices.hpp`), bytes with neighbouring terms.
struct TensorIntrinsic {
  std::string_view name;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t steps = 1;    ///< sums of k terms that follow one another
  bool takes_fewer = false;  ///< m and steps are the most there can be
  TensorUnit unit = TensorUnit::Avx512Vnni;
  std::array<OperandTypes, 4> types{};
  std::size_t type_count = 1;
  Scope a = Scope::FragmentA;  ///< where operands live while it runs
  Scope b = Scope::FragmentB;
  Scope accumulator = Scope::Accumulator;
  /// Compute capability, times ten, of the first GPUs that have it; 0: all that have the unit.
  unsigned since = 0;
  /// Which thread of a warp holds which element of a fragment is known: sums leave fragments from registers.
  bool layout_is_known = false;
  std::int64_t threads = 32;  ///< of a GPU, that run it together

  [[nodiscard]] constexpr bool by_warp_group() const noexcept { return threads > 32; }
  /// Elements of a fragment of sums that each of its threads holds.
  [[nodiscard]] constexpr std::int64_t sums_of_thread() const noexcept { return m * n / threads; }
  [[nodiscard]] std::span<const OperandTypes> operand_types() const noexcept { return {types.data(), type_count}; }
};

/// `wgmma.mma_async` of 64 rows, for compute capability 9.0 (`Target::multiplies_by_warp_groups`).
[[nodiscard]] constexpr TensorIntrinsic warp_group_product(std::string_view name, std::int64_t columns,
                                                           TensorUnit unit) noexcept {
  TensorIntrinsic product{.name = name,
                          .m = 64,
                          .n = columns,
                          .k = unit == TensorUnit::TensorCoreInt8 ? 32 : 16,
                          .unit = unit,
                          .since = 90,
                          .layout_is_known = true,
                          .threads = 128};
  if (unit == TensorUnit::TensorCoreInt8) {
    product.types = {{{ScalarType::UInt8, ScalarType::Int8, ScalarType::Int32},
                      {ScalarType::Int8, ScalarType::Int8, ScalarType::Int32},
                      {ScalarType::UInt8, ScalarType::UInt8, ScalarType::Int32}}};
    product.type_count = 3;
  } else {
    const ScalarType factors = unit == TensorUnit::TensorCoreBf16 ? ScalarType::BFloat16 : ScalarType::Float16;
    product.types = {{{factors, factors, ScalarType::Float32}}};
  }
  return product;
}

/// All instructions there are descriptors for. Adding one is adding a row, and its emission where it is to run fast.
inline constexpr std::array<TensorIntrinsic, 19> tensor_intrinsics{{
    {.name = "avx512_vnni",
     .n = 16,
     .k = 4,
     .unit = TensorUnit::Avx512Vnni,
     .types = {{{ScalarType::UInt8, ScalarType::Int8, ScalarType::Int32},
                {ScalarType::Int8, ScalarType::Int8, ScalarType::Int32},
                {ScalarType::UInt8, ScalarType::UInt8, ScalarType::Int32}}},
     .type_count = 3},
    {.name = "avx512_bf16",
     .n = 16,
     .k = 2,
     .unit = TensorUnit::Avx512Bf16,
     .types = {{{ScalarType::BFloat16, ScalarType::BFloat16, ScalarType::Float32}}}},
    {.name = "amx_int8",
     .m = 16,
     .n = 16,
     .k = 4,
     .steps = 16,
     .takes_fewer = true,
     .unit = TensorUnit::AmxInt8,
     .types = {{{ScalarType::UInt8, ScalarType::Int8, ScalarType::Int32},
                {ScalarType::Int8, ScalarType::Int8, ScalarType::Int32},
                {ScalarType::UInt8, ScalarType::UInt8, ScalarType::Int32}}},
     .type_count = 3},
    {.name = "amx_bf16",
     .m = 16,
     .n = 16,
     .k = 2,
     .steps = 16,
     .takes_fewer = true,
     .unit = TensorUnit::AmxBf16,
     .types = {{{ScalarType::BFloat16, ScalarType::BFloat16, ScalarType::Float32}}}},
    {.name = "wmma_fp16",
     .m = 16,
     .n = 16,
     .k = 16,
     .unit = TensorUnit::TensorCoreFp16,
     .types = {{{ScalarType::Float16, ScalarType::Float16, ScalarType::Float32}}}},
    {.name = "wmma_bf16",
     .m = 16,
     .n = 16,
     .k = 16,
     .unit = TensorUnit::TensorCoreBf16,
     .types = {{{ScalarType::BFloat16, ScalarType::BFloat16, ScalarType::Float32}}}},
    {.name = "wmma_int8",
     .m = 16,
     .n = 16,
     .k = 16,
     .unit = TensorUnit::TensorCoreInt8,
     .types = {{{ScalarType::Int8, ScalarType::Int8, ScalarType::Int32},
                {ScalarType::UInt8, ScalarType::UInt8, ScalarType::Int32}}},
     .type_count = 2},
    {.name = "mma_fp16",
     .m = 16,
     .n = 16,
     .k = 16,
     .unit = TensorUnit::TensorCoreFp16,
     .types = {{{ScalarType::Float16, ScalarType::Float16, ScalarType::Float32}}},
     .since = 75,
     .layout_is_known = true},
    {.name = "mma_bf16",
     .m = 16,
     .n = 16,
     .k = 16,
     .unit = TensorUnit::TensorCoreBf16,
     .types = {{{ScalarType::BFloat16, ScalarType::BFloat16, ScalarType::Float32}}},
     .since = 80,
     .layout_is_known = true},
    {.name = "mma_int8",
     .m = 16,
     .n = 16,
     .k = 32,
     .unit = TensorUnit::TensorCoreInt8,
     .types = {{{ScalarType::UInt8, ScalarType::Int8, ScalarType::Int32},
                {ScalarType::Int8, ScalarType::Int8, ScalarType::Int32},
                {ScalarType::UInt8, ScalarType::UInt8, ScalarType::Int32}}},
     .type_count = 3,
     .since = 75,
     .layout_is_known = true},
    warp_group_product("wgmma_fp16_n64", 64, TensorUnit::TensorCoreFp16),
    warp_group_product("wgmma_bf16_n64", 64, TensorUnit::TensorCoreBf16),
    warp_group_product("wgmma_int8_n64", 64, TensorUnit::TensorCoreInt8),
    warp_group_product("wgmma_fp16_n128", 128, TensorUnit::TensorCoreFp16),
    warp_group_product("wgmma_bf16_n128", 128, TensorUnit::TensorCoreBf16),
    warp_group_product("wgmma_int8_n128", 128, TensorUnit::TensorCoreInt8),
    warp_group_product("wgmma_fp16_n256", 256, TensorUnit::TensorCoreFp16),
    warp_group_product("wgmma_bf16_n256", 256, TensorUnit::TensorCoreBf16),
    warp_group_product("wgmma_int8_n256", 256, TensorUnit::TensorCoreInt8),
}};

/// The descriptor of that name, or null.
[[nodiscard]] constexpr const TensorIntrinsic* find_intrinsic(std::string_view name) noexcept {
  for (const TensorIntrinsic& intrinsic : tensor_intrinsics) {
    if (intrinsic.name == name) return &intrinsic;
  }
  return nullptr;
}

/// Whether GPUs like `target` have it.
[[nodiscard]] bool is_on(const TensorIntrinsic& intrinsic, const Target& target) noexcept;

/// The two reads of a body that is a product of elements, each cast or not.
struct Product {
  const program::ExprNode* first = nullptr;
  const program::ExprNode* second = nullptr;
};

/// Factors of a sum of products of two reads; nothing if the operator is something else.
[[nodiscard]] std::optional<Product> product_of(const program::Operator& op);

/// True when `op` sums products of types that `intrinsic` multiplies.
[[nodiscard]] bool multiplies(const TensorIntrinsic& intrinsic, const program::Operator& op);

}  // namespace tunewright::schedule

#if TUNEWRIGHT_DEFINES(schedule)

namespace tunewright::schedule {

TUNEWRIGHT_INLINE bool is_on(const TensorIntrinsic& intrinsic, const Target& target) noexcept {
  return is_tensor_core(intrinsic.unit) && target.has(intrinsic.unit) &&
         target.compute_capability() >= intrinsic.since &&
         (!intrinsic.by_warp_group() || target.multiplies_by_warp_groups());
}

TUNEWRIGHT_INLINE std::optional<Product> product_of(const program::Operator& op) {
  if (op.combiner != program::Combiner::Sum || !op.body || op.body->op != program::Op::Multiply) return std::nullopt;
  const auto read = [](const program::Expr& e) -> const program::ExprNode* {
    const program::ExprNode* node = e->op == program::Op::Cast ? e->args[0].get() : e.get();
    return node->op == program::Op::Load ? node : nullptr;
  };
  const Product product{read(op.body->args[0]), read(op.body->args[1])};
  if (product.first == nullptr || product.second == nullptr) return std::nullopt;
  return product;
}

TUNEWRIGHT_INLINE bool multiplies(const TensorIntrinsic& intrinsic, const program::Operator& op) {
  const std::optional<Product> product = product_of(op);
  if (!product) return false;
  const ScalarType x = product->first->type;
  const ScalarType y = product->second->type;
  for (const OperandTypes& types : intrinsic.operand_types()) {
    const bool same = (types.a == x && types.b == y) || (types.a == y && types.b == x);
    if (same && types.accumulator == op.type) return true;
  }
  return false;
}

}  // namespace tunewright::schedule

#endif
