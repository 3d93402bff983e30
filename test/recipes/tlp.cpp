// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/tlp.hpp"

#include <doctest/doctest.h>

#include "recipes/pretrained.hpp"

namespace {

using namespace tunewright;
using Tlp = recipes::Tlp<spaces::MultiLevelTiling, measurers::Simulated>;

test::Trace searched(std::uint64_t seed, unsigned threads) {
  Parts<Tlp> parts = test::small_parts<Tlp>(seed, threads);
  parts.model.width = 16;
  parts.model.attention_heads = 2;
  test::pretrain(parts, test::small_matmul(), 32);
  return test::searched_trace(parts, test::small_matmul());
}

TEST_CASE("TLP: same seed, same history, with one and with two threads") {
  const test::Trace one = searched(5, 1);
  CHECK(one.size() == 16);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

}  // namespace
