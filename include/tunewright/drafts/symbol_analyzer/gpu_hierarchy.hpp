// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_symbols.hpp"
#include "tunewright/drafts/symbol_analyzer/machine_numbers.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"
#include "tunewright/loops/fragment_instructions.hpp"

namespace tunewright::drafts {

/// Assumed rates of a multiprocessor; all others come from the target.
struct Multiprocessor {
  double frequency_hz = 1.5e9;              ///< nominal
  double instructions_per_cycle = 4;        ///< warp instructions
  double shared_bytes_per_cycle = 128;      ///< one word per bank
  double transferred_bytes_per_cycle = 64;  ///< between a multiprocessor and L2
  double cache_speed = 3;                   ///< bandwidth of L2 relative to device memory
  double global_latency = 450, shared_latency = 25, arithmetic_latency = 4, barrier = 140;
  double launch = 4500;
  double loop_step_instructions = 3;
  double asynchronous_store = 4;  ///< issue slots of an asynchronous copy in addition to its load
  double division_instructions = 8, function_instructions = 8;
  double unrolled_statements = 64;  ///< that a compiler unrolls by itself
  double unrolled_sums = 1024;      ///< updates of registers, which `codegen::cuda` unrolls
  double terms_at_a_time = 2;       ///< of unrolled sums whose operands are held in registers
  double registers_for_addresses = 24;
  double overlap = 0.75;  ///< share of the other costs that the largest hides, in [0, 1]
};

/// Throws `std::invalid_argument`, which names `who`, for rates that are not above 0, costs that are not 0 or more, and
/// an overlap outside [0, 1].
inline void check(const Multiprocessor& m, const char* who) {
  require(std::isfinite(m.frequency_hz) && m.frequency_hz > 0, who, "multiprocessor.frequency_hz", m.frequency_hz,
          "a finite frequency above 0");
  const auto rate = [who](const char* what, double value) { require_rate(value, who, what); };
  const auto cost = [who](const char* what, double value) { require_cost(value, who, what); };
  rate("multiprocessor.instructions_per_cycle", m.instructions_per_cycle);
  rate("multiprocessor.shared_bytes_per_cycle", m.shared_bytes_per_cycle);
  rate("multiprocessor.transferred_bytes_per_cycle", m.transferred_bytes_per_cycle);
  rate("multiprocessor.cache_speed", m.cache_speed);
  cost("multiprocessor.global_latency", m.global_latency);
  cost("multiprocessor.shared_latency", m.shared_latency);
  cost("multiprocessor.arithmetic_latency", m.arithmetic_latency);
  cost("multiprocessor.barrier", m.barrier);
  cost("multiprocessor.launch", m.launch);
  cost("multiprocessor.loop_step_instructions", m.loop_step_instructions);
  cost("multiprocessor.asynchronous_store", m.asynchronous_store);
  cost("multiprocessor.division_instructions", m.division_instructions);
  cost("multiprocessor.function_instructions", m.function_instructions);
  cost("multiprocessor.unrolled_statements", m.unrolled_statements);
  cost("multiprocessor.unrolled_sums", m.unrolled_sums);
  cost("multiprocessor.terms_at_a_time", m.terms_at_a_time);
  cost("multiprocessor.registers_for_addresses", m.registers_for_addresses);
  require(m.overlap >= 0 && m.overlap <= 1, who, "multiprocessor.overlap", m.overlap, "a share, 0 to 1");
}

/// Analyses a GPU nest by levels. In addition to computing and device memory, as in the analyser's printed form, it
/// considers the instructions and the shared memory of a multiprocessor, and latency that too few warps cannot hide.
///
///   block     maximum of issue, arithmetic, shared memory, transfers + (1 - overlap) * (sum of the others)
///   wave      max(resident blocks * block, block + barriers, latency of one warp alone + barriers); fetches that run d
///             tiles ahead overlap with computing, take 1/d of their latency, and share one barrier
///   kernel    launch + maximum of waves, device memory, L2 + (1 - overlap) * (the others)
///   program   sum of its kernels
///
/// Operands are loaded once per tile of unrolled loops, including virtual threads; operands for a few terms of a sum
/// are held in registers at a time. Every warp is assumed to access memory like the first one. A product of fragments
/// takes its time at the tensor cores' peak, its instruction, and the loads of its factors, once for all products that
/// share them.
class GpuHierarchy {
 public:
  /// Seconds of one run; infinity if no block fits a multiprocessor.
  [[nodiscard]] double latency_s(const loops::LoopNest& nest, const Target& target, const Multiprocessor& m) {
    return latency_s(summarizer_.summary(nest), target, m);
  }
  [[nodiscard]] double latency_s(const loops::NestSummary& summary, const Target& target, const Multiprocessor& m);

  /// One per top-level tree of the last nest.
  [[nodiscard]] std::span<const KernelUse> kernels() const noexcept { return uses_; }

 private:
  struct Kernel {
    bool used = false;
    loops::FragmentInstructions instructions;  // of tensor cores
    double blocks = 1, threads = 1, shared_bytes = 0;
    double accumulators = 0, operands = 0;                        // registers per thread
    double issue = 0, arithmetic = 0, shared = 0, transfers = 0;  // cycles per block
    double alone = 0;                                             // cycles of a warp that runs alone
    double barriers = 0;                                          // cycles in which a block only waits for itself
    double ahead = 0;                                             // cycles of its prefetches, for one tile each
    double from_memory = 0, from_cache = 0;                       // bytes of all blocks
  };
  struct Tile {
    LoopSet loops = 0;
    double entered = 1, instances = 1;
  };

  void enter(const loops::LoopSummary& loop);

  /// The loops that one thread runs, split into those that stay loops and the unrolled tile inside. A loop that refills
  /// shared memory stays a loop.
  [[nodiscard]] Tile tile_of(LoopSet own, LoopSet virtual_threads, bool sums_in_registers) const;

  /// Whether whole warps execute the statement together, on fragments.
  [[nodiscard]] bool works_on_fragments() const;

  /// Adds products of fragments of 16 x 16 elements, or copies of fragments. If warp groups execute the instructions,
  /// `warps` are warp groups and a product is one of their instructions, which reads each factor from shared memory
  /// once.
  void add_fragments(const loops::StatementSummary& s, Kernel& k);

  void add(const loops::StatementSummary& s);

  /// Threads that share a reduction combine their results in a tree.
  void add_shared_reduction(Kernel& k, double warps) const;

  [[nodiscard]] static bool in_memory(const StatementFootprint::Access& a) {
    return a.scope == loops::Scope::Global || a.scope == loops::Scope::Shared;
  }

  /// Adds the cost of moving an operand for all tiles; returns the latency of one.
  double move(Kernel& k, const StatementFootprint::Access& a, const Tile& tile, double warps);

  [[nodiscard]] double warp() const { return std::max(1U, target_->warp_size); }
  /// Multiply-adds of a multiprocessor per cycle.
  [[nodiscard]] double lanes() const {
    return std::max(1.0, target_->peak_fp32_gflops * 1e9 / (2.0 * target_->multiprocessors * m_->frequency_hz));
  }

  /// 16-bit multiply-adds per cycle of the tensor cores of a multiprocessor, for warps or for warp groups; the rate of
  /// other units if there are none.
  [[nodiscard]] double tensor_lanes(bool of_groups) const;

  template <std::size_t N>
  [[nodiscard]] double overlapped(const std::array<double, N>& parts) const {
    const double longest = *std::max_element(parts.begin(), parts.end());
    return longest + (1 - m_->overlap) * (std::accumulate(parts.begin(), parts.end(), 0.0) - longest);
  }

  /// Occupancy: blocks per multiprocessor; limits of 0 are unknown. Ignores the shared memory that CUDA reserves, as
  /// `measurers::Simulated` does.
  [[nodiscard]] double resident(const Kernel& k, double registers) const;

  [[nodiscard]] double duration(const Kernel& k) const;

  const Target* target_ = nullptr;
  const Multiprocessor* m_ = nullptr;
  loops::NestSummarizer summarizer_;
  NestReader reader_;
  StatementFootprint footprint_;
  std::vector<Kernel> kernels_;
  std::vector<KernelUse> uses_;
  std::vector<bool> counted_;                                     // per buffer
  std::vector<double> requested_;                                 // per buffer: bytes of all blocks
  std::array<std::int64_t, NestReader::max_depth> unroll_limit_;  // per depth
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

#include "tunewright/drafts/symbol_analyzer/warp_accesses.hpp"

namespace tunewright::drafts {

TUNEWRIGHT_INLINE double GpuHierarchy::latency_s(const loops::NestSummary& summary, const Target& target,
                                                 const Multiprocessor& m) {
  target_ = &target;
  m_ = &m;
  kernels_.resize(std::max(kernels_.size(), summary.kernels));
  for (std::size_t k = 0; k < summary.kernels; ++k) kernels_[k] = Kernel{};
  counted_.assign(summary.buffers.size(), false);
  requested_.assign(summary.buffers.size(), 0.0);
  reader_.read(
      summary, [this](const loops::LoopSummary& loop) { enter(loop); },
      [this](const loops::StatementSummary& s) { add(s); });
  double sum = 0;
  uses_.clear();
  for (std::size_t k = 0; k < summary.kernels; ++k) {
    uses_.push_back({kernels_[k].threads, kernels_[k].shared_bytes});
    if (kernels_[k].used) sum += duration(kernels_[k]);
  }
  return sum / m.frequency_hz;
}

TUNEWRIGHT_INLINE void GpuHierarchy::enter(const loops::LoopSummary& loop) {
  const std::size_t depth = reader_.open().size() - 1;
  unroll_limit_[depth] = std::max(depth == 0 ? 0 : unroll_limit_[depth - 1], loop.unroll_limit);
}

TUNEWRIGHT_INLINE GpuHierarchy::Tile GpuHierarchy::tile_of(LoopSet own, LoopSet virtual_threads,
                                                           bool sums_in_registers) const {
  const std::span<const loops::LoopSummary> open = reader_.open();
  const double unasked = sums_in_registers ? m_->unrolled_sums : m_->unrolled_statements;
  std::size_t fetches = 0;  // number of loops around the innermost fetch
  for (const StatementFootprint::Access& a : footprint_.accesses())
    if (a.scope == loops::Scope::Shared) fetches = std::max(fetches, reader_.allocated_at(a.buffer));
  Tile tile{virtual_threads, 1, reader_.iterations(virtual_threads)};
  bool inside = true;
  for (std::size_t l = open.size(); l-- > 0;) {
    if ((own >> l & 1U) == 0) continue;
    const auto extent = static_cast<double>(open[l].extent);
    const double limit = std::max(static_cast<double>(unroll_limit_[l]), unasked);
    const bool unrolled = open[l].kind != loops::LoopKind::Serial || (tile.instances * extent <= limit && l >= fetches);
    inside = inside && unrolled;
    (inside ? tile.instances : tile.entered) *= extent;
    if (inside) tile.loops |= LoopSet{1} << l;
  }
  return tile;
}

TUNEWRIGHT_INLINE bool GpuHierarchy::works_on_fragments() const {
  return std::any_of(footprint_.accesses().begin(), footprint_.accesses().end(),
                     [](const StatementFootprint::Access& a) { return a.scope == loops::Scope::Accumulator; });
}

TUNEWRIGHT_INLINE void GpuHierarchy::add_fragments(const loops::StatementSummary& s, Kernel& k) {
  constexpr double elements = 16 * 16, registers = 8;
  const LoopSet blocks = reader_.block_loops(), threads = reader_.thread_loops();
  const LoopSet own = reader_.all_loops() & ~blocks & ~threads;
  const LoopSet unrolled = own & reader_.loops_of(loops::LoopKind::Unrolled);
  const StatementFootprint::Access store = footprint_.accesses()[0];
  const double warps = reader_.iterations(threads);
  const std::span<const loops::LoopSummary> open = reader_.open();
  // Rows are the outermost loop of an instruction; copies of fragments have none.
  const auto rows =
      std::find_if(open.begin(), open.end(), [](const loops::LoopSummary& loop) { return loop.intrinsic != nullptr; });
  if (rows != open.end()) k.instructions.add(*rows->intrinsic, s.target);
  const auto together = static_cast<double>(k.instructions.threads_together());
  k.used = true;
  k.blocks = std::max(k.blocks, reader_.iterations(blocks));
  k.threads = std::max(k.threads, warps * together);
  if (s.kind != loops::Statement::Kind::Update) {
    const double taken = warps * reader_.iterations(own);
    const loops::BodyOperations& ops = s.operations;
    k.issue += taken / warp() * (ops.simple_fused() + ops.functions * m_->function_instructions + 4) /
               m_->instructions_per_cycle;
    k.shared += 2 * 4 * taken / m_->shared_bytes_per_cycle;
    const double bytes = taken * footprint_.element_bytes(store);
    k.transfers += bytes / m_->transferred_bytes_per_cycle;
    k.from_cache += bytes * k.blocks;
    k.from_memory += bytes * k.blocks;
    k.alone += m_->shared_latency + m_->global_latency;
    return;
  }
  if (!counted_[store.buffer]) {
    counted_[store.buffer] = true;
    k.accumulators += static_cast<double>(footprint_.buffer(store).bytes()) / 4 / together;
  }
  const schedule::TensorIntrinsic* of_group =
      rows != open.end() && rows->intrinsic->by_warp_group() ? rows->intrinsic : nullptr;
  const double terms = reader_.iterations(own),
               products = terms / (of_group == nullptr ? elements * 16
                                                       : static_cast<double>(of_group->m * of_group->n * of_group->k));
  double loads = 0, operands = 0, bytes = 1;
  for (const StatementFootprint::Access& a : footprint_.accesses().subspan(1)) {
    if (a.scope == loops::Scope::Accumulator) continue;
    bytes = footprint_.element_bytes(a);
    if (of_group != nullptr) {
      const bool is_a = (a.moved_by >> (rows - open.begin()) & 1U) != 0;
      const std::int64_t shared_by = is_a ? of_group->n : of_group->m;
      k.shared += warps * terms / static_cast<double>(shared_by) * bytes / m_->shared_bytes_per_cycle;
      continue;
    }
    const double fragments = products / reader_.iterations(unrolled & ~a.moved_by);
    loads += fragments;
    operands += registers * bytes / 2 * reader_.iterations(unrolled & a.moved_by);
    const auto row_bytes = row_elements(footprint_.buffer(a)) * static_cast<std::int64_t>(footprint_.element_bytes(a));
    const auto conflicts = static_cast<double>(loops::conflicts_of_fragment_rows(row_bytes));
    k.shared += warps * fragments * elements * bytes * conflicts / m_->shared_bytes_per_cycle;
  }
  const double per_cycle = tensor_lanes(of_group != nullptr) * (bytes < 2 ? 2 : 1);
  k.arithmetic += warps * terms / per_cycle;
  // A warp issues a product of fragments as two instructions; each warp of a group issues the group's instruction.
  const double issued = of_group == nullptr ? 2 : together / warp();
  k.issue += warps * issued * (products + loads) / m_->instructions_per_cycle;
  k.operands = std::max(k.operands, operands);
  const double entered = products / reader_.iterations(unrolled);
  k.alone += entered * (m_->shared_latency + 8 * m_->arithmetic_latency) + terms / per_cycle;
}

TUNEWRIGHT_INLINE void GpuHierarchy::add(const loops::StatementSummary& s) {
  Kernel& k = kernels_[reader_.kernel()];
  footprint_.reset(reader_, s);
  if (works_on_fragments()) {
    add_fragments(s, k);
    return;
  }
  const StatementFootprint::Access store = footprint_.accesses()[0];
  const loops::BufferSummary& target = footprint_.buffer(store);
  const loops::Scope scope = store.scope;
  const bool cooperative = scope == loops::Scope::Shared;
  const LoopSet blocks = reader_.block_loops(), threads = reader_.thread_loops();
  const LoopSet virtual_threads = reader_.loops_of(loops::LoopKind::VirtualThread);
  const LoopSet own = reader_.all_loops() & ~blocks & ~threads & ~virtual_threads;
  k.used = true;
  k.blocks = std::max(k.blocks, reader_.iterations(blocks));
  k.threads = std::max(k.threads, reader_.iterations(threads));
  const double warps = std::ceil(reader_.iterations(threads) / warp());
  const bool update = s.kind == loops::Statement::Kind::Update;
  const Tile tile = tile_of(own, cooperative ? LoopSet{0} : virtual_threads, update && scope == loops::Scope::Local);
  if (!counted_[store.buffer] && target.role == loops::BufferRole::Temporary) {
    counted_[store.buffer] = true;
    if (cooperative) k.shared_bytes += static_cast<double>(target.bytes());
    if (cooperative && target.stages > 1 && !target.asynchronous)  // prefetched elements are held in registers
      k.accumulators += static_cast<double>(target.bytes()) / (4.0 * target.stages * k.threads);
    if (scope == loops::Scope::Local)
      k.accumulators += static_cast<double>(target.bytes()) / 4 * reader_.iterations(virtual_threads);
  }

  const loops::BodyOperations& ops = s.operations;
  const double instructions =
      ops.simple_fused() + ops.divisions * m_->division_instructions + ops.functions * m_->function_instructions;
  const double steps = tile.entered > 1 ? m_->loop_step_instructions : 0;
  k.issue += warps * tile.entered * (tile.instances * instructions + steps) / m_->instructions_per_cycle;
  k.arithmetic += warps * tile.entered * tile.instances * instructions * warp() / lanes();

  double wait = 0, operands = 0;
  footprint_.vary(threads | (tile.loops & reader_.loops_of(loops::LoopKind::Vectorized)),
                  static_cast<std::int64_t>(warp()));
  for (const StatementFootprint::Access& a : footprint_.accesses().subspan(1)) {
    if (!in_memory(a)) continue;
    const LoopSet moving = tile.loops & a.moved_by;
    operands += reader_.iterations(moving & store.moved_by) *
                std::min(reader_.iterations(moving & ~store.moved_by), m_->terms_at_a_time);
    wait = std::max(wait, move(k, a, tile, warps));
  }
  if (in_memory(store)) {
    const double issued = k.issue;
    move(k, store, tile, warps);
    if (target.asynchronous) k.issue = issued + (k.issue - issued) * m_->asynchronous_store;
    if (update) wait = std::max(wait, move(k, store, tile, warps));
  }
  k.operands = std::max(k.operands, operands);
  const double chain = update ? reader_.iterations(tile.loops & ~store.moved_by) : 1;
  const double latency = tile.entered * (wait + chain * m_->arithmetic_latency);
  if (target.stages > 1)
    k.ahead += latency / (target.stages - 1);
  else
    k.alone += latency;
  if (cooperative) {
    const std::size_t outside = reader_.allocated_at(store.buffer);
    const double barriers = target.stages > 1 ? 0.5 : 1;
    k.barriers += barriers * m_->barrier * reader_.iterations(own & NestReader::outermost(outside));
  }
  if (update) add_shared_reduction(k, warps);
}

TUNEWRIGHT_INLINE void GpuHierarchy::add_shared_reduction(Kernel& k, double warps) const {
  for (const loops::LoopSummary& loop : reader_.open()) {
    if (!schedule::is_thread_index(loop.kind) || !loop.reduction) continue;
    const double steps = std::ceil(std::log2(static_cast<double>(loop.extent)));
    k.issue += warps * steps * 2 / m_->instructions_per_cycle;
    k.alone += steps * m_->shared_latency;
    k.barriers += 2 * m_->barrier;
  }
}

TUNEWRIGHT_INLINE double GpuHierarchy::move(Kernel& k, const StatementFootprint::Access& a, const Tile& tile,
                                            double warps) {
  const loops::BufferSummary& buffer = footprint_.buffer(a);
  const Together together = moved_together(reader_, footprint_, a, tile.loops);
  const double moves = tile.entered * reader_.iterations(tile.loops & a.moved_by) / together.elements;
  k.issue += warps * moves / m_->instructions_per_cycle;
  if (a.scope == loops::Scope::Shared) {
    k.shared += warps * moves * bank_steps(footprint_, a, together) * bytes_of_step / m_->shared_bytes_per_cycle;
    return m_->shared_latency;
  }
  const double bytes = warps * sectors(footprint_, a) * sector_bytes * moves;
  k.transfers += bytes / m_->transferred_bytes_per_cycle;
  k.from_cache += bytes * k.blocks;
  const double before = requested_[a.buffer];
  requested_[a.buffer] += bytes * k.blocks;
  const auto whole = static_cast<double>(buffer.bytes());
  const bool kept = whole <= static_cast<double>(target_->l2_bytes);
  const auto fetched = [&](double asked) {
    const double distinct = std::min(asked, whole);
    return kept ? distinct : distinct + (asked - distinct) / 4;
  };
  k.from_memory += fetched(requested_[a.buffer]) - fetched(before);
  return m_->global_latency;
}

TUNEWRIGHT_INLINE double GpuHierarchy::tensor_lanes(bool of_groups) const {
  const double peak = target_->peak_tensor_gflops * (of_groups ? 1.0 : target_->tensor_peak_share_of_warps());
  return std::max(lanes(), peak * 1e9 / (2.0 * target_->multiprocessors * m_->frequency_hz));
}

TUNEWRIGHT_INLINE double GpuHierarchy::resident(const Kernel& k, double registers) const {
  double blocks = target_->resident_blocks_limit();
  const double threads = std::ceil(k.threads / warp()) * warp();
  const auto at_most = [&](double available, double used) {
    if (available > 0 && used > 0) blocks = std::min(blocks, std::floor(available / used));
  };
  at_most(target_->max_threads_per_multiprocessor, threads);
  at_most(target_->registers_per_multiprocessor, threads * registers);
  at_most(static_cast<double>(target_->shared_memory_per_multiprocessor_bytes), k.shared_bytes);
  return blocks;
}

TUNEWRIGHT_INLINE double GpuHierarchy::duration(const Kernel& k) const {
  const double wanted = k.accumulators + k.operands + m_->registers_for_addresses;
  // A compiler that knows the size of the block limits registers such that one block fits.
  const double threads = std::ceil(k.threads / warp()) * warp();
  double available = target_->thread_registers_limit();
  if (target_->registers_per_block > 0) available = std::min(available, target_->registers_per_block / threads);
  const double blocks_at_once = resident(k, std::min(wanted, available));
  if (blocks_at_once < 1) return std::numeric_limits<double>::infinity();
  const double spills = 1 + 4 * std::max(wanted - available, 0.0) / available;
  const double block = spills * overlapped(std::array{k.issue, k.arithmetic, k.shared, k.transfers});
  const double width = target_->multiprocessors, at_once = width * blocks_at_once;
  const double full = std::floor(k.blocks / at_once), rest = k.blocks - full * at_once;
  const auto wave = [&](double blocks) {
    return std::max({blocks * block, block + k.barriers, spills * std::max(k.alone, k.ahead) + k.barriers});
  };
  const double computing = full * wave(blocks_at_once) + (rest > 0 ? wave(std::ceil(rest / width)) : 0);
  const double bytes_per_cycle = target_->peak_gb_per_s * 1e9 / m_->frequency_hz;
  return m_->launch + overlapped(std::array{computing, k.from_memory / bytes_per_cycle,
                                            k.from_cache / (m_->cache_speed * bytes_per_cycle)});
}

}  // namespace tunewright::drafts

#endif
