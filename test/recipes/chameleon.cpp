// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/chameleon.hpp"

#include <doctest/doctest.h>

#include "recipes/recorded_tasks.hpp"

namespace {

using namespace tunewright;
using Chameleon = recipes::Chameleon<spaces::RecordedTable, test::RecordedReplay>;
static_assert(check_recipe<Chameleon>());

TEST_CASE("Chameleon: same seed, same history, with one and with two threads") {
  const auto source = test::recorded_convolution();
  const auto searched = [&](std::uint64_t seed, unsigned threads) {
    Parts<Chameleon> parts = test::recorded_parts<Chameleon>(source, seed, threads);
    parts.explorer.episodes = 64;
    parts.explorer.steps = 20;
    return test::recorded_trace(parts, source.task, 48);
  };
  const auto one = searched(5, 1);
  CHECK(one.size() == 48);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

TEST_CASE("recorded configurations are found by their numbers") {
  const auto source = test::recorded_convolution();
  for (std::size_t row = 0; row < source.space.size(); row += 97) {
    const auto config = source.space.at(row);
    CHECK(source.space.at_knobs(source.task, source.space.knob_values(config)) == config);
  }
  auto values = source.space.knob_values(source.space.at(0));
  values[0] += 0.5;
  CHECK_FALSE(source.space.at_knobs(source.task, values));
  values.pop_back();
  CHECK_FALSE(source.space.at_knobs(source.task, values));
}

}  // namespace
