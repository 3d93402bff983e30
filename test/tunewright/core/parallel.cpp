// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/parallel.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "support/address_space.hpp"
#include "tunewright/core/thread_team.hpp"

using namespace tunewright;

TEST_CASE("the parts cover every index once, whatever the number of threads") {
  for (const unsigned threads : {0U, 1U, 2U, 3U, 16U}) {
    for (const std::size_t n : {0U, 1U, 2U, 7U, 100U}) {
      std::vector<int> visits(n);
      parallel_parts(threads, n, [&](std::size_t begin, std::size_t end) {
        CHECK(begin < end);
        for (std::size_t i = begin; i < end; ++i) ++visits[i];
      });
      CHECK(visits == std::vector<int>(n, 1));
    }
  }
}

TEST_CASE("no number of threads means all that the hardware has") {
  std::atomic<unsigned> parts = 0;
  parallel_parts(0, 1000, [&](std::size_t, std::size_t) { ++parts; });
  CHECK(parts == hardware_threads());
}

TEST_CASE("an exception of a part reaches the caller after all parts have ended") {
  std::atomic<int> ended = 0;
  const auto run = [&] {
    parallel_parts(4, 4, [&](std::size_t begin, std::size_t) {
      ++ended;
      if (begin == 2) throw std::runtime_error("part 2");
    });
  };
  CHECK_THROWS_WITH_AS(run(), "part 2", std::runtime_error);
  CHECK(ended == 4);
}

TEST_CASE("parts for which the system has no thread run on the caller's") {
  if (!support::limits_address_space) {
    MESSAGE("skipped: a sanitizer needs the address space");
    return;
  }
  constexpr int threads = 1000;
  std::vector<int> visits(threads, 0);
  const auto run = [&] {
    parallel_parts(threads, threads, [&](std::size_t begin, std::size_t) { ++visits[begin]; });
    return visits == std::vector<int>(threads, 1) ? 0 : 1;
  };
  CHECK(support::status_with_room_for(rlim_t{64} << 20, run) == 0);  // for the stacks of few threads
}
