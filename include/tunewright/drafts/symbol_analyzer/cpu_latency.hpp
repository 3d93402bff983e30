// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_core.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_symbols.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/tensor_work.hpp"

namespace tunewright::drafts {

/// Minimum work and traffic of a program.
struct Roof {
  double peak_cycles = 0;   ///< of the worker with most operations, without padding that sums skip
  double memory_bytes = 0;  ///< of all workers
};

/// Pruner's idea on a CPU: instead of simulating a pipeline, it computes symbols of each statement at every level of
/// the machine, the cost of each level, and their maximum.
///
///   registers   vectors of the innermost unrolled and vectorized tile; operands are loaded once if it fits, and its
///               accumulators are loaded and stored each time the surrounding loops that do not move them are entered;
///               terms of unrolled sums share the elements that they have in common while registers can hold them
///   operations  those of the body; conditions that all lanes share are computed once per tile, and the padding of
///               reductions is skipped by `loops::eliminate_padding`
///   tile        maximum of computing, loading and waiting for earlier sums + (1 - overlap) * the others + storing;
///               tiles at the end of an axis have the remaining rows
///   L1, L2, L3  the data that the first loop whose footprint does not fit touches, each time it is entered; nothing if
///               all buffers fit together, since a program runs repeatedly on the same buffers. L1 and L2 hold few rows
///               that begin in the same sets, see `GrowingFootprint`; the last level distributes rows over its sets by
///               hashing, and half of it counts, as others use it, too; what no prefetcher follows, or L1 evicts before
///               it is used, takes longer
///   copies      what is fetched early while tiles use the copy before counts as traffic of these tiles
///   tensors     instructions replace the operations, and their loads and stores those of the tile, where the code
///               generator can use them: see `CpuTensorCost`
///   workers     the longest share of a parallel loop; the last one has the tiles with few rows
///   statement   maximum + (1 - overlap) * (sum of the others); program: sum of its statements and loops
class CpuAnalysis {
 public:
  /// Analyses programs on `target` by the rates of `core`, which `CpuCore::on` adapts to the target.
  CpuAnalysis(const Target& target, const CpuCore& core) : target_(target), core_(core.on(target)) {}

  /// Cycles of one run.
  [[nodiscard]] double cycles(const loops::LoopNest& nest) { return cycles(summarizer_.summary(nest)); }
  [[nodiscard]] double cycles(const loops::NestSummary& summary);

  /// The symbols of a roofline model.
  [[nodiscard]] Roof roof(const loops::LoopNest& nest) { return roof(summarizer_.summary(nest)); }
  [[nodiscard]] Roof roof(const loops::NestSummary& summary);

 private:
  [[nodiscard]] const NestReader& nest() const noexcept { return symbols_.reader(); }
  [[nodiscard]] bool in_parallel() const { return nest().loops_of(loops::LoopKind::Parallel) != 0; }

  void add_loop(const loops::LoopSummary& loop);

  /// The share of a loop's iterations that tensor instructions do not replace. Loops that fill sums with zeros have the
  /// same variables as those that add to the sums, and are replaced with them.
  [[nodiscard]] double share_of_plain_loops(std::size_t depth) const;
  /// The tensor statement that computes a statement; null if loops do.
  [[nodiscard]] const loops::TensorStatement* tensor_of(const loops::StatementSummary& statement) const;
  /// The share of a statement's iterations that an instruction computes.
  [[nodiscard]] static double share_of(const loops::TensorStatement& tensor) {
    return static_cast<double>(tensor.share) / static_cast<double>(loops::whole_share);
  }
  [[nodiscard]] double peak_cycles(const loops::TensorStatement& tensor, const loops::BodyOperations& operations) const;
  [[nodiscard]] loops::TensorWork work_of(const loops::TensorStatement& tensor) const;

  using Traffic = std::array<double, 3>;  ///< cycles of moving bytes into L1, L2 and the last level

  /// A copy that was fetched early, and what that takes while it is used.
  struct EarlyCopy {
    loops::BufferId buffer = 0;
    Traffic traffic{};
  };

  /// The traffic of what a statement touches, and of what is fetched early while it runs. Products of tile registers
  /// fetch nothing early: they wait for their copies.
  [[nodiscard]] Traffic traffic_of(const CpuSymbols& s, const loops::StatementSummary& statement,
                                   const loops::TensorStatement* tensor);

  [[nodiscard]] double cost(const CpuSymbols& s, const loops::StatementSummary& statement,
                            const Traffic& traffic) const;

  /// Cycles of one tile with a share `rows` of the rows of a full tile, if all operands are in L1.
  [[nodiscard]] double tile_cycles(const CpuSymbols& s, const loops::StatementSummary& statement, double rows) const;

  /// The cost with a tensor instruction; iterations at boundaries are computed by loops.
  [[nodiscard]] double cost(const CpuSymbols& s, const loops::StatementSummary& statement,
                            const loops::TensorStatement& tensor, const Traffic& traffic) const;

  /// Cycles of a statement that takes `computing` if all operands are in L1.
  [[nodiscard]] double with_traffic(double computing, const Traffic& traffic) const;

  Target target_;
  CpuCore core_;
  double total_ = 0;
  loops::NestSummarizer summarizer_;
  CpuSymbolReader symbols_;
  std::vector<EarlyCopy> early_;  // that no statement has used yet
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

#include "tunewright/drafts/symbol_analyzer/cpu_tensor_cost.hpp"

namespace tunewright::drafts {

TUNEWRIGHT_INLINE double CpuAnalysis::cycles(const loops::NestSummary& summary) {
  total_ = 0;
  early_.clear();
  symbols_.read(
      summary, target_, CpuSymbolReader::Caches::Warm, [this](const loops::LoopSummary& loop) { add_loop(loop); },
      [this](const loops::StatementSummary& statement, const CpuSymbols& s) {
        const loops::TensorStatement* tensor = tensor_of(statement);
        const Traffic traffic = traffic_of(s, statement, tensor);
        total_ += tensor == nullptr ? cost(s, statement, traffic) : cost(s, statement, *tensor, traffic);
      });
  return total_;
}

TUNEWRIGHT_INLINE Roof CpuAnalysis::roof(const loops::NestSummary& summary) {
  Roof found;
  symbols_.read(
      summary, target_, CpuSymbolReader::Caches::Cold, [](const loops::LoopSummary&) {},
      [&](const loops::StatementSummary& statement, const CpuSymbols& s) {
        const loops::BodyOperations& ops = statement.operations;
        const loops::TensorStatement* tensor = tensor_of(statement);
        const double by_instruction = tensor == nullptr ? 0 : share_of(*tensor);
        if (tensor != nullptr) found.peak_cycles += by_instruction * peak_cycles(*tensor, ops);
        found.peak_cycles += (1 - by_instruction) * s.tile_runs * s.tile_vectors *
                             (s.operations + ops.divisions + ops.functions) / core_.vectors_per_cycle;
        found.memory_bytes += s.bytes.back() * (in_parallel() ? std::max(1U, target_.threads) : 1U);
      });
  return found;
}

TUNEWRIGHT_INLINE void CpuAnalysis::add_loop(const loops::LoopSummary& loop) {
  const std::size_t depth = nest().open().size() - 1;
  if (loop.kind == loops::LoopKind::Parallel && target_.threads > 1)
    total_ += symbols_.entries(depth) * core_.fork_cycles;
  const bool unrolled = depth > 0 && loop.extent <= symbols_.unroll_limit(depth - 1);
  if (!CpuSymbolReader::in_tile(loop.kind) && !unrolled)
    total_ += symbols_.entries(depth + 1) * core_.loop_step_cycles * share_of_plain_loops(depth);
}

TUNEWRIGHT_INLINE double CpuAnalysis::share_of_plain_loops(std::size_t depth) const {
  for (const loops::TensorStatement& tensor : nest().summary().tensors) {
    const std::uint8_t first = nest().depth_of(tensor.loop->var);
    if (first <= depth && depth < first + tensor.own && loops::is_emitted(tensor, target_)) return 1 - share_of(tensor);
  }
  return 1;
}

TUNEWRIGHT_INLINE const loops::TensorStatement* CpuAnalysis::tensor_of(const loops::StatementSummary& statement) const {
  const loops::NestSummary& summary = nest().summary();
  for (const loops::TensorStatement& tensor : summary.tensors)
    if (&summary.statements[tensor.number] == &statement && loops::is_emitted(tensor, target_)) return &tensor;
  return nullptr;
}

TUNEWRIGHT_INLINE double CpuAnalysis::peak_cycles(const loops::TensorStatement& tensor,
                                                  const loops::BodyOperations& operations) const {
  const loops::TensorWork work = work_of(tensor);
  return CpuTensorCost(tensor, work, operations, core_).cycles_at_peak();
}

TUNEWRIGHT_INLINE loops::TensorWork CpuAnalysis::work_of(const loops::TensorStatement& tensor) const {
  std::array<loops::WorkerLoop, NestReader::max_depth> around;
  const std::span<const loops::LoopSummary> open = nest().open();
  for (std::size_t l = 0; l < open.size(); ++l) around[l] = {open[l].extent, open[l].kind, symbols_.unroll_limit(l)};
  return loops::tensor_work(tensor, std::span(around).first(open.size()), target_.vector_registers());
}

TUNEWRIGHT_INLINE double CpuAnalysis::cost(const CpuSymbols& s, const loops::StatementSummary& statement,
                                           const Traffic& traffic) const {
  double tile = 0;
  for (std::size_t t = 0; t < s.sizes; ++t)
    if (s.tiles[t].share > 0) tile += s.tiles[t].share * tile_cycles(s, statement, s.tiles[t].rows);
  return with_traffic(s.tile_runs * tile, traffic);
}

TUNEWRIGHT_INLINE double CpuAnalysis::tile_cycles(const CpuSymbols& s, const loops::StatementSummary& statement,
                                                  double rows) const {
  const bool update = statement.kind == loops::Statement::Kind::Update;
  const double computing = rows * s.tile_vectors * core_.cycles(s.operations, statement.operations);
  const double loading = rows * s.loaded_vectors / core_.loads_per_cycle;
  const double waiting = update ? s.chained_updates * core_.update_latency_cycles : 0;
  const double longest = std::max({computing, loading, waiting});
  double cycles = longest + (1 - core_.overlap) * (computing + loading + waiting - longest);
  cycles += rows * (s.fits ? s.accumulator_vectors : s.tile_vectors) / s.runs_in_registers *
            (1 / core_.stores_per_cycle + (update ? 1 / core_.loads_per_cycle : 0));
  cycles += s.conditions * core_.condition_cycles;
  return s.tile_vectors > core_.unrolled_statements ? 2 * cycles : cycles;
}

TUNEWRIGHT_INLINE double CpuAnalysis::cost(const CpuSymbols& s, const loops::StatementSummary& statement,
                                           const loops::TensorStatement& tensor, const Traffic& traffic) const {
  const double share = share_of(tensor);
  const loops::TensorWork work = work_of(tensor);
  const double computing = CpuTensorCost(tensor, work, statement.operations, core_).cycles();
  return share * with_traffic(computing, traffic) + (share < 1 ? (1 - share) * cost(s, statement, traffic) : 0);
}

TUNEWRIGHT_INLINE CpuAnalysis::Traffic CpuAnalysis::traffic_of(const CpuSymbols& s,
                                                               const loops::StatementSummary& statement,
                                                               const loops::TensorStatement* tensor) {
  Traffic traffic{};
  for (std::size_t level = 0; level < traffic.size(); ++level) {
    traffic[level] = (s.bytes[level] + core_.late_share * s.late_bytes[level]) / core_.bytes_per_cycle[level];
    if (level + 1 == traffic.size() && in_parallel()) traffic[level] *= std::max(1U, target_.threads);
  }
  if (s.fetched_early) {
    early_.push_back({statement.target, {0, traffic[1], traffic[2]}});
    return {traffic[0], 0, 0};
  }
  for (const loops::LoadSummary& load : statement.loads) {
    const auto copy = std::ranges::find(early_, load.buffer, &EarlyCopy::buffer);
    if (copy == early_.end()) continue;
    if (tensor != nullptr && tensor->intrinsic->m > 1) {
      total_ += with_traffic(0, copy->traffic);
    } else {
      for (std::size_t level = 0; level < traffic.size(); ++level) traffic[level] += copy->traffic[level];
    }
    early_.erase(copy);
  }
  return traffic;
}

TUNEWRIGHT_INLINE double CpuAnalysis::with_traffic(double computing, const Traffic& traffic) const {
  double longest = computing;
  double all = longest;
  for (const double moving : traffic) {
    all += moving;
    longest = std::max(longest, moving);
  }
  return longest + (1 - core_.overlap) * (all - longest);
}

}  // namespace tunewright::drafts

#endif
