// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/alt.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "recipes/recorded_tasks.hpp"

namespace {

using namespace tunewright;
using Alt = recipes::Alt<spaces::RecordedTable, test::RecordedReplay>;
static_assert(check_recipe<Alt>());

Parts<Alt> alt(const test::RecordedTask& source, std::uint64_t seed, unsigned threads) {
  Parts<Alt> parts = test::recorded_parts<Alt>(source, seed, threads);
  parts.model.rounds = 20;
  parts.sampler.error_predictor.rounds = 20;
  return parts;
}

TEST_CASE("ALT: same seed, same history, with one and with two threads") {
  const auto source = test::recorded_convolution();
  const auto one = test::recorded_trace(alt(source, 5, 1), source.task, 48);
  CHECK(one.size() == 48);
  CHECK(one == test::recorded_trace(alt(source, 5, 2), source.task, 48));
  CHECK(one != test::recorded_trace(alt(source, 6, 1), source.task, 48));
}

TEST_CASE("ALT teaches its filter what failed") {
  const auto source = test::recorded_convolution();
  Tuner<Alt> tuner(alt(source, 1, 1));
  const auto run = tuner.run(source.task, {.trials = 32, .batch = 16});
  const auto& learned = std::get<1>(tuner.parts().filter.filters);
  CHECK(learned.valid.size() == 32);
  CHECK(std::size_t(std::count(learned.valid.begin(), learned.valid.end(), 1.0F)) == run.history.valid());
}

}  // namespace
