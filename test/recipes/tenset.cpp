// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/tenset.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "recipes/pretrained.hpp"
#include "tunewright/adaptations/none.hpp"
#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/models/gbdt.hpp"

namespace {

using namespace tunewright;
using TenSet = recipes::TenSet<spaces::MultiLevelTiling, measurers::Simulated>;
using Frozen = recipes::TenSet<spaces::MultiLevelTiling, measurers::Simulated, models::Mlp, adaptations::None>;
using Trees = recipes::TenSet<spaces::MultiLevelTiling, measurers::Simulated, adaptations::Transferred<models::Gbdt>,
                              adaptations::WarmStart>;
static_assert(check_recipe<Trees>());

template <class Recipe>
Parts<Recipe> pretrained(std::uint64_t seed, unsigned threads) {
  Parts<Recipe> parts = test::small_parts<Recipe>(seed, threads);
  parts.model.hidden = 16;
  test::pretrain(parts, test::small_matmul());
  return parts;
}

TEST_CASE("TenSet fine-tunes: same seed, same history, with one and with two threads") {
  const Task task = test::small_matmul();
  const auto searched = [&](std::uint64_t seed, unsigned threads) {
    Parts<TenSet> parts = pretrained<TenSet>(seed, threads);
    return test::searched_trace(parts, task);
  };
  const test::Trace one = searched(5, 1);
  CHECK(one.size() == 16);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

TEST_CASE("TenSet's network may stay as it was trained, and is asked from the first round") {
  Tuner<Frozen> tuner(pretrained<Frozen>(5, 1));
  Parts<Frozen> untrained = tuner.parts();
  untrained.model.learned = {};
  const auto before = tuner.parts().model.parameters();
  const std::vector<float> weights(before.begin(), before.end());
  const auto run = tuner.run(test::small_matmul(), {.trials = 16, .batch = 8});
  const auto after = tuner.parts().model.parameters();
  CHECK(std::equal(after.begin(), after.end(), weights.begin(), weights.end()));
  const test::Trace blind = test::searched_trace(untrained, test::small_matmul(), 8);
  CHECK(blind.front() != test::trace(run).front());
}

}  // namespace
