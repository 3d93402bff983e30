// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/history.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

using namespace tunewright;

namespace {

Trial<std::string> timed(std::string config, std::uint64_t key, double seconds) {
  Outcome outcome;
  outcome.result = Timing{.repeats = {}, .median = Seconds(seconds)};
  return {{std::move(config), key}, outcome};
}
Trial<std::string> failed(std::string config, std::uint64_t key) {
  Outcome outcome;
  outcome.result = Failure{Fault::RunTimeout, "slow"};
  return {{std::move(config), key}, outcome};
}

}  // namespace

TEST_CASE("a history knows its best, the trials since, and each key once") {
  History<std::string> history;
  CHECK(history.best() == nullptr);
  CHECK(history.append(failed("a", 1)));
  CHECK(history.best() == nullptr);
  CHECK(history.trials_since_best() == 1);
  CHECK(history.append(timed("b", 2, 3.0)));
  CHECK(history.append(timed("c", 3, 2.0)));
  CHECK(history.append(timed("d", 4, 2.0)));  // an equal does not replace the best
  CHECK_FALSE(history.append(timed("e", 3, 1.0)));
  CHECK(history.size() == 4);
  CHECK(history.valid() == 3);
  CHECK(history.best()->candidate.config == "c");
  CHECK(history.trials_since_best() == 1);
  CHECK(history.contains(4));
  CHECK_FALSE(history.contains(5));
}

TEST_CASE("the fastest come first, equals in the order of their trials, failures never") {
  History<std::string> history;
  CHECK(history.fastest(3).empty());
  history.append(timed("a", 1, 3.0));
  history.append(failed("b", 2));
  history.append(timed("c", 3, 1.0));
  history.append(timed("d", 4, 3.0));
  CHECK(history.fastest(2) == std::vector<std::string>{"c", "a"});
  CHECK(history.fastest(9) == std::vector<std::string>{"c", "a", "d"});
}

TEST_CASE("what nobody checked is not among the fastest that were") {
  History<std::string> history;
  std::uint64_t key = 0;
  for (const StopReason stopped :
       {StopReason::Extrapolated, StopReason::Slower, StopReason::FarSlower, StopReason::Precise, StopReason::Budget}) {
    Trial<std::string> trial = timed(std::string(1, static_cast<char>('a' + key)), key, 1.0 + static_cast<double>(key));
    std::get<Timing>(trial.outcome.result).stopped = stopped;
    history.append(std::move(trial));
    ++key;
  }
  history.append(failed("f", key));
  CHECK(history.fastest(2) == std::vector<std::string>{"a", "b"});
  CHECK(history.fastest_checked(2) == std::vector<std::string>{"b", "d"});
  CHECK(history.fastest_checked(9) == std::vector<std::string>{"b", "d", "e"});
  CHECK(history.fastest_checked(0).empty());
}

TEST_CASE("a failed candidate costs infinitely much") {
  CHECK(cost_s(failed("a", 1).outcome) == std::numeric_limits<double>::infinity());
  CHECK(cost_s(timed("a", 1, 0.25).outcome) == 0.25);
}
