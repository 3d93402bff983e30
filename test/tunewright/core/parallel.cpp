// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/parallel.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

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
