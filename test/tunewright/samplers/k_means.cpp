// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/k_means.hpp"

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace tunewright;
using samplers::Points;

namespace {

const Points two_pairs{.columns = 1, .values = {0, 1, 10, 11}, .count = 4};

std::string refused(const Points& points, std::size_t k) {
  Rng rng(1);
  return test::refusal([&] { (void)samplers::k_means(points, k, 10, rng); });
}

}  // namespace

TEST_CASE("centres are the means of their points") {
  Rng rng(1);
  const samplers::Clusters clusters = samplers::k_means(two_pairs, 2, 10, rng);
  CHECK(clusters.cluster[0] == clusters.cluster[1]);
  CHECK(clusters.cluster[2] == clusters.cluster[3]);
  CHECK(clusters.centres[clusters.cluster[0]][0] == 0.5F);
  CHECK(clusters.centres[clusters.cluster[2]][0] == 10.5F);
  CHECK(clusters.loss == 1);
}

TEST_CASE("no points and no clusters are refused") {
  CHECK(refused({}, 2) == "k_means: 2 clusters of 0 points; give at least 1 of both");
  CHECK(refused(two_pairs, 0) == "k_means: 0 clusters of 4 points; give at least 1 of both");
}
