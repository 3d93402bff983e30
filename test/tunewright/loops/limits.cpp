// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/limits.hpp"

#include <doctest/doctest.h>

#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using schedule::ScheduleBuilder;

const Target sse;  // 4 floats a vector

ScheduleBuilder matmul() {
  return ScheduleBuilder(program::operators::matmul_graph({.m = 64, .n = 2048, .k = 8}));
}

std::string_view exceeded(const ScheduleBuilder& s, const loops::CpuLimits& limits = {}) {
  return loops::exceeded_limit(loops::lower(s.schedule()), sse, limits);
}

TEST_CASE("a plain nest is within limits") { CHECK(exceeded(matmul()).empty()); }

TEST_CASE("unrolling counts the copies of a statement, vectors included") {
  ScheduleBuilder s = matmul();
  const auto j = s.split(2, 1, {64});
  s.reorder(2, {0, j[0], 2, j[1]});
  s.vectorize(2, j[1]);  // 64 / 4 = 16 copies
  CHECK(exceeded(s, {.max_unrolled_statements = 16}).empty());
  CHECK(exceeded(s, {.max_unrolled_statements = 15}) == "too much unrolling");
  s.unroll(2, 2);  // times 8
  CHECK(exceeded(s, {.max_unrolled_statements = 128}).empty());
  CHECK(exceeded(s, {.max_unrolled_statements = 127}) == "too much unrolling");
}

TEST_CASE("vectorized loops are short and innermost") {
  ScheduleBuilder longer = matmul();
  longer.reorder(2, {0, 2, 1});
  longer.vectorize(2, 1);
  CHECK(exceeded(longer) == "vectorized loop too long");
  ScheduleBuilder outer = matmul();
  outer.vectorize(2, 0);
  CHECK(exceeded(outer) == "vectorized loop is not innermost");
}

TEST_CASE("one level of parallel loops") {
  ScheduleBuilder s = matmul();
  s.parallel(2, 0);
  CHECK(exceeded(s).empty());
  s.parallel(2, 1);
  CHECK(exceeded(s) == "parallel loop inside a parallel loop");
}

TEST_CASE("buffers inside loops and outside have limits of their own") {
  ScheduleBuilder s = matmul();
  const auto cache = s.cache_write(2);
  CHECK(exceeded(s, {.max_workspace_bytes = 64 * 2048 * 4}).empty());
  CHECK(exceeded(s, {.max_workspace_bytes = 64 * 2048 * 4 - 1}) == "workspace too large");
  const auto j = s.split(2, 1, {64});
  s.compute_at(cache, 2, j[0]);  // one row of 64 floats
  CHECK(exceeded(s, {.max_local_bytes = 256}).empty());
  CHECK(exceeded(s, {.max_local_bytes = 255}) == "local buffers too large");
}

}  // namespace
