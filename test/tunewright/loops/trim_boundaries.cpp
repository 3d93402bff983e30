// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/trim_boundaries.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "support/interpreted.hpp"
#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using schedule::ScheduleBuilder;
using test::interpreted;

std::size_t guards(const loops::Body& body) {
  std::size_t count = 0;
  for (const loops::Node& node : body) {
    if (const auto* s = std::get_if<loops::Statement>(&node.content)) count += s->guards.size();
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) count += guards(loop->body);
    if (const auto* branch = std::get_if<loops::Branch>(&node.content))
      count += guards(branch->then) + guards(branch->otherwise);
  }
  return count;
}

/// A product of `m` rows, in tiles of `outer` by `rows` of them, four columns and two terms.
ScheduleBuilder rows_in_tiles(std::int64_t m, std::int64_t outer, std::int64_t rows) {
  ScheduleBuilder s(program::operators::matmul_graph({.m = m, .n = 4, .k = 2}));
  const auto i = s.split(2, 0, {outer, rows});
  s.reorder(2, {i[0], i[1], 2, i[2], 1});
  s.unroll(2, i[2]);
  s.vectorize(2, 1);
  return s;
}

TEST_CASE("the last tile along an axis has a loop of what is left, and no guards") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 14, .n = 4, .k = 2}));
  const auto i = s.split(2, 0, {6});  // 6 + 6 + 2
  s.reorder(2, {i[0], 2, i[1], 1});
  s.unroll(2, i[1]);
  s.vectorize(2, 1);
  const loops::LoopNest plain = loops::lower(s.schedule());
  const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
  CHECK(loops::to_string(trimmed) ==
        "kernel(A: float32[14, 2], B: float32[2, 4], out matmul: float32[14, 4])\n"
        "  for i.0 in 0..3:\n"
        "    if 6*i.0 + 5 < 14:\n"
        "      for i.1 in 0..6 unrolled:\n"
        "        for j in 0..4 vectorized:\n"
        "          matmul[6*i.0 + i.1, j] = 0\n"
        "      for k in 0..2 reduction:\n"
        "        for i.1 in 0..6 unrolled:\n"
        "          for j in 0..4 vectorized:\n"
        "            matmul[6*i.0 + i.1, j] += A[6*i.0 + i.1, k] * B[k, j]\n"
        "    else:\n"
        "      for i.1 in 0..2 unrolled:\n"
        "        for j in 0..4 vectorized:\n"
        "          matmul[6*i.0 + i.1, j] = 0\n"
        "      for k in 0..2 reduction:\n"
        "        for i.1 in 0..2 unrolled:\n"
        "          for j in 0..4 vectorized:\n"
        "            matmul[6*i.0 + i.1, j] += A[6*i.0 + i.1, k] * B[k, j]\n");
  CHECK(interpreted(trimmed) == interpreted(plain));
}

TEST_CASE("tiles that lie beyond the axis do not run") {
  const ScheduleBuilder s = rows_in_tiles(14, 2, 6);  // 2 x 2 tiles of 6: the fourth starts at 18
  const loops::LoopNest plain = loops::lower(s.schedule());
  const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
  CHECK(loops::to_string(trimmed).find("if 12*i.0 + 6*i.1 + 5 < 14:") != std::string::npos);
  CHECK(loops::to_string(trimmed).find("if 12*i.0 + 6*i.1 < 14:") != std::string::npos);
  CHECK(guards(trimmed.body) == 0);
  CHECK(interpreted(trimmed) == interpreted(plain));
}

TEST_CASE("an axis shorter than its tile has the last tile alone") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 3, .n = 4, .k = 2}));
  const auto i = s.split(2, 0, {5});
  s.reorder(2, {i[0], 2, i[1], 1});
  s.unroll(2, i[1]);
  const loops::LoopNest plain = loops::lower(s.schedule());
  const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
  CHECK(loops::to_string(trimmed).find("if") == std::string::npos);
  CHECK(loops::to_string(trimmed).find("for i.1 in 0..3 unrolled") != std::string::npos);
  CHECK(interpreted(trimmed) == interpreted(plain));
}

TEST_CASE("two axes: a corner is trimmed along both") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 7, .n = 11, .k = 3}));
  const auto i = s.split(2, 0, {3}), j = s.split(2, 1, {4});
  s.reorder(2, {i[0], j[0], 2, i[1], j[1]});
  s.unroll(2, i[1]);
  s.unroll(2, j[1]);
  const loops::LoopNest plain = loops::lower(s.schedule());
  const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
  CHECK(guards(plain.body) > 0);
  CHECK(guards(trimmed.body) == 0);
  CHECK(interpreted(trimmed) == interpreted(plain));
}

TEST_CASE("a vectorized loop is trimmed to the last elements, a serial one keeps its guard") {
  for (const bool vectorized : {false, true}) {
    ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = 10, .k = 2}));
    const auto j = s.split(2, 1, {4});
    s.reorder(2, {0, j[0], 2, j[1]});
    if (vectorized) s.vectorize(2, j[1]);
    const loops::LoopNest plain = loops::lower(s.schedule());
    const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
    CHECK((loops::to_string(trimmed).find("for j.1 in 0..2 vectorized") != std::string::npos) == vectorized);
    CHECK((guards(trimmed.body) == 0) == vectorized);
    CHECK(interpreted(trimmed) == interpreted(plain));
  }
}

TEST_CASE("vectors that may overcompute stay whole") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = 10, .k = 2}));
  const program::TensorId local = s.cache_write(2, schedule::Scope::Local);
  const auto j = s.split(local, 1, {4});
  s.reorder(local, {0, j[0], 2, j[1]});
  s.vectorize(local, j[1]);
  const loops::LoopNest plain = loops::lower(s.schedule());
  CHECK(loops::to_string(plain).find("where") != std::string::npos);
  CHECK(loops::to_string(loops::trim_boundaries(plain, 16)) == loops::to_string(plain));
}

TEST_CASE("of what may be overcomputed, the last tile has the vectors that are not idle") {
  // 10 columns in tiles of 8, which are two vectors: 8, and 2 in one vector of 4, whose guard remains.
  for (const std::int64_t columns : {10, 12, 13}) {
    ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = columns, .k = 2}));
    const program::TensorId local = s.cache_write(2, schedule::Scope::Local);
    const auto j = s.split(local, 1, {8});
    s.reorder(local, {0, j[0], 2, j[1]});
    s.vectorize(local, j[1]);
    const loops::LoopNest plain = loops::lower(s.schedule());
    const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
    CAPTURE(columns);
    const bool has_idle_vector = columns <= 12;
    CHECK((loops::to_string(trimmed).find("for j.1 in 0..4 vectorized") != std::string::npos) == has_idle_vector);
    CHECK((loops::to_string(trimmed).find("where") != std::string::npos) == (columns != 12));
    CHECK(interpreted(trimmed) == interpreted(plain));
    CHECK(interpreted(loops::prepare_for_codegen(plain, 16)) == interpreted(plain));
  }
}

TEST_CASE("where tiles of a part do not divide it, what is left is not known and guards stay") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 8, .n = 4, .k = 2}));
  const auto i = s.split(2, 0, {4});
  const auto ii = s.split(2, i[1], {3});  // 4 as 3 + 1: the axis is covered with steps of 4 and of 3
  s.reorder(2, {i[0], ii[0], 2, ii[1], 1});
  s.unroll(2, ii[1]);
  const loops::LoopNest plain = loops::lower(s.schedule());
  const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
  CHECK(interpreted(trimmed) == interpreted(plain));
}

TEST_CASE("padding that is left out of sums and trimmed rows go together") {
  for (const std::int64_t rows : {2, 3, 4, 5, 6}) {
    ScheduleBuilder s(program::operators::conv2d_graph(
        {.height = 5, .width = 7, .in_channels = 2, .out_channels = 4, .kernel = 3, .stride = 1, .padding = 1}));
    const program::TensorId conv = s.stage("conv2d");
    for (program::TensorId id = 0; id < conv; ++id)
      if (!s.state().stages[id].is_source()) s.compute_inline(id);
    const auto w = s.split(conv, 2, {rows});
    s.reorder(conv, {0, 1, w[0], 4, 5, 6, w[1], 3});
    s.unroll(conv, w[1]);
    s.vectorize(conv, 3);
    const loops::LoopNest plain = loops::lower(s.schedule());
    const loops::LoopNest trimmed = loops::trim_boundaries(loops::eliminate_padding(plain), 16);
    CAPTURE(rows);
    CHECK(interpreted(trimmed) == interpreted(plain));
    CHECK(interpreted(loops::partition(trimmed)) == interpreted(plain));
  }
}

TEST_CASE("every number of rows in tiles of every size computes what the plain nest does") {
  for (std::int64_t m = 1; m <= 13; ++m) {
    for (std::int64_t rows = 2; rows <= 8; ++rows) {
      for (std::int64_t outer = 1; outer <= 3; ++outer) {
        CAPTURE(m);
        CAPTURE(rows);
        CAPTURE(outer);
        const loops::LoopNest plain = loops::lower(rows_in_tiles(m, outer, rows).schedule());
        const loops::LoopNest trimmed = loops::trim_boundaries(plain, 16);
        CHECK(guards(trimmed.body) == 0);
        CHECK(interpreted(trimmed) == interpreted(plain));
      }
    }
  }
}

}  // namespace
