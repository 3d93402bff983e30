// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/partial_call.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/codegen/pinned_team.hpp"
#include "tunewright/measurers/sandbox/worker_parts.hpp"

using namespace tunewright;
using measurers::sandbox::PartialCall;
using measurers::sandbox::PartialTime;

namespace {

/// Iterations that were run, each of which takes 200 us.
struct Work {
  std::vector<char> ran;
  static void body(void* context, std::int64_t begin, std::int64_t end) {
    auto& work = *static_cast<Work*>(context);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto start = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(200)) {
      }
      ++work.ran[static_cast<std::size_t>(i)];
    }
  }
  void run(const codegen::tunewright_runtime* runtime) {
    runtime->parallel_for(runtime, static_cast<std::int64_t>(ran.size()), &Work::body, this);
  }
  [[nodiscard]] std::int64_t count() const {
    std::int64_t sum = 0;
    for (const char times : ran) sum += times;
    return sum;
  }
};

}  // namespace

TEST_CASE("a call within the budget is whole") {
  const measurers::HostRuntime serial = measurers::serial_runtime();
  PartialCall call(*serial.runtime, 1e3);
  Work work{std::vector<char>(10)};
  const PartialTime time = call.time([&](const auto* runtime) { work.run(runtime); });
  CHECK(time.complete);
  CHECK(time.whole_seconds == time.spent_seconds);
  CHECK(work.ran == std::vector<char>(10, 1));
}

TEST_CASE("every thread runs the first iterations of its part, once, and the whole is extrapolated") {
  for (const unsigned threads : {1U, 2U}) {
    codegen::PinnedTeam team(threads);
    PartialCall call(*team.dividing_runtime(), 1e-9);
    Work work{std::vector<char>(100000)};  // one piece takes less than all, however busy the machine is
    const PartialTime time = call.time([&](const auto* runtime) { work.run(runtime); });
    CHECK_FALSE(time.complete);
    CHECK(work.count() == threads);  // the first piece of each
    CHECK(work.ran.front() == 1);
    if (threads == 2) CHECK(work.ran[50000] == 1);
    // At least 200 us for each of the 100,000 or 50,000 iterations of a thread.
    CHECK(time.whole_seconds > 20.0 / threads);
    CHECK(time.spent_seconds < time.whole_seconds);
  }
}

TEST_CASE("a promising call goes on to its end") {
  for (const unsigned threads : {1U, 2U}) {
    codegen::PinnedTeam team(threads);
    Work work{std::vector<char>(100)};
    PartialCall promising(*team.dividing_runtime(), 1e-9, 1e3);
    const PartialTime whole = promising.time([&](const auto* runtime) { work.run(runtime); });
    CHECK(whole.complete);
    CHECK(whole.whole_seconds == whole.spent_seconds);
    CHECK(work.ran == std::vector<char>(100, 1));
    // What loops before it took counts: three of 20 ms / threads are more than a promise of one.
    Work first{std::vector<char>(100)}, second{std::vector<char>(100)}, third{std::vector<char>(100)};
    PartialCall too_long(*team.dividing_runtime(), 1e-9, 0.03 / threads);
    const PartialTime part = too_long.time([&](const auto* runtime) {
      first.run(runtime);
      second.run(runtime);
      third.run(runtime);
    });
    CHECK_FALSE(part.complete);
    CHECK(third.count() < 100);
    CHECK(part.whole_seconds > 0.05 / threads);
  }
}

TEST_CASE("the first iteration stands for others only where it was alone") {
  struct ColdStart {
    std::int64_t ran = 0;
    static void body(void* context, std::int64_t begin, std::int64_t end) {
      auto& work = *static_cast<ColdStart*>(context);
      for (std::int64_t i = begin; i < end; ++i) {
        const auto start = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(i == 0 ? 20 : 1)) {
        }
        ++work.ran;
      }
    }
  };
  const measurers::HostRuntime serial = measurers::serial_runtime();
  const auto extrapolated = [&](double budget) {
    ColdStart work;
    PartialCall call(*serial.runtime, budget);
    const PartialTime part =
        call.time([&](const auto* runtime) { runtime->parallel_for(runtime, 1000, &ColdStart::body, &work); });
    CHECK_FALSE(part.complete);
    return std::pair(work.ran, part.whole_seconds);
  };
  const auto [one, from_first] = extrapolated(1e-9);
  CHECK(one == 1);
  CHECK(from_first >= 20);
  const auto [several, from_others] = extrapolated(0.4);  // half of it: the first, and many more
  CHECK(several > 1);
  CHECK(from_others >= 0.02 + 999 * 0.001);
  // Other programs may make each iteration some times as long, not all twenty times.
  CHECK(from_others < from_first / 2);
}

TEST_CASE("loops of a call share its budget, and a second call begins anew") {
  const measurers::HostRuntime serial = measurers::serial_runtime();
  PartialCall call(*serial.runtime, 0.02);
  for (int round = 0; round < 2; ++round) {
    Work first{std::vector<char>(1000)}, second{std::vector<char>(1000)};
    const PartialTime time = call.time([&](const auto* runtime) {
      first.run(runtime);
      second.run(runtime);
    });
    CHECK_FALSE(time.complete);
    CHECK(first.count() >= 1);
    CHECK(first.count() < 1000);
    CHECK(second.count() >= 1);
    CHECK(second.count() < 1000);
    CHECK(time.whole_seconds >= 2 * 1000 * 200e-6);
  }
}

TEST_CASE("a loop without iterations and a kernel without loops are whole") {
  const measurers::HostRuntime serial = measurers::serial_runtime();
  PartialCall call(*serial.runtime, 1e-9);
  Work none;
  CHECK(call.time([&](const auto* runtime) { none.run(runtime); }).complete);
  CHECK(call.time([](const auto*) {}).complete);
}
