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

TEST_CASE("targets of values by hand") {
  const std::vector<double> reward{1, 3, 5}, value{4, 2, 8}, none;
  CHECK(explorers::value_targets(reward, value, 0.5) == std::vector<double>{2, 7, 5});
  CHECK(explorers::value_targets(none, none, 0.5).empty());
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
  // An action that is never taken adds no entropy: H = log 2.
  const double sure[] = {0.5, 0, 0.5};
  std::copy(sure, sure + 3, trace.probability.data());
  CHECK(explorers::policy_loss<double>({}, of, trace) == doctest::Approx(4 - 0.3 * std::log(2.0) + 4));
  CHECK(trace.d_logit.data()[1] == 0);
}

TEST_CASE("the loss of two moves of two knobs by hand") {
  explorers::PolicyNetwork<double>::Trace trace;
  trace.state.resize(2, 2);
  trace.heads.resize(2);
  trace.probability.resize(2, 6);
  trace.value.resize(2, 1);
  const double p[] = {0.5, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25, 0.5, 0.5, 0.25, 0.25};
  std::copy(p, p + 12, trace.probability.data());
  trace.value.data()[0] = 1;
  trace.value.data()[1] = 2;
  const explorers::Transitions of{
      .advantage = {2, -1}, .target = {3, 2.5}, .action = {0, 2, 1, 0}, .old_probability = {0.5, 0.5, 0.2, 1}};
  // r = 1, 0.5, 1.25, 0.5 and within [0.8, 1.2] 1, 0.8, 1.2, 0.8: the lesser of both gains is 2, 1, -1.25, -0.8.
  // Every H is 1.5 log 2; values are 2 and 0.5 below.
  const double log2 = std::log(2.0);
  const explorers::PolicyLoss half{.value = 0.5};
  CHECK(explorers::policy_loss<double>(half, of, trace) ==
        doctest::Approx((-0.95 - 0.3 * 4 * 1.5 * log2 + 0.5 * (4 + 0.25)) / 2));
  CHECK(trace.d_value.data()[0] == doctest::Approx(-1));
  CHECK(trace.d_value.data()[1] == doctest::Approx(-0.25));
  // -1/2 (A r ([j = a] - p_j) - 0.3 p_j (log p_j + H)), where H + log p_j is log 2 / 2 or -log 2 / 2.
  const double* d = trace.d_logit.row(0);
  CHECK(d[4] == doctest::Approx(-0.5 * (1 * -0.5 - 0.075 * log2)));
  CHECK(d[5] == doctest::Approx(-0.5 * (1 * 0.75 + 0.0375 * log2)));
  d = trace.d_logit.row(1);
  CHECK(d[1] == doctest::Approx(-0.5 * (-1.25 * 0.75 + 0.0375 * log2)));
  CHECK(d[3] == doctest::Approx(0.5 * 0.075 * log2));  // cut off
}
