// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/stopwatch.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

using namespace tunewright;
using namespace tunewright::measurers;
using namespace tunewright::measurers::sandbox;

namespace {

void wait_us(int microseconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(microseconds)) {
  }
}

}  // namespace

TEST_CASE("calls that fill a repeat") {
  CHECK(calls_filling(2e-3, 1e-3) == 2);
  CHECK(calls_filling(2e-3, 0.9e-3) == 3);
  CHECK(calls_filling(2e-3, 1) == 1);
  CHECK(calls_filling(0, 1e-3) == 1);
  CHECK(calls_filling(2e-3, 1e-15) == 1'000'000);
  CHECK(calls_filling(2e-3, 0) == 1000);
}

TEST_CASE("a repeat lasts as long as asked for, even when the estimate was far off") {
  Protocol protocol;
  protocol.min_repeat_seconds = 1e-3;
  protocol.repeats_min = protocol.repeats_max = 3;
  protocol.budget_seconds = 10;
  for (const double estimate : {20e-6, 50e-6, 1.0}) {
    const Series series = one_series(protocol, 0, estimate, [] { wait_us(50); }, [] {});
    CHECK(series.repeats.size() == 3);
    CHECK(series.calls * series.repeats[0] >= 0.79e-3);
    for (const double seconds : series.repeats) CHECK(seconds >= 49e-6);
  }
}

TEST_CASE("a noisy series is taken again, once") {
  Protocol protocol;
  protocol.warmup_calls = 0;
  protocol.min_repeat_seconds = 0;
  protocol.repeats_min = 2;
  protocol.repeats_max = 4;
  protocol.wanted_spread = protocol.noisy_spread = 0;  // never satisfied
  int calls = 0;
  const Series series = time_kernel(protocol, 0, 1e-6, [&] { wait_us(10 * (1 + ++calls % 3)); }, [] {});
  CHECK(calls == 8);
  CHECK(series.repeats.size() == 4);
  CHECK(series.stopped == StopReason::Budget);
}

TEST_CASE("flushing happens before each repeat and is not timed") {
  Protocol protocol;
  protocol.flush_cache = true;
  protocol.repeats_min = protocol.repeats_max = 4;
  protocol.warmup_calls = 0;
  protocol.noisy_spread = 1e9;
  int flushes = 0;
  int calls = 0;
  const Series series = time_kernel(
      protocol, 0, 1e-5, [&] { ++calls; },
      [&] {
        ++flushes;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      });
  CHECK(flushes == 4);
  CHECK(calls == 4);
  CHECK(series.spread() >= 0);
  CHECK(stats::median(series.repeats) < 1e-3);
  evict(std::vector<char>(1000));
}

TEST_CASE("a kernel that is hopelessly slow is called no second time") {
  int calls = 0;
  const auto call = [&] { ++calls; };
  const Protocol protocol;
  const Series series = time_kernel(protocol, 1e-3, 1.0, call, [] {});
  CHECK(calls == 0);
  CHECK(series.stopped == StopReason::FarSlower);
  CHECK(series.repeats == std::vector<double>{1.0});
  static_cast<void>(time_kernel(protocol, 0, 1.0, call, [] {}));
  CHECK(calls > 0);
}

TEST_CASE("repeats that other programs disturb do not make a kernel far slower, as many as are asked for do") {
  struct Disturbed {
    int disturbed = 0;     ///< repeats
    double longer = 8e-3;  ///< seconds a call
    int& asked;
    [[nodiscard]] double seconds(unsigned calls) const {
      return calls * (asked++ > 0 && asked <= disturbed + 1 ? longer : 1e-3);  // the first is the warm-up
    }
  };
  const auto timed = [](int disturbed, double longer, const Protocol& protocol = {}) {
    int asked = 0;
    return time_kernel(protocol, 1e-3, 1e-3, Disturbed{disturbed, longer, asked}, [] {});
  };
  const Series twice = timed(2, 8e-3);
  CHECK(twice.stopped == StopReason::Precise);
  CHECK(stats::median(twice.repeats) == doctest::Approx(1e-3));  // of 8, 8, 1, 1 and 1 ms
  CHECK(timed(3, 8e-3).stopped == StopReason::FarSlower);
  CHECK(timed(100, 8e-3).repeats.size() == 3);
  CHECK(timed(100, 3e-3).stopped == StopReason::Precise);  // slower, not far slower
  CHECK(timed(100, 60e-3).repeats.size() == 1);            // two calls of 60 ms are more than a third of 150 ms
  CHECK(timed(1, 60e-3).stopped == StopReason::FarSlower);
  // Where fewer than three repeats are asked for, so many decide.
  CHECK(timed(2, 8e-3, {.repeats_min = 2}).stopped == StopReason::FarSlower);
  CHECK(timed(1, 8e-3, {.repeats_min = 2}).stopped == StopReason::Precise);
  CHECK(timed(1, 8e-3, {.repeats_min = 1}).stopped == StopReason::FarSlower);
}

TEST_CASE("raw repeats and their summary") {
  const std::vector<double> repeats{3, 1, 2};
  const Timing timing = timing_of(repeats, 7, StopReason::Precise);
  CHECK(timing.repeats == std::vector<Seconds>{Seconds(3), Seconds(1), Seconds(2)});
  CHECK(timing.median == Seconds(2));
  CHECK(timing.median_absolute_deviation == Seconds(1));
  CHECK(timing.calls_per_repeat == 7);
}

TEST_CASE("a turn warms up for two repeats, with any clock") {
  struct Milliseconds {
    std::vector<unsigned>& timed;
    [[nodiscard]] double seconds(unsigned calls) const {
      timed.push_back(calls);
      return 1e-3 * calls;
    }
  };
  Protocol protocol;
  protocol.min_repeat_seconds = 1.75e-3;
  std::vector<unsigned> timed;
  std::size_t flushed_before = 0;
  const auto turn = [&](unsigned calls) {
    timed.clear();
    return one_turn(protocol, calls, Milliseconds{timed}, [&] { flushed_before = timed.size(); });
  };
  const Series free = turn(0);
  CHECK(timed == std::vector<unsigned>{1, 1, 1, 1, 2});  // four calls for 3.5 ms, then two for 1.75 ms
  CHECK(flushed_before == 4);
  CHECK(free.calls == 2);
  REQUIRE(free.repeats.size() == 1);
  CHECK(free.repeats[0] == doctest::Approx(1e-3));
  CHECK(turn(7).calls == 7);
  CHECK(timed == std::vector<unsigned>{1, 1, 1, 1, 7});
  protocol.flush_cache = true;
  CHECK(turn(0).calls == 1);
  protocol.min_repeat_seconds = 0;
  CHECK(turn(0).calls == 1);
  CHECK(timed == std::vector<unsigned>{1, 1});
}

TEST_CASE("parts of calls are enough for what is not nearly the best") {
  const Protocol protocol{.far_slower_factor = 4, .nearly_best_factor = 1.25};
  const auto part = [](double whole) { return PartialTime{whole / 10, whole, false}; };
  unsigned calls = 0, flushes = 0;
  const auto after = [&](double first, std::vector<double> more) {
    calls = flushes = 0;
    return extrapolate(protocol, 1.0, part(first), [&] { return part(more.at(calls++)); }, [&] { ++flushes; });
  };
  // On cold caches nine times the best is four times on warm ones, or more.
  const auto hopeless = after(9, {});
  REQUIRE(hopeless);
  CHECK(hopeless->stopped == StopReason::FarSlower);
  CHECK(hopeless->repeats == std::vector<double>{9});
  CHECK(calls == 0);

  const auto slower = after(3, {2, 3, 5});
  REQUIRE(slower);
  CHECK(slower->stopped == StopReason::Extrapolated);
  CHECK(slower->repeats == std::vector<double>{2, 3, 5});
  CHECK(flushes == 3);
  CHECK(after(7, {5, 5, 6})->stopped == StopReason::FarSlower);

  CHECK_FALSE(after(1.2, {}));
  CHECK(calls == 0);
  CHECK_FALSE(after(2, {1.5, 1.25, 1.5}));
  CHECK(calls == 2);
}
