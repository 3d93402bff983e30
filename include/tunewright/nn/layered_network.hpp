// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::nn {

/// The common interface of networks: input and output sizes and parameters. A network derives from it and adds its
/// layers to `layout_`. One with statistics, numbers that training collects besides the parameters, such as averages
/// over batches, hides the members that mention them. Constructors throw `std::invalid_argument` for sizes that no
/// network has, because sizes come from files as well.
template <class T>
class LayeredNetwork {
 public:
  using Scalar = T;

  static constexpr std::size_t most_heads = 1024;

  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] const ParameterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t heads() const noexcept { return heads_; }
  [[nodiscard]] std::size_t statistics() const noexcept { return 0; }  ///< their number
  /// Whether the layer that the statistics belong to is among the frozen ones.
  [[nodiscard]] bool statistics_frozen(std::span<const std::string>) const { return true; }
  /// Throws `std::runtime_error` for statistics that no training collects.
  void check_statistics(std::span<const T>) const {}
  [[nodiscard]] Weights<T> initial(const Rng& rng) const {
    Weights<T> weights{Numbers<T>(layout_.size()), {}};
    layout_.initialise(rng, std::span<T>(weights.parameters));
    return weights;
  }

 protected:
  LayeredNetwork(std::size_t columns, std::size_t heads) : columns_(columns), heads_(heads) {
    check_size(columns > 0, "columns", columns, "at least 1");
    check_size(heads > 0 && heads <= most_heads, "heads", heads, "1 to 1024");
  }

  static void check_size(bool holds, const char* name, std::size_t size, const char* range) {
    require(holds, "nn: the network", name, static_cast<double>(size), range);
  }

  std::size_t columns_, heads_;
  ParameterLayout layout_;
};

}  // namespace tunewright::nn
