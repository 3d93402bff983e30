// SPDX-License-Identifier: Apache-2.0
#include "../../bench/comparison_summary.hpp"

#include <doctest/doctest.h>

using namespace tunewright;

TEST_CASE("a summary has the geometric mean, what is below, and the weakest") {
  bench::ComparisonSummary summary;
  CHECK(summary.geometric_mean() == 0);
  CHECK(summary.weakest(5).empty());
  summary.add("a", 2.0);
  summary.add("b", 0.5);
  summary.add("c", 1.0);
  summary.add("d", 4.0);
  summary.add_failure("e");
  CHECK(summary.compared() == 4);
  CHECK(summary.geometric_mean() == doctest::Approx(1.41421356));  // (2 * 1/2 * 1 * 4)^(1/4)
  CHECK(summary.below(1.0) == 1);
  const auto weakest = summary.weakest(2);
  CHECK(weakest.size() == 2);
  CHECK(weakest[0].first == "b");
  CHECK(weakest[1].first == "c");
  CHECK(summary.failures() == std::vector<std::string>{"e"});
}
