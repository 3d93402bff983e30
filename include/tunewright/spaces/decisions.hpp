// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/decisions/block_tile.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"

/// Drawing and changing the open decisions of a schedule. A sketch is a complete list of steps; what the search may choose
/// is written in the steps themselves with its domain, so these functions work for every space.
namespace tunewright::spaces::decisions {

using schedule::Arrange;
using schedule::ComputeLocation;
using schedule::Fuse;
using schedule::LoopKind;
using schedule::Pipeline;
using schedule::Schedule;
using schedule::Split;
using schedule::Step;
using schedule::UnrollLimit;

/// Floats in one vector register.
[[nodiscard]] inline std::int64_t lanes(const Target& target) { return target.vector_bytes() / 4; }

/// The innermost tile of a stage: `rows` of `vectors` each, all of which are kept in registers while the stage is reduced.
struct RegisterTile {
  std::int64_t rows = 1;     ///< product of the unrolled parts
  std::int64_t vectors = 1;  ///< of the vectorized part

  [[nodiscard]] std::int64_t accumulators() const { return rows * vectors; }
  /// Registers that one step of the reduction takes: the accumulators, the vectors of one operand, and an element of the
  /// other, which is used for a whole row.
  [[nodiscard]] std::int64_t registers() const { return accumulators() + vectors + 1; }
  /// Multiply-adds for each operand loaded. Two loads a cycle feed two multiply-adds of as many, so much more than one is
  /// needed, and it is the square tile that has most.
  [[nodiscard]] double reuse() const {
    return static_cast<double>(accumulators()) / static_cast<double>(rows + vectors);
  }
};

[[nodiscard]] inline RegisterTile register_tile(const std::vector<Step>& steps, program::TensorId stage,
                                                const Target& target) {
  RegisterTile tile;
  for (const Step& step : steps) {
    const auto* split = std::get_if<Split>(&step);
    if (split == nullptr || split->stage != stage || split->factors.empty()) continue;
    const std::int64_t inner = split->factors.back();
    if (split->inner == LoopKind::Unrolled) tile.rows *= inner;
    if (split->inner == LoopKind::Vectorized) tile.vectors *= program::ceil_div(inner, lanes(target));
  }
  return tile;
}

[[nodiscard]] inline bool fits_registers(const RegisterTile& tile, const Target& target) {
  return tile.registers() <= static_cast<std::int64_t>(target.vector_registers());
}

/// Draws the size of the innermost part of a register tile: whole vectors where the extent has them, since a part of a vector
/// costs as much as a whole one.
[[nodiscard]] inline std::int64_t draw_register_part(const Split& split, std::int64_t extent,
                                                     std::int64_t cap, std::int64_t width, Rng& rng) {
  constexpr double imperfect_share = 0.4;  // six or fourteen rows can be worth an idle rest
  if (width > 1 && rng.uniform() < 0.95) {
    std::vector<std::int64_t> whole;
    for (std::int64_t size = width; size <= std::min(cap, extent); size += width) {
      if (extent % size == 0 || (rng.uniform() < imperfect_share && waste(extent, size) <= 0.125))
        whole.push_back(size);
    }
    if (!whole.empty()) return pick(whole, rng);
  }
  return pick_large(
      tile_sizes(extent, cap, split.inner == LoopKind::Unrolled && rng.uniform() < imperfect_share), rng);
}

/// Draws the factors of one split, innermost first. `most` is how many vectors, or rows, the innermost part may have if it
/// belongs to a register tile.
inline void draw_tile(Split& split, const Target& target, std::int64_t most, Rng& rng) {
  std::int64_t rest = std::max<std::int64_t>(split.extent, 1);
  for (std::size_t part = split.factors.size(); part-- > 0;) {
    const bool innermost = part + 1 == split.factors.size();
    std::int64_t cap = innermost && split.max_innermost > 0 ? split.max_innermost : rest;
    std::int64_t size = 1;
    if (innermost && split.inner != LoopKind::Serial) {
      const std::int64_t width = split.inner == LoopKind::Vectorized ? lanes(target) : 1;
      cap = std::min(cap, std::max<std::int64_t>(most, 1) * width);
      size = draw_register_part(split, rest, cap, width, rng);
    } else {
      // A single inner part belongs to a reduction: the longer, the fewer times a register tile is stored.
      const std::vector<std::int64_t> sizes = tile_sizes(rest, cap, false);
      size = split.factors.size() == 1 && rng.uniform() < 0.5 ? pick_large(sizes, rng) : pick(sizes, rng);
    }
    split.factors[part] = size;
    rest = program::ceil_div(rest, size);
  }
}

/// Draws the factors of one split again, within what the other splits of its stage leave of the registers.
inline void redraw_tile(std::vector<Step>& steps, Split& split, const Target& target, Rng& rng) {
  std::int64_t most = 1;
  if (split.inner != LoopKind::Serial) {
    split.factors.back() = 1;
    const RegisterTile others = register_tile(steps, split.stage, target);
    const auto registers = static_cast<std::int64_t>(target.vector_registers());
    most = split.inner == LoopKind::Vectorized ? (registers - 1) / (others.rows + 1)
                                               : (registers - others.vectors - 1) / others.accumulators();
  }
  draw_tile(split, target, most, rng);
}

/// Draws the tiles of a schedule for a CPU, within the register file, the vectorized parts first. Of two draws the one
/// that loads fewer operands is kept.
inline void draw_register_tiles(std::vector<Step>& steps, const Target& target, Rng& rng) {
  std::vector<Split*> splits;
  for (Step& step : steps) {
    if (auto* split = std::get_if<Split>(&step); split != nullptr && is_open_split(*split))
      splits.push_back(split);
  }
  const auto draw = [&] {
    rng.shuffle(std::span(splits));
    for (Split* split : splits) {
      if (split->inner != LoopKind::Serial) split->factors.back() = 1;
    }
    for (const bool vectorized : {true, false}) {
      for (Split* split : splits) {
        if ((split->inner == LoopKind::Vectorized) == vectorized) redraw_tile(steps, *split, target, rng);
      }
    }
    double reuse = 1;
    for (const Split* split : splits) {
      if (split->inner == LoopKind::Vectorized) reuse *= register_tile(steps, split->stage, target).reuse();
    }
    return reuse;
  };
  const double reuse = draw();
  const std::vector<Step> first = steps;
  if (draw() < reuse) std::copy(first.begin(), first.end(), steps.begin());
}

/// Draws every open decision. Tiles are drawn within the registers, and on GPUs within the threads and about
/// within the shared memory, of the target.
inline void draw_all(std::vector<Step>& steps, const Target& target, Rng& rng) {
  if (target.kind == DeviceKind::Gpu) {
    draw_block_tiles(steps, target, rng);
  } else {
    draw_register_tiles(steps, target, rng);
  }
  for (Step& step : steps) {
    if (auto* fuse = std::get_if<Fuse>(&step); fuse != nullptr && fuse->open) {
      fuse->count = 1 + static_cast<std::uint32_t>(rng.below(fuse->iters.size()));
    }
    if (auto* location = std::get_if<ComputeLocation>(&step)) {
      constexpr double plain_share = 0.3;
      // Copies of operands have many places, and doing without them has one, which is as good a guess as all of those.
      const bool plain = target.kind == DeviceKind::Cpu && rng.uniform() < plain_share &&
                         location->choices[0].kind == schedule::Location::Kind::Inline;
      location->selected = plain ? 0 : static_cast<std::uint32_t>(rng.below(location->choices.size()));
    }
    if (auto* arrange = std::get_if<Arrange>(&step)) {
      arrange->order = static_cast<std::uint32_t>(rng.below(arrange->orders.size()));
      arrange->padding = static_cast<std::uint32_t>(rng.below(arrange->paddings.size()));
    }
    if (auto* limit = std::get_if<UnrollLimit>(&step)) {
      limit->selected = static_cast<std::uint32_t>(rng.below(limit->choices.size()));
    }
  }
}

/// Moves a factor from one part of a split to another, or redraws the split. False when nothing changed or a tile grew
/// too large.
inline bool mutate_tile(std::vector<Step>& steps, Split& split, const Target& target, Rng& rng) {
  const Split before = split;
  if (!divides(split) || rng.uniform() < 0.25) {
    redraw_tile(steps, split, target, rng);
  } else {
    move_factor(split, rng);
  }
  if (split == before) return false;
  return split.inner == LoopKind::Serial || fits_registers(register_tile(steps, split.stage, target), target);
}

/// A step whose decision is open, i.e. has another value to take.
[[nodiscard]] inline bool is_open(const Step& step) {
  if (const auto* s = std::get_if<Split>(&step)) return is_open_split(*s) && s->extent > 1;
  if (const auto* s = std::get_if<Fuse>(&step)) return s->open && s->iters.size() > 1;
  if (const auto* s = std::get_if<ComputeLocation>(&step)) return s->choices.size() > 1;
  if (const auto* s = std::get_if<UnrollLimit>(&step)) return s->choices.size() > 1;
  if (const auto* s = std::get_if<Pipeline>(&step)) return s->choices.size() > 1;
  if (const auto* s = std::get_if<Arrange>(&step)) return s->orders.size() > 1 || s->paddings.size() > 1;
  return false;
}

/// Relative frequencies of mutations.
struct MutationWeights {
  double sizes = 0.85;
  double location = 0.08;
  double fused_loops = 0.04;
  double unroll_limit = 0.03;
  double arrangement = 0.05;

  [[nodiscard]] double of(const Step& step) const {
    if (std::holds_alternative<Split>(step)) return sizes;
    if (std::holds_alternative<ComputeLocation>(step)) return location;
    if (std::holds_alternative<Arrange>(step) || std::holds_alternative<Pipeline>(step)) return arrangement;
    return std::holds_alternative<Fuse>(step) ? fused_loops : unroll_limit;
  }
};

/// Those of Ansor for GPUs, sizes 0.90 and unroll limits 0.10, and a little for what its sketches leave to no
/// choice.
inline constexpr MutationWeights gpu_mutation_weights{0.90, 0.05, 0.05, 0.10, 0.05};

/// Changes one decision: its kind is drawn by weight among those there are, then one of that kind. False when
/// nothing changed or a tile grew too large.
inline bool mutate_one(std::vector<Step>& steps, const Target& target, Rng& rng) {
  const bool gpu = target.kind == DeviceKind::Gpu;
  const MutationWeights weights = gpu ? gpu_mutation_weights : MutationWeights{};
  const auto weight = [&](const Step& step) { return weights.of(step); };
  std::vector<std::vector<std::size_t>> by_kind(std::variant_size_v<Step>);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_open(steps[i])) by_kind[steps[i].index()].push_back(i);
  }
  double total = 0;
  for (const auto& kind : by_kind) total += kind.empty() ? 0.0 : weight(steps[kind[0]]);
  if (total == 0) return false;
  double draw = rng.uniform() * total;
  const std::vector<std::size_t>* chosen = nullptr;
  for (const auto& kind : by_kind) {
    if (kind.empty()) continue;
    chosen = &kind;
    draw -= weight(steps[kind[0]]);
    if (draw < 0) break;
  }
  Step& step = steps[(*chosen)[static_cast<std::size_t>(rng.below(chosen->size()))]];
  if (auto* split = std::get_if<Split>(&step)) {
    return gpu ? mutate_block_split(steps, *split, target, rng) : mutate_tile(steps, *split, target, rng);
  }
  if (auto* location = std::get_if<ComputeLocation>(&step))
    return redraw(location->selected, location->choices.size(), rng);
  if (auto* limit = std::get_if<UnrollLimit>(&step))
    return redraw(limit->selected, limit->choices.size(), rng);
  if (auto* pipeline = std::get_if<Pipeline>(&step))
    return redraw(pipeline->selected, pipeline->choices.size(), rng);
  if (auto* arrange = std::get_if<Arrange>(&step)) {
    const bool order = arrange->paddings.size() < 2 || (arrange->orders.size() > 1 && rng.below(2) == 0);
    return order ? redraw(arrange->order, arrange->orders.size(), rng)
                 : redraw(arrange->padding, arrange->paddings.size(), rng);
  }
  auto& fuse = std::get<Fuse>(step);
  std::uint32_t zero_based = fuse.count - 1;
  const bool changed = redraw(zero_based, fuse.iters.size(), rng);
  fuse.count = zero_based + 1;
  return changed;
}

}  // namespace tunewright::spaces::decisions
