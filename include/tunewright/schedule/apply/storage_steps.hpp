// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tunewright/schedule/state.hpp"

/// Semantics of steps that determine the layout of tensors in memory, and when copies are made.
namespace tunewright::schedule::detail {

/// Maximum number of unused elements after a row.
inline constexpr std::int64_t max_padding = 1024;

inline void apply_step(State& state, const Pack& s) {
  computed_stage(state, s.consumer);
  const Stage& source = state.stage(s.tensor);
  if (source.op->role != program::Role::Constant && source.op->role != program::Role::Computed) {
    throw ScheduleError(
        ScheduleFault::NotPackable,
        "'" + source.op->name + "' is an input and arrives as it is; pack a constant, or a cache_read of it");
  }
  state.packs.push_back(s);
}

inline void apply_step(State& state, const TransformLayout& s) {
  const Stage& stage = computed_stage(state, s.stage);
  if (s.order >= s.orders.size() || s.padding >= s.paddings.size() || s.paddings[s.padding] < 0 ||
      s.paddings[s.padding] > max_padding) {
    throw ScheduleError(ScheduleFault::BadChoice, "order " + std::to_string(s.order) + " with padding " +
                                                      std::to_string(s.padding) + " of '" + stage.op->name +
                                                      "' is not one of its choices");
  }
  if (!names_each_once(s.orders[s.order], stage.op->rank())) {
    throw ScheduleError(ScheduleFault::BadOrder, "a storage layout of '" + stage.op->name + "' must name each of its " +
                                                     std::to_string(stage.op->rank()) + " dimensions once");
  }
  state.layouts.push_back(s);
}

inline void apply_step(State& state, const Pipeline& s) {
  const Stage& stage = computed_stage(state, s.stage);
  live_position(stage, s.iter);
  if (s.selected >= s.choices.size()) {
    throw ScheduleError(ScheduleFault::BadChoice, "pipelining " + std::to_string(s.selected) + " of stage '" +
                                                      stage.op->name + "' is not one of its choices");
  }
  const Pipelining& chosen = s.choices[s.selected];
  if (chosen.depth < 1 || chosen.depth > max_pipeline_depth || (chosen.asynchronous && chosen.depth == 1)) {
    throw ScheduleError(ScheduleFault::BadChoice,
                        "copies in stage '" + stage.op->name + "' cannot be pipelined " + std::to_string(chosen.depth) +
                            (chosen.asynchronous ? " deep and asynchronous" : " deep") + "; give 1 to " +
                            std::to_string(max_pipeline_depth) + " tiles, at least 2 for asynchronous copies");
  }
  state.pipelines.push_back(s);
}

}  // namespace tunewright::schedule::detail
