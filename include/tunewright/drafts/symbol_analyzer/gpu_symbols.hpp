// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"

namespace tunewright::drafts {

/// One read or write of device memory by a statement.
struct DeviceTraffic {
  double bytes = 0;             ///< S5, L2MemFootprint: for all blocks together
  double contiguous_bytes = 0;  ///< S7, L2TransDim: contiguous bytes
};

/// The symbols of one statement of a GPU nest, in Pruner's order. The tiles of an axis are I0 (blocks), I1 (threads),
/// I2 (virtual threads), I3 and I4. For example, a matrix product with relu has S1 = I2..I4 * J2..J4 + I2..I4 + J2..J4
/// and S2 = I2..I4 * J2..J4 * K0..K2 for the product, and S3 = I1..I4 * K1..K2 and S5 = I0..I4 * J0 * K0..K2 for a
/// copy.
struct GpuSymbols {
  std::size_t kernel = 0;              ///< index of its launch
  double registers_per_thread = 0;     ///< S1, L0MemAlloc: operands of one reduction step, 32 bits each
  double instances_per_thread = 0;     ///< S2, L0CompCount
  double shared_bytes = 0;             ///< S3, L1MemAlloc: of the stored tile, 0 if none
  double threads_per_block = 1;        ///< S4, L1ParaInfo
  std::vector<DeviceTraffic> traffic;  ///< S5 and S7
  double blocks = 1;                   ///< S6, L2ParaInfo
  double flops = 0;                    ///< S8, L2CompCount: for all threads

  [[nodiscard]] double bytes() const;
};

/// The row of a stored buffer in the released analyser; counts are elements.
struct ReleasedRow {
  double flops_per_thread = 0;        ///< additions, multiplications and divisions
  double register_usage = 0;          ///< R
  double memory_workload = 0;         ///< M: R times all loops
  double device_memory_elements = 0;  ///< Q; 0 for a computing statement
  double blocks = 1;
  double threads = 1;
  [[nodiscard]] double flops() const noexcept { return flops_per_thread * blocks * threads; }
  [[nodiscard]] double reuse() const noexcept {
    return flops_per_thread > 0 && memory_workload > 0 ? 1 + flops_per_thread / memory_workload : 1;
  }
};

/// Resources of a launch.
struct KernelUse {
  double threads_per_block = 1;
  double shared_bytes = 0;
};

/// Computes symbols of GPU nests as they are lowered: loops of virtual threads still surround statements that run once
/// for all of them. Reuses its memory.
class GpuSymbolReader {
 public:
  /// The statements of a nest in program order, without initialisations of reductions. Valid until the next call.
  [[nodiscard]] std::span<const GpuSymbols> symbols(const loops::LoopNest& nest) {
    return symbols(summarizer_.summary(nest));
  }
  [[nodiscard]] std::span<const GpuSymbols> symbols(const loops::NestSummary& summary);

  /// One row per stored buffer, from its last statement. Valid until the next call.
  [[nodiscard]] std::span<const ReleasedRow> released_rows(const loops::LoopNest& nest) {
    return released_rows(summarizer_.summary(nest));
  }
  [[nodiscard]] std::span<const ReleasedRow> released_rows(const loops::NestSummary& summary);

  /// One per top-level tree of the last nest.
  [[nodiscard]] std::span<const KernelUse> kernels() const noexcept { return kernels_; }

 private:
  struct Around {
    LoopSet blocks = 0, threads = 0, virtual_threads = 0, own = 0;  // own: all other loops
  };

  void use(double threads, double shared_bytes);
  [[nodiscard]] double shared_bytes_of(loops::BufferId id) const;

  [[nodiscard]] Around loops_around() const;

  void add_symbols(const loops::StatementSummary& s);

  [[nodiscard]] ReleasedRow released_row(const loops::StatementSummary& s);

  loops::NestSummarizer summarizer_;
  NestReader reader_;
  StatementFootprint footprint_;
  std::vector<GpuSymbols> symbols_;
  std::size_t count_ = 0;
  std::vector<ReleasedRow> rows_;
  std::vector<std::size_t> row_of_;  // per buffer
  std::vector<KernelUse> kernels_;
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE double GpuSymbols::bytes() const {
  double sum = 0;
  for (const DeviceTraffic& one : traffic) sum += one.bytes;
  return sum;
}

TUNEWRIGHT_INLINE std::span<const GpuSymbols> GpuSymbolReader::symbols(const loops::NestSummary& summary) {
  count_ = 0;
  kernels_.assign(summary.kernels, {});
  reader_.read(
      summary, [](const loops::LoopSummary&) {},
      [&](const loops::StatementSummary& s) {
        add_symbols(s);
        const GpuSymbols& found = symbols_[count_ - 1];
        use(found.threads_per_block, found.shared_bytes);
      });
  return std::span(symbols_).first(count_);
}

TUNEWRIGHT_INLINE std::span<const ReleasedRow> GpuSymbolReader::released_rows(const loops::NestSummary& summary) {
  constexpr std::size_t none = ~std::size_t{0};
  rows_.clear();
  kernels_.assign(summary.kernels, {});
  row_of_.assign(summary.buffers.size(), none);
  reader_.read(
      summary, [](const loops::LoopSummary&) {},
      [&](const loops::StatementSummary& s) {
        std::size_t& row = row_of_[s.target];
        if (row == none) {
          row = rows_.size();
          rows_.emplace_back();
        }
        rows_[row] = released_row(s);
        use(rows_[row].threads, shared_bytes_of(s.target));
      });
  return rows_;
}

TUNEWRIGHT_INLINE void GpuSymbolReader::use(double threads, double shared_bytes) {
  KernelUse& kernel = kernels_[reader_.kernel()];
  kernel.threads_per_block = std::max(kernel.threads_per_block, threads);
  kernel.shared_bytes += shared_bytes;
}

TUNEWRIGHT_INLINE double GpuSymbolReader::shared_bytes_of(loops::BufferId id) const {
  return reader_.scope_of(id) == loops::Scope::Shared ? static_cast<double>(reader_.summary().buffers[id].bytes()) : 0;
}

TUNEWRIGHT_INLINE GpuSymbolReader::Around GpuSymbolReader::loops_around() const {
  Around around;
  around.blocks = reader_.block_loops();
  around.threads = reader_.thread_loops();
  around.virtual_threads = reader_.loops_of(loops::LoopKind::VirtualThread);
  around.own = reader_.all_loops() & ~around.blocks & ~around.threads & ~around.virtual_threads;
  return around;
}

TUNEWRIGHT_INLINE void GpuSymbolReader::add_symbols(const loops::StatementSummary& s) {
  if (count_ == symbols_.size()) symbols_.emplace_back();
  GpuSymbols& found = symbols_[count_++];
  found.traffic.clear();
  found.kernel = reader_.kernel();
  footprint_.reset(reader_, s);
  const Around around = loops_around();
  const StatementFootprint::Access& store = footprint_.accesses()[0];
  const LoopSet once_a_thread = around.own | (around.virtual_threads & store.moved_by);
  found.blocks = reader_.iterations(around.blocks);
  found.threads_per_block = reader_.iterations(around.threads);
  found.instances_per_thread = reader_.iterations(once_a_thread);
  const double instances = found.instances_per_thread * found.threads_per_block * found.blocks;
  found.flops = s.operations.all() * instances;

  found.registers_per_thread = 0;
  LoopSet reductions = 0;
  for (std::size_t l = 0; l < reader_.open().size(); ++l)
    if (reader_.open()[l].reduction) reductions |= LoopSet{1} << l;
  if (found.flops > 0) {
    footprint_.vary(once_a_thread & ~reductions);
    for (const StatementFootprint::Access& a : footprint_.accesses())
      found.registers_per_thread += footprint_.elements(a) * std::max(footprint_.element_bytes(a), 4.0) / 4;
  }
  found.shared_bytes = shared_bytes_of(store.buffer);
  const bool copy_to_shared = found.shared_bytes > 0 && found.flops == 0;

  const std::size_t outside = reader_.allocated_at(store.buffer);
  const LoopSet inside = ~NestReader::outermost(outside);
  const LoopSet in_block = once_a_thread | around.threads;
  footprint_.vary(copy_to_shared ? in_block & (inside | ~around.own) : in_block);
  for (const StatementFootprint::Access& a : footprint_.accesses()) {
    const loops::BufferSummary& buffer = footprint_.buffer(a);
    if (a.scope != loops::Scope::Global || buffer.shape.empty()) continue;
    const double size = footprint_.element_bytes(a);
    // A tile is fetched again in each iteration of its loops; operands without a tile stay in the caches of the block.
    const double elements = copy_to_shared ? instances : footprint_.elements(a) * found.blocks;
    found.traffic.push_back({elements * size, footprint_.index(a, buffer.shape.size() - 1).count * size});
  }
}

TUNEWRIGHT_INLINE ReleasedRow GpuSymbolReader::released_row(const loops::StatementSummary& s) {
  footprint_.reset(reader_, s);
  const Around around = loops_around();
  const StatementFootprint::Access& store = footprint_.accesses()[0];
  const LoopSet counted = around.own | around.virtual_threads;
  ReleasedRow row;
  row.blocks = reader_.iterations(around.blocks);
  row.threads = reader_.iterations(around.threads);
  const double inner = reader_.iterations(counted);
  row.flops_per_thread = inner * s.operations.arithmetic;
  for (const StatementFootprint::Access& a : footprint_.accesses()) {
    row.register_usage += reader_.iterations(counted & store.moved_by & a.moved_by);
    row.memory_workload += reader_.iterations(counted & a.moved_by);
  }
  if (row.flops_per_thread > 0) return row;
  const bool copy_to_shared = store.scope == loops::Scope::Shared;
  const double per_thread = copy_to_shared ? reader_.iterations(counted & store.moved_by) : inner;
  row.device_memory_elements = per_thread * row.threads * row.blocks;
  return row;
}

}  // namespace tunewright::drafts

#endif
