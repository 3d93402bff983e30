// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/core/target.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_core.hpp"
#include "tunewright/drafts/symbol_analyzer/nest_reader.hpp"
#include "tunewright/drafts/symbol_analyzer/outline_tensors.hpp"
#include "tunewright/drafts/symbol_analyzer/reach.hpp"
#include "tunewright/loops/operations.hpp"

namespace tunewright::drafts {

/// True when code for `target` computes `tensor` by its instruction wherever no guard cuts it.
[[nodiscard]] inline bool runs_by_instruction(const OutlineTensor& tensor, const Target& target) {
  return tensor.kind == OutlineTensor::Kind::Interleaving ||
         (target.isa == Isa::Avx512 && target.has(tensor.intrinsic->unit));
}

/// Cycles of one worker in statements that tensor instructions compute, memory beyond L1 left aside.
class CpuTensorCost {
 public:
  CpuTensorCost(const OutlineTensor& tensor, const NestReader& reader, const StatementReach& reach,
                std::span<const std::int64_t> unroll_limit, const CpuCore& core, const Target& target)
      : tensor_(tensor),
        open_(reader.open()),
        first_(open_.size() - tensor.own),
        reach_(reach),
        unroll_limit_(unroll_limit),
        core_(core),
        target_(target) {}

  [[nodiscard]] double cycles(const loops::BodyOperations& operations) const {
    if (tensor_.kind == OutlineTensor::Kind::Interleaving) return interleaving(operations);
    return tensor_.intrinsic->m > 1 ? tile_registers() : rows();
  }

 private:
  /// Tile registers:
  ///
  ///   block    products in straight-line code, so many rows a cycle, or as long as a chain of sums takes
  ///   factors  each distinct one of the block is loaded once, so many lines a cycle
  ///   sums     stored, and loaded unless they start at zero, each time the loops that keep them are entered
  ///
  /// Products and loads of factors overlap, the sums do not.
  [[nodiscard]] double tile_registers() const {
    const LoopSet store = moved_by(0);
    const std::size_t kept = accumulators_kept_from(store);
    const std::size_t block = std::max(kept, straight_from(store));
    const auto m = static_cast<double>(tensor_.m);
    const double products =
        std::max(iterations(block, first_) * m / core_.tensor_units.tile_rows_per_cycle,
                 iterations(block, first_, ~store) * core_.tensor_units.tile_latency_cycles);
    const double lines =
        iterations(block, first_, moved_by(1 + tensor_.rows)) * m +
        iterations(block, first_, moved_by(1 + tensor_.columns)) * static_cast<double>(tensor_.steps);
    const double loads = lines / core_.tensor_units.lines_loaded_per_cycle;
    const bool fresh = tensor_.fresh && kept + tensor_.around == first_;
    const double sums = m * (1 / core_.tensor_units.lines_stored_per_cycle +
                             (fresh ? 0 : 1 / core_.tensor_units.lines_loaded_per_cycle));
    return iterations(0, block) *
               (std::max(products, loads) + (1 - core_.overlap) * std::min(products, loads)) +
           iterations(0, kept) * iterations(kept, first_, store) * sums;
  }

  /// Rows of products, in the unrolled loops around the instruction:
  ///
  ///   products  so many vectors a cycle; bytes of the same signs take a subtraction each, and one more product for each
  ///             vector of columns
  ///   factors   each distinct one is loaded once if the sums fit the registers: a row is a broadcast, columns are one
  ///             vector, or one for each term and what interleaves these
  ///   sums      as those of other tiles
  [[nodiscard]] double rows() const {
    const LoopSet store = moved_by(0);
    std::size_t tile = first_;
    while (tile > 0 && is_straight(open_[tile - 1].kind)) --tile;
    const double products = iterations(tile, first_);
    const double sums =
        iterations(tile, first_, store) *
        (reach_.contiguous(reach_.accesses()[0], first_) ? 1 : static_cast<double>(columns()));
    const bool fit = sums + 2 <= target_.vector_registers();
    const double broadcasts = fit ? iterations(tile, first_, moved_by(1 + tensor_.rows)) : products;
    const double blocks = fit ? iterations(tile, first_, moved_by(1 + tensor_.columns)) : products;
    const bool bytes = tensor_.intrinsic->k == 4;
    const double terms = tensor_.interleaved ? 1 : static_cast<double>(tensor_.intrinsic->k);
    double cycles = products / (bytes ? core_.tensor_units.byte_products_per_cycle
                                      : core_.tensor_units.bf16_products_per_cycle) +
                    blocks * (terms - 1) / core_.tensor_units.shuffles_per_cycle;
    if (bytes && tensor_.same_signs)
      cycles += (products + broadcasts) / core_.vectors_per_cycle +
                blocks / core_.tensor_units.byte_products_per_cycle;
    cycles += (broadcasts + blocks * terms) / core_.loads_per_cycle;
    double runs_in_registers = 1;
    for (std::size_t l = tile; fit && l-- > 0 && (store >> l & 1U) == 0;)
      runs_in_registers *= static_cast<double>(open_[l].extent);
    cycles += sums / runs_in_registers * (1 / core_.stores_per_cycle + 1 / core_.loads_per_cycle);
    return iterations(0, tile) *
           std::max(cycles, iterations(tile, first_, ~store) * core_.update_latency_cycles);
  }

  /// A vector for each term of 16 columns, what joins these, and one store.
  [[nodiscard]] double interleaving(const loops::BodyOperations& operations) const {
    const auto terms = static_cast<double>(open_[first_ + 1].extent);
    double cycles = terms * (operations.simple_fused() / core_.vectors_per_cycle +
                             operations.divisions * core_.division_cycles +
                             operations.functions * core_.function_cycles) +
                    (terms - 1) / core_.tensor_units.shuffles_per_cycle + 1 / core_.stores_per_cycle;
    for (const StatementReach::Access& load : reach_.accesses().subspan(1))
      cycles += terms * (reach_.contiguous(load, first_) ? 1 : static_cast<double>(columns())) /
                core_.loads_per_cycle;
    return iterations(0, first_) * cycles;
  }

  [[nodiscard]] LoopSet moved_by(std::size_t access) const { return reach_.accesses()[access].moved_by; }
  /// Of the loops in `of` from depth `from` to `to`.
  [[nodiscard]] double iterations(std::size_t from, std::size_t to, LoopSet of = ~LoopSet{0}) const {
    double product = 1;
    for (std::size_t l = from; l < to; ++l)
      if ((of >> l & 1U) != 0) product *= static_cast<double>(open_[l].extent);
    return product;
  }

  [[nodiscard]] static bool is_straight(loops::LoopKind kind) {
    return kind == loops::LoopKind::Unrolled || kind == loops::LoopKind::Vectorized;
  }
  [[nodiscard]] std::int64_t columns() const { return open_[first_].extent; }

  /// Outermost loop that can run while the sums stay in registers: it does not move them, and those inside that do are
  /// unrolled and few.
  [[nodiscard]] std::size_t accumulators_kept_from(LoopSet store) const {
    for (std::size_t from = first_ - tensor_.around; from < first_; ++from) {
      bool stay = iterations(from, first_, store) <= static_cast<double>(core_.tensor_units.accumulators);
      bool outermost = true;
      for (std::size_t l = from; l < first_ && stay; ++l) {
        if (open_[l].kind == loops::LoopKind::Parallel || open_[l].kind == loops::LoopKind::Vectorized)
          stay = false;
        if (open_[l].extent == 1) continue;
        if ((store >> l & 1U) != 0) stay = stay && !outermost && open_[l].kind == loops::LoopKind::Unrolled;
        outermost = false;
      }
      if (stay) return from;
    }
    return first_;
  }

  /// Outermost loop of the straight-line code around the instruction.
  [[nodiscard]] std::size_t straight_from(LoopSet store) const {
    constexpr double most = 1024;  // instructions
    std::size_t from = first_;
    for (; from + tensor_.around > first_; --from) {
      const OutlineLoop& loop = open_[from - 1];
      const double instances = iterations(from - 1, first_);
      const bool limit = loop.kind == loops::LoopKind::Serial && tensor_.whole == 1 &&
                         instances <= static_cast<double>(unroll_limit_[from - 1]);
      const bool moves = (store >> (from - 1) & 1U) != 0;
      const bool too_many = moves && iterations(from - 1, first_, store) > 2.0 * target_.vector_registers();
      if (loop.extent != 1 &&
          ((loop.kind != loops::LoopKind::Unrolled && !limit) || too_many || instances > most))
        break;
    }
    return from;
  }

  const OutlineTensor& tensor_;
  std::span<const OutlineLoop> open_;
  std::size_t first_;  // depth of the instruction
  const StatementReach& reach_;
  std::span<const std::int64_t> unroll_limit_;  // by depth
  const CpuCore& core_;
  const Target& target_;
};

}  // namespace tunewright::drafts
