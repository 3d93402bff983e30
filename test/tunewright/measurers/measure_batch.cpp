// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/measure_batch.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <variant>

#include "support/toy_space.hpp"
#include "tunewright/core/latency.hpp"

using namespace tunewright;

namespace {

struct Fragile : toy::Space {
  toy::Program lower(const Task& task, const toy::Tiles& tiles) const {
    if (tiles[0] == 0) throw std::runtime_error("no rows");
    return toy::Space::lower(task, tiles);
  }
};

struct Backwards {  // reports in the order that is least expected
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs, const OutcomeSink& sink = {}) {
    std::vector<Outcome> outcomes(programs.size());
    for (std::size_t i = programs.size(); i-- > 0;) {
      outcomes[i] = toy::Measurer{}.run(task, programs[i]);
      if (sink) sink(i, outcomes[i]);
    }
    return outcomes;
  }
};

/// Answers 0 s for every program with (1, 1, 1, 1).
struct Instant : toy::Measurer {
  static std::vector<Outcome> without_time(std::span<const toy::Program> programs, std::vector<Outcome> outcomes) {
    for (std::size_t i = 0; i < programs.size(); ++i)
      if (programs[i].tiles == toy::Tiles{1, 1, 1, 1}) outcomes[i].result = Timing{};
    return outcomes;
  }
};
struct InstantAtOnce : Instant {
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs) {
    std::vector<Outcome> outcomes;
    for (const toy::Program& program : programs) outcomes.push_back(run(task, program));
    return without_time(programs, std::move(outcomes));
  }
};
struct InstantStreaming : Instant {
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs, const OutcomeSink& sink = {}) {
    auto outcomes = without_time(programs, Backwards{}.measure(task, programs));
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      if (sink) sink(i, outcomes[i]);
    return outcomes;
  }
};

/// Measures as the toy does and spoils every outcome.
struct Spoiling {
  void (*spoil)(Outcome&);
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs) {
    auto outcomes = Backwards{}.measure(task, programs);
    for (Outcome& outcome : outcomes) spoil(outcome);
    return outcomes;
  }
};

struct Forgetful {
  std::vector<Outcome> measure(const Task&, std::span<const toy::Program>) { return {}; }
};

struct Silent {  // reports the first outcome only
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs, const OutcomeSink& sink = {}) {
    auto outcomes = Backwards{}.measure(task, programs);
    if (sink) sink(0, outcomes[0]);
    return outcomes;
  }
};

struct Misplacing {  // reports all outcomes as that of one program
  std::size_t place = 0;
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs, const OutcomeSink& sink = {}) {
    auto outcomes = Backwards{}.measure(task, programs);
    for (const Outcome& outcome : outcomes)
      if (sink) sink(place, outcome);
    return outcomes;
  }
};

const std::vector<Candidate<toy::Tiles>> batch{
    {.config = {1, 1, 1, 1}, .key = 1}, {.config = {0, 1, 1, 1}, .key = 2}, {.config = {3, 3, 3, 3}, .key = 3}};

}  // namespace

TEST_CASE("a candidate that does not lower is an invalid schedule; the others keep their places") {
  Backwards measurer;
  std::vector<std::pair<std::size_t, Outcome>> seen;
  const auto outcomes =
      measurers::measure_batch(Fragile{}, toy::task(), measurer, batch,
                               [&](std::size_t slot, const Outcome& one) { seen.emplace_back(slot, one); });
  REQUIRE(outcomes.size() == 3);
  CHECK(outcomes[0] == toy::outcome({1, 1, 1, 1}));
  CHECK(outcomes[1].failure()->fault == Fault::InvalidSchedule);
  CHECK(outcomes[1].failure()->detail == "no rows");
  CHECK(outcomes[2] == toy::outcome({3, 3, 3, 3}));
  REQUIRE(seen.size() == 3);
  for (const auto& [slot, outcome] : seen) CHECK(outcome == outcomes[slot]);
  CHECK(seen[1].first == 2);  // as soon as known
}

TEST_CASE("a latency that is none is a failure, for the sink as for the caller") {
  const auto check = [](auto measurer) {
    std::vector<std::pair<std::size_t, Outcome>> seen;
    const auto outcomes =
        measurers::measure_batch(toy::Space{}, toy::task(), measurer, batch,
                                 [&](std::size_t slot, const Outcome& one) { seen.emplace_back(slot, one); });
    REQUIRE(outcomes.size() == 3);
    REQUIRE(outcomes[0].failure() != nullptr);
    CHECK(*outcomes[0].failure() == Failure{Fault::Unknown, "a latency of 0 s"});
    CHECK(outcomes[2] == toy::outcome({3, 3, 3, 3}));
    REQUIRE(seen.size() == 3);
    for (const auto& [slot, outcome] : seen) CHECK(outcome == outcomes[slot]);
  };
  static_assert(!StreamingMeasurerFor<InstantAtOnce, toy::Program>);
  static_assert(StreamingMeasurerFor<InstantStreaming, toy::Program>);
  check(InstantAtOnce{});
  check(InstantStreaming{});
}

TEST_CASE("a latency beside a number that is no time is a failure that tells it, and costs are times") {
  const auto measured = [](void (*spoil)(Outcome&)) {
    Spoiling measurer{spoil};
    const Outcome outcome = measurers::measure_batch(toy::Space{}, toy::task(), measurer, batch, {})[0];
    CHECK(is_duration(outcome.compile_time));
    CHECK(is_duration(outcome.run_time));
    REQUIRE(outcome.failure() != nullptr);
    return *outcome.failure();
  };
  const auto unknown = [](const char* detail) { return Failure{Fault::Unknown, detail}; };
  static constexpr double none = std::numeric_limits<double>::infinity();
  CHECK(measured([](Outcome& one) { one.run_time = Seconds(none); }) == unknown("running for inf s"));
  CHECK(measured([](Outcome& one) { one.compile_time = Seconds(-1); }) == unknown("compiling for -1 s"));
  CHECK(measured([](Outcome& one) { std::get<Timing>(one.result).median_absolute_deviation = Seconds(none); }) ==
        unknown("a deviation of inf s"));
  CHECK(measured([](Outcome& one) { std::get<Timing>(one.result).repeats[1] = Seconds(-2); }) ==
        unknown("a repeat of -2 s"));
  // A failure says already what is wrong.
  CHECK(measured([](Outcome& one) {
          one.result = Failure{Fault::RunError, "crashed"};
          one.run_time = Seconds(-1);
        }) == Failure{Fault::RunError, "crashed"});
}

TEST_CASE("a measurer that owes outcomes is named") {
  Forgetful measurer;
  CHECK_THROWS_WITH_AS((void)measurers::measure_batch(toy::Space{}, toy::task(), measurer, batch, {}),
                       doctest::Contains("returned 0 outcomes for 3 programs"), std::logic_error);
}

TEST_CASE("a measurer that keeps outcomes from the sink is named") {
  Silent measurer;
  CHECK_THROWS_WITH_AS((void)measurers::measure_batch(toy::Space{}, toy::task(), measurer, batch, {}),
                       doctest::Contains("reported 1 outcomes for 3 programs"), std::logic_error);
}

TEST_CASE("a measurer that reports an outcome twice, or for no program, is named") {
  const auto measured = [](std::size_t place) {
    Misplacing measurer{place};
    std::size_t seen = 0;
    CHECK_THROWS_WITH_AS(
        (void)measurers::measure_batch(toy::Space{}, toy::task(), measurer, batch,
                                       [&](std::size_t, const Outcome&) { ++seen; }),
        doctest::Contains(place < 3 ? "reported outcome 1 twice for 3 programs" : "reported outcome 3 for 3 programs"),
        std::logic_error);
    return seen;
  };
  CHECK(measured(1) == 1);
  CHECK(measured(3) == 0);
}
