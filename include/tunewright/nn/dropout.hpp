// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/matrix.hpp"

namespace tunewright::nn {

/// Options of one pass through a network.
struct Pass {
  bool training = false;  ///< batch statistics are used and updated; each program has its own dropout
  float dropout = 0;      ///< probability of dropping a unit, in [0, 1)
  Rng rng{};              ///< of this training step, or of this dropout sample of the network
};

/// Drops units at random and multiplies the others by 1 / (1 - share).
///
/// In training, each program drops other units. In prediction, all programs drop the same units: a pass is one sample
/// of the network, its scores can be compared, and the score of a program does not depend on the others in the batch.
///
/// Paper: Srivastava et al., JMLR 2014; at prediction: Gal and Ghahramani, ICML 2016.
/// Determinism: the dropped units depend only on the pass, `layer`, the unit and, in training, the position of the
///              program in the mini-batch.
template <class T>
void dropout(const Pass& pass, std::uint64_t layer, std::size_t first_program, Matrix<T>& h, Matrix<T>& mask) {
  if (pass.dropout <= 0) return;
  mask.resize(h.rows(), h.columns());
  const T kept = static_cast<T>(1 / (1 - static_cast<double>(pass.dropout)));
  const auto threshold = static_cast<std::uint64_t>(static_cast<double>(pass.dropout) * 0x1.0p32);
  for (std::size_t r = 0; r < h.rows(); ++r) {
    Rng draw = pass.rng.split(layer).split(pass.training ? first_program + r + 1 : 0);
    std::uint64_t bits = 0;
    for (std::size_t c = 0; c < h.columns(); ++c) {
      bits = c % 2 == 0 ? draw() : bits >> 32;
      mask.row(r)[c] = (bits & 0xffffffffU) < threshold ? T{0} : kept;
    }
  }
  array(h.data(), h.size()) *= array(mask.data(), mask.size());
}

/// `d` is dL/d(output of dropout) and becomes dL/dh.
template <class T>
void dropout_backward(const Pass& pass, const Matrix<T>& mask, Matrix<T>& d) {
  if (pass.dropout > 0) array(d.data(), d.size()) *= array(mask.data(), mask.size());
}

}  // namespace tunewright::nn
