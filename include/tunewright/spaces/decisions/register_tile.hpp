// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/step.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"

/// Tile sizes for CPUs; the innermost tile stays in registers while a stage is reduced.
namespace tunewright::spaces::decisions {

using schedule::LoopKind;
using schedule::Split;
using schedule::Step;

/// The vector registers and the cache of a core, in elements. Those below 4 bytes count as floats, because sums of them
/// are computed as such.
struct CoreLimits {
  CoreLimits(const Target& target, std::size_t element_bytes = sizeof(float))  // NOLINT: most elements are floats
      : lanes(target.vector_lanes(std::max(element_bytes, sizeof(float)))),
        registers(static_cast<std::int64_t>(target.vector_registers())),
        threads(static_cast<std::int64_t>(target.threads)),
        l2_elements(static_cast<std::int64_t>(target.l2_bytes / std::max(element_bytes, sizeof(float)))) {}

  std::int64_t lanes;        ///< of a vector register
  std::int64_t registers;    ///< of a core
  std::int64_t threads;      ///< of the target
  std::int64_t l2_elements;  ///< of one core
};

/// The innermost tile of a stage: `rows` of `vectors` each.
struct RegisterTile {
  std::int64_t rows = 1;
  std::int64_t vectors = 1;

  [[nodiscard]] std::int64_t accumulators() const { return tile_product(rows, vectors); }
  /// Registers of one reduction step: the accumulators, the vectors, and one broadcast element.
  [[nodiscard]] std::int64_t registers() const { return accumulators() + vectors + 1; }
};

/// Vectors are parts of the vectorized axis or, if an instruction computes that, its columns along the last axis in
/// registers.
[[nodiscard]] inline RegisterTile register_tile(const std::vector<Step>& steps, program::TensorId stage,
                                                const CoreLimits& core) {
  RegisterTile tile;
  std::int64_t last = 1;
  for (const Step& step : steps) {
    if (const auto* tensorized = std::get_if<schedule::Tensorize>(&step);
        tensorized != nullptr && tensorized->stage == stage && tile.vectors == 1) {
      const schedule::TensorIntrinsic* intrinsic = schedule::find_intrinsic(tensorized->intrinsic);
      if (intrinsic != nullptr && intrinsic->m == 1) tile = {tile.rows / last, last};
    }
    const auto* split = std::get_if<Split>(&step);
    if (split == nullptr || split->stage != stage || split->factors.empty()) continue;
    const std::int64_t inner = split->factors.back();
    if (split->inner == LoopKind::Unrolled) tile.rows = tile_product(tile.rows, last = inner);
    if (split->inner == LoopKind::Vectorized)
      tile.vectors = tile_product(tile.vectors, program::ceil_div(inner, core.lanes));
  }
  return tile;
}

[[nodiscard]] inline bool fits_registers(const RegisterTile& tile, const CoreLimits& core) {
  return tile.registers() <= core.registers;
}

/// Share of a core's peak rate of multiply-adds that the innermost tiles of a stage reach, estimated by throughput and
/// latency:
///
///   rows * columns / lanes * D / sum(max(A, 1.5 L, 8) D + 2 A)      summed over all tiles
///
/// A tile has A accumulators, D reduction steps and L loads per step. A core does as many loads as multiply-adds per
/// cycle, fewer if they miss the cache; an accumulator can take part in every eighth multiply-add at most, because of
/// two units with a latency of four cycles. Each tile initialises and stores its accumulators. The last tile along an
/// axis has the remaining rows, or the vectors of the remaining columns (`loops::trim_boundaries`); it counts as a part
/// of a tile where a file has so many axes that tiles are of more than 1,024 kinds.
[[nodiscard]] inline double busy_share(const std::vector<Step>& steps, program::TensorId stage,
                                       const CoreLimits& core) {
  struct Tiles {
    double count = 1;
    double rows = 1;
    double vectors = 1;
  };
  constexpr std::size_t most_kinds = 1024;
  double depth = 1, points = 1, most_rows = 1, most_vectors = 1;
  std::vector<Tiles> tiles{{}};
  for (const Step& step : steps) {
    const auto* split = std::get_if<Split>(&step);
    if (split == nullptr || split->stage != stage || !is_open_split(*split)) continue;
    const std::int64_t inner = split->factors.back();
    if (split->inner == LoopKind::Serial) {
      depth *= static_cast<double>(inner);
      continue;
    }
    const bool in_vectors = split->inner == LoopKind::Vectorized;
    const auto size = [&](std::int64_t part) {
      return static_cast<double>(in_vectors ? program::ceil_div(part, core.lanes) : part);
    };
    const auto extent = static_cast<double>(split->extent), full = static_cast<double>(split->extent / inner);
    const double whole = size(inner), left = size(split->extent % inner);
    points *= in_vectors ? extent / static_cast<double>(core.lanes) : extent;
    (in_vectors ? most_vectors : most_rows) *= whole;
    const auto grown = [&](Tiles t, double count, double by) {
      t.count *= count;
      (in_vectors ? t.vectors : t.rows) *= by;
      return t;
    };
    std::vector<Tiles> parted;
    for (const Tiles& t : tiles) {
      if (tiles.size() > most_kinds / 2) {
        parted.push_back(grown(t, extent / static_cast<double>(inner), whole));
        continue;
      }
      if (full > 0) parted.push_back(grown(t, full, whole));
      if (left > 0) parted.push_back(grown(t, 1, left));
    }
    tiles = std::move(parted);
  }
  // Instructions have rows and vectors of their own.
  const RegisterTile largest = register_tile(steps, stage, core);
  const double rows_of_one = static_cast<double>(largest.rows) / most_rows;
  const double vectors_of_one = static_cast<double>(largest.vectors) / most_vectors;
  double time = 0;
  for (const Tiles& t : tiles) {
    const double rows = t.rows * rows_of_one, vectors = t.vectors * vectors_of_one, sums = rows * vectors;
    time += t.count * (std::max({sums, 1.5 * (rows + vectors), 8.0}) * depth + 2 * sums);
  }
  return points * rows_of_one * vectors_of_one * depth / time;
}

/// Whether a stage is a product of few rows with a large operand: the tile has all rows, so each element that the
/// vectors load is used once, and the operand is larger than L2. Such a stage is bound by memory bandwidth.
[[nodiscard]] inline bool reads_once(const std::vector<Step>& steps, program::TensorId stage, const CoreLimits& core) {
  std::int64_t rows = 1, terms = 1, columns = 0;
  for (const Step& step : steps) {
    const auto* split = std::get_if<Split>(&step);
    if (split == nullptr || split->stage != stage || !is_open_split(*split)) continue;
    if (split->inner == LoopKind::Unrolled) rows = tile_product(rows, split->extent);
    if (split->inner == LoopKind::Serial) terms = tile_product(terms, split->extent);
    if (split->inner == LoopKind::Vectorized) columns = split->extent;
  }
  return rows <= register_tile(steps, stage, core).rows && tile_product(terms, columns) > core.l2_elements;
}

/// Draws a split of a stage that reads once such that it reads memory in few long streams: a few terms of the sum at a
/// time, each along all columns of a thread. A tile that keeps all sums in registers would instead read a few vectors
/// of each row: a page for some hundred bytes, which no prefetcher follows.
inline void draw_streams(Split& split, const CoreLimits& core, Rng& rng) {
  constexpr std::int64_t fewest_terms = 4, most_terms = 32;
  if (split.inner == LoopKind::Serial && split.factors.size() == 1) {
    const std::int64_t cap = split.max_innermost > 0 ? std::min(most_terms, split.max_innermost) : most_terms;
    std::vector<std::int64_t> sizes = tile_sizes(split.extent, cap);
    if (sizes.back() >= fewest_terms) std::erase_if(sizes, [](std::int64_t size) { return size < fewest_terms; });
    split.factors[0] = pick(sizes, rng);
  } else if (split.inner == LoopKind::Vectorized && split.factors.size() > 1) {
    const std::int64_t tiles = program::ceil_div(split.extent, split.factors.back());
    const std::int64_t share = std::max<std::int64_t>(tiles / core.threads, 1);
    std::fill(split.factors.begin(), split.factors.end() - 1, 1);
    split.factors[split.factors.size() - 2] = pick_large(tile_sizes(tiles, share), rng);
  }
}

/// Draws the size of the innermost part of a register tile. Vectorized parts are whole vectors if the extent has them,
/// since a part of a vector costs as much as a whole one; the last tile has only the vectors of the remaining columns,
/// so a size that does not divide the extent costs little. Rows may also have such sizes if no divisor nearly fills the
/// registers.
[[nodiscard]] inline std::int64_t draw_register_part(const Split& split, std::int64_t extent, std::int64_t cap,
                                                     std::int64_t width, Rng& rng) {
  constexpr double imperfect_share = 0.4;  // e.g. three vectors can be worth some idle lanes
  constexpr double trimmed_share = 0.6, most_trimmed = 0.25;
  if (width > 1 && rng.uniform() < 0.95) {
    std::vector<std::int64_t> whole;
    for (std::int64_t size = width; size <= std::min(cap, extent); size += width) {
      if (extent % size == 0 || rng.uniform() < imperfect_share) whole.push_back(size);
    }
    if (!whole.empty()) return pick(whole, rng);
  }
  const std::int64_t most = std::min(cap, extent);
  std::vector<std::int64_t> sizes = tile_sizes(extent, cap);
  const bool divides_well = 4 * *std::max_element(sizes.begin(), sizes.end()) >= 3 * most;
  if (split.inner == LoopKind::Unrolled && !divides_well && rng.uniform() < trimmed_share) {
    // The last tile has only the remaining rows, so a size that does not divide the axis costs little.
    for (std::int64_t size = 2; size <= most; ++size) {
      const bool is_new = std::find(sizes.begin(), sizes.end(), size) == sizes.end();
      if (is_new && waste(extent, size) <= most_trimmed) sizes.push_back(size);
    }
  }
  return pick_large(sizes, rng);
}

/// Draws the factors of one split, innermost first. `most` limits the vectors, or rows, of the innermost part if it
/// belongs to a register tile.
inline void draw_tile(Split& split, const CoreLimits& core, std::int64_t most, Rng& rng) {
  std::int64_t rest = std::max<std::int64_t>(split.extent, 1);
  for (std::size_t part = split.factors.size(); part-- > 0;) {
    const bool innermost = part + 1 == split.factors.size();
    std::int64_t cap = innermost && split.max_innermost > 0 ? split.max_innermost : rest;
    std::int64_t size = 1;
    if (innermost && split.inner != LoopKind::Serial) {
      const std::int64_t width = split.inner == LoopKind::Vectorized ? core.lanes : 1;
      cap = std::min(cap, std::max<std::int64_t>(most, 1) * width);
      size = draw_register_part(split, rest, cap, width, rng);
    } else {
      // A single inner part belongs to a reduction: the longer it is, the less often a register tile is stored.
      const std::vector<std::int64_t> sizes = tile_sizes(rest, cap);
      size = split.factors.size() == 1 && rng.uniform() < 0.5 ? pick_large(sizes, rng) : pick(sizes, rng);
    }
    split.factors[part] = size;
    rest = program::ceil_div(rest, size);
  }
}

/// Redraws the factors of one split, within the registers that the other splits of its stage leave.
inline void redraw_tile(std::vector<Step>& steps, Split& split, const CoreLimits& core, Rng& rng) {
  std::int64_t most = 1;
  if (split.inner != LoopKind::Serial) {
    // Sets a factor of two to find out whether it counts as rows or as vectors, which depends on the stage.
    split.factors.back() = split.inner == LoopKind::Vectorized ? 2 * core.lanes : 2;
    const bool vectors = register_tile(steps, split.stage, core).vectors > 1;
    split.factors.back() = 1;
    const RegisterTile others = register_tile(steps, split.stage, core);
    most = vectors && others.vectors == 1 ? (core.registers - 1) / (others.rows + 1)
                                          : (core.registers - others.vectors - 1) / others.accumulators();
  }
  draw_tile(split, core, most, rng);
}

/// Draws of which the one with the highest `busy_share` is kept.
inline constexpr unsigned register_tile_draws = 6;

/// Draws the tiles of a schedule for a CPU within the register file, vectorized parts first. Keeps the draw with the
/// highest `busy_share` of several; half of them have the whole reduction inside the register tile. Most schedules of
/// stages that read once have long streams.
inline void draw_register_tiles(std::vector<Step>& steps, const CoreLimits& core, Rng& rng) {
  constexpr double whole_reduction_share = 0.5;
  constexpr double streams_share = 0.75;
  std::vector<Split*> splits;
  std::vector<program::TensorId> stages;  // with register tiles
  for (Step& step : steps) {
    auto* split = std::get_if<Split>(&step);
    if (split == nullptr || !is_open_split(*split)) continue;
    splits.push_back(split);
    if (split->inner != LoopKind::Serial && std::find(stages.begin(), stages.end(), split->stage) == stages.end()) {
      stages.push_back(split->stage);
    }
  }
  std::vector<std::vector<std::int64_t>> best(splits.size());
  double most = -1;
  Rng apart = rng;  // other draws do not depend on this one
  const bool in_streams = Rng(apart()).uniform() < streams_share;
  std::vector<Split*> order = splits;
  for (unsigned i = 0; i < (stages.empty() ? 1 : register_tile_draws); ++i) {
    rng.shuffle(std::span(order));
    for (Split* split : order) {
      if (split->inner != LoopKind::Serial) split->factors.back() = 1;
    }
    for (const bool vectorized : {true, false}) {
      for (Split* split : order) {
        if ((split->inner == LoopKind::Vectorized) == vectorized) redraw_tile(steps, *split, core, rng);
      }
    }
    const bool whole_reduction = rng.uniform() < whole_reduction_share;
    for (Split* split : splits) {
      if (whole_reduction && split->inner == LoopKind::Serial && split->factors.size() == 1 &&
          split->max_innermost == 0) {
        split->factors[0] = std::max<std::int64_t>(split->extent, 1);
      }
    }
    for (Split* split : splits) {
      if (in_streams && reads_once(steps, split->stage, core)) draw_streams(*split, core, rng);
    }
    double busy = 1;
    for (const program::TensorId stage : stages) busy *= busy_share(steps, stage, core);
    if (busy <= most) continue;
    most = busy;
    for (std::size_t s = 0; s < splits.size(); ++s) best[s] = splits[s]->factors;
  }
  for (std::size_t s = 0; s < splits.size(); ++s) splits[s]->factors = std::move(best[s]);
}

/// Moves a factor from one part of a split to another, or redraws the split. Returns false if no try was accepted.
///
///   P(accept) = min(1, (busy_share after / before)^5)
///
/// Draws are the best of `register_tile_draws`, so they have a density that grows with about this power. If every
/// change within the registers were accepted, mutations would leave what draws are like, since most changes of a good
/// register tile make it slow. Stages that read once are bound by memory, so their changes are all accepted.
inline bool mutate_tile(std::vector<Step>& steps, Split& split, const CoreLimits& core, Rng& rng) {
  constexpr unsigned tries = 8;
  constexpr double redraw_share = 0.25;
  const Split before = split;
  const double busy = busy_share(steps, split.stage, core);
  for (unsigned attempt = 0; attempt < tries; ++attempt) {
    split = before;
    if (!divides(split) || rng.uniform() < redraw_share) {
      redraw_tile(steps, split, core, rng);
    } else {
      move_factor(split, rng);
    }
    if (split == before) continue;
    if (split.inner != LoopKind::Serial && !fits_registers(register_tile(steps, split.stage, core), core)) continue;
    if (reads_once(steps, split.stage, core)) return true;
    if (rng.uniform() < std::pow(busy_share(steps, split.stage, core) / busy, register_tile_draws - 1)) return true;
  }
  split = before;
  return false;
}

}  // namespace tunewright::spaces::decisions
