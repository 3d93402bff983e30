// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"

/// Draws and mutates the open decisions of a schedule. A sketch is a complete list of steps; the open decisions are
/// stored in the steps together with their domains, so these functions work for every space.
namespace tunewright::spaces::decisions {

using schedule::ComputeLocation;
using schedule::Fuse;
using schedule::LoopKind;
using schedule::Pipeline;
using schedule::Schedule;
using schedule::Split;
using schedule::Step;
using schedule::TransformLayout;
using schedule::UnrollLimit;

/// Draws every open decision. Tiles are drawn within the target's registers, on CPUs for elements of `element_bytes`,
/// and, on GPUs, within its threads and approximately within its shared memory.
void draw_all(std::vector<Step>& steps, const Target& target, Rng& rng, std::size_t element_bytes = sizeof(float));

/// Whether the decision of a step is open, i.e. has another possible value.
[[nodiscard]] bool is_open(const Step& step);

/// Relative frequencies of mutations.
struct MutationWeights {
  double sizes = 0.85;
  double location = 0.08;
  double fused_loops = 0.04;
  double unroll_limit = 0.03;
  double layout = 0.05;

  [[nodiscard]] double of(const Step& step) const;
};

/// Weights of mutations on GPUs: Ansor's 0.90 for tile sizes and 0.10 for unroll limits, and small weights for
/// decisions that Ansor's sketches do not have.
inline constexpr MutationWeights gpu_mutation_weights{0.90, 0.05, 0.05, 0.10, 0.05};

/// Changes one decision: draws the kind by weight among those present, then one decision of that kind. Returns false if
/// nothing changed; see `mutate_tile` and `mutate_block_split` for changes of tiles that are not accepted.
bool mutate_one(std::vector<Step>& steps, const Target& target, Rng& rng, std::size_t element_bytes = sizeof(float));

}  // namespace tunewright::spaces::decisions

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/spaces/decisions/block_tile.hpp"
#include "tunewright/spaces/decisions/register_tile.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"

namespace tunewright::spaces::decisions {

TUNEWRIGHT_INLINE void draw_all(std::vector<Step>& steps, const Target& target, Rng& rng, std::size_t element_bytes) {
  if (target.kind == DeviceKind::Gpu) {
    draw_block_tiles(steps, target, rng);
  } else {
    draw_register_tiles(steps, {target, element_bytes}, rng);
  }
  const bool feeds_tensor_cores = target.kind == DeviceKind::Gpu && has_tensor_core_stage(steps);
  for (Step& step : steps) {
    if (auto* fuse = std::get_if<Fuse>(&step); fuse != nullptr && fuse->open) {
      fuse->count = 1 + static_cast<std::uint32_t>(rng.below(fuse->iters.size()));
    }
    if (auto* location = std::get_if<ComputeLocation>(&step)) {
      constexpr double plain_share = 0.5;
      // A copy of an operand has many locations, but leaving it out is a single choice and as good a guess as all of
      // them.
      const bool plain = target.kind == DeviceKind::Cpu && rng.uniform() < plain_share &&
                         location->choices[0].kind == schedule::Location::Kind::Inline;
      location->selected = plain ? 0 : static_cast<std::uint32_t>(rng.below(location->choices.size()));
    }
    if (auto* layout = std::get_if<TransformLayout>(&step)) {
      layout->order = static_cast<std::uint32_t>(rng.below(layout->orders.size()));
      // The last choice keeps rows that tensor units read at once in different banks.
      constexpr double last_share = 0.75;
      layout->padding = static_cast<std::uint32_t>(rng.below(layout->paddings.size()));
      if (feeds_tensor_cores && rng.uniform() < last_share)
        layout->padding = static_cast<std::uint32_t>(layout->paddings.size() - 1);
    }
    if (auto* limit = std::get_if<UnrollLimit>(&step)) {
      limit->selected = static_cast<std::uint32_t>(rng.below(limit->choices.size()));
    }
  }
}

TUNEWRIGHT_INLINE bool is_open(const Step& step) {
  if (const auto* s = std::get_if<Split>(&step)) return is_open_split(*s) && s->extent > 1;
  if (const auto* s = std::get_if<Fuse>(&step)) return s->open && s->iters.size() > 1;
  if (const auto* s = std::get_if<ComputeLocation>(&step)) return s->choices.size() > 1;
  if (const auto* s = std::get_if<UnrollLimit>(&step)) return s->choices.size() > 1;
  if (const auto* s = std::get_if<Pipeline>(&step)) return s->choices.size() > 1;
  if (const auto* s = std::get_if<TransformLayout>(&step)) return s->orders.size() > 1 || s->paddings.size() > 1;
  return false;
}

TUNEWRIGHT_INLINE double MutationWeights::of(const Step& step) const {
  if (std::holds_alternative<Split>(step)) return sizes;
  if (std::holds_alternative<ComputeLocation>(step)) return location;
  if (std::holds_alternative<TransformLayout>(step) || std::holds_alternative<Pipeline>(step)) return layout;
  return std::holds_alternative<Fuse>(step) ? fused_loops : unroll_limit;
}

TUNEWRIGHT_INLINE bool mutate_one(std::vector<Step>& steps, const Target& target, Rng& rng, std::size_t element_bytes) {
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
    return gpu ? mutate_block_split(steps, *split, target, rng)
               : mutate_tile(steps, *split, {target, element_bytes}, rng);
  }
  if (auto* location = std::get_if<ComputeLocation>(&step))
    return redraw(location->selected, location->choices.size(), rng);
  if (auto* limit = std::get_if<UnrollLimit>(&step)) return redraw(limit->selected, limit->choices.size(), rng);
  if (auto* pipeline = std::get_if<Pipeline>(&step)) return redraw(pipeline->selected, pipeline->choices.size(), rng);
  if (auto* layout = std::get_if<TransformLayout>(&step)) {
    const bool order = layout->paddings.size() < 2 || (layout->orders.size() > 1 && rng.below(2) == 0);
    return order ? redraw(layout->order, layout->orders.size(), rng)
                 : redraw(layout->padding, layout->paddings.size(), rng);
  }
  auto& fuse = std::get<Fuse>(step);
  std::uint32_t zero_based = fuse.count - 1;
  const bool changed = redraw(zero_based, fuse.iters.size(), rng);
  fuse.count = zero_based + 1;
  return changed;
}

}  // namespace tunewright::spaces::decisions

#endif
