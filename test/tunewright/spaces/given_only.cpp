// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/given_only.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/toy_space.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/tuner.hpp"

namespace {

using namespace tunewright;
using Space = spaces::GivenOnly<toy::Space>;
static_assert(SearchSpace<Space>);

struct Recipe : recipes::Random<Space, toy::Measurer> {};

Parts<Recipe> given(std::vector<toy::Tiles> tiles) {
  return {.seed = 1, .starts = [tiles](const Space&, const Task&) { return tiles; }};
}

}  // namespace

TEST_CASE("a search over what it is given measures each of it once and ends") {
  const toy::Space space;
  const Task task = toy::task();
  Rng rng(3);
  std::vector<toy::Tiles> tiles;
  while (tiles.size() < 5)
    if (const auto drawn = space.sample(task, rng)) tiles.push_back(*drawn);
  tiles.push_back(tiles.front());
  KeySet keys;
  for (const toy::Tiles& one : tiles) keys.insert(space.key(one));

  Tuner<Recipe> tuner{given(tiles)};
  const auto run = tuner.run(task, {.trials = 100, .batch = 2});
  CHECK(run.stop == Stop::Exhausted);
  CHECK(run.history.size() == keys.size());
  for (const auto& trial : run.history.trials()) CHECK(keys.count(trial.candidate.key) == 1);
  CHECK(tuner.run(task, {.trials = 2, .batch = 2}).stop == Stop::Trials);
}

TEST_CASE("a search that is given nothing says that there are no configurations, and how to give some") {
  const std::string expected =
      "the search space gave no feasible configuration for task 'toy 128'; the space draws none, so give some that the "
      "target can run by Parts::starts";
  for (Tuner<Recipe> tuner : {Tuner<Recipe>{given({})}, Tuner<Recipe>{}})
    CHECK(test::refusal([&] { (void)tuner.run(toy::task(), {.trials = 4, .batch = 2}); }) == expected);
  struct Derived : Space {};
  Tuner<recipes::Random<Derived, toy::Measurer>> derived;
  CHECK(test::refusal([&] { (void)derived.run(toy::task(), {.trials = 4, .batch = 2}); }) == expected);
}
