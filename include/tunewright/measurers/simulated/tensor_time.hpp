// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "tunewright/loops/tensor_work.hpp"
#include "tunewright/measurers/simulated/cpu_prices.hpp"

namespace tunewright::measurers::simulated {

/// Time of one thread in a statement that a tensor instruction computes, if all operands are in L1. `body`: time of
/// evaluating, for one vector, the value that a copy stores.
[[nodiscard]] inline Ticks tensor_time(const loops::TensorStatement& tensor, const loops::TensorWork& work, Ticks body,
                                       const Prices& prices) {
  const auto ticks = [](double count, Ticks price) {
    constexpr double most = 1LL << 53;  // counts below it are exact
    return times(static_cast<Ticks>(std::min(count, most)), price);
  };
  if (tensor.kind == loops::TensorStatement::Kind::Interleaving)
    return ticks(work.bodies, body) + ticks(work.shuffles, prices.shuffle) + ticks(work.vectors_loaded, prices.load) +
           ticks(work.vectors_stored, prices.store);
  if (tensor.intrinsic->m > 1) {
    const Ticks products =
        std::max(ticks(work.products, tensor.m * prices.tile_row), ticks(work.chained, prices.tile_latency));
    const Ticks loads = ticks(work.lines_loaded, prices.line_load);
    return std::max(products, loads) + std::min(products, loads) / 4 + ticks(work.sums_loaded, prices.line_load) +
           ticks(work.sums_stored, prices.line_store);
  }
  const Ticks product = tensor.intrinsic->unit == TensorUnit::Avx2 ? tensor.intrinsic->instructions * prices.arithmetic
                        : tensor.intrinsic->k == 4                 ? prices.byte_product
                                                                   : prices.bf16_product;
  const Ticks computing = ticks(work.products + work.sign_products, product) +
                          ticks(work.sign_operations + work.widening_operations, prices.arithmetic) +
                          ticks(work.shuffles, prices.shuffle);
  const Ticks loading = ticks(work.vectors_loaded, prices.load);
  const Ticks pipes = std::max(computing, loading) + std::min(computing, loading) / 4 +
                      ticks(work.sums_loaded, prices.load) + ticks(work.sums_stored, prices.store);
  return std::max(pipes, ticks(work.chained, prices.add_latency));
}

}  // namespace tunewright::measurers::simulated
