// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/matrix.hpp"

namespace tunewright::nn {

/// What a pass through a network is for.
struct Pass {
  bool training = false;  ///< statistics of the batch are used and gathered; every program is thinned by itself
  float dropout = 0;      ///< share of units left out, in [0, 1)
  Rng rng{};              ///< of this step of training, or of this thinned copy of the network
};

/// Leaves out units at random and multiplies the others by 1 / (1 - share).
///
/// While training, every program loses other units. When predicting, all programs lose the same: a pass is
/// one thinned network, scores of a pass can be compared, and a program's score does not depend on its
/// neighbours.
///
/// Paper: Srivastava et al., JMLR 2014; at prediction: Gal and Ghahramani, ICML 2016.
/// Determinism: which units are left out depends on the pass, `layer`, the program's position in the
///              mini-batch and the unit only.
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

/// `d` is dL/d(thinned h) and becomes dL/dh.
template <class T>
void dropout_backward(const Pass& pass, const Matrix<T>& mask, Matrix<T>& d) {
  if (pass.dropout > 0) array(d.data(), d.size()) *= array(mask.data(), mask.size());
}

}  // namespace tunewright::nn
