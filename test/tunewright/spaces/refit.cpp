// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/refit.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
using schedule::LoopKind;
using schedule::Schedule;
using schedule::Split;

Target avx2() {
  Target target;
  target.isa = Isa::Avx2;  // vectors of 8 floats
  target.threads = 2;
  return target;
}

Task product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return program::make_task("product", program::operators::matmul_graph({.m = m, .n = n, .k = k}), avx2());
}

/// The columns of a product in tiles that a search chooses: vectors within a part within the rest.
Schedule columns(std::int64_t n) {
  schedule::ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = n, .k = 4}));
  const auto c = s.stage("matmul");
  const auto parts = s.choose_tile(c, 1, 2, 64, LoopKind::Vectorized);
  s.vectorize(c, parts.back());
  s.choose_unroll_limit(c, {0, 16, 64});
  return s.schedule();
}

/// Factors for `n` columns where 64 columns had `factors`.
std::vector<std::int64_t> refitted_columns(std::int64_t n, const std::vector<std::int64_t>& factors) {
  Schedule known = columns(64);
  std::get<Split>(known.steps[0]).factors = factors;
  std::get<schedule::UnrollLimit>(known.steps.back()).selected = 2;
  const std::optional<Schedule> result = spaces::decided_as(columns(n), known.steps, avx2());
  REQUIRE(result);
  CHECK(std::get<schedule::UnrollLimit>(result->steps.back()).selected == 2);
  CHECK(std::get<Split>(result->steps[0]).extent == n);
  (void)loops::lower(*result);
  return std::get<Split>(result->steps[0]).factors;
}

using Factors = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("tiles stay where they fit, the innermost first") {
  CHECK(refitted_columns(64, {2, 16}) == Factors{2, 16});
  CHECK(refitted_columns(256, {2, 16}) == Factors{2, 16});  // more parts of the same size
  CHECK(refitted_columns(48, {2, 16}) == Factors{3, 16});   // three parts are left, and 3 is nearer to 2 than 1 is
  CHECK(refitted_columns(125, {2, 16}) == Factors{2, 16});  // 3 of 128 columns idle
  CHECK(refitted_columns(16, {2, 16}) == Factors{1, 16});
}

TEST_CASE("vectors stay whole as long as there are any") {
  CHECK(refitted_columns(72, {1, 32}) == Factors{1, 32});  // 9 vectors as 4 + 4 + 1
  CHECK(refitted_columns(28, {1, 32}) == Factors{1, 24});  // 4 vectors as 3 + 1
  CHECK(refitted_columns(8, {2, 16}) == Factors{1, 8});
  CHECK(refitted_columns(5, {2, 16}) == Factors{1, 5});
}

TEST_CASE("what is not the same but for decisions does not fit") {
  const Schedule sketch = columns(64);
  Schedule other = sketch;
  other.steps.pop_back();
  CHECK_FALSE(spaces::decided_as(sketch, other.steps, avx2()));
  other = sketch;
  std::get<schedule::UnrollLimit>(other.steps.back()).choices = {0, 16};
  CHECK_FALSE(spaces::decided_as(sketch, other.steps, avx2()));
  other = sketch;
  std::get<Split>(other.steps[0]).inner = LoopKind::Unrolled;
  CHECK_FALSE(spaces::decided_as(sketch, other.steps, avx2()));
}

TEST_CASE("random schedules of one product become feasible ones of another, with tiles that divide or hardly idle") {
  const spaces::MultiLevelTiling space;
  const Task from = product(64, 96, 128);
  const Task to = product(60, 136, 250);
  std::size_t fitted = 0;
  constexpr std::uint64_t tries = 60;
  for (std::uint64_t seed = 0; seed < tries; ++seed) {
    Rng rng(seed);
    const std::optional<Schedule> config = space.sample(from, rng);
    REQUIRE(config);
    CHECK(spaces::refitted(space, from, config->steps) == config);  // for the shape itself nothing changes
    std::string_view why;
    const std::optional<Schedule> result = spaces::refitted(space, to, config->steps, &why);
    if (!result) {
      CHECK_FALSE(why.empty());
      continue;
    }
    ++fitted;
    CHECK(space.feasible(to, *result));
    CHECK(space.decode(to, space.encode(*result)) == result);
    for (const schedule::Step& step : result->steps) {
      const auto* split = std::get_if<Split>(&step);
      if (split == nullptr || !spaces::decisions::is_open_split(*split)) continue;
      // The last tile has only the vectors that are left.
      const bool has_whole_vectors =
          split->inner == LoopKind::Vectorized && split->factors.back() % to.target.vector_lanes(sizeof(float)) == 0;
      CHECK((has_whole_vectors || spaces::decisions::waste(split->extent, split->factors.back()) <= 0.125));
    }
  }
  MESSAGE(fitted << " of " << tries << " fitted");
  CHECK(fitted > tries * 3 / 4);
}

TEST_CASE("splits that follow from extents are those of the new shape") {
  const spaces::MultiLevelTiling space;
  const auto sum = [](std::int64_t terms) {
    auto g = std::make_shared<program::ComputeGraph>();
    program::operators::sum(*g, g->input("x", {4, terms}), {1});
    return program::make_task("sum", std::move(g), avx2());
  };
  const Task from = sum(4096), to = sum(5000);
  std::size_t factored = 0;
  for (const Schedule& known : space.sketches(from)) {
    const std::optional<Schedule> result = spaces::refitted(space, to, known.steps);
    REQUIRE(result);
    CHECK(space.feasible(to, *result));
    for (const schedule::Step& step : result->steps) factored += std::holds_alternative<schedule::Rfactor>(step);
  }
  CHECK(factored == 3);  // of lanes, and of threads and lanes
}

TEST_CASE("a tile goes to a sketch that allows it") {
  const auto with_most = [](std::int64_t most) {
    schedule::ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = 64, .k = 4}));
    s.vectorize(s.stage("matmul"), s.choose_tile(s.stage("matmul"), 1, 2, most, LoopKind::Vectorized).back());
    return s.schedule();
  };
  Schedule known = with_most(32);
  std::get<Split>(known.steps[0]).factors = {2, 16};
  CHECK(spaces::allows_tiles_of(with_most(16), known.steps));
  CHECK_FALSE(spaces::allows_tiles_of(with_most(8), known.steps));
}

TEST_CASE("schedules of another structure are told") {
  const spaces::MultiLevelTiling space;
  const Task dense =
      program::make_task("dense", program::operators::dense_graph({.batch = 8, .in = 16, .out = 24}), avx2());
  Rng rng(1);
  std::string_view why;
  CHECK_FALSE(spaces::refitted(space, product(64, 96, 128), space.sample(dense, rng)->steps, &why));
  CHECK(why == "no sketch of the space has these steps");
}
