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

/// Tensor instructions as data: the computation, the operand types, and the requirements on the processor. Code
/// generators decide how to emit one. A nest with tensor instructions has the semantics of its loops, so code that does
/// not know an instruction can run the loops.
namespace tunewright::schedule {

using program::ScalarType;

/// Types of the factors, in either order, and of the accumulator.
struct OperandTypes {
  ScalarType a = ScalarType::Float32;
  ScalarType b = ScalarType::Float32;
  ScalarType accumulator = ScalarType::Float32;
};

/// accumulator[i, j] += sum over r < steps * k of a[i, r] * b[r, j], for i < m and j < n.
///
/// Its loops are, from the outside in, m, steps, n and k; loops of one iteration are left out.
///
/// Layouts on CPUs: elements of `a` that differ only in r are adjacent. Elements of `b` are stored as [steps][n][k];
/// with a single step, k rows of n that are interleaved while they are loaded are also allowed.
///
/// Layouts on GPUs: both operands are in shared memory, row-major or column-major; they, and fragments of them, begin
/// at multiples of 16 elements, or of 16 bytes if the layout of fragments is known. In the latter case bytes that one
/// thread multiplies together are adjacent: `a` is row-major and `b` column-major. The sums are in
/// `Scope::Accumulator`, one fragment of m x n elements per instruction, which a warp of `threads` threads holds
/// together (see `loops/device/fragments.hpp`). For instructions that read whole matrices through descriptors, a warp
/// group (four warps) holds the fragment; their operands are stored as core matrices
/// (`loops/device/core_matrices.hpp`), bytes with adjacent terms.
struct TensorIntrinsic {
  std::string_view name;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t steps = 1;         ///< consecutive sums of k terms
  bool takes_fewer = false;       ///< m and steps are upper bounds
  std::int64_t instructions = 1;  ///< of vectors, that multiply: an "instruction" of a CPU may be a few
  TensorUnit unit = TensorUnit::Avx512Vnni;
  std::array<OperandTypes, 4> types{};
  std::size_t type_count = 1;
  Scope a = Scope::FragmentA;  ///< where operands are during the instruction
  Scope b = Scope::FragmentB;
  Scope accumulator = Scope::Accumulator;
  /// Ten times the compute capability of the first GPUs that have it; 0: all GPUs with the unit.
  unsigned since = 0;
  /// The assignment of fragment elements to the threads of a warp is known, so sums are stored directly from registers.
  bool layout_is_known = false;
  std::int64_t threads = 32;  ///< of a GPU, that execute it together

  [[nodiscard]] constexpr bool by_warp_group() const noexcept { return threads > 32; }
  /// Elements of an accumulator fragment per thread.
  [[nodiscard]] constexpr std::int64_t sums_of_thread() const noexcept { return m * n / threads; }
  [[nodiscard]] std::span<const OperandTypes> operand_types() const noexcept { return {types.data(), type_count}; }
};

/// The three types of products of bytes with and without signs.
inline constexpr std::array<OperandTypes, 4> products_of_bytes{
    {{ScalarType::UInt8, ScalarType::Int8, ScalarType::Int32},
     {ScalarType::Int8, ScalarType::Int8, ScalarType::Int32},
     {ScalarType::UInt8, ScalarType::UInt8, ScalarType::Int32}}};

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
    product.types = products_of_bytes;
    product.type_count = 3;
  } else {
    const ScalarType factors = unit == TensorUnit::TensorCoreBf16 ? ScalarType::BFloat16 : ScalarType::Float16;
    product.types = {{{factors, factors, ScalarType::Float32}}};
  }
  return product;
}

/// All known instructions. To add one, add a row, and code to emit it where it should be fast.
inline constexpr std::array<TensorIntrinsic, 20> tensor_intrinsics{{
    {.name = "avx2_int8",
     .n = 8,
     .k = 4,
     .instructions = 2,
     .unit = TensorUnit::Avx2,
     .types = products_of_bytes,
     .type_count = 3},
    {.name = "avx512_vnni",
     .n = 16,
     .k = 4,
     .unit = TensorUnit::Avx512Vnni,
     .types = products_of_bytes,
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
     .types = products_of_bytes,
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
     .types = products_of_bytes,
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

/// The instruction of that name, or null.
[[nodiscard]] constexpr const TensorIntrinsic* find_intrinsic(std::string_view name) noexcept {
  for (const TensorIntrinsic& intrinsic : tensor_intrinsics) {
    if (intrinsic.name == name) return &intrinsic;
  }
  return nullptr;
}

/// Whether some instruction of a CPU reads so many columns, of 32 bits each, at once.
[[nodiscard]] constexpr bool reads_columns(std::int64_t columns) noexcept {
  for (const TensorIntrinsic& intrinsic : tensor_intrinsics) {
    if (!is_tensor_core(intrinsic.unit) && intrinsic.n == columns) return true;
  }
  return false;
}

/// Operations that widen a vector of bytes to two of 16-bit integers, those of even and of odd places: a mask and a
/// shift without signs, three shifts with signs.
[[nodiscard]] constexpr std::int64_t widening_operations(ScalarType bytes) noexcept {
  return bytes == ScalarType::UInt8 ? 2 : 3;
}

/// Whether devices like `target` have the instruction.
[[nodiscard]] bool is_on(const TensorIntrinsic& intrinsic, const Target& target) noexcept;

/// The two loads in the body of a product; each may be cast.
struct Product {
  const program::ExprNode* first = nullptr;
  const program::ExprNode* second = nullptr;
};

/// The factors if `op` is a sum of products of two loads; empty otherwise.
[[nodiscard]] std::optional<Product> product_of(const program::Operator& op);

/// Whether `op` is a sum of products of types that `intrinsic` multiplies.
[[nodiscard]] bool multiplies(const TensorIntrinsic& intrinsic, const program::Operator& op);

}  // namespace tunewright::schedule

#if TUNEWRIGHT_DEFINES(schedule)

namespace tunewright::schedule {

TUNEWRIGHT_INLINE bool is_on(const TensorIntrinsic& intrinsic, const Target& target) noexcept {
  if (!is_tensor_core(intrinsic.unit)) {
    const Isa isa = intrinsic.unit == TensorUnit::Avx2 ? Isa::Avx2 : Isa::Avx512;
    return target.kind == DeviceKind::Cpu && target.isa == isa && target.has(intrinsic.unit);
  }
  return target.has(intrinsic.unit) && target.compute_capability() >= intrinsic.since &&
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
