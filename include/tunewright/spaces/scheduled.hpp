// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/spaces/sketch_space.hpp"

namespace tunewright::spaces {

/// Sketches defined by a user function: it calls primitives on a builder and leaves choices open with `choose_tile`,
/// `choose_fuse`, `choose_location` and `choose_unroll_limit`.
template <class Define>
  requires std::invocable<const Define&, schedule::ScheduleBuilder&>
struct DefinedSketch {
  Define define;

  [[nodiscard]] std::vector<schedule::Schedule> sketches(const Task& task) const {
    schedule::ScheduleBuilder builder(task.graph);
    define(builder);
    return {builder.schedule()};
  }
};

/// The space that a function defines:
///
///   auto space = spaces::scheduled([](schedule::ScheduleBuilder& s) {
///     const auto c = s.stage("C");
///     const auto i = s.choose_tile(c, 0, 1);
///     s.parallel(c, i[0]);
///   });
///
/// It supports everything that `MultiLevelTiling` does (sampling, mutation, journals). The function must not depend on
/// anything that differs between runs; it is called once per task, and its exceptions are thrown by the first `sample`.
template <class Define>
[[nodiscard]] SketchSpace<DefinedSketch<Define>> scheduled(Define define) {
  return SketchSpace<DefinedSketch<Define>>{.generator = {std::move(define)}};
}

/// The space as a type, for a recipe's `space` slot; `Define` must be default-constructible (a struct with a call
/// operator).
template <class Define>
using Scheduled = SketchSpace<DefinedSketch<Define>>;

}  // namespace tunewright::spaces
