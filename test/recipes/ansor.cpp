// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/ansor.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include "recipes/simulated_tasks.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/data/journal.hpp"

namespace {

using namespace tunewright;
using test::Trace;
using Ansor = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::Simulated>;

TEST_CASE("same seed, same history, bit for bit, with one and with two threads") {
  for (const Task& task : {test::small_matmul(), test::small_conv2d()}) {
    const Trace one = test::trace(test::searched<Ansor>(task, 5, 1));
    CHECK(one.size() == 48);
    CHECK(one == test::trace(test::searched<Ansor>(task, 5, 2)));
    CHECK(one != test::trace(test::searched<Ansor>(task, 6, 1)));
  }
}

TEST_CASE("a run that was stopped goes on as if it had not been") {
  const Task task = test::small_matmul();
  const Trace whole = test::trace(test::searched<Ansor>(task, 3, 1));
  const support::TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  const auto run = [&](std::size_t trials) {
    data::Journal journal({.path = path});
    return test::searched<Ansor>(task, 3, 1, trials, journal);
  };
  CHECK(run(32).history.size() == 32);
  const auto resumed = run(48);
  CHECK(resumed.status.recalled == 32);
  CHECK(test::trace(resumed) == whole);
}

TEST_CASE("extents without divisors") {
  const Task task = test::matmul_task({.m = 53, .n = 61, .k = 47});
  const auto run = test::searched<Ansor>(task, 1, 2);
  CHECK(run.history.size() == 48);
  CHECK(run.history.valid() == 48);
  // 2 m n k operations at 32 a cycle of 0.4 ns on each of two threads are the limit; within a factor of 20 is no
  // wonder.
  const double limit_s = task.flops / (2 * 32 * 2.5e9);
  CHECK(run.best()->cost_s() > limit_s);
  CHECK(run.best()->cost_s() < 20 * limit_s);
}

}  // namespace
