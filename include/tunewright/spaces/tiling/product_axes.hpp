// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

/// How matrix products, batches of them and convolutions fit the tensor instructions of a CPU.
namespace tunewright::spaces::tiling {

/// How an operator is a product that an instruction computes: the spatial axes its rows and columns run along, the
/// reduction axis its sum runs along, how much of each one instruction takes, and the operands.
struct ProductAxes {
  IterId column = 0;
  IterId depth = 0;
  IterId row = 0;          ///< of instructions for several rows
  std::int64_t m = 1;      ///< rows of one instruction
  std::int64_t steps = 1;  ///< and sums of k terms
  TensorId rows = 0;
  TensorId columns = 0;
  std::vector<IterId> other_columns{};       ///< spatial axes but the last along which other columns are read
  bool columns_are_neighbours = false;       ///< in memory, as long as the operand is not copied
  std::optional<IterId> column_dimension{};  ///< of `columns` that the column axis alone counts
  std::optional<IterId> depth_dimension{};   ///< and that the depth axis alone counts
};

/// How many iterations of `extent` an instruction that takes up to `most` at once is best given: where some are left
/// over, they run as plain loops, each of which costs about as much as two instructions.
[[nodiscard]] std::int64_t share_of(std::int64_t extent, std::int64_t most);

/// The same where what is left over is rounded up to a whole instruction: as few of those as there can be, of as few
/// iterations as that takes.
[[nodiscard]] inline std::int64_t padded_share_of(std::int64_t extent, std::int64_t most) {
  return program::ceil_div(extent, program::ceil_div(extent, most));
}

/// What to make of iterations that instructions leave over.
enum class LeftOver {
  InLoops,  ///< run them without the instruction
  Padded    ///< round the axes up, with zeros for operands beyond what there is
};

/// Whether an instruction's share of each axis divides it.
[[nodiscard]] bool divides(const program::Operator& op, const schedule::TensorIntrinsic& intrinsic,
                           const ProductAxes& axes);

/// What each axis is rounded up to a multiple of where it is padded.
[[nodiscard]] std::vector<std::int64_t> padded_multiples(const program::Operator& op,
                                                         const schedule::TensorIntrinsic& intrinsic,
                                                         const ProductAxes& axes);

/// Nothing unless the last spatial axis and some reduction axis are long enough, and for an instruction of several rows
/// some other spatial axis as well, one factor does not depend on the last, and elements of that factor along the
/// reduction axis are neighbours. Padded axes are long enough where at least a quarter of the work is not padding.
[[nodiscard]] std::optional<ProductAxes> product_axes(const program::Operator& op,
                                                      const schedule::TensorIntrinsic& intrinsic,
                                                      LeftOver left_over = LeftOver::InLoops);

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE std::int64_t share_of(std::int64_t extent, std::int64_t most) {
  std::int64_t best = 1;
  std::int64_t lowest = 2 * extent + 1;
  for (std::int64_t share = std::min(extent, most); share > 1; --share) {
    const std::int64_t cost = extent / share + 2 * (extent % share);
    if (cost < lowest) {
      best = share;
      lowest = cost;
    }
  }
  return best;
}

TUNEWRIGHT_INLINE bool divides(const program::Operator& op, const schedule::TensorIntrinsic& intrinsic,
                               const ProductAxes& axes) {
  return op.axes[axes.column].extent % intrinsic.n == 0 &&
         op.axes[axes.depth].extent % (intrinsic.k * axes.steps) == 0 &&
         (axes.m == 1 || op.axes[axes.row].extent % axes.m == 0);
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> padded_multiples(const program::Operator& op,
                                                             const schedule::TensorIntrinsic& intrinsic,
                                                             const ProductAxes& axes) {
  std::vector<std::int64_t> multiples(op.axes.size(), 1);
  if (axes.m > 1) multiples[axes.row] = axes.m;
  multiples[axes.column] = intrinsic.n;
  multiples[axes.depth] = intrinsic.k * axes.steps;
  return multiples;
}

TUNEWRIGHT_INLINE std::optional<ProductAxes> product_axes(const program::Operator& op,
                                                          const schedule::TensorIntrinsic& intrinsic,
                                                          LeftOver left_over) {
  constexpr double least_used = 0.25;  // tile registers are at least four times as fast as vectors
  const bool padded = left_over == LeftOver::Padded;
  if (!schedule::multiplies(intrinsic, op) || op.rank() == 0) return std::nullopt;
  const schedule::Product product = *schedule::product_of(op);
  const auto column = static_cast<program::Var>(op.rank() - 1);
  const program::ExprNode* rows = product.first;
  const program::ExprNode* columns = product.second;
  if (uses_axis(*rows, column)) std::swap(rows, columns);
  if (uses_axis(*rows, column) || !uses_axis(*columns, column) || rows->tensor == columns->tensor ||
      rows->indices.empty() || (!padded && op.axes[column].extent < intrinsic.n))
    return std::nullopt;
  const auto share = [padded](std::int64_t extent, std::int64_t most) {
    return padded ? padded_share_of(extent, most) : share_of(extent, most);
  };
  ProductAxes axes;
  axes.column = column;
  axes.rows = rows->tensor;
  axes.columns = columns->tensor;
  for (program::Var axis = 0; axis < column; ++axis) {
    if (uses_axis(*columns, axis)) axes.other_columns.push_back(axis);
  }
  if (intrinsic.m > 1) {
    for (program::Var row = column; row-- > 0 && axes.m == 1;) {
      if (!uses_axis(*rows, row) || uses_axis(*columns, row)) continue;
      axes.row = row;
      axes.m = share(op.axes[row].extent, intrinsic.m);
    }
    if (axes.m == 1) return std::nullopt;
  }
  axes.column_dimension = dimension_of(columns->indices, column);
  axes.columns_are_neighbours = axes.column_dimension && *axes.column_dimension + 1 == columns->indices.size();
  for (auto depth = static_cast<program::Var>(op.rank()); depth < op.axes.size(); ++depth) {
    const program::IndexExpr& last = rows->indices.back();
    const bool alone = std::none_of(rows->indices.begin(), rows->indices.end() - 1,
                                    [depth](const program::IndexExpr& index) { return index.uses(depth); });
    if (!alone || last.coefficient(depth) != 1 || !uses_axis(*columns, depth)) continue;
    const std::int64_t extent = op.axes[depth].extent;
    const std::int64_t sums = padded ? program::ceil_div(extent, intrinsic.k) : extent / intrinsic.k;
    axes.steps = intrinsic.steps > 1 ? share(sums, intrinsic.steps) : 1;
    axes.depth = depth;
    axes.depth_dimension = dimension_of(columns->indices, depth);
    if (sums == 0 || (intrinsic.steps > 1 && axes.steps <= 1)) continue;
    if (!padded) return axes;
    // Zeros beyond the terms that there are need a dimension of their own in both factors.
    const std::vector<std::int64_t> multiples = padded_multiples(op, intrinsic, axes);
    const bool zeros =
        extent % multiples[depth] == 0 || (axes.depth_dimension && dimension_of(rows->indices, depth).has_value());
    if (zeros && share_not_padded(op, multiples) >= least_used) return axes;
  }
  return std::nullopt;
}

}  // namespace tunewright::spaces::tiling

#endif
