// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
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
/// The number of sketches is the product of the alternatives of all stages: six for each padded convolution, say. Of a
/// task with more than `most_sketches`, `drawn_sketches` are drawn: from the last stage to the first, the alternatives
/// of a stage share the draws equally; where there are fewer draws than alternatives, some neighbouring ones get one
/// each. So every alternative of a stage occurs, together with various ones of the others, where the first sketches in
/// order would all agree in the last stages.
///
/// Paper: Zheng et al., Ansor, OSDI 2020, section 4.1.
/// Deviates: Ansor derives all sketches.
/// Cost:  a tenth of a millisecond for each sketch, once per task; for more than `most_sketches` up to a few seconds.
/// Determinism: a function of the task; draws have a fixed seed.
template <class... Rules>
struct RuleSketches {
  /// More than programs with one or two heavy operators have, unless many of their stages may be inlined or not.
  static constexpr std::size_t most_sketches = 2048;
  static constexpr std::size_t drawn_sketches = 512;

  std::tuple<Rules...> rules = {};

  [[nodiscard]] std::vector<schedule::Schedule> sketches(const Task& task) const {
    const tiling::Derivation start{schedule::ScheduleBuilder(task.graph), task.graph->size()};
    std::vector<tiling::Derivation> open{start};
    std::vector<schedule::Schedule> finished;
    while (!open.empty()) {
      tiling::Derivation current = std::move(open.back());
      open.pop_back();
      if (current.place > 0) {
        derive(current, task.target, open);
      } else if (finished.size() < most_sketches) {
        finished.push_back(finish(std::move(current), task.target));
      } else {
        return draw(start, task.target);
      }
    }
    return finished;
  }

 private:
  /// Appends what the rules make of the next stage of `current`.
  void derive(const tiling::Derivation& current, const Target& target, std::vector<tiling::Derivation>& out) const {
    const program::TensorId stage = current.builder.state().order[current.place - 1];
    bool done = false;
    const auto ask = [&](const auto& rule) {
      if (done) return;
      const tiling::Answer answer = rule.meets(current, stage, target);
      if (answer == tiling::Answer::Skip) return;
      rule.apply(current, stage, target, out);
      done = answer == tiling::Answer::ApplyAndSkipRest;
    };
    std::apply([&](const auto&... rule) { (ask(rule), ...); }, rules);
  }

  [[nodiscard]] schedule::Schedule finish(tiling::Derivation derivation, const Target& target) const {
    const auto apply = [&](const auto& rule) {
      if constexpr (requires { rule.finish(derivation, target); }) rule.finish(derivation, target);
    };
    std::apply([&](const auto&... rule) { (apply(rule), ...); }, rules);
    return derivation.builder.schedule();
  }

  [[nodiscard]] std::vector<schedule::Schedule> draw(const tiling::Derivation& start, const Target& target) const {
    struct Open {
      tiling::Derivation derivation;
      std::size_t draws = 0;
    };
    std::vector<Open> open{{start, drawn_sketches}};
    std::vector<schedule::Schedule> drawn;
    Rng rng(0);
    while (!open.empty()) {
      Open current = std::move(open.back());
      open.pop_back();
      if (current.derivation.place == 0) {
        drawn.push_back(finish(std::move(current.derivation), target));
        continue;
      }
      std::vector<tiling::Derivation> alternatives;
      derive(current.derivation, target, alternatives);
      const std::size_t number = alternatives.size();
      const std::size_t first = number == 0 ? 0 : static_cast<std::size_t>(rng.below(number));
      for (std::size_t i = 0; i < number; ++i) {
        const std::size_t draws = current.draws / number + (i < current.draws % number ? 1 : 0);
        if (draws > 0) open.push_back({std::move(alternatives[(first + i) % number]), draws});
      }
    }
    return drawn;
  }
};

}  // namespace tunewright::spaces
