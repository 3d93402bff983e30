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

/// Drawing and changing the open decisions of a schedule. A sketch is a complete list of steps; what the search may choose
/// is written in the steps themselves with its domain, so these functions work for every space.
namespace tunewright::spaces::decisions {

using schedule::ComputeLocation;
using schedule::Fuse;
using schedule::LoopKind;
using schedule::Schedule;
using schedule::Split;
using schedule::Step;
using schedule::UnrollLimit;

/// Floats in one vector register.
[[nodiscard]] inline std::int64_t lanes(const Target& target) { return target.vector_bytes() / 4; }

/// Vectors a tile of the given innermost parts keeps in registers: the product of its unrolled parts, times the vectors of
/// its vectorized part.
[[nodiscard]] inline std::int64_t register_vectors(const std::vector<Step>& steps, program::TensorId stage, const Target& target) {
  std::int64_t vectors = 1;
  for (const Step& step : steps) {
    const auto* split = std::get_if<Split>(&step);
    if (split == nullptr || split->stage != stage || split->factors.empty()) continue;
    const std::int64_t inner = split->factors.back();
    if (split->inner == LoopKind::Unrolled) vectors *= inner;
    if (split->inner == LoopKind::Vectorized) vectors *= program::ceil_div(inner, lanes(target));
  }
  return vectors;
}

/// Accumulators a register tile may have: all registers but those that hold the operands of one step.
[[nodiscard]] inline std::int64_t max_register_vectors(const Target& target) {
  return static_cast<std::int64_t>(target.vector_registers()) - (target.vector_registers() > 16 ? 3 : 2);
}

/// Share of the iterations of `ceil(extent / factor) * factor` that are idle.
[[nodiscard]] inline double waste(std::int64_t extent, std::int64_t factor) {
  const std::int64_t padded = program::ceil_div(extent, factor) * factor;
  return static_cast<double>(padded - extent) / static_cast<double>(padded);
}

/// Divisors of `extent` up to `cap`, ascending.
[[nodiscard]] inline std::vector<std::int64_t> divisors_up_to(std::int64_t extent, std::int64_t cap) {
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  for (std::int64_t d = 1; d * d <= extent; ++d) {
    if (extent % d != 0) continue;
    if (d <= cap) small.push_back(d);
    if (d != extent / d && extent / d <= cap) large.push_back(extent / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// Candidate sizes of one tile part: divisors of `extent` up to `cap`; where these are few, or `imperfect` is asked for, also
/// sizes up to 64 that leave at most an eighth of the last tile idle.
[[nodiscard]] inline std::vector<std::int64_t> tile_sizes(std::int64_t extent, std::int64_t cap, bool imperfect) {
  constexpr double max_waste = 0.125;     // a tile that idles more hardly ever wins
  constexpr std::size_t few_divisors = 3;  // primes have two
  std::vector<std::int64_t> sizes = divisors_up_to(extent, cap);
  if (!imperfect && (sizes.size() >= few_divisors || extent <= 4)) return sizes;
  for (std::int64_t size = 2; size <= std::min<std::int64_t>({extent, cap, 64}); ++size) {
    if (extent % size != 0 && waste(extent, size) <= max_waste) sizes.push_back(size);
  }
  return sizes;
}

[[nodiscard]] inline std::int64_t pick(const std::vector<std::int64_t>& values, Rng& rng) {
  return values[static_cast<std::size_t>(rng.below(values.size()))];
}

/// Draws one of `sizes` with probability proportional to its size: larger innermost parts amortise more, and a uniform choice
/// among divisors would mostly give small ones.
[[nodiscard]] inline std::int64_t pick_large(const std::vector<std::int64_t>& sizes, Rng& rng) {
  std::uint64_t total = 0;
  for (const std::int64_t size : sizes) total += static_cast<std::uint64_t>(size);
  std::uint64_t draw = rng.below(total);
  for (const std::int64_t size : sizes) {
    if (draw < static_cast<std::uint64_t>(size)) return size;
    draw -= static_cast<std::uint64_t>(size);
  }
  return sizes.back();
}

/// Draws the size of the innermost part of a register tile: whole vectors where the extent has them, since a part of a vector
/// costs as much as a whole one.
[[nodiscard]] inline std::int64_t draw_register_part(const Split& split, std::int64_t extent, std::int64_t cap,
                                                     std::int64_t width, Rng& rng) {
  constexpr double imperfect_share = 0.4;  // six or fourteen rows can be worth an idle rest
  if (width > 1 && rng.uniform() < 0.95) {
    std::vector<std::int64_t> whole;
    for (std::int64_t size = width; size <= std::min(cap, extent); size += width) {
      if (extent % size == 0 || (rng.uniform() < imperfect_share && waste(extent, size) <= 0.125)) whole.push_back(size);
    }
    if (!whole.empty()) return pick(whole, rng);
  }
  return pick_large(tile_sizes(extent, cap, split.inner == LoopKind::Unrolled && rng.uniform() < imperfect_share), rng);
}

/// Draws the factors of one split, innermost first. `vectors_left` is how many vectors the register tile of the stage may
/// still grow by; it is divided by what this split takes.
inline void draw_tile(Split& split, const Target& target, std::int64_t& vectors_left, Rng& rng) {
  std::int64_t rest = std::max<std::int64_t>(split.extent, 1);
  for (std::size_t part = split.factors.size(); part-- > 0;) {
    const bool innermost = part + 1 == split.factors.size();
    std::int64_t cap = innermost && split.max_innermost > 0 ? split.max_innermost : rest;
    std::int64_t size = 1;
    if (innermost && split.inner != LoopKind::Serial) {
      const std::int64_t width = split.inner == LoopKind::Vectorized ? lanes(target) : 1;
      cap = std::min(cap, vectors_left * width);
      size = draw_register_part(split, rest, cap, width, rng);
      vectors_left = std::max<std::int64_t>(vectors_left / program::ceil_div(size, width), 1);
    } else {
      // A single inner part belongs to a reduction: the longer, the fewer times a register tile is stored.
      const std::vector<std::int64_t> sizes = tile_sizes(rest, cap, false);
      size = split.factors.size() == 1 && rng.uniform() < 0.5 ? pick_large(sizes, rng) : pick(sizes, rng);
    }
    split.factors[part] = size;
    rest = program::ceil_div(rest, size);
  }
}

/// Draws every open decision. Register tiles are drawn within the register file, the vectorized part first.
inline void draw_all(std::vector<Step>& steps, const Target& target, Rng& rng) {
  std::vector<std::pair<program::TensorId, std::int64_t>> budgets;
  const auto budget_of = [&](program::TensorId stage) -> std::int64_t& {
    for (auto& [id, left] : budgets) {
      if (id == stage) return left;
    }
    return budgets.emplace_back(stage, max_register_vectors(target)).second;
  };
  std::vector<Split*> splits;
  for (Step& step : steps) {
    if (auto* split = std::get_if<Split>(&step); split != nullptr && split->max_innermost >= 0 && !split->factors.empty()) {
      splits.push_back(split);
    }
  }
  rng.shuffle(std::span(splits));
  for (const bool vectorized : {true, false}) {
    for (Split* split : splits) {
      if ((split->inner == LoopKind::Vectorized) == vectorized) draw_tile(*split, target, budget_of(split->stage), rng);
    }
  }
  for (Step& step : steps) {
    if (auto* fuse = std::get_if<Fuse>(&step); fuse != nullptr && fuse->open) fuse->count = 1 + static_cast<std::uint32_t>(rng.below(fuse->iters.size()));
    if (auto* location = std::get_if<ComputeLocation>(&step)) {
      location->selected = static_cast<std::uint32_t>(rng.below(location->choices.size()));
    }
    if (auto* limit = std::get_if<UnrollLimit>(&step)) limit->selected = static_cast<std::uint32_t>(rng.below(limit->choices.size()));
  }
}

/// Moves a factor from one part of a split to another (Ansor's tile-size mutation, ansor section 5.1), or redraws the split.
inline bool mutate_tile(std::vector<Step>& steps, Split& split, const Target& target, Rng& rng) {
  const Split before = split;
  const std::int64_t limit = max_register_vectors(target);
  std::int64_t product = 1;
  for (const std::int64_t f : split.factors) product *= f;
  if (split.extent % product != 0 || rng.uniform() < 0.25) {
    std::int64_t left = limit;
    if (split.inner != LoopKind::Serial) {
      split.factors.back() = 1;
      left = std::max<std::int64_t>(limit / register_vectors(steps, split.stage, target), 1);
    }
    draw_tile(split, target, left, rng);
  } else {
    std::vector<std::int64_t> lengths{split.extent / product};
    lengths.insert(lengths.end(), split.factors.begin(), split.factors.end());
    std::vector<std::size_t> places(lengths.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    rng.shuffle(std::span(places));
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t from = places[i];
      const std::size_t to = places[(i + 1) % places.size()];
      std::vector<std::int64_t> divisors;
      for (std::int64_t d = 2; d <= lengths[from]; ++d) {
        const bool capped = to + 1 == lengths.size() && split.max_innermost > 0 && lengths[to] * d > split.max_innermost;
        if (lengths[from] % d == 0 && !capped) divisors.push_back(d);
      }
      if (divisors.empty()) continue;
      const std::int64_t moved = pick(divisors, rng);
      lengths[from] /= moved;
      lengths[to] *= moved;
      split.factors.assign(lengths.begin() + 1, lengths.end());
      break;
    }
  }
  if (split == before) return false;
  return split.inner == LoopKind::Serial || register_vectors(steps, split.stage, target) <= limit;
}

/// Redraws an index in [0, count) to a different value; false when there is no other.
inline bool redraw(std::uint32_t& selected, std::size_t count, Rng& rng) {
  if (count < 2) return false;
  const auto other = static_cast<std::uint32_t>(rng.below(count - 1));
  selected = other < selected ? other : other + 1;
  return true;
}

/// A step whose decision is open, i.e. has another value to take.
[[nodiscard]] inline bool is_open(const Step& step) {
  if (const auto* s = std::get_if<Split>(&step)) return s->max_innermost >= 0 && !s->factors.empty() && s->extent > 1;
  if (const auto* s = std::get_if<Fuse>(&step)) return s->open && s->iters.size() > 1;
  if (const auto* s = std::get_if<ComputeLocation>(&step)) return s->choices.size() > 1;
  if (const auto* s = std::get_if<UnrollLimit>(&step)) return s->choices.size() > 1;
  return false;
}

/// Changes one decision: tile sizes with probability 0.85, else a location (0.08), a number of fused loops (0.04) or an
/// unroll limit (0.03), as far as there are any. False when nothing changed or a register tile grew too large.
inline bool mutate_one(std::vector<Step>& steps, const Target& target, Rng& rng) {
  const auto weight = [](const Step& step) {
    return std::holds_alternative<Split>(step) ? 0.85 : std::holds_alternative<ComputeLocation>(step) ? 0.08
           : std::holds_alternative<Fuse>(step) ? 0.04 : 0.03;
  };
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
  if (auto* split = std::get_if<Split>(&step)) return mutate_tile(steps, *split, target, rng);
  if (auto* location = std::get_if<ComputeLocation>(&step)) return redraw(location->selected, location->choices.size(), rng);
  if (auto* limit = std::get_if<UnrollLimit>(&step)) return redraw(limit->selected, limit->choices.size(), rng);
  auto& fuse = std::get<Fuse>(step);
  std::uint32_t zero_based = fuse.count - 1;
  const bool changed = redraw(zero_based, fuse.iters.size(), rng);
  fuse.count = zero_based + 1;
  return changed;
}

}  // namespace tunewright::spaces::decisions
