// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/clock.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace tunewright;

TEST_CASE("a virtual clock moves when told, for all of its copies") {
  const VirtualClock one;
  const Clock seen_by_a_budget = one;
  const VirtualClock another;
  one.advance(Seconds(1.5));
  CHECK(seen_by_a_budget() == Seconds(1.5));
  CHECK(another() == Seconds(0));
}

TEST_CASE("seconds since a moment grow from 0") {
  const auto now = std::chrono::steady_clock::now();
  CHECK(seconds_since(now) >= 0);
  CHECK(seconds_since(now - std::chrono::minutes(1)) >= 60);
}

TEST_CASE("the steady clock does not go back") {
  const Clock clock = steady_seconds();
  const Seconds before = clock();
  CHECK(clock() >= before);
}
