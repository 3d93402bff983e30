// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/tlp.hpp"

#include <doctest/doctest.h>

#include "recipes/pretrained.hpp"

namespace {

using namespace tunewright;
using Tlp = recipes::Tlp<spaces::MultiLevelTiling, measurers::Simulated>;

template <class Recipe>
test::Trace searched(std::uint64_t seed, unsigned threads) {
  Parts<Recipe> parts = test::small_parts<Recipe>(seed, threads);
  parts.model.width = 16;
  parts.model.attention_heads = 2;
  test::pretrain(parts, test::small_matmul(), 32);
  return test::searched_trace(parts, test::small_matmul());
}

TEST_CASE("TLP: same seed, same history, with one and with two threads") {
  const test::Trace one = searched<Tlp>(5, 1);
  CHECK(one.size() == 16);
  CHECK(one == searched<Tlp>(5, 2));
  CHECK(one != searched<Tlp>(6, 1));
}

TEST_CASE("the quick form goes on from what it was taught, too") {
  using Quick = recipes::TlpQuick<spaces::MultiLevelTiling, measurers::Simulated>;
  const test::Trace one = searched<Quick>(5, 1);
  CHECK(one.size() == 16);
  CHECK(one == searched<Quick>(5, 2));
}

}  // namespace
