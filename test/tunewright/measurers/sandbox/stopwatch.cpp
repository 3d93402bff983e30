// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/stopwatch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
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
    const unsigned calls = calls_filling(protocol.min_repeat_seconds, estimate);
    const Series series = one_series(protocol, 0, calls, estimate, [] { wait_us(50); });
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
  const Series series = time_kernel(protocol, 0, 1e-6, [&] { wait_us(10 * (1 + ++calls % 3)); });
  CHECK(calls == 8);
  CHECK(series.repeats.size() == 4);
  CHECK(series.stopped == StopReason::Budget);
}

TEST_CASE("a second series that was cut short does not replace the first, a whole one that is less noisy does") {
  struct Scripted {
    double fastest, step;       ///< of calls of the first series: in turns these seconds, one step more, and two
    std::vector<double> again;  ///< of calls of the repeats of the second series; the last one lasts
    std::size_t& asked;
    [[nodiscard]] double seconds(unsigned calls) const {
      const std::size_t at = asked++;
      if (at < 12) return calls * (fastest + static_cast<double>(at % 3) * step);
      return calls * again.at(std::min(at - 12, again.size() - 1));
    }
  };
  Protocol protocol;
  protocol.warmup_calls = 0;
  const auto timed = [&](double best, std::vector<double> again, double fastest = 2e-3, double step = 1e-3) {
    std::size_t asked = 0;
    return time_kernel(protocol, best, fastest, Scripted{fastest, step, std::move(again), asked});
  };
  // Stopped by the budget at once, as where the program was suspended meanwhile.
  const Series out_of_time = timed(0, {0.2});
  CHECK(out_of_time.stopped == StopReason::Budget);
  CHECK(out_of_time.repeats.size() == 12);
  CHECK(stats::median(out_of_time.repeats) == doctest::Approx(3e-3));
  // Given up as far slower, by a repeat of more than a third of the budget.
  const Series far_slower = timed(2e-3, {0.06});
  CHECK(far_slower.stopped == StopReason::Budget);
  CHECK(far_slower.repeats.size() == 12);
  // A whole one is kept if it is less noisy, and only then.
  const Series calm = timed(0, {2e-3});
  CHECK(calm.stopped == StopReason::Precise);
  CHECK(calm.repeats == std::vector<double>(5, 2e-3));
  const Series noisier = timed(0, {2e-3, 5e-3, 9e-3, 2e-3, 5e-3, 9e-3, 2e-3, 5e-3, 9e-3, 2e-3, 5e-3, 9e-3});
  CHECK(stats::median(noisier.repeats) == doctest::Approx(3e-3));
  // A long call of the first series that was as fast as the best speaks for the kernel in the second, too.
  const Series best = timed(6e-3, {9e-3, 6.1e-3}, 6e-3, 1.5e-3);
  CHECK(best.stopped == StopReason::Precise);
  CHECK(best.repeats == std::vector<double>{9e-3, 6.1e-3, 6.1e-3, 6.1e-3, 6.1e-3});
}

TEST_CASE("an eviction precedes each call and is not timed") {
  Protocol protocol;
  protocol.min_repeat_seconds = 20e-3;
  protocol.repeats_min = protocol.repeats_max = 4;
  protocol.warmup_calls = 0;
  protocol.budget_seconds = 10;
  protocol.noisy_spread = 1e9;
  std::string order;
  const auto timed = [&](int eviction_us) {
    order.clear();
    return time_kernel(
        protocol, 0, 1e-5, [&] { order += 'c'; },
        [&, eviction_us] {
          order += 'e';
          wait_us(eviction_us);
        });
  };
  // A repeat is one call if the eviction lasts longer than a repeat should, after one that tells so.
  const Series few = timed(21'000);
  CHECK(order == "ececececec");
  CHECK(few.calls == 1);
  CHECK(stats::median(few.repeats) < 1e-3);
  // Otherwise it is as many calls as fit with their evictions.
  const Series many = timed(1000);
  CHECK(many.calls >= 2);
  CHECK(many.calls <= 23);  // half as many again and one, where 15 took less than a repeat should
  CHECK(stats::median(many.repeats) < 1e-3);
  CHECK(order.size() >= 2 * (1 + 4 * std::size_t{many.calls}));
  for (std::size_t at = 0; at < order.size(); at += 2) CHECK(order.substr(at, 2) == "ec");
}

TEST_CASE("each line of a piece of memory is evicted, whatever its ends") {
  alignas(64) static const std::array<char, 320> memory{};
  for (const auto& [from, bytes, lines] : {std::tuple(0, 64, 1), {0, 65, 2}, {1, 64, 2}, {63, 2, 2}, {63, 130, 4}}) {
    std::set<std::ptrdiff_t> seen;
    for_each_line(std::span(memory).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(bytes)), 64,
                  [&](const char* address) { seen.insert((address - memory.data()) / 64); });
    CHECK(seen.size() == static_cast<std::size_t>(lines));
  }
  for_each_line({}, 64, [](const char*) { FAIL("an empty piece has no line"); });
  std::vector<char> contents(1000, 'x');
  const std::span<const char> whole(contents), parts[] = {whole.first(1), whole, whole.first(0)};
  evict(parts);
  CHECK(contents == std::vector<char>(1000, 'x'));
}

TEST_CASE("a kernel that is hopelessly slow is called no second time") {
  int calls = 0;
  const auto call = [&] { ++calls; };
  const Protocol protocol;
  const Series series = time_kernel(protocol, 1e-3, 1.0, call);
  CHECK(calls == 0);
  CHECK(series.stopped == StopReason::FarSlower);
  CHECK(series.repeats == std::vector<double>{1.0});
  static_cast<void>(time_kernel(protocol, 0, 1.0, call));
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
    return time_kernel(protocol, 1e-3, 1e-3, Disturbed{disturbed, longer, asked});
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
  const auto turn = [&](unsigned calls, const Eviction& evict = {}) {
    timed.clear();
    return one_turn(protocol, calls, Milliseconds{timed}, evict);
  };
  const Series free = turn(0);
  CHECK(timed == std::vector<unsigned>{1, 1, 1, 1, 2});  // four calls for 3.5 ms, then two for 1.75 ms
  CHECK(free.calls == 2);
  REQUIRE(free.repeats.size() == 1);
  CHECK(free.repeats[0] == doctest::Approx(1e-3));
  CHECK(turn(7).calls == 7);
  CHECK(timed == std::vector<unsigned>{1, 1, 1, 1, 7});
  // An eviction precedes each call, untimed ones too.
  unsigned evictions = 0;
  const Series cold = turn(3, [&] { ++evictions; });
  CHECK(cold.calls == 3);
  CHECK(cold.repeats[0] == doctest::Approx(1e-3));
  CHECK(evictions == timed.size());
  protocol.min_repeat_seconds = 0;
  CHECK(turn(0).calls == 1);
  CHECK(timed == std::vector<unsigned>{1, 1});
}

TEST_CASE("long calls of what is not the best are few") {
  const Protocol protocol{
      .repeats_min = 5, .budget_seconds = 0.15, .partial_call_seconds = 5e-3, .nearly_best_factor = 1.1};
  std::vector<double> asked;
  struct Calls {
    const std::vector<double>& each;
    std::vector<double>& asked;
    [[nodiscard]] double seconds(unsigned calls) const {
      asked.push_back(each.at(asked.size()));
      return calls * asked.back();
    }
  };
  const auto timed = [&](double checked, const std::vector<double>& each, Protocol with, double best = 0.05) {
    asked.clear();
    return time_kernel(with, best, checked, Calls{each, asked});
  };
  // The checked call is enough where it is not within a tenth of the best.
  const Series slower = timed(0.056, {}, protocol);
  CHECK(slower.stopped == StopReason::Slower);
  CHECK(slower.repeats == std::vector<double>{0.056});
  CHECK(slower.calls == 1);
  // Another one is, where both are not within a fiftieth of it.
  const Series nearly = timed(0.054, {0.052}, protocol);
  CHECK(nearly.stopped == StopReason::Slower);
  CHECK(nearly.repeats == std::vector<double>{0.052});
  // What came within that, in any of its calls, is timed as the best is; the checked call is no repeat.
  const Series best = timed(0.054, {0.0505, 0.053, 0.053}, protocol);
  CHECK(best.stopped == StopReason::Budget);
  CHECK(best.repeats == std::vector<double>{0.0505, 0.053, 0.053});
  CHECK(timed(0.0505, {0.053, 0.053, 0.053}, protocol).repeats.size() == 3);
  // Without a best so far, and where only whole calls are wanted, all are; these warm up.
  CHECK(timed(0.056, {0.056, 0.056, 0.056}, protocol, 0).repeats.size() == 3);
  Protocol whole = protocol;
  whole.partial_call_seconds = std::numeric_limits<double>::infinity();
  CHECK(timed(0.056, {0.056, 0.056, 0.056, 0.056}, whole).repeats.size() == 3);
  CHECK(asked.size() == 4);
  // Short calls are timed as ever.
  const Series brief = timed(4e-3, std::vector<double>(6, 4e-3), protocol, 3e-3);
  CHECK(brief.stopped == StopReason::Precise);
  CHECK(brief.repeats.size() == 5);
}

TEST_CASE("parts of calls are enough for what is not nearly the best") {
  const Protocol protocol{.far_slower_factor = 4, .partial_call_seconds = 5e-3, .nearly_best_factor = 1.25};
  unsigned calls = 0, prepared = 0;
  bool complete = false;
  const auto parts = [&](double spent, std::vector<double> whole) {
    calls = prepared = 0;
    return extrapolate(
        protocol, 1.0,
        [&] {
          const double seconds = whole.at(calls++);
          return PartialTime{spent, seconds, complete};
        },
        [&] { ++prepared; });
  };
  // The first is on cold caches.
  const auto slower = parts(5e-3, {3, 2});
  REQUIRE(slower);
  CHECK(slower->stopped == StopReason::Extrapolated);
  CHECK(slower->repeats == std::vector<double>{2});
  CHECK(prepared == 2);
  CHECK(parts(5e-3, {9, 5})->stopped == StopReason::FarSlower);
  CHECK(parts(5e-3, {9, 3})->stopped == StopReason::Extrapolated);
  // Where it took as long as two should, it is enough for what is slower without doubt.
  const auto hopeless = parts(10e-3, {9});
  REQUIRE(hopeless);
  CHECK(hopeless->stopped == StopReason::FarSlower);
  CHECK(hopeless->repeats == std::vector<double>{9});
  CHECK(prepared == 1);
  CHECK(parts(10e-3, {2})->stopped == StopReason::Extrapolated);
  CHECK(parts(10e-3, {1.5, 1.4})->repeats == std::vector<double>{1.4});  // 1.5 may be 1.25
  CHECK(calls == 2);

  CHECK_FALSE(parts(5e-3, {1.2}));
  CHECK(calls == 1);
  CHECK_FALSE(parts(5e-3, {2, 1.25}));
  CHECK(calls == 2);
  // A whole call tells more, and is checked.
  complete = true;
  CHECK_FALSE(parts(1, {9}));
}
