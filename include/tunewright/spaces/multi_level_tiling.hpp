// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/spaces/sketch_space.hpp"
#include "tunewright/spaces/tiling_rules.hpp"

namespace tunewright::spaces {

/// Derives sketches with a list of rules: from the last stage to the first, each rule that applies to a stage
/// adds its derivations, so one derivation branches wherever several rules apply.
///
/// A rule is a type with `Answer meets(derivation, stage, target) const` and `void apply(derivation, stage,
/// target, out) const`; see `spaces::tiling` for those of Ansor. A space with a rule of your own is
/// `SketchSpace<RuleSketches<MyRule, tiling::SkipSource, ...>>`.
///
/// Paper: Zheng et al., Ansor, OSDI 2020, section 4.1.
/// Cost:  some hundred microseconds a task, once.
template <class... Rules>
struct RuleSketches {
  std::tuple<Rules...> rules = {};

  [[nodiscard]] std::vector<schedule::Schedule> sketches(const Task& task) const {
    tiling::Derivation start{schedule::ScheduleBuilder(task.graph), task.graph->size(), {}};
    std::vector<tiling::Derivation> open{std::move(start)};
    std::vector<schedule::Schedule> finished;
    while (!open.empty()) {
      tiling::Derivation current = std::move(open.back());
      open.pop_back();
      if (current.place == 0) {
        finished.push_back(current.builder.schedule());
        continue;
      }
      const program::TensorId stage = current.builder.state().order[current.place - 1];
      bool done = false;
      const auto ask = [&](const auto& rule) {
        if (done) return;
        const tiling::Answer answer = rule.meets(current, stage, task.target);
        if (answer == tiling::Answer::Skip) return;
        rule.apply(current, stage, task.target, open);
        done = answer == tiling::Answer::ApplyAndSkipRest;
      };
      std::apply([&](const auto&... rule) { (ask(rule), ...); }, rules);
    }
    return finished;
  }
};

/// Ansor's sketches for CPUs, plus inlining of costly elementwise stages, copies of operands that stay in cache
/// and constants packed ahead of time.
using CpuTilingRules =
    RuleSketches<tiling::SkipSource, tiling::SkipScheduled, tiling::AlwaysInline, tiling::MayInline,
                 tiling::AddRfactor, tiling::AddCacheWrite, tiling::MultiLevelTilingWithFusion,
                 tiling::MultiLevelTiling, tiling::ScheduleSimply>;

/// Multi-level tiling with fusion, write and read caches, factored reductions, compute locations, parallel,
/// vectorized and unrolled loops.
///
/// Deviates from Ansor: the loops of the innermost tile are always unrolled and vectorized, and drawn so that
/// the tile fits the register file; factors need not divide (at most an eighth of a tile idles); a stage with
/// an elementwise reader is always fused with it; operands may be copied to a tile of their own; constants
/// are stored in loop order.
using MultiLevelTiling = SketchSpace<CpuTilingRules>;

}  // namespace tunewright::spaces
