// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "support/nest_builder.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

/// Products of matrices for tests of measurers: right ones, and ones with a fault that running them shows.
namespace tunewright::test {

inline Task matmul_task(std::int64_t m, std::int64_t n, std::int64_t k, const Target& target) {
  return program::make_task("matmul", program::operators::matmul_graph({.m = m, .n = n, .k = k, .constant_b = true}),
                            target);
}

inline loops::LoopNest nest_of(const Task& task, loops::LoopKind innermost = loops::LoopKind::Serial,
                               loops::LoopKind outermost = loops::LoopKind::Serial) {
  return plain_nest(*task.graph, innermost, outermost);
}

/// Leaves out the statement that starts the sums.
inline loops::LoopNest without_initialisation(const Task& task, loops::LoopKind outermost = loops::LoopKind::Serial) {
  loops::LoopNest nest = nest_of(task, loops::LoopKind::Serial, outermost);
  nest.body.erase(nest.body.begin());
  return nest;
}

/// Runs a loop over the rows of the result too often.
inline loops::LoopNest with_too_many_rows(const Task& task) {
  loops::LoopNest nest = nest_of(task);
  for (loops::LoopVariable& variable : nest.variables) {
    if (variable.name == "matmul.i") variable.extent += 1000;
  }
  return nest;
}

/// `measurer` with few short repeats.
template <class Measurer>
Measurer with_short_repeats(Measurer measurer) {
  measurer.protocol.min_repeat_seconds = 1e-4;
  measurer.protocol.repeats_min = 3;
  measurer.protocol.repeats_max = 5;
  return measurer;
}

}  // namespace tunewright::test
