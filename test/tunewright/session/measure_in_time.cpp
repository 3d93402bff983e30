// SPDX-License-Identifier: Apache-2.0
#include "tunewright/session/measure_in_time.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace tunewright;

namespace {

using Parts = std::vector<std::pair<std::size_t, std::size_t>>;

/// Each measurement takes a second; returns what was measured at a time, as begin and size.
Parts parts_of(std::size_t count, Seconds time, Seconds elapsed, std::size_t trials, std::size_t recalled = 0) {
  RunStatus status;
  status.elapsed = elapsed;
  status.trials = trials;
  status.recalled = recalled;
  Parts parts;
  const std::vector<Outcome> outcomes =
      measure_in_time({.time = time}, status, count, [&](std::size_t begin, std::size_t size) {
        parts.emplace_back(begin, size);
        status.elapsed += Seconds(static_cast<double>(size));
        status.trials += size;
        return std::vector<Outcome>(size);
      });
  std::size_t measured = 0;
  for (const auto& [begin, size] : parts) {
    CHECK(begin == measured);
    measured += size;
  }
  CHECK(outcomes.size() == measured);
  return parts;
}

}  // namespace

TEST_CASE("without a limit of time a round is measured at once") {
  CHECK(parts_of(64, Budget{}.time, Seconds(0), 0) == Parts{{0, 64}});
}

TEST_CASE("with one it is measured in parts of a quarter of what time is left for, and cut where that is up") {
  // 100 trials in 100 s, 100 s left: 25, then 18 of 75 s, then 14 of 57 s, and the rest.
  CHECK(parts_of(64, Seconds(200), Seconds(100), 100) == Parts{{0, 25}, {25, 18}, {43, 14}, {57, 7}});
  // Eight at least, and none after the time.
  CHECK(parts_of(64, Seconds(110), Seconds(100), 100) == Parts{{0, 8}, {8, 8}});
  CHECK(parts_of(3, Seconds(1), Seconds(5), 5) == Parts{{0, 3}});
  // The time is up at 108 s sharp.
  CHECK(parts_of(64, Seconds(108), Seconds(100), 100) == Parts{{0, 8}});
}

TEST_CASE("trials that were recalled took no time, so they are no part of the pace") {
  // 20 of 100 trials were measured in 100 s: a quarter of the next 100 s is for 5 of them, so 8, not 25.
  CHECK(parts_of(16, Seconds(200), Seconds(100), 100, 80) == Parts{{0, 8}, {8, 8}});
  // 100 of 400: the parts of a session that recalled nothing and has 100.
  CHECK(parts_of(64, Seconds(200), Seconds(100), 400, 300) == Parts{{0, 25}, {25, 18}, {43, 14}, {57, 7}});
}

TEST_CASE("times before a record are taken by the next one alone") {
  TimesBetweenRecords times{.searching = Seconds(2), .learning = Seconds(3)};
  const Record first = times.taken_by({}), second = times.taken_by({});
  CHECK(first.search_time == Seconds(2));
  CHECK(first.learn_time == Seconds(3));
  CHECK(second.search_time == Seconds(0));
  CHECK(second.learn_time == Seconds(0));
}
