// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::nn {

/// The common interface of networks: input and output sizes and parameters. A network derives from it and adds its
/// layers to `layout_`.
template <class T>
class LayeredNetwork {
 public:
  using Scalar = T;

  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] const ParameterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t heads() const noexcept { return heads_; }
  /// Count of non-parameters that training stores, such as batch statistics; networks that have some hide this member.
  [[nodiscard]] std::size_t statistics() const noexcept { return 0; }
  [[nodiscard]] Weights<T> initial(const Rng& rng) const {
    Weights<T> weights{Numbers<T>(layout_.size()), {}};
    layout_.initialise(rng, std::span<T>(weights.parameters));
    return weights;
  }

 protected:
  LayeredNetwork(std::size_t columns, std::size_t heads) : columns_(columns), heads_(heads) {}

  std::size_t columns_, heads_;
  ParameterLayout layout_;
};

}  // namespace tunewright::nn
