// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_core.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/tensor_work.hpp"

namespace tunewright::drafts {

/// Cycles in which one worker computes statements with tensor instructions, if all operands are in L1.
class CpuTensorCost {
 public:
  CpuTensorCost(const loops::TensorStatement& tensor, const loops::TensorWork& work,
                const loops::BodyOperations& operations, const CpuCore& core)
      : tensor_(tensor), work_(work), operations_(operations), core_(core) {}

  [[nodiscard]] double cycles() const;
  /// Cycles of the products alone at peak rate.
  [[nodiscard]] double cycles_at_peak() const;

 private:
  /// Products in straight-line code, limited by throughput or by a chain of dependent sums, overlap with loads of
  /// factors; loads and stores of sums do not overlap.
  [[nodiscard]] double tile_registers() const;
  /// All vector operations in sequence, or the duration of a chain of dependent sums.
  [[nodiscard]] double rows() const;
  [[nodiscard]] double interleaving() const;
  [[nodiscard]] double bodies() const { return work_.bodies * core_.cycles(operations_.simple_fused(), operations_); }
  [[nodiscard]] double rows_per_cycle() const {
    // The additions are not counted, which have more ports than products.
    if (tensor_.intrinsic->unit == TensorUnit::Avx2)
      return core_.vectors_per_cycle / static_cast<double>(tensor_.intrinsic->instructions);
    return tensor_.intrinsic->k == 4 ? units().byte_products_per_cycle : units().bf16_products_per_cycle;
  }
  [[nodiscard]] const CpuTensorUnits& units() const { return core_.tensor_units; }

  const loops::TensorStatement& tensor_;
  const loops::TensorWork& work_;
  const loops::BodyOperations& operations_;
  const CpuCore& core_;
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE double CpuTensorCost::cycles() const {
  if (tensor_.kind == loops::TensorStatement::Kind::Interleaving) return interleaving();
  return tensor_.intrinsic->m > 1 ? tile_registers() : rows();
}

TUNEWRIGHT_INLINE double CpuTensorCost::cycles_at_peak() const {
  if (tensor_.kind == loops::TensorStatement::Kind::Interleaving) return bodies();
  const double products = work_.products + work_.sign_products;
  return products * (tensor_.intrinsic->m > 1 ? static_cast<double>(tensor_.m) / units().tile_rows_per_cycle
                                              : 1 / rows_per_cycle());
}

TUNEWRIGHT_INLINE double CpuTensorCost::tile_registers() const {
  const double products = std::max(cycles_at_peak(), work_.chained * units().tile_latency_cycles);
  const double loads = work_.lines_loaded / units().lines_loaded_per_cycle;
  return std::max(products, loads) + (1 - core_.overlap) * std::min(products, loads) +
         work_.sums_stored / units().lines_stored_per_cycle + work_.sums_loaded / units().lines_loaded_per_cycle;
}

TUNEWRIGHT_INLINE double CpuTensorCost::rows() const {
  const double cycles = cycles_at_peak() + work_.shuffles / units().shuffles_per_cycle +
                        (work_.sign_operations + work_.widening_operations) / core_.vectors_per_cycle +
                        (work_.vectors_loaded + work_.sums_loaded) / core_.loads_per_cycle +
                        work_.sums_stored / core_.stores_per_cycle;
  return std::max(cycles, work_.chained * core_.update_latency_cycles);
}

TUNEWRIGHT_INLINE double CpuTensorCost::interleaving() const {
  return bodies() + work_.shuffles / units().shuffles_per_cycle + work_.vectors_loaded / core_.loads_per_cycle +
         work_.vectors_stored / core_.stores_per_cycle;
}

}  // namespace tunewright::drafts

#endif
