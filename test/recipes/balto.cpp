// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/balto.hpp"

#include <doctest/doctest.h>

#include "recipes/recorded_tasks.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/models/gbdt.hpp"

namespace {

using namespace tunewright;
template <class Model>
using Balto = recipes::Balto<spaces::RecordedTable, test::RecordedReplay, Model, features::Knobs>;

TEST_CASE("BALTO with trees: same seed, same history, with one and with two threads") {
  using Recipe = Balto<models::Gbdt>;
  const auto source = test::recorded_convolution();
  const auto searched = [&](std::uint64_t seed, unsigned threads) {
    Parts<Recipe> parts = test::recorded_parts<Recipe>(source, seed, threads);
    parts.model.rounds = 20;
    return test::recorded_trace(parts, source.task, 48);
  };
  const auto one = searched(5, 1);
  CHECK(one.size() == 48);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

TEST_CASE("BALTO with a committee of networks leaves a model of all that was measured") {
  using Recipe = Balto<models::Committee<models::Mlp, 3>>;
  static_assert(UncertainCostModel<Recipe::model>);
  const auto source = test::recorded_convolution();
  Parts<Recipe> parts = test::recorded_parts<Recipe>(source, 5);
  parts.model.member.hidden = 16;
  parts.model.member.training.epochs = 2;
  parts.model.member.training.least_steps = 20;
  Tuner<Recipe> tuner(parts);
  const auto run = tuner.run(source.task, {.trials = 32, .batch = 16});
  CHECK(run.history.size() == 32);
  CHECK(tuner.parts().model.trained());
  CHECK(tuner.parts().adaptation.fitted_candidates == 32);
  CHECK(test::recorded_trace(parts, source.task, 32) == test::recorded_trace(parts, source.task, 32));
}

}  // namespace
