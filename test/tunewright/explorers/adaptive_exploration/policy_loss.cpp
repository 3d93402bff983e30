// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/adaptive_exploration/policy_loss.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace tunewright;

TEST_CASE("advantages of two steps by hand") {
  // d_1 = 3 - 2 = 1;  d_0 = 1 + 0.5 * 2 - 4 = -2;  A_1 = 1;  A_0 = -2 + 0.5 * 0.8 * 1 = -1.6
  const std::vector<double> reward{1, 3}, value{4, 2};
  const auto advantage = explorers::advantages(reward, value, 0.5, 0.8);
  REQUIRE(advantage.size() == 2);
  CHECK(advantage[0] == doctest::Approx(-1.6));
  CHECK(advantage[1] == doctest::Approx(1));
}

TEST_CASE("standardised numbers have mean 0 and deviation 1; equal ones are 0") {
  std::vector<double> numbers{1, 3}, equal{2, 2}, none;
  explorers::standardise(numbers);
  explorers::standardise(equal);
  explorers::standardise(none);
  CHECK(numbers == std::vector<double>{-1, 1});
  CHECK(equal == std::vector<double>{0, 0});
}

TEST_CASE("the loss of one move by hand") {
  explorers::PolicyNetwork<double>::Trace trace;
  trace.state.resize(1, 1);
  trace.heads.resize(1);
  trace.probability.resize(1, 3);
  trace.value.resize(1, 1);
  const double p[] = {0.5, 0.25, 0.25};
  std::copy(p, p + 3, trace.probability.data());
  *trace.value.data() = 1;
  explorers::Transitions of{.advantage = {2}, .target = {3}, .action = {0}, .old_probability = {0.25}};
  // r = 2 is cut to 1.2: 2.4; H = 1.5 log 2; the value is 2 off.
  const double entropy = 1.5 * std::log(2.0);
  CHECK(explorers::policy_loss<double>({}, of, trace) == doctest::Approx(-2.4 - 0.3 * entropy + 4));
  CHECK(*trace.d_value.data() == doctest::Approx(-4));
  // Cut off, only entropy moves the policy: d / dz_j = -p_j (log p_j + H).
  CHECK(trace.d_logit.data()[0] == doctest::Approx(0.3 * 0.5 * (std::log(0.5) + entropy)));
  // A move that was worse than expected is made less likely however often it is made.
  of.advantage = {-2};
  CHECK(explorers::policy_loss<double>({}, of, trace) == doctest::Approx(4 - 0.3 * entropy + 4));
  CHECK(trace.d_logit.data()[0] > 0);
}
