// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/adaptive_exploration/policy_network.hpp"

#include <doctest/doctest.h>

#include "support/gradient_check.hpp"
#include "tunewright/explorers/adaptive_exploration/policy_loss.hpp"

using namespace tunewright;
using explorers::PolicyNetwork;

namespace {

PolicyNetwork<double>::Trace states(std::size_t rows, std::size_t knobs) {
  PolicyNetwork<double>::Trace trace;
  trace.state.resize(rows, knobs);
  Rng rng(3);
  for (std::size_t i = 0; i < rows * knobs; ++i) trace.state.data()[i] = rng.uniform();
  return trace;
}

}  // namespace

TEST_CASE("every knob has probabilities of its own, which the temperature sharpens") {
  const PolicyNetwork<double> warm(3, 1.0), cold(3, 0.1);
  const auto weights = warm.initial(Rng(7));
  auto trace = states(5, 3), sharp = states(5, 3);
  warm.forward(weights.data(), trace);
  cold.forward(weights.data(), sharp);
  for (std::size_t r = 0; r < 5; ++r) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double* p = trace.probability.row(r) + 3 * k;
      const double* q = sharp.probability.row(r) + 3 * k;
      CHECK(p[0] + p[1] + p[2] == doctest::Approx(1));
      CHECK(q[0] + q[1] + q[2] == doctest::Approx(1));
      // softmax(z / 0.1) = softmax(z)^10, normalised.
      CHECK(q[0] / q[1] == doctest::Approx(std::pow(p[0] / p[1], 10)));
      CHECK(p[0] != p[1]);
    }
  }
  CHECK(trace.value.rows() == 5);
}

TEST_CASE("gradients of the loss are those of finite differences") {
  const PolicyNetwork<double> network(2, 0.5);
  auto weights = network.initial(Rng(1));
  auto trace = states(4, 2);
  explorers::Transitions of{.advantage = {1, -0.5, 2, -1},
                            .target = {0.5, 0, -1, 2},
                            .action = {0, 1, 2, 0, 1, 1, 0, 2},
                            .old_probability = {0.3, 0.35, 0.2, 0.9, 0.33, 0.3, 0.36, 0.1}};
  const explorers::PolicyLoss options;
  const auto loss = [&] {
    network.forward(weights.data(), trace);
    return explorers::policy_loss<double>(options, of, trace);
  };
  loss();
  nn::Numbers<double> gradient(weights.size());
  network.backward(weights.data(), gradient.data(), trace);
  CHECK(test::gradient_error(weights, gradient, loss) < 1e-6);
}
