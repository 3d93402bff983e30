// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"

namespace tunewright::nn {

/// y = gain (x - mean) / sqrt(variance + 1e-5) + shift, with mean and variance over the columns of a row.
/// Paper: Ba et al., Layer normalization, 2016.
struct LayerNorm {
  std::size_t width = 0, gain = 0, shift = 0;

  LayerNorm() = default;
  LayerNorm(ParameterLayout& layout, const std::string& name, std::size_t columns) : width(columns) {
    gain = layout.add(name + ".gain", 1, width, 1, 1);
    shift = layout.add(name + ".shift", 1, width, 0, 0);
  }

  /// Stores (x - mean) / sqrt(variance + 1e-5) in `standard` and the factors [R] in `inverse`, for `backward`.
  template <class T>
  void forward(const T* w, const Matrix<T>& x, Matrix<T>& standard, std::vector<T>& inverse, Matrix<T>& y) const {
    standard.resize(x.rows(), width);
    y.resize(x.rows(), width);
    inverse.resize(x.rows());
    for (std::size_t r = 0; r < x.rows(); ++r) {
      T mean = 0, square = 0;
      for (std::size_t c = 0; c < width; ++c) mean += x.row(r)[c];
      mean /= static_cast<T>(width);
      for (std::size_t c = 0; c < width; ++c) square += (x.row(r)[c] - mean) * (x.row(r)[c] - mean);
      inverse[r] = 1 / std::sqrt(square / static_cast<T>(width) + T(1e-5));
      array(standard.row(r), width) = (array(x.row(r), width) - mean) * inverse[r];
      array(y.row(r), width) = array(standard.row(r), width) * array(w + gain, width) + array(w + shift, width);
    }
  }

  template <class T>
  void backward(const T* w, T* g, const Matrix<T>& standard, const std::vector<T>& inverse, const Matrix<T>& dy,
                Matrix<T>& dx) const {
    dx.resize(dy.rows(), width);
    for (std::size_t r = 0; r < dy.rows(); ++r) {
      const auto d = array(dy.row(r), width), z = array(standard.row(r), width);
      array(g + gain, width) += d * z;
      array(g + shift, width) += d;
      T mean = 0, along = 0;
      for (std::size_t c = 0; c < width; ++c) {
        const T dz = dy.row(r)[c] * w[gain + c];
        mean += dz;
        along += dz * standard.row(r)[c];
      }
      mean /= static_cast<T>(width);
      along /= static_cast<T>(width);
      array(dx.row(r), width) = inverse[r] * (d * array(w + gain, width) - mean - z * along);
    }
  }
};

/// y = gain (x - mean) / sqrt(variance + 1e-5) + shift. In training, mean and variance of each column are those over
/// the programs of the mini-batch; in prediction, their running averages (with weight 0.1 for each batch, and the
/// unbiased variance).
///
/// A mini-batch is divided into shards, so this works in steps: `moments` of each shard, `join` of all, `forward`; for
/// the gradient `sums`, `join_backward`, `backward`. Moments are joined in the order of the shards.
///
/// Paper:  Ioffe and Szegedy, Batch normalization, ICML 2015; joining: Chan et al., 1979.
/// Shapes: x (P, width), without padding rows. `statistics` are `width` means, then as many variances.
struct BatchNorm {
  std::size_t width = 0, gain = 0, shift = 0;

  template <class T>
  struct Trace {
    std::size_t programs = 0;  // in the shard
    T all = 1;                 // programs in the mini-batch
    Matrix<T> moments;         // (2, width), of the shard: mean and sum of squared distances from it
    Matrix<T> used;            // (2, width): the mean and 1 / sqrt(variance + 1e-5) used
    Matrix<T> standard;        // (P, width)
    Matrix<T> sums;            // (2, width): sums of dL/dy and of dL/dy * standard; first of the shard, then of all
  };

  BatchNorm() = default;
  BatchNorm(ParameterLayout& layout, const std::string& name, std::size_t columns) : width(columns) {
    gain = layout.add(name + ".gain", 1, width, 1, 1);
    shift = layout.add(name + ".shift", 1, width, 0, 0);
  }
  [[nodiscard]] std::size_t statistics() const noexcept { return 2 * width; }

  template <class T>
  void moments(const Matrix<T>& x, std::size_t programs, Trace<T>& t) const {
    t.programs = programs;
    t.moments.resize(2, width);
    t.moments.fill(T{0});
    auto mean = array(t.moments.row(0), width), spread = array(t.moments.row(1), width);
    for (std::size_t p = 0; p < programs; ++p) mean += array(x.row(p), width);
    mean /= static_cast<T>(programs);
    for (std::size_t p = 0; p < programs; ++p) spread += (array(x.row(p), width) - mean).square();
  }

  /// Gives mean and variance of the mini-batch to every shard, and updates the running averages.
  template <class T>
  void join(std::span<Trace<T>* const> shards, T* running) const {
    Matrix<T> joined(2, width);
    joined.fill(T{0});
    auto mean = array(joined.row(0), width), spread = array(joined.row(1), width);
    T all = 0;
    for (const Trace<T>* shard : shards) {
      const T more = static_cast<T>(shard->programs);
      const auto other = array(shard->moments.row(0), width);
      spread += array(shard->moments.row(1), width) + (other - mean).square() * (all * more / (all + more));
      mean += (other - mean) * (more / (all + more));
      all += more;
    }
    array(running, width) = T(0.9) * array(running, width) + T(0.1) * mean;
    if (all > 1)  // one program has no variance
      array(running + width, width) = T(0.9) * array(running + width, width) + T(0.1) * spread / (all - 1);
    spread = T{1} / (spread / all + T(1e-5)).sqrt();
    for (Trace<T>* shard : shards) {
      shard->used = joined;
      shard->all = all;
    }
  }
  /// Mean and scale that prediction uses.
  template <class T>
  void use_running(const T* running, Trace<T>& t) const {
    t.used.resize(2, width);
    array(t.used.row(0), width) = array(running, width);
    array(t.used.row(1), width) = T{1} / (array(running + width, width) + T(1e-5)).sqrt();
  }

  template <class T>
  void forward(const T* w, const Matrix<T>& x, Trace<T>& t, Matrix<T>& y) const {
    t.standard.resize(x.rows(), width);
    y.resize(x.rows(), width);
    for (std::size_t r = 0; r < x.rows(); ++r) {
      auto z = array(t.standard.row(r), width);
      z = (array(x.row(r), width) - array(t.used.row(0), width)) * array(t.used.row(1), width);
      array(y.row(r), width) = z * array(w + gain, width) + array(w + shift, width);
    }
  }

  template <class T>
  void sums(T* g, const Matrix<T>& dy, Trace<T>& t) const {
    t.sums.resize(2, width);
    t.sums.fill(T{0});
    auto sum = array(t.sums.row(0), width), along = array(t.sums.row(1), width);
    for (std::size_t p = 0; p < t.programs; ++p) {
      sum += array(dy.row(p), width);
      along += array(dy.row(p), width) * array(t.standard.row(p), width);
    }
    array(g + shift, width) += sum;
    array(g + gain, width) += along;
  }
  template <class T>
  void join_backward(std::span<Trace<T>* const> shards) const {
    Matrix<T> joined(2, width);
    joined.fill(T{0});
    for (const Trace<T>* shard : shards) array(joined.data(), 2 * width) += array(shard->sums.data(), 2 * width);
    for (Trace<T>* shard : shards) shard->sums = joined;
  }
  /// `d` is dL/dy and becomes dL/dx.
  template <class T>
  void backward(const T* w, const Trace<T>& t, Matrix<T>& d) const {
    for (std::size_t p = 0; p < t.programs; ++p) {
      auto row = array(d.row(p), width);
      row =
          array(w + gain, width) * array(t.used.row(1), width) *
          (row - (array(t.sums.row(0), width) + array(t.standard.row(p), width) * array(t.sums.row(1), width)) / t.all);
    }
  }
};

}  // namespace tunewright::nn
