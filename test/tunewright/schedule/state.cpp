// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedule/state.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "support/schedule_faults.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::schedule;
using program::Range;
using Extents = std::vector<std::int64_t>;

State matmul_state(std::int64_t m = 12, std::int64_t n = 10, std::int64_t k = 7) {
  return initial_state(program::operators::matmul_graph({.m = m, .n = n, .k = k}));
}

Extents extents(const Stage& stage) {
  Extents extent(stage.iterators.size(), 1);
  for (std::size_t a = 0; a < stage.op->axes.size(); ++a) extent[a] = stage.op->axes[a].extent;
  detail::propagate_extents(stage, extent);
  return extent;
}

/// Values of the axes at a point of the current loops.
Extents axes_at(const Stage& stage, const Extents& extent, const Extents& point) {
  std::vector<IndexExpr> value(stage.iterators.size());
  for (program::Var l = 0; l < stage.order.size(); ++l) value[stage.order[l]] = IndexExpr::variable(l);
  detail::propagate_values(stage, extent, value, [&](program::Var l) { return Range{0, extent[stage.order[l]] - 1}; });
  Extents axes;
  for (std::size_t a = 0; a < stage.op->axes.size(); ++a) {
    axes.push_back(value[a].evaluate([&](program::Var l) { return point[l]; }));
  }
  return axes;
}

TEST_CASE("at the start every axis is a loop") {
  const State state = matmul_state();
  REQUIRE(state.stages.size() == 3);
  CHECK(state.order == std::vector<TensorId>{0, 1, 2});
  const Stage& c = state.stages[2];
  CHECK(c.order == std::vector<IterId>{0, 1, 2});
  CHECK(iterator_name(c, 2) == "k");
  CHECK(c.iterators[2].kind == AxisKind::Reduction);
  CHECK(c.is_untouched());
  CHECK(state.stages[0].is_source());
  CHECK_FALSE(c.is_source());
  CHECK(c.position(1) == 1);
  CHECK(c.position(9) == 3);
}

TEST_CASE("extents of splits round up, values are mixed-radix numbers") {
  State state = matmul_state();
  detail::split(state, 2, 0, Extents{2, 4});  // 12 = 2 x (2 x 4), rounded up to 16
  const Stage& c = state.stages[2];
  CHECK(c.order == std::vector<IterId>{3, 4, 5, 1, 2});
  const Extents extent = extents(c);
  CHECK(extent == Extents{12, 10, 7, 2, 2, 4});
  CHECK(axes_at(c, extent, {1, 0, 3, 5, 6}) == Extents{11, 5, 6});
}

TEST_CASE("factors larger than what there is shrink from the inside out") {
  State state = matmul_state(5);
  detail::split(state, 2, 0, Extents{3, 4});  // 5 = 1 x 2 x 4: the inner 4 stays, 2 are left for the middle
  CHECK(extents(state.stages[2]) == Extents{5, 10, 7, 1, 2, 4});
  State tiny = matmul_state(3);
  detail::split(tiny, 2, 0, Extents{3, 4});
  CHECK(extents(tiny.stages[2]) == Extents{3, 10, 7, 1, 1, 3});
}

TEST_CASE("bad requests") {
  State state = matmul_state();
  CHECK(test::fault_of([&] { (void)state.stage(3); }) == "unknown_stage");
  CHECK(test::fault_of([&] { detail::computed_stage(state, 0); }) == "unknown_stage");
  CHECK(test::fault_of([&] { detail::live_position(state.stages[2], 3); }) == "unknown_iterator");
  CHECK(test::fault_of([&] { detail::split(state, 2, 0, Extents{0}); }) == "bad_factor");
  CHECK(test::fault_of([&] { detail::split(state, 2, 0, Extents{4, -1}); }) == "bad_factor");
  CHECK(test::fault_of([&] { detail::split(state, 2, 0, Extents{INT64_MAX}); }) == "bad_factor");
  CHECK(test::fault_of([&] { detail::split(state, 2, 0, Extents{1 << 20, 1 << 20, 1 << 30}); }) == "bad_factor");
  CHECK(state.stages[2].is_untouched());
}

}  // namespace
