// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

/// Maps matrix products, batched products and convolutions to the tensor instructions of a CPU.
namespace tunewright::spaces::tiling {

/// How a tensor instruction computes an operator: the spatial axes of its rows and columns, the reduction axis of its
/// sum, its number of iterations along each, and the operands.
struct ProductAxes {
  IterId column = 0;
  IterId depth = 0;
  IterId row = 0;          ///< for instructions of several rows
  std::int64_t m = 1;      ///< rows per instruction
  std::int64_t steps = 1;  ///< sums of k terms per instruction
  TensorId rows = 0;
  TensorId columns = 0;
  std::vector<IterId> other_columns{};       ///< spatial axes, except the last, along which other columns are read
  bool columns_are_neighbours = false;       ///< columns are contiguous in memory if the operand is not copied
  std::optional<IterId> column_dimension{};  ///< dimension of `columns` whose index is the column axis alone
  std::optional<IterId> depth_dimension{};   ///< dimension of `columns` whose index is the depth axis alone
};

/// The best number of iterations per instruction for `extent` iterations and at most `most` at once. Remaining
/// iterations are plain loops, each of which costs about as much as two instructions.
[[nodiscard]] std::int64_t share_of(std::int64_t extent, std::int64_t most);

/// The same if the remaining iterations are padded to a whole instruction: the fewest iterations with which the minimum
/// number of instructions suffices.
[[nodiscard]] inline std::int64_t padded_share_of(std::int64_t extent, std::int64_t most) {
  return program::ceil_div(extent, program::ceil_div(extent, most));
}

/// What to do with iterations that do not fill an instruction.
enum class LeftOver {
  InLoops,  ///< run them as loops without the instruction
  Padded    ///< round the axes up; operands are zero beyond their ends
};

/// Whether the instruction's number of iterations divides each axis.
[[nodiscard]] bool divides(const program::Operator& op, const schedule::TensorIntrinsic& intrinsic,
                           const ProductAxes& axes);

/// The multiple to which each axis is padded.
[[nodiscard]] std::vector<std::int64_t> padded_multiples(const program::Operator& op,
                                                         const schedule::TensorIntrinsic& intrinsic,
                                                         const ProductAxes& axes);

/// Empty unless the last spatial axis and some reduction axis are long enough and, for an instruction of several rows,
/// some other spatial axis as well; one factor must not depend on the last spatial axis, and must be contiguous along
/// the reduction axis. Padded axes are long enough if at least a quarter of the work is not padding.
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
    if (!is_contiguous(rows->indices, depth) || !uses_axis(*columns, depth)) continue;
    const std::int64_t extent = op.axes[depth].extent;
    const std::int64_t sums = padded ? program::ceil_div(extent, intrinsic.k) : extent / intrinsic.k;
    axes.steps = intrinsic.steps > 1 ? share(sums, intrinsic.steps) : 1;
    axes.depth = depth;
    axes.depth_dimension = dimension_of(columns->indices, depth);
    if (sums == 0 || (intrinsic.steps > 1 && axes.steps <= 1)) continue;
    if (!padded) return axes;
    // Padding the terms with zeros requires a separate dimension in both factors.
    const std::vector<std::int64_t> multiples = padded_multiples(op, intrinsic, axes);
    const bool zeros =
        extent % multiples[depth] == 0 || (axes.depth_dimension && dimension_of(rows->indices, depth).has_value());
    if (zeros && share_not_padded(op, multiples) >= least_used) return axes;
  }
  return std::nullopt;
}

}  // namespace tunewright::spaces::tiling

#endif
