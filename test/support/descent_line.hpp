// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright::test {

/// The smallest network there is, so that training can be followed by hand:
///
///   score = slope * first column + bias;   `least_steps` steps of  w <- w - rate * mean of (score - y) ds/dw
struct DescentLine {
  nn::Training training = steps(1, 0.5F);

  std::vector<float> weights{};  ///< slope, bias; empty before the first fit
  unsigned rescaled = 0;         ///< how often the scale of inputs was to be fitted again

  static nn::Training steps(unsigned count, float rate) {
    nn::Training how;
    how.loss = nn::Loss::MeanSquared;
    how.least_steps = count;
    how.learning_rate = rate;
    return how;
  }

  void predict(const FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const auto row = x.program(p);
      score[p] = row.empty() ? -std::numeric_limits<float>::infinity()
                             : (weights.empty() ? 0 : weights[0] * row[0] + weights[1]);
    }
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t>) {
    weights.clear();
    if (x.rows() == 0) return;
    weights = {0, 0};
    descend(x, y, training, {});
  }
  void train_from_current(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group,
                          const nn::Training& how, const nn::Continuation& from) {
    if (weights.empty()) return fit(x, y, group);
    rescaled += from.refit_input_scale ? 1U : 0U;
    descend(x, y, how, from.frozen);
  }
  [[nodiscard]] std::span<float> parameters() { return weights; }
  [[nodiscard]] std::span<const nn::ParameterBlock> blocks() const {
    static const std::array<nn::ParameterBlock, 2> both{{{"line.slope", 0, 1, 1, 0, 0}, {"line.bias", 1, 1, 1, 0, 0}}};
    return both;
  }

 private:
  void descend(const FeatureBatch& x, std::span<const float> y, const nn::Training& how,
               const std::vector<std::string>& frozen) {
    const auto learns = [&](const char* name) {
      for (const std::string& prefix : frozen) {
        if (std::string(name).starts_with(prefix)) return false;
      }
      return true;
    };
    for (unsigned step = 0; step < how.least_steps; ++step) {
      float slope = 0, bias = 0, programs = 0;
      for (std::size_t p = 0; p < x.programs(); ++p) {
        const auto row = x.program(p);
        if (row.empty()) continue;
        const float off = weights[0] * row[0] + weights[1] - y[p];
        slope += off * row[0];
        bias += off;
        ++programs;
      }
      if (programs == 0) return;
      if (learns("line.slope")) weights[0] -= how.learning_rate * slope / programs;
      if (learns("line.bias")) weights[1] -= how.learning_rate * bias / programs;
    }
  }
};

}  // namespace tunewright::test
