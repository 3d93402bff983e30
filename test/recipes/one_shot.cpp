// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/one_shot.hpp"

#include <doctest/doctest.h>

#include "recipes/pretrained.hpp"

namespace {

using namespace tunewright;
using OneShot = recipes::OneShot<spaces::MultiLevelTiling, measurers::Simulated>;

test::Trace searched(std::uint64_t seed, unsigned threads) {
  Parts<OneShot> parts = test::small_parts<OneShot>(seed, threads);
  parts.model.hidden = 16;
  test::pretrain(parts, test::small_matmul(), 32);
  return test::searched_trace(parts, test::small_matmul());
}

TEST_CASE("One-Shot Tuner: same seed, same history, with one and with two threads") {
  const test::Trace one = searched(5, 1);
  CHECK(one.size() == 16);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

}  // namespace
