// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/schedule.hpp"

/// Four cores with caches of a usual size, the same on every machine that runs the tests.
inline tunewright::Target four_cores() {
  tunewright::Target target;
  target.name = "four cores";
  target.threads = 4;
  target.isa = tunewright::Isa::Avx2;
  target.l1_bytes = 32U << 10;
  target.l2_bytes = 1U << 20;
  target.l3_bytes = 32U << 20;
  return target;
}

/// A product of matrices of 48 x 32 and 32 x 64, operator 2 of its graph.
inline tunewright::Task small_product(const tunewright::Target& target) {
  using namespace tunewright;
  return program::make_task("matmul", program::operators::matmul_graph({.m = 48, .n = 64, .k = 32}), target);
}

/// A space of schedules of `small_product` for CPUs.
struct TiledOnCpu {
  void operator()(tunewright::schedule::ScheduleBuilder& s) const {
    const auto rows = s.choose_tile(2, 0, 2);
    const auto columns = s.choose_tile(2, 1, 1);
    s.reorder(2, {rows[0], columns[0], rows[1], 2, rows[2], columns[1]});
    s.parallel(2, rows[0]);
    s.vectorize(2, columns[1]);
    s.choose_unroll_limit(2, {0, 16, 64});
  }
};
