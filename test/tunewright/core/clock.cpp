// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/clock.hpp"

#include <doctest/doctest.h>

using namespace tunewright;

TEST_CASE("a virtual clock moves when told, for all of its copies") {
  const VirtualClock one;
  const Clock seen_by_a_budget = one;
  const VirtualClock another;
  one.advance(Seconds(1.5));
  CHECK(seen_by_a_budget() == Seconds(1.5));
  CHECK(another() == Seconds(0));
}

TEST_CASE("the steady clock does not go back") {
  const Clock clock = steady_seconds();
  const Seconds before = clock();
  CHECK(clock() >= before);
}
