// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/spaces/decisions/pipelining.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"
#include "tunewright/spaces/decisions/warp_tile.hpp"

/// Tile sizes of GPU kernels. The form of an open split says what it is:
///
///   four inner parts                one axis of a block tile: [block | virtual threads | threads | inner | innermost];
///                                   the splits of one stage together make the tile
///   two inner parts, inner = ThreadY    one axis of a tile of tensor instructions: see `warp_tile.hpp`
///   inner = ThreadX                 number of threads that share a loop
///   inner = Vectorized              number of elements that a thread moves at once
///   anything else                   one axis of the tile's reduction
namespace tunewright::spaces::decisions {

using schedule::LoopKind;
using schedule::Split;
using schedule::Step;

enum BlockPart : std::size_t { VirtualThreads, Threads, Inner, Innermost, block_parts };

[[nodiscard]] inline bool is_block_axis(const Split& split) {
  return is_open_split(split) && split.factors.size() == block_parts;
}
[[nodiscard]] inline bool is_single_choice(const Split& split) {
  return split.factors.size() == 1 && (split.inner == LoopKind::Vectorized || split.inner == LoopKind::ThreadX);
}

/// The open splits of one tiled stage.
struct BlockTile {
  std::vector<Split*> axes;
  std::vector<Split*> reductions;
  std::int64_t tiles_kept = 1;  ///< per operand in shared memory

  /// Product of one part over the axes.
  [[nodiscard]] std::int64_t product(BlockPart part) const {
    std::int64_t product = 1;
    for (const Split* axis : axes) product = tile_product(product, axis->factors[part]);
    return product;
  }
  /// Accumulators per thread.
  [[nodiscard]] std::int64_t accumulators() const {
    return tile_product(tile_product(product(VirtualThreads), product(Inner)), product(Innermost));
  }
  /// Number of elements of the output.
  [[nodiscard]] double space() const {
    double points = 1;
    for (const Split* axis : axes) points *= static_cast<double>(axis->extent);
    return points;
  }
};

[[nodiscard]] inline BlockTile block_tile_of(std::vector<Step>& steps, program::TensorId stage) {
  BlockTile tile;
  tile.tiles_kept = tiles_kept(steps, stage);
  for (Step& step : steps) {
    auto* split = std::get_if<Split>(&step);
    if (split == nullptr || split->stage != stage || !is_open_split(*split)) continue;
    if (is_block_axis(*split)) {
      tile.axes.push_back(split);
    } else if (!is_single_choice(*split)) {
      tile.reductions.push_back(split);
    }
  }
  return tile;
}

[[nodiscard]] inline std::int64_t warp_of(const Target& target) { return std::max<std::int64_t>(target.warp_size, 1); }

/// Accumulators that a thread may have in a block of `threads` threads: three quarters of its registers; the rest is
/// for operands and addresses.
[[nodiscard]] inline std::int64_t max_accumulators(const Target& target, std::int64_t threads) {
  return std::max<std::int64_t>(registers_of_thread(target, std::max<std::int64_t>(threads, 1)) * 3 / 4, 1);
}

/// Minimum number of threads per block: a warp, unless there is hardly more than that to compute (as in Ansor).
[[nodiscard]] inline std::int64_t min_threads(const BlockTile& tile, const Target& target) {
  return tile.space() <= 2.0 * static_cast<double>(warp_of(target)) ? 1 : warp_of(target);
}

/// Whether the tile is within the threads, virtual threads and registers of the target.
[[nodiscard]] inline bool fits(const BlockTile& tile, const Target& target) {
  const std::int64_t threads = tile.product(Threads);
  return threads >= min_threads(tile, target) && threads <= target.max_threads_per_block &&
         tile.product(VirtualThreads) <= target.max_vthread_extent &&
         tile.accumulators() <= max_accumulators(target, threads);
}

/// Number of reduction points whose operands fit into shared memory, estimated for a matrix product: the columns are
/// the axis that needs the least memory, the rows all others.
[[nodiscard]] inline std::int64_t max_depth(const BlockTile& tile, const Target& target) {
  std::int64_t all = 1;
  for (const Split* axis : tile.axes) all = tile_product(all, product_of(axis->factors));
  std::int64_t rows_and_columns = all + 1;
  for (const Split* axis : tile.axes) {
    const std::int64_t columns = product_of(axis->factors);
    rows_and_columns = std::min(rows_and_columns, columns + all / columns);
  }
  return std::max<std::int64_t>(static_cast<std::int64_t>(target.shared_memory_per_block_bytes) /
                                    tile_product(tile_product(4, rows_and_columns), tile.tiles_kept),
                                1);
}

/// Draws the number of threads of a block and divides them among the axes; the last axis, which is contiguous in
/// memory, is more often first.
inline void draw_threads(const BlockTile& tile, const Target& target, Rng& rng) {
  constexpr double last_first = 0.75;
  std::int64_t left = warp_of(target);
  std::uint64_t doublings = 0;
  while (left << (doublings + 1) <= target.max_threads_per_block) ++doublings;
  left <<= rng.below(doublings + 1);
  std::vector<Split*> order = tile.axes;
  rng.shuffle(std::span(order));
  if (rng.uniform() < last_first) {
    std::iter_swap(order.begin(), std::find(order.begin(), order.end(), tile.axes.back()));
  }
  for (Split* axis : order) {
    const std::vector<std::int64_t> sizes = tile_sizes(axis->extent, left);
    const bool last = axis == order.back();
    axis->factors[Threads] = last ? *std::max_element(sizes.begin(), sizes.end()) : pick(sizes, rng);
    left /= axis->factors[Threads];
  }
}

/// Draws the work of a thread along one axis, whose threads are drawn already, from the innermost part outwards.
/// `registers` and `vthreads` are the remaining factors of the tile.
inline void draw_work(Split& axis, std::int64_t& registers, std::int64_t& vthreads, Rng& rng) {
  std::int64_t rest = program::ceil_div(axis.extent, axis.factors[Threads]);
  for (const BlockPart part : {Innermost, Inner, VirtualThreads}) {
    std::int64_t cap = std::max<std::int64_t>(registers, 1);
    if (part == Innermost && axis.max_innermost > 0) cap = std::min(cap, axis.max_innermost);
    if (part == VirtualThreads) cap = std::min(cap, std::max<std::int64_t>(vthreads, 1));
    const std::int64_t size = pick(tile_sizes(rest, cap), rng);
    axis.factors[part] = size;
    rest = program::ceil_div(rest, size);
    registers /= size;
    if (part == VirtualThreads) vthreads /= size;
  }
  trim(axis);
}

/// Draws a whole tile. Prefers whole warps; if the extents have no suitable factors, takes the available ones.
inline void draw_block_tile(const BlockTile& tile, const Target& target, Rng& rng) {
  constexpr unsigned tries = 16;
  for (unsigned attempt = 0; attempt < tries && !tile.axes.empty(); ++attempt) {
    draw_threads(tile, target, rng);
    std::int64_t registers = max_accumulators(target, tile.product(Threads));
    std::int64_t vthreads = target.max_vthread_extent;
    std::vector<Split*> order = tile.axes;
    rng.shuffle(std::span(order));
    for (Split* axis : order) draw_work(*axis, registers, vthreads, rng);
    const bool whole_warps = tile.product(Threads) % warp_of(target) == 0;
    if (fits(tile, target) && (whole_warps || attempt + 4 >= tries || rng.uniform() < 0.1)) break;
  }
  std::int64_t depth = max_depth(tile, target);
  std::vector<Split*> reductions = tile.reductions;
  rng.shuffle(std::span(reductions));
  for (Split* axis : reductions) draw_reduction(*axis, depth, rng);
}

/// Possible factors of a split for threads or vectors: powers of two for vectors; for threads, powers of two from a
/// warp on, or exactly the extent.
[[nodiscard]] inline std::vector<std::int64_t> single_choices(const Split& split, const Target& target) {
  const bool threads = split.inner == LoopKind::ThreadX;
  std::vector<std::int64_t> choices;
  std::int64_t most = split.max_innermost > 0 ? split.max_innermost : split.extent;
  if (threads && target.max_threads_per_block > 0) most = std::min<std::int64_t>(most, target.max_threads_per_block);
  const std::int64_t cap = std::max<std::int64_t>(std::min(most, split.extent), 1);
  for (std::int64_t size = threads ? warp_of(target) : 1; size <= cap; size *= 2) {
    choices.push_back(size);
    if (size > cap / 2) break;
  }
  if (threads && split.extent <= most && std::find(choices.begin(), choices.end(), split.extent) == choices.end()) {
    choices.push_back(split.extent);
  }
  return choices.empty() ? std::vector<std::int64_t>{1} : choices;
}

/// Draws how far copies are prefetched, then all open splits of a schedule for a GPU, because prefetched tiles share
/// the memory. Copies for tensor units mostly use wide vectors: narrower ones take more instructions, and copies below
/// 4 bytes cannot be asynchronous.
inline void draw_block_tiles(std::vector<Step>& steps, const Target& target, Rng& rng) {
  draw_pipelining(steps, rng);
  const bool feeds_tensor_cores = has_tensor_core_stage(steps);
  std::vector<program::TensorId> drawn;
  for (Step& step : steps) {
    auto* split = std::get_if<Split>(&step);
    if (split == nullptr || !is_open_split(*split)) continue;
    if (is_single_choice(*split)) {
      const std::vector<std::int64_t> choices = single_choices(*split, target);
      const bool wide = feeds_tensor_cores && split->inner == LoopKind::Vectorized;
      split->factors.assign(1, wide ? pick_large(choices, rng) : pick(choices, rng));
    } else if (std::find(drawn.begin(), drawn.end(), split->stage) == drawn.end()) {
      drawn.push_back(split->stage);
      if (const WarpTile warps = warp_tile_of(steps, split->stage); !warps.axes.empty()) {
        draw_warp_tile(warps, target, rng);
      } else {
        draw_block_tile(block_tile_of(steps, split->stage), target, rng);
      }
    }
  }
}

/// Redraws one axis of a tile within the limits that the other axes leave.
inline void redraw_axis(Split& axis, const BlockTile& tile, const Target& target, Rng& rng) {
  axis.factors.assign(block_parts, 1);
  const std::int64_t threads = target.max_threads_per_block / std::max<std::int64_t>(tile.product(Threads), 1);
  axis.factors[Threads] = pick(tile_sizes(axis.extent, std::max<std::int64_t>(threads, 1)), rng);
  std::int64_t registers = max_accumulators(target, tile.product(Threads)) / tile.accumulators();
  std::int64_t vthreads = target.max_vthread_extent / tile.product(VirtualThreads);
  draw_work(axis, registers, vthreads, rng);
}

/// Redraws one axis of a reduction within the limits that the other axes leave.
inline void redraw_reduction(Split& axis, const BlockTile& tile, const Target& target, Rng& rng) {
  std::fill(axis.factors.begin(), axis.factors.end(), 1);
  std::int64_t depth = max_depth(tile, target);
  for (const Split* other : tile.reductions) depth /= product_of(other->factors);
  draw_reduction(axis, depth, rng);
}

/// Changes one open split for a GPU: draws another number of threads or elements, moves a factor of a tile from one
/// part to another or, sometimes and if the extent has few factors, redraws an axis. Returns false if nothing changed
/// within the limits of the target.
inline bool mutate_block_split(std::vector<Step>& steps, Split& split, const Target& target, Rng& rng) {
  constexpr unsigned tries = 8;
  constexpr double redraw_share = 0.1;
  if (is_single_choice(split)) {
    std::vector<std::int64_t> others = single_choices(split, target);
    others.erase(std::remove(others.begin(), others.end(), split.factors.back()), others.end());
    if (others.empty()) return false;
    split.factors.back() = pick(others, rng);
    return true;
  }
  if (const WarpTile warps = warp_tile_of(steps, split.stage); !warps.axes.empty())
    return mutate_warp_split(warps, split, target, rng);
  const Split before = split;
  const BlockTile tile = block_tile_of(steps, split.stage);
  for (unsigned attempt = 0; attempt < tries; ++attempt) {
    split = before;
    if (divides(split) && rng.uniform() >= redraw_share) {
      move_factor(split, rng);
    } else if (is_block_axis(split)) {
      redraw_axis(split, tile, target, rng);
    } else {
      redraw_reduction(split, tile, target, rng);
    }
    if (split != before && (tile.axes.empty() || fits(tile, target))) return true;
  }
  split = before;
  return false;
}

}  // namespace tunewright::spaces::decisions
