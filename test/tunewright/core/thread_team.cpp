// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/thread_team.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

using namespace tunewright;

TEST_CASE("every index is visited once, by a worker of the team") {
  for (const unsigned threads : {1U, 2U, 4U}) {
    ThreadTeam team(threads);
    CHECK(team.threads() == threads);
    for (const std::size_t n : {0U, 1U, 2U, 1000U}) {
      std::vector<std::atomic<int>> visits(n);
      std::atomic<bool> strangers = false;
      team.for_each(n, [&](std::size_t index, unsigned worker) {
        ++visits[index];
        if (worker >= threads) strangers = true;
      });
      for (const auto& count : visits) CHECK(count == 1);
      CHECK_FALSE(strangers);
    }
  }
}

TEST_CASE("many short loops in a row see each other's results") {
  ThreadTeam team(3);
  std::vector<int> values(7, 0);
  for (int loop = 0; loop < 2000; ++loop) {
    team.for_each(values.size(), [&](std::size_t i, unsigned) { values[i] += values[i] == loop ? 1 : 1000000; });
  }
  CHECK(values == std::vector<int>(7, 2000));
}

TEST_CASE("the failure of the lowest index is the one reported, after all others ran") {
  for (const unsigned threads : {1U, 2U, 3U}) {
    ThreadTeam team(threads);
    std::atomic<int> ran = 0;
    const auto loop = [&] {
      team.for_each(100, [&](std::size_t index, unsigned) {
        ++ran;
        if (index % 30 == 29) throw std::runtime_error("at " + std::to_string(index));
      });
    };
    CHECK_THROWS_WITH_AS(loop(), "at 29", std::runtime_error);
    CHECK(ran == 100);
    std::atomic<int> after = 0;  // the team goes on
    team.for_each(5, [&](std::size_t, unsigned) { ++after; });
    CHECK(after == 5);
  }
}

TEST_CASE("a loop of its own") {
  std::vector<int> squares(50);
  for (const unsigned threads : {0U, 1U, 2U, 100U}) {
    parallel_for(squares.size(), threads, [&](std::size_t i) { squares[i] = static_cast<int>(i * i); });
    CHECK(squares[49] == 2401);
  }
  parallel_for(0, 2, [](std::size_t) { throw std::logic_error("nothing to do"); });
}
