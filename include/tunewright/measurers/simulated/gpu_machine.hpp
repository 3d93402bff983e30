// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"
#include "tunewright/measurers/simulated/gpu_kernel_time.hpp"
#include "tunewright/measurers/simulated/gpu_prices.hpp"
#include "tunewright/measurers/simulated/warp.hpp"

namespace tunewright::measurers::simulated {

/// Adds up the costs of the kernels of a GPU nest, as `loops::lower` returns it, on one target.
class GpuMachine {
 public:
  GpuMachine(const loops::LoopNest& nest, const Target& target, const GpuPrices& prices)
      : nest_(nest), target_(target), prices_(prices) {}

  /// Time of all kernels in sequence; the largest value if a kernel does not fit the device.
  [[nodiscard]] Ticks run() {
    Ticks total = 0;
    workspace_.assign(nest_.buffers.size(), false);
    for (const loops::Node& node : nest_.body) {
      if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) {
        workspace_[allocate->buffer] = true;
        continue;
      }
      kernel_ = KernelWork{};
      kernel_.requested.assign(nest_.buffers.size(), 0);
      kernel_.instructions = loops::FragmentInstructions(std::span(&node, 1));
      find_threads(node);
      visit(std::span(&node, 1), 0);
      total = std::min(total, never) + GpuKernelTime(nest_, target_, prices_, kernel_).duration();
    }
    return std::min(total, never);
  }

  static constexpr Ticks never = GpuKernelTime::never;

 private:
  struct OpenLoop {
    loops::Var var = 0;
    std::int64_t extent = 1;
    loops::LoopKind kind = loops::LoopKind::Serial;
    bool reduction = false;
    const schedule::TensorIntrinsic* instruction = nullptr;  ///< computes all of it, one row after the other
    bool fetches = false;                                    ///< fills shared memory again in each iteration
  };

  /// Finds grid and block of the kernel, after its instructions: along x, a block has the threads that hold fragments
  /// together.
  void find_threads(const loops::Node& node) {
    if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      for (const loops::Node& inner : branch->then) find_threads(inner);
    }
    if (const auto* allocate = std::get_if<loops::Allocate>(&node.content);
        allocate != nullptr && is_fragment(allocate->buffer))
      kernel_.block[0] = std::max(kernel_.block[0], kernel_.instructions.threads_together());
    const auto* loop = std::get_if<loops::Loop>(&node.content);
    if (loop == nullptr) return;
    const std::int64_t extent = nest_.variables[loop->var].extent;
    if (schedule::is_block_index(loop->kind)) kernel_.blocks = times(kernel_.blocks, extent);
    if (schedule::is_thread_index(loop->kind)) {
      std::int64_t& threads = kernel_.block[schedule::dimension_of_index(loop->kind)];
      threads = std::max(threads, extent);
    }
    for (const loops::Node& inner : loop->body) find_threads(inner);
  }

  void visit(std::span<const loops::Node> body, std::int64_t unroll_limit) {
    bool fetches = false, ahead = false;
    for (const loops::Node& node : body) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
        open_.push_back({loop->var, nest_.variables[loop->var].extent, loop->kind, loop->reduction, loop->intrinsic});
        visit(loop->body, std::max(unroll_limit, loop->unroll_limit));
        open_.pop_back();
      } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
        visit(branch->then, unroll_limit);  // ignores the boundary, which is small
      } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
        add(*statement, unroll_limit);
      } else if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) {
        const loops::Buffer& buffer = nest_.buffers[allocate->buffer];
        const bool shared = buffer.scope == loops::Scope::Shared;
        fetches = fetches || shared;
        ahead = ahead || (shared && buffer.stages > 1);
        if (shared && !open_.empty()) open_.back().fetches = true;
        if (shared) kernel_.shared_bytes += buffer.bytes();
        const std::int64_t holders =
            buffer.scope == loops::Scope::Accumulator ? kernel_.instructions.threads_together() : 1;
        kernel_.accumulators +=
            shared ? registers_of_fetch(buffer) : times(product(true), program::ceil_div(buffer.bytes(), 4 * holders));
      }
    }
    // Barriers before and after fetching, or one per tile that was prefetched.
    if (fetches) kernel_.latency += times(product(false), (ahead ? 1 : 2) * prices_.barrier);
  }

  /// Registers of a thread that hold the elements it has prefetched until it stores them.
  [[nodiscard]] std::int64_t registers_of_fetch(const loops::Buffer& buffer) const {
    if (buffer.stages == 1 || buffer.asynchronous) return 0;
    return program::ceil_div(buffer.bytes(), 4 * std::int64_t{buffer.stages} * kernel_.block_threads());
  }

  /// Iterations of the open virtual threads, or of the open serial loops.
  [[nodiscard]] std::int64_t product(bool virtual_threads) const {
    std::int64_t iterations = 1;
    for (const OpenLoop& loop : open_) {
      if (!schedule::is_hardware_index(loop.kind) && (loop.kind == loops::LoopKind::VirtualThread) == virtual_threads)
        iterations = times(iterations, loop.extent);
    }
    return iterations;
  }

  /// The loops that one thread runs around a statement, outermost first, split into those that stay loops and the
  /// unrolled tile inside, whose operands stay in registers.
  struct Instances {
    std::vector<OpenLoop> loops;
    std::size_t tile = 0;      ///< position of the tile's first loop
    std::int64_t entered = 1;  ///< executions of the tile
    std::int64_t in_tile = 1;  ///< instances per execution
    [[nodiscard]] std::int64_t all() const { return times(entered, in_tile); }
  };

  [[nodiscard]] Instances instances_of(const loops::Statement& s, std::int64_t unroll_limit) const {
    Instances of;
    const bool cooperative = nest_.buffers[s.target].scope == loops::Scope::Shared;
    for (const bool virtual_threads : {false, true}) {  // virtual threads are interleaved, inside the other loops
      for (const OpenLoop& loop : open_) {
        const bool is_virtual = loop.kind == loops::LoopKind::VirtualThread;
        if (schedule::is_hardware_index(loop.kind) || is_virtual != virtual_threads || (is_virtual && cooperative))
          continue;
        of.loops.push_back(loop);
      }
    }
    const bool sums_in_registers =
        s.kind == loops::Statement::Kind::Update && nest_.buffers[s.target].scope == loops::Scope::Local;
    const std::int64_t limit = std::max(unroll_limit, sums_in_registers ? prices_.unrolled_sums : prices_.unrolled);
    of.tile = of.loops.size();
    while (of.tile > 0) {
      const OpenLoop& next = of.loops[of.tile - 1];
      const std::int64_t grown = times(of.in_tile, next.extent);
      if (next.kind == loops::LoopKind::Serial && (grown > limit || next.fetches)) break;
      of.in_tile = grown;
      --of.tile;
    }
    for (std::size_t l = 0; l < of.tile; ++l) of.entered = times(of.entered, of.loops[l].extent);
    return of;
  }

  /// Elements of `a` that one execution of the tile accesses, and how many of them one instruction moves: those of a
  /// vectorized loop and, in shared memory, of an unrolled loop, because compilers load these as vectors. The loop has
  /// whole vectors, and so have rows.
  struct InTile {
    std::int64_t elements = 1, together = 1;
  };
  [[nodiscard]] InTile in_tile(const Instances& of, const Access& a) const {
    const loops::Buffer& buffer = nest_.buffers[a.buffer];
    const std::int64_t widest = 16 / static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
    InTile reached;
    for (std::size_t l = of.tile; l < of.loops.size(); ++l) {
      const OpenLoop& loop = of.loops[l];
      if (!a.moved_by(loop.var)) continue;
      reached.elements = times(reached.elements, loop.extent);
      const bool contiguous = !a.physical.empty() && a.physical.back().coefficient(loop.var) == 1;
      if (!contiguous) continue;
      if (loop.kind == loops::LoopKind::Vectorized || buffer.scope == loops::Scope::Shared)
        reached.together = std::gcd(std::gcd(loop.extent, widest), pitch(buffer));
    }
    return reached;
  }

  /// Elements of `load` that are held in registers: those for a few terms of the sums that the tile stores to `target`.
  [[nodiscard]] std::int64_t waiting(const Instances& of, const Access& load, const Access& target) const {
    std::int64_t of_a_term = 1, terms = 1;
    for (std::size_t l = of.tile; l < of.loops.size(); ++l) {
      const OpenLoop& loop = of.loops[l];
      if (!load.moved_by(loop.var)) continue;
      std::int64_t& moved = target.moved_by(loop.var) ? of_a_term : terms;
      moved = times(moved, loop.extent);
    }
    return times(of_a_term, std::min(terms, prices_.terms_at_a_time));
  }

  [[nodiscard]] bool is_fragment(loops::BufferId id) const {
    return id != loops::LoopNest::no_buffer && nest_.buffers[id].scope == loops::Scope::Accumulator;
  }
  /// Whether whole warps execute `s` together.
  [[nodiscard]] bool works_on_fragments(const loops::Statement& s) const {
    bool found = is_fragment(s.target);
    if (s.kind == loops::Statement::Kind::Initialise) return found;
    program::visit(s.op->body, [&](const program::ExprNode& node) {
      found = found || (node.op == program::Op::Load && is_fragment(nest_.buffer_of[node.tensor]));
    });
    return found;
  }

  /// The warps of a block, or its warp groups, that execute a statement on fragments, and how often each does.
  struct WarpLoops {
    std::int64_t warps = 1;
    std::int64_t points = 1;  ///< iterations of all loops
    std::int64_t tile = 1;    ///< of the unrolled ones
  };

  static constexpr std::int64_t fragment_elements = 16 * 16, fragment_products = 16 * fragment_elements;

  void add_fragments(const loops::Statement& s) {
    WarpLoops work;
    for (const OpenLoop& loop : open_) {
      if (!schedule::is_hardware_index(loop.kind)) work.points = times(work.points, loop.extent);
      if (loop.kind == loops::LoopKind::Unrolled) work.tile = times(work.tile, loop.extent);
    }
    work.warps = program::ceil_div(kernel_.block_threads(), kernel_.instructions.threads_together());
    if (s.kind == loops::Statement::Kind::Update)
      add_products(s, work);
    else
      add_copies(s, work);
  }

  void add_banks(std::int64_t bytes) {
    constexpr std::int64_t words_of_bank_step = 32;
    kernel_.banks += times(program::ceil_div(bytes, 4 * words_of_bank_step), prices_.bank_step);
  }

  /// Adds copies of fragments through shared memory.
  void add_copies(const loops::Statement& s, const WarpLoops& work) {
    const Access target = store_of(nest_, s);
    const std::int64_t taken = times(work.warps, work.points);
    const loops::BodyOperations operations = loops::operations(s);
    const auto body = static_cast<std::int64_t>(operations.simple_fused() + operations.functions) + 4;
    kernel_.issue += times(times(taken / warp_size, body), prices_.issue);
    add_banks(2 * 4 * taken);
    if (is_memory(target)) {
      const std::int64_t bytes =
          times(taken, static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers[target.buffer].type)));
      kernel_.transfers += times(program::ceil_div(bytes, 32), prices_.sector);
      kernel_.requested[target.buffer] += times(kernel_.blocks, bytes);
      kernel_.latency += prices_.global_latency;
    }
    kernel_.latency += prices_.shared_latency;
  }

  /// Adds products of fragments of 16 x 16 elements. A warp computes one at a time; factors are loaded once for all
  /// unrolled loops that do not move them. If warp groups execute the instructions, a product is one of their
  /// instructions, which reads each factor from shared memory once.
  void add_products(const loops::Statement& s, const WarpLoops& work) {
    constexpr std::int64_t registers = 8;
    const auto [warps, points, tile] = work;
    // Rows are the outermost loop of an instruction.
    const auto rows =
        std::find_if(open_.begin(), open_.end(), [](const OpenLoop& loop) { return loop.instruction != nullptr; });
    const schedule::TensorIntrinsic* of_group =
        rows != open_.end() && rows->instruction->by_warp_group() ? rows->instruction : nullptr;
    const std::int64_t product_points =
        of_group == nullptr ? fragment_products : of_group->m * of_group->n * of_group->k;
    const std::int64_t products = points / product_points;
    std::int64_t operands = 0, size = 1;
    for (const Access& load : loads_of(nest_, s)) {
      if (is_fragment(load.buffer)) continue;
      std::int64_t shared_by = 1;
      for (const OpenLoop& loop : open_) {
        if (loop.kind == loops::LoopKind::Unrolled && !load.moved_by(loop.var))
          shared_by = times(shared_by, loop.extent);
      }
      size = static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers[load.buffer].type));
      if (of_group != nullptr) {
        const std::int64_t shared_by_instruction = load.moved_by(rows->var) ? of_group->n : of_group->m;
        add_banks(times(times(warps, points / shared_by_instruction), size));
        continue;
      }
      const std::int64_t fragments = times(warps, products / shared_by);
      kernel_.issue += times(fragments, 2 * prices_.issue);
      const std::int64_t row_bytes = row_elements(nest_.buffers[load.buffer]) * size;
      add_banks(times(times(fragments, fragment_elements * size), loops::conflicts_of_fragment_rows(row_bytes)));
      operands += registers * size / 2 * (tile / shared_by);
    }
    // A warp issues a product of fragments as two instructions; each warp of a group issues the group's instruction.
    const std::int64_t issued = of_group == nullptr ? 2 : of_group->threads / warp_size;
    kernel_.issue += times(times(warps, products), issued * prices_.issue);
    const Ticks product = times(product_points / fragment_products, tensor_ticks(size, of_group != nullptr));
    kernel_.arithmetic += times(times(warps, products), product);
    kernel_.operands = std::max(kernel_.operands, operands);
    kernel_.latency +=
        times(products / tile, prices_.shared_latency + 8 * prices_.arithmetic_latency) + times(products, product);
  }

  /// Elements between the starts of two rows of a buffer, padding included.
  [[nodiscard]] static std::int64_t row_elements(const loops::Buffer& buffer) {
    return buffer.packing.empty() ? buffer.shape.back() : buffer.packing.back().extent;
  }
  /// The same; 0 if there is only one row.
  [[nodiscard]] static std::int64_t pitch(const loops::Buffer& buffer) {
    return buffer.elements() > row_elements(buffer) ? row_elements(buffer) : 0;
  }

  /// Time that a multiprocessor needs for one product of fragments: on its tensor cores, for warps or warp groups, or
  /// on its other units if it has none.
  [[nodiscard]] Ticks tensor_ticks(std::int64_t element_bytes, bool of_groups) const {
    const double reached = target_.peak_tensor_gflops * (of_groups ? 1.0 : target_.tensor_peak_share_of_warps());
    const double peak = std::max(reached * (element_bytes < 2 ? 2 : 1), target_.peak_fp32_gflops);
    const double per_cycle = peak * 1e9 / (2.0 * target_.multiprocessors * prices_.frequency_hz);
    return std::max<Ticks>(fragment_products * prices_.cycle / std::max<std::int64_t>(std::llround(per_cycle), 1), 1);
  }

  void add(const loops::Statement& s, std::int64_t unroll_limit) {
    if (works_on_fragments(s)) {
      if (s.kind != loops::Statement::Kind::Initialise) add_fragments(s);
      return;
    }
    const Instances of = instances_of(s, unroll_limit);
    const std::int64_t warps = kernel_.warps();
    const loops::BodyOperations operations = loops::operations(s);
    const auto functions = static_cast<std::int64_t>(operations.functions);
    const std::int64_t simple = static_cast<std::int64_t>(operations.simple_fused()) +
                                prices_.division * static_cast<std::int64_t>(operations.divisions);
    const std::int64_t instructions = times(times(warps, of.all()), simple + functions);
    kernel_.issue += times(instructions, prices_.issue);
    kernel_.arithmetic += times(times(warps, of.all()), simple * arithmetic_ticks() + functions * prices_.function);
    std::int64_t steps = 0, around = 1;
    for (std::size_t l = 0; l < of.tile; ++l) steps += around = times(around, of.loops[l].extent);
    kernel_.issue += times(times(warps, steps), prices_.loop_step);

    std::int64_t operands = 0;
    Ticks wait = 0;
    const Access target = store_of(nest_, s);
    for (const Access& load : loads_of(nest_, s)) {
      if (!is_memory(load)) continue;
      operands += waiting(of, load, target);
      wait = std::max(wait, move(of, load));
    }
    const loops::Buffer& stored = nest_.buffers[s.target];
    const bool update = s.kind == loops::Statement::Kind::Update;
    if (is_memory(target)) {
      const Ticks read_back = update ? move(of, target) : 0;
      wait = std::max(wait, read_back);
      const Ticks issued = kernel_.issue;
      move(of, target);
      if (stored.asynchronous) kernel_.issue = issued;  // one instruction loads and stores
    }
    std::int64_t chain = 1;
    for (std::size_t l = of.tile; update && l < of.loops.size(); ++l) {
      if (!target.moved_by(of.loops[l].var)) chain = times(chain, of.loops[l].extent);
    }
    for (const OpenLoop& loop : open_) {  // the threads' results are combined in a tree
      if (!schedule::is_thread_index(loop.kind) || !loop.reduction || !update) continue;
      const auto levels = static_cast<std::int64_t>(std::ceil(std::log2(static_cast<double>(loop.extent))));
      kernel_.issue += warps * levels * 2 * prices_.issue;
      wait += levels * prices_.shared_latency + 2 * prices_.barrier;
    }
    kernel_.operands = std::max(kernel_.operands, operands);
    const Ticks latency = times(of.entered, wait + times(chain, prices_.arithmetic_latency));
    if (stored.stages > 1)
      kernel_.ahead += latency / (stored.stages - 1);
    else
      kernel_.latency += latency;
  }

  [[nodiscard]] bool is_memory(const Access& a) const {
    const loops::Scope scope = nest_.buffers[a.buffer].scope;
    return scope == loops::Scope::Global || scope == loops::Scope::Shared || workspace_[a.buffer];
  }

  /// The open loops over threads.
  [[nodiscard]] std::array<ThreadLoop, 3> open_threads() const {
    std::array<ThreadLoop, 3> threads;
    for (std::size_t i = 0; i < threads.size(); ++i) threads[i].extent = kernel_.block[i];
    for (const OpenLoop& loop : open_) {
      if (schedule::is_thread_index(loop.kind)) threads[schedule::dimension_of_index(loop.kind)].var = loop.var;
    }
    return threads;
  }

  /// Adds the cost of moving an operand for all tiles; returns the latency of one.
  Ticks move(const Instances& of, const Access& a) {
    const auto [elements, together] = in_tile(of, a);
    const std::int64_t active = std::min(kernel_.block_threads(), warp_size);
    const std::vector<std::int64_t> words = words_of_warp(nest_, a, open_threads(), active, together);
    const std::int64_t times_moved = times(kernel_.warps(), times(of.entered, program::ceil_div(elements, together)));
    kernel_.issue += times(times_moved, prices_.issue);
    if (nest_.buffers[a.buffer].scope == loops::Scope::Shared) {
      kernel_.banks += times(times_moved, bank_steps(words) * prices_.bank_step);
      return prices_.shared_latency;
    }
    const std::int64_t moved = times(times_moved, sectors(words));
    kernel_.transfers += times(moved, prices_.sector);
    kernel_.requested[a.buffer] += times(times(kernel_.blocks, moved), 32);
    return prices_.global_latency;
  }

  /// Time of one multiply-add of a warp.
  [[nodiscard]] Ticks arithmetic_ticks() const {
    const double per_cycle = target_.peak_fp32_gflops * 1e9 / (2.0 * target_.multiprocessors * prices_.frequency_hz);
    const auto lanes = std::max<std::int64_t>(std::llround(per_cycle), 1);
    return std::max<Ticks>(warp_size * prices_.cycle / lanes, 1);
  }

  const loops::LoopNest& nest_;
  const Target& target_;
  const GpuPrices& prices_;
  std::vector<bool> workspace_;  // by buffer: passed between kernels, so in global memory whatever its scope
  std::vector<OpenLoop> open_;
  KernelWork kernel_;
};

}  // namespace tunewright::measurers::simulated
