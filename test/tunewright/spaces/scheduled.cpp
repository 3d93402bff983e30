// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/scheduled.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <variant>

#include "support/schedule_faults.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/concept.hpp"

namespace {

using namespace tunewright;

Task matmul() {
  return program::make_task("matmul", program::operators::matmul_graph({.m = 16, .n = 32, .k = 8}), Target{});
}

struct TileRows {
  void operator()(schedule::ScheduleBuilder& s) const {
    const auto c = s.stage("matmul");
    const auto i = s.choose_tile(c, 0, 1, 4);
    s.parallel(c, i[0]);
  }
};
static_assert(SearchSpace<spaces::Scheduled<TileRows>>);

TEST_CASE("a space written as one function") {
  const auto space = spaces::scheduled(TileRows{});
  const Task task = matmul();
  CHECK(space.sketches(task).size() == 1);
  std::set<std::int64_t> factors;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const auto config = space.sample(task, rng);
    REQUIRE(config.has_value());
    factors.insert(std::get<schedule::Split>(config->steps[0]).factors[0]);
  }
  CHECK(factors.size() >= 3);
  CHECK(*factors.begin() >= 1);
  CHECK(*factors.rbegin() == 4);  // the cap
}

TEST_CASE("a function without choices has one configuration, which cannot be mutated") {
  const auto space = spaces::scheduled([](schedule::ScheduleBuilder& s) { s.parallel(2, 0); });
  Rng rng(1);
  const auto config = space.sample(matmul(), rng);
  REQUIRE(config.has_value());
  CHECK_FALSE(space.mutate(matmul(), *config, rng).has_value());
}

TEST_CASE("what the function throws comes out of the first sample") {
  const auto space = spaces::scheduled([](schedule::ScheduleBuilder& s) { (void)s.stage("missing"); });
  Rng rng(1);
  CHECK(test::fault_of([&] { (void)space.sample(matmul(), rng); }) == "unknown_stage");
}

}  // namespace
