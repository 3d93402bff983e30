// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/auto_tvm.hpp"

#include <doctest/doctest.h>

#include "recipes/recorded_tasks.hpp"

namespace {

using namespace tunewright;
using AutoTvm = recipes::AutoTvm<spaces::RecordedTable, test::RecordedReplay>;
static_assert(check_recipe<AutoTvm>());

TEST_CASE("AutoTVM: same seed, same history, with one and with two threads") {
  const auto source = test::recorded_convolution();
  const auto searched = [&](std::uint64_t seed, unsigned threads) {
    Parts<AutoTvm> parts = test::recorded_parts<AutoTvm>(source, seed, threads);
    return test::recorded_trace(parts, source.task, 48);
  };
  const auto one = searched(5, 1);
  CHECK(one.size() == 48);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

}  // namespace
