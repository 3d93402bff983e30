// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Requirements of CPU tensor instructions on operands, guards and fills, for code generation and for its estimates.
namespace tunewright::loops {

/// Number of tile registers for sums; the others hold factors.
inline constexpr unsigned max_tile_accumulators = 4;

/// Squares side by side that code generators transpose in registers as one tile.
inline constexpr std::int64_t most_transposed_squares = 4;

/// Distance in elements between iterations of `var`; empty if it varies.
[[nodiscard]] std::optional<std::int64_t> stride(const IndexExpr& offset, Var var);

/// Whether the value is known to be a multiple of `number`, whatever the loop variables are.
[[nodiscard]] bool is_multiple(const IndexExpr& value, std::int64_t number);

/// The offset at the first iterations of loops; each must move it by the same distance in all its iterations.
[[nodiscard]] IndexExpr at_first_iterations(IndexExpr offset, std::span<const Loop* const> inside);

/// The largest block of a tensor that is prefetched into an L2 of so many bytes, which also holds the present block and
/// other operands.
[[nodiscard]] constexpr std::int64_t prefetched_block_bytes(std::int64_t l2_bytes) noexcept { return l2_bytes / 3; }

/// Whether elements side by side along `rows` are side by side in memory, and those along `lanes` are further apart: a
/// copy in vectors along `lanes` transposes them.
[[nodiscard]] bool runs_across(const IndexExpr& offset, Var rows, Var lanes);

/// Distances along the loops m, steps, n and k of an instruction for tile registers; empty ones are arbitrary.
using TileStrides = std::array<std::optional<std::int64_t>, 4>;

/// For rows of the first factor, groups of columns of the second, and rows of sums.
[[nodiscard]] inline TileStrides strides_of_rows(const schedule::TensorIntrinsic& intrinsic) {
  return {std::nullopt, intrinsic.k, 0, 1};
}
[[nodiscard]] inline TileStrides strides_of_columns(const schedule::TensorIntrinsic& intrinsic) {
  return {0, std::nullopt, intrinsic.k, 1};
}
[[nodiscard]] inline TileStrides strides_of_sums() { return {std::nullopt, 0, 1, 0}; }

/// Whether an operand has one of these layouts; `inside` are the instruction's loops.
[[nodiscard]] bool lies(const IndexExpr& offset, std::span<const Loop* const> inside, const TileStrides& wanted);

/// Whether `guard` fails for some values of its variables.
[[nodiscard]] bool can_fail(const Guard& guard, IndexExpr::RangeOf range_of);

/// Whether `guard` holds for all of `extent` values of `var` if it holds for the first: always, or because its bound is
/// a multiple of `extent`. With `may_pass_end`, increasing values may exceed the bound.
[[nodiscard]] bool decided_at_first(const Guard& guard, Var var, std::int64_t extent, bool may_pass_end,
                                    IndexExpr::RangeOf range_of);

/// Whether `initialise`, inside the loops `around`, stores the identity in exactly the elements to which `update` adds
/// inside the loops `added`, at `offset`.
[[nodiscard]] bool starts(const Statement& initialise, std::span<const Loop* const> around, const Statement& update,
                          std::span<const Loop* const> added, const IndexExpr& offset);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::optional<std::int64_t> stride(const IndexExpr& offset, Var var) {
  for (const IndexExpr::Term& term : offset.terms())
    if (term.kind != IndexExpr::Kind::Variable && term.numerator->uses(var)) return std::nullopt;
  return offset.coefficient(var);
}

TUNEWRIGHT_INLINE bool is_multiple(const IndexExpr& value, std::int64_t number) {
  return value.constant() % number == 0 && std::ranges::all_of(value.terms(), [&](const IndexExpr::Term& term) {
           return term.coefficient % number == 0;
         });
}

TUNEWRIGHT_INLINE IndexExpr at_first_iterations(IndexExpr offset, std::span<const Loop* const> inside) {
  for (const Loop* loop : inside) offset += -stride(offset, loop->var).value() * IndexExpr::variable(loop->var);
  return offset;
}

TUNEWRIGHT_INLINE bool runs_across(const IndexExpr& offset, Var rows, Var lanes) {
  const auto step = stride(offset, lanes);
  return stride(offset, rows) == std::optional<std::int64_t>(1) && step && *step > 1;
}

TUNEWRIGHT_INLINE bool lies(const IndexExpr& offset, std::span<const Loop* const> inside, const TileStrides& wanted) {
  for (std::size_t l = 0; l < wanted.size(); ++l) {
    const std::optional<std::int64_t> actual = stride(offset, inside[l]->var);
    if (!actual || (wanted[l] && actual != wanted[l])) return false;
  }
  return true;
}

TUNEWRIGHT_INLINE bool can_fail(const Guard& guard, IndexExpr::RangeOf range_of) {
  const program::Range values = guard.value.range(range_of);
  return (guard.below && values.min < 0) || (guard.above && values.max >= guard.extent);
}

TUNEWRIGHT_INLINE bool decided_at_first(const Guard& guard, Var var, std::int64_t extent, bool may_pass_end,
                                        IndexExpr::RangeOf range_of) {
  if (!guard.value.uses(var)) return true;
  const program::Range values = guard.value.range(range_of);
  const bool below = guard.below && values.min < 0;
  if (!below && (!guard.above || values.max < guard.extent)) return true;
  if (below || stride(guard.value, var) != std::optional<std::int64_t>(1)) return false;
  if (may_pass_end) return true;
  const auto is_multiple = [&](const IndexExpr::Term& term) {
    return (term.kind == IndexExpr::Kind::Variable && term.var == var) || term.coefficient % extent == 0;
  };
  const auto& terms = guard.value.terms();
  return guard.extent % extent == 0 && guard.value.constant() % extent == 0 &&
         std::all_of(terms.begin(), terms.end(), is_multiple);
}

TUNEWRIGHT_INLINE bool starts(const Statement& initialise, std::span<const Loop* const> around, const Statement& update,
                              std::span<const Loop* const> added, const IndexExpr& offset) {
  const auto is_in = [](std::span<const Loop* const> loops, Var var) {
    return std::any_of(loops.begin(), loops.end(), [var](const Loop* loop) { return loop->var == var; });
  };
  return initialise.kind == Statement::Kind::Initialise && initialise.target == update.target &&
         initialise.guards.empty() &&
         std::all_of(around.begin(), around.end(),
                     [&](const Loop* loop) { return offset.uses(loop->var) && is_in(added, loop->var); }) &&
         std::all_of(added.begin(), added.end(),
                     [&](const Loop* loop) { return !offset.uses(loop->var) || is_in(around, loop->var); });
}

}  // namespace tunewright::loops

#endif
