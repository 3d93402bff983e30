// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright::nn {

/// Updates weights by their gradient. The state of a weight depends only on its own gradients, so ranges may be updated
/// one by one, in any order and by several threads.
///
///   g <- c g + decay w                     c scales the whole gradient down to the norm clip_norm
///   Sgd:   v <- momentum v + g;            w <- w - rate v
///   Adam:  m <- 0.9 m + 0.1 g;  v <- 0.999 v + 0.001 g^2
///          w <- w - rate (m / (1 - 0.9^t)) / (sqrt(v / (1 - 0.999^t)) + 1e-8)
///   with decoupled_decay: w <- w - rate decay w instead of the term in g
///
/// Paper: Kingma and Ba, ICLR 2015; decoupled: Loshchilov and Hutter, ICLR 2019.
template <class T>
class Stepper {
 public:
  Stepper(const Training& training, std::size_t parameters)
      : training_(training),
        first_(training.optimiser == Optimiser::Adam || training.momentum > 0 ? parameters : 0),
        second_(training.optimiser == Optimiser::Adam ? parameters : 0) {}

  /// Begins a step with learning rate `rate` for a gradient of Euclidean norm `norm`.
  void begin(float rate, double norm) {
    ++step_;
    rate_ = static_cast<T>(rate);
    const double clip = static_cast<double>(training_.clip_norm);
    shorten_ = clip > 0 && norm > clip ? static_cast<T>(clip / norm) : T{1};
  }

  void step(ParameterRange range, std::span<const T> gradient, std::span<T> parameters) {
    const std::size_t n = range.last - range.first;
    const auto g = array(gradient.data() + range.first, n);
    auto w = array(parameters.data() + range.first, n);
    const T decay = static_cast<T>(training_.weight_decay);
    const T coupled = training_.decoupled_decay ? T{0} : decay;
    const T kept = training_.decoupled_decay ? 1 - rate_ * decay : T{1};
    if (training_.optimiser == Optimiser::Adam) {
      auto m = array(first_.data() + range.first, n);
      auto v = array(second_.data() + range.first, n);
      const T beta1 = T(0.9), beta2 = T(0.999);
      const T size = rate_ / static_cast<T>(1 - std::pow(0.9, step_));
      const T unbias = static_cast<T>(1 / std::sqrt(1 - std::pow(0.999, step_)));
      m = beta1 * m + (1 - beta1) * (shorten_ * g + coupled * w);
      v = beta2 * v + (1 - beta2) * (shorten_ * g + coupled * w).square();
      w = kept * w - size * m / (unbias * v.sqrt() + T(1e-8));
    } else if (training_.momentum > 0) {
      auto velocity = array(first_.data() + range.first, n);
      velocity = static_cast<T>(training_.momentum) * velocity + (shorten_ * g + coupled * w);
      w = kept * w - rate_ * velocity;
    } else {
      w = kept * w - rate_ * (shorten_ * g + coupled * w);
    }
  }

 private:
  Training training_;
  Numbers<T> first_, second_;  // first and second moments
  int step_ = 0;
  T rate_ = 0, shorten_ = 1;
};

/// Divides ranges into pieces that threads can share; the division does not depend on the number of threads.
[[nodiscard]] inline std::vector<ParameterRange> pieces_of(std::span<const ParameterRange> ranges) {
  constexpr std::size_t most = 16384;
  std::vector<ParameterRange> pieces;
  for (const ParameterRange& range : ranges) {
    for (std::size_t first = range.first; first < range.last; first += most)
      pieces.push_back({first, std::min(first + most, range.last)});
  }
  return pieces;
}

}  // namespace tunewright::nn
