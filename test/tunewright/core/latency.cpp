// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/latency.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <variant>

using namespace tunewright;

TEST_CASE("a latency is above 0 and finite; a failure has none to be wrong") {
  const auto measured = [](double seconds) {
    Outcome outcome;
    outcome.result = Timing{.repeats = {}, .median = Seconds(seconds)};
    return outcome;
  };
  CHECK_FALSE(impossible_latency(measured(5e-324)));
  CHECK_FALSE(impossible_latency(measured(std::numeric_limits<double>::max())));
  CHECK(impossible_latency(measured(0)) == Seconds(0));
  CHECK(impossible_latency(measured(-1)) == Seconds(-1));
  CHECK(impossible_latency(measured(std::numeric_limits<double>::infinity())));
  CHECK(impossible_latency(measured(std::numeric_limits<double>::quiet_NaN())));
  Outcome failed;
  failed.result = Failure{Fault::RunError, ""};
  CHECK_FALSE(impossible_latency(failed));
}

TEST_CASE("a time is 0 or more, and finite") {
  CHECK(is_duration(Seconds(0)));
  CHECK(is_duration(Seconds(std::numeric_limits<double>::max())));
  CHECK_FALSE(is_duration(Seconds(-5e-324)));
  CHECK_FALSE(is_duration(Seconds(std::numeric_limits<double>::infinity())));
  CHECK_FALSE(is_duration(Seconds(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("the best so far is 0 while there is none, and no failure changes it") {
  Outcome measured, failed;
  measured.result = Timing{.repeats = {}, .median = Seconds(2)};
  failed.result = Failure{Fault::RunError, "crashed"};
  CHECK(best_with(Seconds(0), measured) == Seconds(2));
  CHECK(best_with(Seconds(3), measured) == Seconds(2));
  CHECK(best_with(Seconds(1), measured) == Seconds(1));
  CHECK(best_with(Seconds(0), failed) == Seconds(0));
  CHECK(best_with(Seconds(3), failed) == Seconds(3));
}

TEST_CASE("the first number of an outcome that cannot have been measured is named") {
  const Outcome measured{.result = Timing{.repeats = {Seconds(1)}, .median = Seconds(1)}};
  CHECK(impossible_number(measured).empty());
  const auto with = [&](auto change) {
    Outcome outcome = measured;
    change(outcome, std::get<Timing>(outcome.result));
    return impossible_number(outcome);
  };
  CHECK(with([](Outcome&, Timing& timing) { timing.median = Seconds(-1); }) == "a latency of -1 s");
  CHECK(with([](Outcome& run, Timing&) { run.compile_time = Seconds(-1); }) == "compiling for -1 s");
  CHECK(with([](Outcome& run, Timing&) { run.run_time = Seconds(std::nan("")); }) == "running for nan s");
  CHECK(with([](Outcome&, Timing& timing) { timing.repeats.push_back(Seconds(-2)); }) == "a repeat of -2 s");
  CHECK(with([](Outcome&, Timing& timing) { timing.median_absolute_deviation = Seconds(-3); }) ==
        "a deviation of -3 s");
}
