// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "support/gradient_check.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"

namespace tunewright::test {

inline void fill_random(std::span<double> values, std::uint64_t seed) {
  Rng rng(seed);
  for (double& value : values) value = 2 * rng.uniform() - 1;
}

/// A layer with random parameters and input, judged by L = sum of y times fixed random factors over the first
/// `programs_or_rows` rows.
struct LayerHarness {
  nn::Matrix<double> x, y, dy, dx;
  nn::Numbers<double> parameters, gradient;
  std::size_t counted = 0;

  LayerHarness(const nn::ParameterLayout& layout, std::size_t rows, std::size_t columns, std::size_t real_rows)
      : x(rows, columns), parameters(layout.size()), gradient(layout.size(), 0.0) {
    fill_random({x.data(), x.size()}, 1);
    std::fill(x.row(real_rows), x.row(rows), 0.0);
    fill_random(parameters, 2);
  }

  double loss() const {
    double sum = 0;
    for (std::size_t i = 0; i < counted * y.columns(); ++i) sum += y.data()[i] * dy.data()[i];
    return sum;
  }

  /// Largest relative errors of dL/dparameters and dL/dx; `forward` fills y, `backward` gradient and dx.
  template <class Forward, class Backward>
  double error(std::size_t rows_of_y, Forward&& forward, Backward&& backward) {
    counted = rows_of_y;
    forward();
    dy.resize(y.rows(), y.columns());
    dy.fill(0);
    fill_random({dy.data(), counted * y.columns()}, 3);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    backward();
    const auto f = [&] {
      forward();
      return loss();
    };
    const nn::Matrix<double> slope = dx;
    return std::max(gradient_error(parameters, gradient, f),
                    gradient_error({x.data(), x.size()}, {slope.data(), slope.size()}, f));
  }
};

}  // namespace tunewright::test
