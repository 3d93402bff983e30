// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/with_history.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "recipes/recorded_tasks.hpp"
#include "tunewright/core/training_set.hpp"
#include "tunewright/recipes/alt.hpp"
#include "tunewright/recipes/auto_tvm.hpp"

namespace {

using namespace tunewright;
using AutoTvm = recipes::AutoTvmRegression<spaces::RecordedTable, test::RecordedReplay>;
using Alt = recipes::Alt<spaces::RecordedTable, test::RecordedReplay>;
static_assert(check_recipe<recipes::WithHistory<AutoTvm>>());
static_assert(check_recipe<recipes::WithHistory<Alt>>());

/// Parts for a search of `target` that know all that was measured in `earlier`.
template <class Recipe>
Parts<Recipe> taught(const test::RecordedTask& target, const test::RecordedTask& earlier, std::uint64_t seed,
                     unsigned threads = 1) {
  Parts<Recipe> parts = test::recorded_parts<Recipe>(target, seed, threads);
  std::vector<spaces::TableRow> rows;
  std::vector<double> costs_s;
  for (std::size_t row = 0; row < earlier.space.size(); ++row) {
    rows.push_back(earlier.space.at(row));
    costs_s.push_back(earlier.space.table().cost_s(row));
  }
  TrainingSet known;
  known.add(0, parts.featurizer.extract(earlier.space, earlier.task, rows), costs_s);
  const auto data = known.assemble();
  parts.model.source.fit(data.x, data.y, data.group);
  return parts;
}

/// The median latency of the first batch, in seconds; failed candidates are the slowest.
template <class Recipe>
double first_median_s(const Parts<Recipe>& parts, const test::RecordedTask& source) {
  std::vector<double> costs_s;
  for (const auto& [key, cost_s] : test::recorded_trace(parts, source.task, 16)) costs_s.push_back(cost_s);
  std::sort(costs_s.begin(), costs_s.end());
  return costs_s[costs_s.size() / 2];
}

TEST_CASE("trees that rank are refused, as their scores cannot be added") {
  using Ranking = recipes::AutoTvm<spaces::RecordedTable, test::RecordedReplay>;
  const auto a100 = test::recorded_convolution("A100");
  CHECK_THROWS_WITH_AS((Parts<recipes::WithHistory<Ranking>>{.space = a100.space}),
                       doctest::Contains("take AutoTvmRegression"), std::invalid_argument);
}

TEST_CASE("a history chooses the first batch") {
  const auto a100 = test::recorded_convolution("A100");
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const double random_s = first_median_s(test::recorded_parts<AutoTvm>(a100, seed), a100);
    CHECK(first_median_s(taught<recipes::WithHistory<AutoTvm>>(a100, a100, seed), a100) < random_s);
    CHECK(first_median_s(taught<recipes::WithHistory<Alt>>(a100, a100, seed), a100) < random_s);
  }
}

TEST_CASE("with a history: same seed, same trials, with one and with two threads") {
  const auto a100 = test::recorded_convolution("A100");
  const auto searched = [&](std::uint64_t seed, unsigned threads) {
    return test::recorded_trace(taught<recipes::WithHistory<AutoTvm>>(a100, a100, seed, threads), a100.task, 48);
  };
  const auto one = searched(5, 1);
  CHECK(one.size() == 48);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

}  // namespace
