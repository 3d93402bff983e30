// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/skip_zeros.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using schedule::ScheduleBuilder;

/// y[i] = sum over r of x[i + r - 1] * w[r], where x has three elements and zeros around. Tensors: x, w, padded, y.
std::shared_ptr<const program::ComputeGraph> smoothing(program::Combiner combiner = program::Combiner::Sum) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {3});
  const auto w = g->input("w", {3});
  const auto padded = ops::pad(*g, x, {.before = {1}, .after = {1}, .name = "padded"});
  g->reduce("y", {{"i", 3}}, {{"r", 3}}, combiner,
            [&](auto i, auto r) { return padded(i[0] + r[0]) * w(r[0]); });
  return g;
}
constexpr program::TensorId padded = 2;
constexpr program::TensorId y = 3;

using Values = std::vector<double>;

Values run(const loops::LoopNest& nest, Values x, Values w) {
  std::vector<Values> arguments{std::move(x), std::move(w), Values(3)};
  loops::interpret(nest, arguments);
  return arguments.back();
}

TEST_CASE("a factor that is padding becomes guards of the term") {
  ScheduleBuilder s(smoothing());
  s.compute_inline(padded);
  const loops::LoopNest nest = loops::skip_zeros(loops::lower(s.schedule()));
  CHECK(loops::to_string(nest) ==
        "kernel(x: float32[3], w: float32[3], out y: float32[3])\n"
        "  for i in 0..3:\n"
        "    y[i] = 0\n"
        "    for r in 0..3 reduction:\n"
        "      y[i] += x[i + r - 1] * w[r]  if 0 <= i + r - 1 and 0 <= -i - r + 3\n");
  // 0 + 100 * 1 + 1000 * 2, 10 * 1 + 100 * 2 + 1000 * 3, 10 * 2 + 100 * 3 + 0
  CHECK(run(nest, {1, 2, 3}, {10, 100, 1000}) == Values{2100, 3210, 320});
}

TEST_CASE("what is left out does not matter, not even if it is no number") {
  ScheduleBuilder s(smoothing());
  s.compute_inline(padded);
  const loops::LoopNest plain = loops::lower(s.schedule());
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(run(plain, {1, 2, 3}, {infinity, 1, 1})[0]));  // 0 * infinity
  CHECK(run(loops::skip_zeros(plain), {1, 2, 3}, {infinity, 1, 1}) == Values{3, infinity, infinity});
}

TEST_CASE("guards that the lanes of a vector do not share stay a select; so do maxima") {
  ScheduleBuilder lanes(smoothing());
  lanes.compute_inline(padded);
  lanes.reorder(y, {1, 0});
  lanes.vectorize(y, 0);
  ScheduleBuilder largest(smoothing(program::Combiner::Max));
  largest.compute_inline(padded);
  for (const ScheduleBuilder* s : {&lanes, &largest}) {
    const loops::LoopNest nest = loops::lower(s->schedule());
    CHECK(loops::to_string(loops::skip_zeros(nest)) == loops::to_string(nest));
  }
}

TEST_CASE("a padded tensor that is stored is read as it is") {
  const loops::LoopNest nest = loops::lower(ScheduleBuilder(smoothing()).schedule());
  CHECK(loops::to_string(loops::skip_zeros(nest)) == loops::to_string(nest));
}

TEST_CASE("guards that differ between the iterations of a reduction do not cut it in two") {
  ScheduleBuilder s(smoothing());
  s.compute_inline(padded);
  s.reorder(y, {1, 0});
  s.unroll(y, 0);  // all of y in registers: terms with r = 0 and r = 2 each lack one of three
  const loops::LoopNest skipped = loops::skip_zeros(loops::lower(s.schedule()));
  CHECK(loops::to_string(loops::partition(skipped)) == loops::to_string(skipped));
}

TEST_CASE("tiles away from the border run without guards") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1, 8, 8, 1});
  ops::conv2d(*g, x, g->constant("w", {3, 3, 1, 1}), {.padding = 1});
  ScheduleBuilder s(g);
  s.compute_inline(padded);
  const loops::LoopNest nest = loops::partition(loops::skip_zeros(loops::lower(s.schedule())));
  const std::string text = loops::to_string(nest);
  CHECK(text.find("if 0 <= h - 1 and 0 <= -h + 6 and 0 <= w - 1 and 0 <= -w + 6:") != std::string::npos);
}

}  // namespace
