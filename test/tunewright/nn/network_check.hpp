// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/gradient_check.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::test {

/// Programs of 1 to 12 rows of random numbers whose column 0 is 0 or 1, with random labels of every head; a
/// quarter of the labels of the heads after the first is missing.
struct RandomLesson {
  FeatureBatch x;
  std::vector<double> labels;
  nn::InputScale scale;
  nn::Lesson<double> lesson;

  RandomLesson(std::size_t columns, std::size_t programs, std::size_t heads) : x(columns) {
    Rng rng(5);
    for (std::uint32_t p = 0; p < programs; ++p) {
      const std::size_t rows = 1 + rng.below(12);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto row = x.append_row();
        for (float& value : row) value = static_cast<float>(2 * rng.uniform() - 1);
        row[0] = r % 3 == 0 ? 0.0F : 1.0F;
      }
      x.close_program();
      for (std::size_t h = 0; h < heads; ++h)
        labels.push_back(h > 0 && p % 4 == 0 ? std::numeric_limits<double>::quiet_NaN() : rng.uniform());
      lesson.programs.push_back(p);
    }
    scale = nn::InputScale::fit(x);
    lesson.x = &x;
    lesson.scale = &scale;
    lesson.labels = labels;
  }
};

/// Relative error of the gradient of a whole network, over several shards, with and without dropout.
template <class Network>
double network_gradient_error(const Network& network, std::size_t programs, std::size_t every, float dropout) {
  RandomLesson random(network.columns(), programs, network.heads());
  // A smooth loss: ranks jump when scores cross.
  nn::Training training{.loss = nn::Loss::MeanSquared};
  nn::Trainer<Network> trainer(network, training, dropout, 3, 2);
  auto weights = network.initial(Rng(11));
  const nn::Pass pass{true, dropout, Rng(17)};
  const auto loss = [&] { return trainer.gradient_of(random.lesson, random.lesson.programs, pass, weights); };
  loss();
  const auto slope = trainer.gradient();
  const std::vector<double> gradient(slope.begin(), slope.end());
  return gradient_error(weights.parameters, gradient, loss, every);
}

}  // namespace tunewright::test
