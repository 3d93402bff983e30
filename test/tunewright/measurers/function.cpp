// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/function.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace tunewright;

TEST_CASE("each program is measured by the function, in order, and reported before the next is started") {
  std::vector<std::pair<char, int>> events;
  const measurers::Function<int> measurer{[&](const Task&, const int& program) {
    events.emplace_back('m', program);
    Outcome outcome;
    outcome.result = Timing{.repeats = {}, .median = Seconds(program)};
    return outcome;
  }};
  const std::vector<int> programs{5, 7};
  const auto outcomes = measurer.measure({}, programs, [&](std::size_t i, const Outcome& outcome) {
    CHECK(outcome.timing()->median == Seconds(programs[i]));
    events.emplace_back('s', static_cast<int>(i));
  });
  REQUIRE(outcomes.size() == 2);
  CHECK(outcomes[1].timing()->median == Seconds(7));
  CHECK(events == std::vector<std::pair<char, int>>{{'m', 5}, {'s', 0}, {'m', 7}, {'s', 1}});
}

TEST_CASE("the name tells functions apart in journals") {
  const auto measure = [](const Task&, int) { return Outcome{}; };
  CHECK(measurers::Function<int>{measure}.identity().empty());
  CHECK(measurers::Function<int>{measure, "kernel 2"}.identity() == "kernel 2");
}

TEST_CASE("a measurer without a function says so") {
  CHECK_THROWS_WITH_AS((void)measurers::Function<int>{}.measure({}, std::vector<int>{1}), doctest::Contains("run"),
                       std::invalid_argument);
}
