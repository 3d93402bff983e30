// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::test {

/// How one axis is tiled: parts of a virtual thread, of a thread, and two inner levels.
using Tile = std::vector<std::int64_t>;

/// Caches `stage`, a matrix, in registers: each thread of a block of `side` x `side` computes 4 x 4 elements, of which
/// rows are stored as vectors. Returns the cache, which is computed by threads.
inline schedule::TensorId register_tiles_of_threads(schedule::ScheduleBuilder& s, std::string_view stage,
                                                    std::int64_t side) {
  using schedule::LoopKind;
  const schedule::TensorId result = s.stage(stage);
  const schedule::TensorId local = s.cache_write(result);
  const auto i = s.split(result, 0, {side, 4});
  const auto j = s.split(result, 1, {side, 4});
  s.reorder(result, {i[0], j[0], i[1], j[1], i[2], j[2]});
  s.bind(result, s.fuse(result, {i[0], j[0]}), LoopKind::BlockX);
  const auto threads = s.fuse(result, {i[1], j[1]});
  s.bind(result, threads, LoopKind::ThreadX);
  s.vectorize(result, j[2]);
  s.compute_at(local, result, threads);
  return local;
}

/// The multi-level tiling of a GPU, by hand: `stage`, which reduces, is cached locally and computed by blocks, virtual
/// threads and threads; `operands` are copied to shared memory by all threads of a block, `vector` elements at a time.
/// Four factors an axis, two a reduction axis.
inline schedule::ScheduleBuilder tiled_on_gpu(std::shared_ptr<const program::ComputeGraph> graph,
                                              std::string_view stage, const std::vector<Tile>& spatial,
                                              const std::vector<Tile>& reduction,
                                              const std::vector<std::string_view>& operands, std::int64_t vector = 1) {
  using schedule::IterId;
  using schedule::LoopKind;
  schedule::ScheduleBuilder s(std::move(graph));
  const schedule::TensorId result = s.stage(stage);
  const schedule::TensorId tiled = s.cache_write(result, schedule::Scope::Local);
  std::vector<std::uint32_t> steps;
  std::vector<std::vector<IterId>> space, reduce;
  for (std::size_t a = 0; a < spatial.size(); ++a) {
    steps.push_back(s.next_step());
    space.push_back(s.split(tiled, static_cast<IterId>(a), spatial[a]));
  }
  for (std::size_t r = 0; r < reduction.size(); ++r)
    reduce.push_back(s.split(tiled, static_cast<IterId>(spatial.size() + r), reduction[r]));
  std::vector<IterId> order;
  const auto level = [&order](const std::vector<std::vector<IterId>>& axes, std::size_t number) {
    for (const auto& parts : axes) order.push_back(parts[number]);
  };
  for (const std::size_t outer : {0, 1, 2}) level(space, outer);
  level(reduce, 0), level(reduce, 1), level(space, 3), level(reduce, 2), level(space, 4);
  s.reorder(tiled, order);

  std::vector<std::vector<IterId>> parts;
  for (std::size_t a = 0; a < spatial.size(); ++a)
    parts.push_back(s.follow_split(result, static_cast<IterId>(a), steps[a], 3));
  order.clear();
  for (const std::size_t outer : {0, 1, 2, 3}) level(parts, outer);
  s.reorder(result, order);
  IterId bound = 0;
  for (std::size_t outer = 0; outer < 3; ++outer) {
    constexpr LoopKind kinds[] = {LoopKind::BlockX, LoopKind::VirtualThread, LoopKind::ThreadX};
    order.clear();
    level(parts, outer);
    bound = s.fuse(result, order);
    s.bind(result, bound, kinds[outer]);
  }
  s.compute_at(tiled, result, bound);

  for (const std::string_view operand : operands) {
    const schedule::TensorId copy = s.cache_read(s.stage(operand), tiled, schedule::Scope::Shared);
    s.compute_at(copy, tiled, reduce[0][0]);
    const IterId all = s.fuse(copy, std::vector<IterId>(s.loops(copy)));
    const auto vectors = s.split(copy, all, {vector});
    const auto threads = s.follow_fused_split(copy, vectors[0], steps, 1);
    s.bind(copy, threads[1], LoopKind::ThreadX);
    s.vectorize(copy, vectors[1]);
  }
  return s;
}

/// A float32 product of 4096 as it is written by hand: blocks of 128 x 128, 8 x 8 sums a thread, 16 terms at a time,
/// copied two tiles ahead. Its multiply-adds take 7.0 ms at the 19.5 TFLOP/s of an A100.
inline schedule::ScheduleBuilder product_as_by_hand() {
  const auto graph = program::operators::matmul_graph({.m = 4096, .n = 4096, .k = 4096});
  auto s = tiled_on_gpu(graph, "matmul", {{1, 16, 1, 8}, {1, 16, 1, 8}}, {{16, 1}}, {"A", "B"}, 4);
  s.pipeline(s.stage("matmul.local"), s.state().stages[s.stage("A.shared")].location.iter, {3, true});
  return s;
}
inline constexpr double least_of_product_as_by_hand_s = 2.0 * 4096 * 4096 * 4096 / 19.5e12;

/// The plain schedule of a stage on a GPU: all spatial loops one, by blocks of so many threads.
inline void bind_whole(schedule::ScheduleBuilder& s, schedule::TensorId stage, std::int64_t threads) {
  std::vector<schedule::IterId> spatial;
  for (const schedule::IterId iter : s.loops(stage)) {
    if (s.state().stages[stage].iterators[iter].kind == schedule::AxisKind::Spatial) spatial.push_back(iter);
  }
  const auto parts = s.split(stage, s.fuse(stage, spatial), {threads});
  s.bind(stage, parts[0], schedule::LoopKind::BlockX);
  s.bind(stage, parts[1], schedule::LoopKind::ThreadX);
}

}  // namespace tunewright::test
