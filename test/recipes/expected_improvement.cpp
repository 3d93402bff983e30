// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/expected_improvement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "recipes/recorded_tasks.hpp"
#include "tunewright/recipes/random.hpp"

namespace {

using namespace tunewright;
using ExpectedImprovement = recipes::ExpectedImprovement<spaces::RecordedTable, test::RecordedReplay>;
using Random = recipes::Random<spaces::RecordedTable, test::RecordedReplay>;

template <class Recipe>
std::vector<std::pair<std::uint64_t, double>> searched(const test::RecordedTask& source, std::uint64_t seed,
                                                       unsigned threads = 1) {
  Parts<Recipe> parts{
      .space = source.space, .measurer = source.replay, .seed = seed, .threads = threads, .clock = source.replay.clock};
  const auto run = Tuner<Recipe>(std::move(parts)).run(source.task, {.trials = 48, .batch = 4});
  std::vector<std::pair<std::uint64_t, double>> all;
  for (const auto& trial : run.history.trials()) all.emplace_back(trial.candidate.key, trial.cost_s());
  return all;
}

TEST_CASE("expected improvement: same seed, same history, with one and with two threads") {
  const auto source = test::recorded_convolution();
  const auto one = searched<ExpectedImprovement>(source, 5);
  CHECK(one.size() == 48);
  CHECK(one == searched<ExpectedImprovement>(source, 5, 2));
  CHECK(one != searched<ExpectedImprovement>(source, 6));
}

TEST_CASE("expected improvement ends ahead of random search on most seeds") {
  const auto source = test::recorded_convolution();
  const auto best = [](const auto& trials) {
    double best_s = std::numeric_limits<double>::infinity();
    for (const auto& [key, cost_s] : trials) best_s = std::min(best_s, cost_s);
    return best_s;
  };
  // Were it no better, 9 wins of 10 would come up once in a hundred times.
  int wins = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    wins += best(searched<ExpectedImprovement>(source, seed)) < best(searched<Random>(source, seed)) ? 1 : 0;
  CHECK(wins >= 9);
}

}  // namespace
