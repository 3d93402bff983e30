// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

namespace tunewright::spaces {

/// Derives sketches with a list of rules. Visits the stages from the last to the first; each rule that applies to a
/// stage adds its derivations, so a derivation branches where several rules apply.
///
/// A rule is a type with `Answer meets(derivation, stage, target) const`, `void apply(derivation, stage, target, out)
/// const` and, optionally, `void finish(derivation, target) const`, which is called once after all stages have been
/// visited. `spaces::tiling` has Ansor's rules. A space with a custom rule is `SketchSpace<RuleSketches<MyRule,
/// tiling::SkipSource, ...>>`.
///
/// Paper: Zheng et al., Ansor, OSDI 2020, section 4.1.
/// Cost:  some hundred microseconds, once per task.
template <class... Rules>
struct RuleSketches {
  std::tuple<Rules...> rules = {};

  [[nodiscard]] std::vector<schedule::Schedule> sketches(const Task& task) const {
    tiling::Derivation start{schedule::ScheduleBuilder(task.graph), task.graph->size()};
    std::vector<tiling::Derivation> open{std::move(start)};
    std::vector<schedule::Schedule> finished;
    while (!open.empty()) {
      tiling::Derivation current = std::move(open.back());
      open.pop_back();
      if (current.place == 0) {
        const auto finish = [&](const auto& rule) {
          if constexpr (requires { rule.finish(current, task.target); }) rule.finish(current, task.target);
        };
        std::apply([&](const auto&... rule) { (finish(rule), ...); }, rules);
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

}  // namespace tunewright::spaces
