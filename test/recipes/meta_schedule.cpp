// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/meta_schedule.hpp"

#include <doctest/doctest.h>

#include "recipes/simulated_tasks.hpp"

namespace {

using namespace tunewright;
using test::Trace;

// Has fewer trees, which is quicker, and lets them choose from the second batch on.
struct FewTrees : recipes::MetaSchedule<spaces::MultiLevelTiling, measurers::Simulated> {
  static void set_model(models::Gbdt& trees) { trees = {}; }
  static void set_adaptation(adaptations::Refit& refit) { refit.min_growth = 0.2; }
};

TEST_CASE("MetaSchedule: same seed, same history, with one and with two threads") {
  const Task task = test::small_matmul();
  const Trace one = test::trace(test::searched<FewTrees>(task, 5, 1));
  CHECK(one.size() == 48);
  CHECK(one == test::trace(test::searched<FewTrees>(task, 5, 2)));
  CHECK(one != test::trace(test::searched<FewTrees>(task, 6, 1)));
}

}  // namespace
