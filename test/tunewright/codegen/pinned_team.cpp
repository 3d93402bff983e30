// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/pinned_team.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace tunewright;

struct Visits {
  std::vector<std::atomic<int>> seen;
  const codegen::tunewright_runtime* runtime = nullptr;
  explicit Visits(std::size_t n) : seen(n) {}
};
void count_visits(void* context, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) ++static_cast<Visits*>(context)->seen[static_cast<std::size_t>(i)];
}
bool all_once(const Visits& visits) {
  for (const auto& v : visits.seen) {
    if (v != 1) return false;
  }
  return true;
}

TEST_CASE("every iteration runs once, whatever the numbers of iterations and threads") {
  for (const unsigned threads : {1U, 2U, 3U, 7U}) {
    const int first_only[] = {0};
    codegen::PinnedTeam team(threads, threads == 3 ? std::span<const int>(first_only) : std::span<const int>());
    CHECK(team.threads() == threads);
    for (const std::int64_t count : {0, 1, 2, 5, 64, 1000}) {
      Visits visits(static_cast<std::size_t>(count));
      team.runtime()->parallel_for(team.runtime(), count, &count_visits, &visits);
      CHECK(all_once(visits));
    }
  }
}

TEST_CASE("a dividing runtime gives each thread one contiguous part, and the caller the first") {
  codegen::PinnedTeam team(2);
  const codegen::tunewright_runtime* dividing = team.dividing_runtime();
  struct Parts {
    std::thread::id worker[10];
  } parts;
  dividing->parallel_for(
      dividing, 10,
      [](void* context, std::int64_t begin, std::int64_t end) {
        CHECK(end - begin == 5);
        for (std::int64_t i = begin; i < end; ++i) static_cast<Parts*>(context)->worker[i] = std::this_thread::get_id();
      },
      &parts);
  for (int i = 0; i < 10; ++i) CHECK((parts.worker[i] == std::this_thread::get_id()) == (i < 5));
}

/// A loop in which one thread is slow: it stays in the first iteration that it gets until the other has run the rest.
struct OneIsSlow {
  std::int64_t count = 0;
  std::thread::id caller;
  bool caller_is_slow;
  std::atomic<std::int64_t> ran{0};
  std::atomic<bool> slow_has_begun{false};

  static void body(void* context, std::int64_t begin, std::int64_t end) {
    auto& loop = *static_cast<OneIsSlow*>(context);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto wait_for = [&](const auto& happened) {
      while (!happened() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    };
    if ((std::this_thread::get_id() == loop.caller) == loop.caller_is_slow) {
      loop.slow_has_begun = true;
      wait_for([&] { return loop.ran == loop.count - (end - begin); });
      CHECK(loop.ran == loop.count - (end - begin));
    } else {
      wait_for([&] { return loop.slow_has_begun.load(); });  // nobody takes what a thread has not begun
    }
    loop.ran += end - begin;
  }
};

TEST_CASE("who is ready takes pieces of a slow thread's share") {
  for (const std::int64_t count : {3, 4, 16, 1000}) {
    for (const bool caller_is_slow : {false, true}) {
      codegen::PinnedTeam team(2);
      OneIsSlow loop{count, std::this_thread::get_id(), caller_is_slow};
      team.run(count, &OneIsSlow::body, &loop);
      CHECK(loop.ran == count);
    }
  }
}

TEST_CASE("shares begin anew in every loop") {
  codegen::PinnedTeam team(4);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t count = 1 + 37 * i % 101;
    Visits visits(static_cast<std::size_t>(count));
    const codegen::tunewright_runtime* runtime = i % 5 == 0 ? team.dividing_runtime() : team.runtime();
    runtime->parallel_for(runtime, count, &count_visits, &visits);
    CHECK(all_once(visits));
  }
}

TEST_CASE("loops inside loops and from several threads at once are complete") {
  codegen::PinnedTeam team(3);
  Visits visits(6 * 50);
  struct Outer {
    Visits* visits;
    codegen::PinnedTeam* team;
  } outer{&visits, &team};
  const auto nested = [](void* context, std::int64_t begin, std::int64_t end) {
    auto* o = static_cast<Outer*>(context);
    for (std::int64_t i = begin; i < end; ++i) {
      std::pair<Visits*, std::int64_t> row{o->visits, i * 50};
      o->team->run(
          50,
          [](void* c, std::int64_t b, std::int64_t e) {
            auto* r = static_cast<std::pair<Visits*, std::int64_t>*>(c);
            for (std::int64_t j = b; j < e; ++j) ++r->first->seen[static_cast<std::size_t>(r->second + j)];
          },
          &row);
    }
  };
  team.run(6, nested, &outer);
  CHECK(all_once(visits));

  Visits left(1000), right(1000);
  std::thread other([&] { team.run(1000, &count_visits, &left); });
  team.run(1000, &count_visits, &right);
  other.join();
  CHECK(all_once(left));
  CHECK(all_once(right));
}

TEST_CASE("many loops in a row, and after the helpers fell asleep") {
  codegen::PinnedTeam team(2, {}, 20);
  std::atomic<std::int64_t> sum{0};
  const auto add = [](void* context, std::int64_t begin, std::int64_t end) {
    *static_cast<std::atomic<std::int64_t>*>(context) += end - begin;
  };
  for (int i = 0; i < 2000; ++i) {
    team.run(10, add, &sum);
    if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK(sum == 20000);
  CHECK_THROWS_AS(codegen::PinnedTeam(0), std::invalid_argument);
}

}  // namespace
