// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/het_feat_transfer.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "recipes/pretrained.hpp"

namespace {

using namespace tunewright;
using HetFeatTransfer = recipes::HetFeatTransfer<spaces::MultiLevelTiling, measurers::Simulated>;

test::Trace searched(std::uint64_t seed, unsigned threads) {
  Parts<HetFeatTransfer> parts = test::small_parts<HetFeatTransfer>(seed, threads);
  parts.model.width = 16;
  parts.model.layers = 1;
  test::pretrain(parts, test::small_matmul(), 32);
  return test::searched_trace(parts, test::small_matmul());
}

TEST_CASE("Transfer of heterogeneous features: same seed, same history, with one and with two threads") {
  const test::Trace one = searched(5, 1);
  CHECK(one.size() == 16);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

TEST_CASE("Transfer of heterogeneous features leaves the encoder as it was trained") {
  Parts<HetFeatTransfer> parts = test::small_parts<HetFeatTransfer>(5, 1);
  parts.model.width = 16;
  parts.model.layers = 1;
  test::pretrain(parts, test::small_matmul(), 32);
  Tuner<HetFeatTransfer> tuner(parts);
  (void)tuner.run(test::small_matmul(), {.trials = 16, .batch = 8});
  const auto before = parts.model.parameters(), after = tuner.parts().model.parameters();
  for (const nn::ParameterBlock& block : parts.model.blocks()) {
    const auto was = before.subspan(block.first, block.size()), is = after.subspan(block.first, block.size());
    CAPTURE(block.name);
    CHECK(std::equal(was.begin(), was.end(), is.begin()) == block.name.starts_with("encoder"));
  }
}

}  // namespace
