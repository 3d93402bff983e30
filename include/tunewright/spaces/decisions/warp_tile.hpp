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
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/spaces/decisions/pipelining.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"

/// Tile sizes of products on tensor cores. The splits of one stage make the tile: its axes, counted in instructions
/// along the axes of the instruction, are split into [block | warps | fragments of a warp], its reductions into [steps
/// | in shared memory at a time]. For instructions of warp groups, "warps" means warp groups.
namespace tunewright::spaces::decisions {

using schedule::Split;
using schedule::Step;

enum WarpPart : std::size_t { Warps, Fragments, warp_parts };

/// The open splits of one stage that tensor cores compute.
struct WarpTile {
  std::vector<Split*> axes;
  std::vector<Split*> reductions;
  std::int64_t tiles_kept = 1;  ///< per operand in shared memory
  /// The instruction; if no instruction of GPUs computes the tile, the smallest one.
  const schedule::TensorIntrinsic* intrinsic = schedule::find_intrinsic("wmma_fp16");

  /// Product of one part over the axes.
  [[nodiscard]] std::int64_t product(WarpPart part) const {
    std::int64_t product = 1;
    for (const Split* axis : axes) product = tile_product(product, axis->factors[part]);
    return product;
  }
};

[[nodiscard]] inline bool is_warp_axis(const Split& split) {
  return is_open_split(split) && split.factors.size() == warp_parts && split.inner == schedule::LoopKind::ThreadY;
}

[[nodiscard]] inline WarpTile warp_tile_of(std::vector<Step>& steps, program::TensorId stage) {
  WarpTile tile;
  tile.tiles_kept = tiles_kept(steps, stage);
  for (Step& step : steps) {
    const auto* by = std::get_if<schedule::Tensorize>(&step);
    if (by != nullptr && by->stage == stage) {
      const schedule::TensorIntrinsic* named = schedule::find_intrinsic(by->intrinsic);
      if (named != nullptr && is_tensor_core(named->unit)) tile.intrinsic = named;
    }
    auto* split = std::get_if<Split>(&step);
    if (split == nullptr || split->stage != stage || !is_open_split(*split)) continue;
    (is_warp_axis(*split) ? tile.axes : tile.reductions).push_back(split);
  }
  return tile;
}

/// Whether tensor cores of a GPU compute a stage.
[[nodiscard]] inline bool has_tensor_core_stage(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    const auto* by = std::get_if<schedule::Tensorize>(&step);
    const schedule::TensorIntrinsic* named = by == nullptr ? nullptr : schedule::find_intrinsic(by->intrinsic);
    return named != nullptr && is_tensor_core(named->unit);
  });
}

/// Number of accumulator fragments that fit five eighths of the registers of a warp in a block of `warps` warps; each
/// thread holds a part of a fragment.
[[nodiscard]] inline std::int64_t fragments_in_registers(const schedule::TensorIntrinsic& intrinsic,
                                                         const Target& target, std::int64_t warps) {
  const std::int64_t threads = intrinsic.threads * std::max<std::int64_t>(warps, 1);
  return registers_of_thread(target, threads) * 5 / 8 / intrinsic.sums_of_thread();
}
/// Maximum number of accumulator fragments per warp in a block of `warps` warps.
[[nodiscard]] inline std::int64_t max_fragments(const schedule::TensorIntrinsic& intrinsic, const Target& target,
                                                std::int64_t warps) {
  return std::max<std::int64_t>(fragments_in_registers(intrinsic, target, warps), 1);
}
/// Maximum number of warps per block: more than 16 have too few registers for a tile that is worth its loads, and each
/// warp needs registers for at least one fragment.
[[nodiscard]] inline std::int64_t max_warps(const schedule::TensorIntrinsic& intrinsic, const Target& target) {
  constexpr std::int64_t most_threads = 16 * 32;
  std::int64_t warps = std::min<std::int64_t>(target.max_threads_per_block, most_threads) / intrinsic.threads;
  while (warps > 1 && fragments_in_registers(intrinsic, target, warps) == 0) --warps;
  return std::max<std::int64_t>(warps, 1);
}

[[nodiscard]] inline bool fits(const WarpTile& tile, const Target& target) {
  const std::int64_t warps = tile.product(Warps);
  return warps <= max_warps(*tile.intrinsic, target) &&
         tile.product(Fragments) <= max_fragments(*tile.intrinsic, target, warps);
}

/// Number of instructions along the reduction whose operands fit into shared memory, estimated for a matrix product of
/// 16-bit numbers whose columns are the axis that needs the least memory.
[[nodiscard]] inline std::int64_t max_instructions_deep(const WarpTile& tile, const Target& target) {
  constexpr std::int64_t bytes_of_terms = 16 * 2;  // per row or column and instruction
  const std::int64_t all = tile_product(tile.product(Warps), tile.product(Fragments)), rows = tile.intrinsic->m,
                     columns = tile.intrinsic->n;
  std::int64_t rows_and_columns = all * rows + columns;
  for (const Split* axis : tile.axes) {
    const std::int64_t across = product_of(axis->factors);
    rows_and_columns = std::min(rows_and_columns, across * columns + all / across * rows);
  }
  return std::max<std::int64_t>(static_cast<std::int64_t>(target.shared_memory_limit_bytes()) /
                                    tile_product(bytes_of_terms * rows_and_columns, tile.tiles_kept),
                                1);
}

/// The powers of two up to `most`.
[[nodiscard]] inline std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> powers{1};
  while (2 * powers.back() <= most) powers.push_back(2 * powers.back());
  return powers;
}

/// Draws the parts of one axis within the remaining factors; takes the largest possible part if the axis is the `last`
/// to be drawn. Otherwise keeps the one of two draws whose tile is closer to a square, which needs fewer loads per
/// product.
inline void draw_warp_axis(Split& axis, std::int64_t& warps, std::int64_t& fragments, bool last, Rng& rng) {
  const auto part = [&](std::int64_t extent, std::int64_t most) {
    most = std::max<std::int64_t>(most, 1);
    const std::vector<std::int64_t> sizes = tile_sizes(extent, most);
    if (last) return *std::max_element(sizes.begin(), sizes.end());
    const std::int64_t one = pick(sizes, rng), other = pick(sizes, rng);
    return one + most / one <= other + most / other ? one : other;
  };
  const std::int64_t extent = std::max<std::int64_t>(axis.extent, 1);
  axis.factors[Fragments] = part(extent, fragments);
  axis.factors[Warps] = part(program::ceil_div(extent, axis.factors[Fragments]), warps);
  fragments /= axis.factors[Fragments];
  warps /= axis.factors[Warps];
}

inline void draw_depth(const WarpTile& tile, const Target& target, Rng& rng) {
  std::int64_t depth = max_instructions_deep(tile, target);
  std::vector<Split*> reductions = tile.reductions;
  rng.shuffle(std::span(reductions));
  for (Split* axis : reductions) draw_reduction(*axis, depth, rng);
}

/// Draws a whole tile: first the numbers of warps and fragments, then their factors for each axis. More fragments are
/// drawn more often, because products share the loaded factors; a tile that leaves multiprocessors idle is drawn again.
inline void draw_warp_tile(const WarpTile& tile, const Target& target, Rng& rng) {
  constexpr unsigned tries = 8;
  for (unsigned attempt = 0; attempt < tries; ++attempt) {
    std::int64_t warps = pick(powers_of_two(max_warps(*tile.intrinsic, target)), rng);
    std::int64_t fragments = pick_large(powers_of_two(max_fragments(*tile.intrinsic, target, warps)), rng);
    std::vector<Split*> order = tile.axes;
    rng.shuffle(std::span(order));
    for (Split* axis : order) draw_warp_axis(*axis, warps, fragments, axis == order.back(), rng);
    if (fits(tile, target)) break;
  }
  draw_depth(tile, target, rng);
}

/// Moves a factor of an axis or a reduction from one part to another, or redraws it. Returns false if nothing changed
/// within the limits of the target.
inline bool mutate_warp_split(const WarpTile& tile, Split& split, const Target& target, Rng& rng) {
  constexpr unsigned tries = 8;
  constexpr double redraw_share = 0.2;
  const Split before = split;
  for (unsigned attempt = 0; attempt < tries; ++attempt) {
    split = before;
    if (divides(split) && rng.uniform() >= redraw_share) {
      move_factor(split, rng);
    } else if (is_warp_axis(split)) {
      split.factors.assign(warp_parts, 1);
      std::int64_t warps = max_warps(*tile.intrinsic, target) / tile.product(Warps);
      std::int64_t fragments = max_fragments(*tile.intrinsic, target, tile.product(Warps)) / tile.product(Fragments);
      draw_warp_axis(split, warps, fragments, false, rng);
    } else {
      std::fill(split.factors.begin(), split.factors.end(), 1);
      std::int64_t depth = max_instructions_deep(tile, target);
      for (const Split* other : tile.reductions) depth /= product_of(other->factors);
      draw_reduction(split, depth, rng);
    }
    if (split != before && fits(tile, target)) return true;
  }
  split = before;
  return false;
}

}  // namespace tunewright::spaces::decisions
