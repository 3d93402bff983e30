// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::test {

/// How a matrix product is tiled for tensor instructions: by warps of a block (warp groups, where these run them), and
/// fragments of a warp, along rows and columns; instructions along the reduction that are in shared memory at a time.
struct WarpTiles {
  std::array<std::int64_t, 2> warps{1, 1};
  std::array<std::int64_t, 2> fragments{1, 1};
  std::int64_t depth = 1;
  std::int64_t padding = 16;  ///< elements behind a row of a copy
};

/// Whether neighbours in the last dimension of `tensor` are read by neighbours of the reduction, axis 2.
inline bool reduction_is_last(const program::Operator& op, program::TensorId tensor) {
  for (const program::Reads& reads : program::reads_of(op)) {
    if (reads.tensor == tensor) return reads.accesses.front().back().uses(2);
  }
  return false;
}

/// The product "matmul" of "A" and "B" by hand: sums in fragments of a warp or group, operands in shared memory.
inline schedule::ScheduleBuilder tensorized_matmul(std::shared_ptr<const program::ComputeGraph> graph,
                                                   const std::string& instruction, const WarpTiles& tiles) {
  using schedule::IterId;
  using schedule::LoopKind;
  using schedule::Scope;
  schedule::ScheduleBuilder s(std::move(graph));
  const schedule::TensorId result = s.stage("matmul"), a = s.stage("A"), b = s.stage("B");
  const schedule::TensorId sums = s.cache_write(result, Scope::Accumulator);
  const std::array copies{s.cache_read(a, sums, Scope::Shared), s.cache_read(b, sums, Scope::Shared)};
  const schedule::TensorIntrinsic& intrinsic = *schedule::find_intrinsic(instruction);
  const std::array extents{intrinsic.m, intrinsic.n, intrinsic.k};
  s.pad(sums, {extents[0], extents[1], extents[2]});

  std::vector<std::vector<IterId>> parts;  // rows, columns, terms: of tiles and within
  std::vector<std::uint32_t> steps;
  std::vector<IterId> inside;
  for (IterId axis = 0; axis < 3; ++axis) {
    const std::vector<IterId> instructions = s.split(sums, axis, {extents[axis]});
    inside.push_back(instructions[1]);
    steps.push_back(s.next_step());
    parts.push_back(axis < 2 ? s.split(sums, instructions[0], {tiles.warps[axis], tiles.fragments[axis]})
                             : s.split(sums, instructions[0], {tiles.depth}));
  }
  s.reorder(sums, {parts[0][0], parts[1][0], parts[0][1], parts[1][1], parts[2][0], parts[2][1], parts[0][2],
                   parts[1][2], inside[0], inside[1], inside[2]});
  for (const int axis : {0, 1}) s.unroll(sums, parts[static_cast<std::size_t>(axis)][2]);
  s.tensorize(sums, inside[0], instruction);

  std::vector<IterId> order, last;
  std::array<std::vector<IterId>, 2> of_result;
  for (IterId axis = 0; axis < 2; ++axis) {
    const std::vector<IterId> instructions = s.split(result, axis, {extents[axis]});
    of_result[axis] = s.follow_split(result, instructions[0], steps[axis], 2);
    last.push_back(instructions[1]);
  }
  for (const std::size_t level : {0U, 1U, 2U}) {
    for (const auto& axis : of_result) order.push_back(axis[level]);
  }
  order.insert(order.end(), last.begin(), last.end());
  s.reorder(result, order);
  s.bind(result, s.fuse(result, {order[0], order[1]}), LoopKind::BlockX);
  const IterId warp = s.fuse(result, {order[2], order[3]});
  s.bind(result, warp, LoopKind::ThreadY);
  s.unroll(result, order[4]), s.unroll(result, order[5]);
  s.compute_at(sums, result, warp);

  for (const schedule::TensorId copy : copies) {
    s.compute_at(copy, sums, parts[2][0]);
    // Where threads multiply neighbouring bytes, those of the reduction must be neighbours.
    const bool of_bytes = program::size_in_bytes(s.state().stages[copy].op->type) == 1;
    const bool terms_last = reduction_is_last(*s.state().stages[sums].op, copy);
    const bool swapped = intrinsic.layout_is_known && of_bytes && !terms_last;
    s.choose_layout(copy, {swapped ? std::vector{1U, 0U} : std::vector{0U, 1U}}, {tiles.padding});
    const std::vector<IterId> vector = s.split(copy, 1, {8});
    const std::vector<IterId> lanes = s.split(copy, s.fuse(copy, {0, vector[0]}), {intrinsic.threads});
    const std::vector<IterId> warps = s.follow_fused_split(copy, lanes[0], {steps[0], steps[1]}, 0);
    s.reorder(copy, {warps[1], lanes[1], warps[0]});
    s.bind(copy, warps[1], LoopKind::ThreadY);
    s.bind(copy, lanes[1], LoopKind::ThreadX);
    s.vectorize(copy, vector[1]);
  }
  return s;
}

}  // namespace tunewright::test
