// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/emission_plan.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/loops/guard_share.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"
#include "tunewright/loops/tensor_statements.hpp"
#include "tunewright/loops/tensor_work.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"
#include "tunewright/measurers/simulated/cpu_prices.hpp"
#include "tunewright/measurers/simulated/tensor_time.hpp"

namespace tunewright::measurers::simulated {

using loops::part, loops::Share, loops::share_where, loops::whole_share;

/// Adds up the costs of the statements of a nest on one CPU target, with guards where the code generator has them.
class Machine {
 public:
  Machine(const loops::LoopNest& nest, const Target& target, const Prices& prices)
      : nest_(loops::prepare_for_codegen(nest, target.vector_bytes())), target_(target), prices_(prices) {
    bool is_narrow = false;  // for some buffer: tensor instructions of CPUs read only types below 4 bytes
    for (const loops::Buffer& buffer : nest_.buffers) {
      buffers_bytes_ += static_cast<std::uint64_t>(buffer.bytes());
      is_narrow = is_narrow || program::size_in_bytes(buffer.type) < 4;
    }
    if (!is_narrow) return;
    loops::TensorStatements().find(nest_, tensors_);
    std::erase_if(tensors_, [&](const auto& tensor) { return !loops::is_emitted(tensor, target_); });
  }

  [[nodiscard]] Ticks run() {
    visit(nest_.body, 0);
    return total_;
  }

 private:
  struct OpenLoop {
    loops::Var var = 0;
    std::int64_t extent = 1;
    loops::LoopKind kind = loops::LoopKind::Serial;
    bool reduction = false;
    std::int64_t runs = 1;  ///< iterations that one thread runs
    std::int64_t unroll_limit = 0;
  };

  void visit(const loops::Body& body, std::int64_t unroll_limit) {
    for (const loops::Node& node : body) {
      if (is_left_out(node)) continue;
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
        visit(*loop, std::max(unroll_limit, loop->unroll_limit));
      } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
        visit(*branch, unroll_limit);
      } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
        add(cost(*statement));
      }
    }
  }

  void visit(const loops::Loop& loop, std::int64_t unroll_limit) {
    OpenLoop open{loop.var, nest_.variables[loop.var].extent, loop.kind, loop.reduction, 0, unroll_limit};
    open.runs = open.extent;
    if (loop.kind == loops::LoopKind::Parallel) {
      open.runs = program::ceil_div(open.extent, static_cast<std::int64_t>(target_.threads));
      if (target_.threads > 1) add(times(runs(open_.size()), prices_.fork));
    }
    open_.push_back(open);
    const bool around_in_instruction = in_instruction_;
    in_instruction_ = in_instruction_ || instruction_of(loop) != nullptr;
    if (!in_tile(open) && !in_instruction_ && !is_unrolled(loop, unroll_limit))
      add(times(runs(open_.size()), prices_.loop_step));
    visit(loop.body, unroll_limit);
    in_instruction_ = around_in_instruction;
    open_.pop_back();
  }

  /// What `codegen::EmissionPlan` counts to decide which loops become straight-line code.
  struct Code {
    std::int64_t instances = 0;  ///< of statements, where vectors and tensor instructions are one each
    std::int64_t vectors = 1;    ///< maximum number that one statement writes
    bool straight = true;        ///< without loops, and conditions, which keep loops around them
  };

  /// `unroll_limit` is the limit of the surrounding loops.
  [[nodiscard]] Code code_of(const loops::Body& body, std::int64_t unroll_limit) {
    Code all;
    const auto add = [&all](const Code& part) {
      all.instances += part.instances;
      all.vectors = std::max(all.vectors, part.vectors);
      all.straight = all.straight && part.straight;
    };
    for (const loops::Node& node : body) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content))
        add(code_of(*loop, std::max(unroll_limit, loop->unroll_limit)));
      else if (const auto* statement = std::get_if<loops::Statement>(&node.content))
        add({.instances = 1, .straight = statement->guards.empty()});
      else if (std::holds_alternative<loops::Branch>(node.content))
        all.straight = false;
    }
    return all;
  }

  /// `unroll_limit` is that of the loop and the surrounding ones. Notes whether the loop, and each inside, is unrolled.
  [[nodiscard]] Code code_of(const loops::Loop& loop, std::int64_t unroll_limit) {
    Code code = code_of(loop.body, unroll_limit);
    if (const loops::TensorStatement* tensor = instruction_of(loop);
        tensor != nullptr && tensor->kind == loops::TensorStatement::Kind::Product)
      code = {.instances = 1, .straight = !tensor->guarded};
    else if (nest_.variables[loop.var].extent > 1)
      repeat(code, loop, unroll_limit);
    unrolled_[&loop] = code.straight;
    return code;
  }

  /// `code`, which is that of the content, becomes that of the loop.
  void repeat(Code& code, const loops::Loop& loop, std::int64_t unroll_limit) const {
    const codegen::EmissionPlanOptions options;
    std::int64_t copies = nest_.variables[loop.var].extent, narrowest = copies;
    bool moves = false;
    loops::for_each_statement(loop.body, [&](const loops::Statement& s) {
      moves = moves || moves_target(s, loop.var);
      narrowest = std::min(narrowest, lanes(s.target));
    });
    const bool is_vector = loop.kind == loops::LoopKind::Vectorized;
    if (is_vector) copies = program::ceil_div(copies, narrowest);
    const std::int64_t instances = times(code.instances, copies);
    const std::int64_t vectors = moves ? times(code.vectors, copies) : code.vectors;
    bool is_static = copies <= options.max_unrolled_chunks;
    if (!is_vector) {
      const bool is_parallel = loop.kind == loops::LoopKind::Parallel && target_.threads > 1;
      const bool is_short = !is_parallel && code.straight && instances <= unroll_limit;
      const bool too_many = moves && vectors > 2 * static_cast<std::int64_t>(target_.vector_registers());
      is_static = (loop.kind == loops::LoopKind::Unrolled || is_short) && !too_many &&
                  instances <= options.max_unrolled_instances;
    }
    if (is_static)
      code = {instances, vectors, code.straight};
    else
      code.straight = false;
  }

  [[nodiscard]] bool moves_target(const loops::Statement& s, loops::Var var) const {
    const std::vector<program::IndexExpr>& origin = nest_.buffers[s.target].origin;
    for (std::size_t d = 0; d < origin.size(); ++d)
      if ((s.axis_values[d] - origin[d]).uses(var)) return true;
    return false;
  }

  /// Whether a loop becomes straight-line code, or has only one iteration.
  [[nodiscard]] bool is_unrolled(const loops::Loop& loop, std::int64_t unroll_limit) {
    if (nest_.variables[loop.var].extent == 1) return true;
    if (unroll_limit == 0) return false;
    const auto known = unrolled_.find(&loop);
    return known == unrolled_.end() ? code_of(loop, unroll_limit).straight : known->second;
  }

  /// The statement that tensor instructions compute in place of the loop and those inside; null if there is none.
  [[nodiscard]] const loops::TensorStatement* instruction_of(const loops::Loop& loop) const {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.loop == &loop; });
    return found == tensors_.end() ? nullptr : &*found;
  }

  /// Whether the loops only initialise sums that an instruction starts from zero.
  [[nodiscard]] bool is_left_out(const loops::Node& node) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.fill == &node; });
  }

  /// Visits the interior, which has no conditions, and the boundary, each weighted by its share of the iterations.
  void visit(const loops::Branch& branch, std::int64_t unroll_limit) {
    add(times(runs(open_.size()), prices_.condition));
    const std::size_t known = holding_.size();
    holding_.insert(holding_.end(), branch.conditions.begin(), branch.conditions.end());
    const Share around = share_, interior = std::min(share_where(nest_, holding_), around);
    share_ = interior;
    if (share_ > 0) visit(branch.then, unroll_limit);
    holding_.resize(known);
    share_ = around - interior;
    const Share interior_around = std::exchange(interior_, interior);
    if (share_ > 0) visit(branch.otherwise, unroll_limit);
    interior_ = interior_around;
    share_ = around;
  }

  void add(Ticks ticks) { total_ = std::min(total_, std::numeric_limits<Ticks>::max() / 2) + part(ticks, share_); }

  [[nodiscard]] static bool in_tile(const OpenLoop& loop) {
    return loop.kind == loops::LoopKind::Unrolled || loop.kind == loops::LoopKind::Vectorized;
  }
  [[nodiscard]] std::int64_t lanes(loops::BufferId buffer) const {
    return target_.vector_lanes(program::size_in_bytes(nest_.buffers[buffer].type));
  }

  /// Iterations that one thread runs of the outermost `depth` loops.
  [[nodiscard]] std::int64_t runs(std::size_t depth) const {
    std::int64_t product = 1;
    for (std::size_t l = 0; l < depth; ++l) product = times(product, open_[l].runs);
    return product;
  }

  /// Vector loads of the distinct elements that the tile, the loops from `tile` inwards, accesses.
  [[nodiscard]] std::int64_t vectors_of(const Access& a, std::size_t tile) const {
    std::int64_t vectors = 1;
    for (std::size_t l = tile; l < open_.size(); ++l) {
      if (!a.moved_by(open_[l].var)) continue;
      const bool contiguous =
          open_[l].kind == loops::LoopKind::Vectorized && a.physical.back().coefficient(open_[l].var) == 1;
      vectors = times(vectors, contiguous ? program::ceil_div(open_[l].extent, lanes(a.buffer)) : open_[l].extent);
    }
    return vectors;
  }

  /// Arithmetic of one evaluation of the body.
  [[nodiscard]] Ticks arithmetic(const loops::Statement& s) const {
    const loops::BodyOperations count = loops::operations(s);
    return static_cast<Ticks>(count.simple_fused()) * prices_.arithmetic +
           static_cast<Ticks>(count.divisions) * prices_.division +
           static_cast<Ticks>(count.functions) * prices_.function;
  }

  /// One statement in all its loops: the maximum of registers and pipes (or tensor instructions), branches, and the
  /// slowest level of memory, plus a part of the others, since they overlap imperfectly. Programs are run repeatedly,
  /// so a cache that holds all buffers fetches nothing.
  [[nodiscard]] Ticks cost(const loops::Statement& s) const {
    std::size_t tile = open_.size();
    while (tile > 0 && in_tile(open_[tile - 1])) --tile;
    const Access target = store_of(nest_, s);
    std::vector<Access> loads = loads_of(nest_, s);
    const auto tensor =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.statement == &s; });
    const Ticks computing = tensor == tensors_.end() ? times(runs(tile), in_registers(s, target, loads, tile))
                                                     : tensor_time(*tensor, work_of(*tensor), arithmetic(s), prices_);
    const Ticks pipes = part(computing, terms(s)), branches = conditions(s);
    Ticks longest = std::max(pipes, branches), all = pipes + branches;
    loads.push_back(target);
    const std::array<std::uint64_t, 3> capacity{target_.l1_bytes, target_.l2_bytes,
                                                std::max(target_.l2_bytes, target_.l3_bytes)};
    for (std::size_t level = 0; level < capacity.size(); ++level) {
      if (buffers_bytes_ <= capacity[level]) break;
      const auto [bytes, ticks] = prices_.bytes_per_tick[level];
      Ticks moving = times(traffic(loads, static_cast<std::int64_t>(capacity[level])), ticks) / bytes;
      const bool shared = level + 1 == capacity.size();
      if (shared && in_parallel()) moving = times(moving, static_cast<std::int64_t>(target_.threads));
      all += moving;
      longest = std::max(longest, moving);
    }
    return longest + (all - longest) / 4;
  }

  [[nodiscard]] loops::TensorWork work_of(const loops::TensorStatement& tensor) const {
    std::vector<loops::WorkerLoop> around;
    for (const OpenLoop& loop : open_) around.push_back({loop.runs, loop.kind, loop.unroll_limit});
    return loops::tensor_work(tensor, around, static_cast<std::int64_t>(target_.vector_registers()));
  }

  [[nodiscard]] static std::vector<loops::Guard> guards_of_terms(const loops::Statement& s) {
    std::vector<loops::Guard> guards;
    std::copy_if(s.guards.begin(), s.guards.end(), std::back_inserter(guards),
                 [](const loops::Guard& guard) { return guard.axis == loops::Guard::padding; });
    return guards;
  }

  /// Share of the visited terms that are not skipped; on a boundary, of those outside its interior.
  [[nodiscard]] Share terms(const loops::Statement& s) const {
    std::vector<loops::Guard> guards = guards_of_terms(s);
    if (guards.empty()) return whole_share;
    guards.insert(guards.end(), holding_.begin(), holding_.end());
    return std::clamp<Share>(share_where(nest_, guards) - interior_, 0, share_) * whole_share / share_;
  }

  /// Ticks of the conditions that skip terms, each evaluated as soon as the loops that decide it are entered;
  /// conditions that only straight-line code decides cost nothing.
  [[nodiscard]] Ticks conditions(const loops::Statement& s) const {
    const std::vector<loops::Guard> guards = guards_of_terms(s);
    if (guards.empty()) return 0;
    const std::vector<char> straight = straight_loops(s, guards);
    std::vector<char> asked(open_.size(), 0);
    for (const loops::Guard& guard : guards) {
      bool known = true;
      std::size_t depth = 0;
      for (std::size_t l = 0; l < open_.size(); ++l) {
        if (!guard.value.uses(open_[l].var)) continue;
        known = known && straight[l] != 0;
        depth = l + 1;
      }
      if (!known) asked[depth - 1] = 1;
    }
    Ticks ticks = 0;
    for (std::size_t l = 0; l < asked.size(); ++l) {
      if (asked[l] != 0) ticks += times(runs(l + 1), prices_.condition);
    }
    return ticks;
  }

  /// For each depth, whether the loop becomes straight-line code: loops of the tile do, and reductions around them that
  /// decide their guards.
  [[nodiscard]] std::vector<char> straight_loops(const loops::Statement& s,
                                                 std::span<const loops::Guard> guards) const {
    std::vector<char> straight(open_.size(), 0);
    std::int64_t instances = 1;
    for (std::size_t l = open_.size(); l-- > 0;) {
      const std::int64_t copies = open_[l].kind == loops::LoopKind::Vectorized
                                      ? program::ceil_div(open_[l].extent, lanes(s.target))
                                      : open_[l].extent;
      const bool decides = open_[l].reduction && std::any_of(guards.begin(), guards.end(), [&](const auto& g) {
                             if (!g.value.uses(open_[l].var)) return false;
                             for (std::size_t inner = l + 1; inner < open_.size(); ++inner) {
                               if (straight[inner] != 0 && open_[inner].extent > 1 && g.value.uses(open_[inner].var))
                                 return true;
                             }
                             return false;
                           });
      const bool few = times(instances, copies) <= codegen::EmissionPlanOptions{}.max_guarded_instances;
      straight[l] = open_[l].extent == 1 || in_tile(open_[l]) || (decides && few) ? 1 : 0;
      if (straight[l] != 0) instances = times(instances, copies);
    }
    return straight;
  }

  [[nodiscard]] bool in_parallel() const {
    return std::any_of(open_.begin(), open_.end(),
                       [](const OpenLoop& loop) { return loop.kind == loops::LoopKind::Parallel; });
  }

  /// Ticks of one execution of the tile, the loops from `tile` inwards.
  [[nodiscard]] Ticks in_registers(const loops::Statement& s, const Access& target, std::span<const Access> loads,
                                   std::size_t tile) const {
    std::int64_t copies = 1;   // vector operations per execution
    std::int64_t chained = 1;  // dependent ones, with the same accumulator
    for (std::size_t l = tile; l < open_.size(); ++l) {
      const bool vector = open_[l].kind == loops::LoopKind::Vectorized;
      const std::int64_t steps = vector ? program::ceil_div(open_[l].extent, lanes(s.target)) : open_[l].extent;
      copies = times(copies, steps);
      if (!target.moved_by(open_[l].var)) chained = times(chained, steps);
    }
    const bool update = s.kind == loops::Statement::Kind::Update;
    const std::int64_t stored = vectors_of(target, tile);
    const bool fits = stored + 2 <= static_cast<std::int64_t>(target_.vector_registers());
    const bool stays = update && fits && tile > 0 && !target.moved_by(open_[tile - 1].var);
    const Ticks computing = times(copies, arithmetic(s));
    Ticks loading = 0;
    for (const Access& a : loads) loading += times(fits ? vectors_of(a, tile) : copies, prices_.load);
    Ticks ticks = std::max(computing, loading) + std::min(computing, loading) / 4;
    if (!stays) ticks += times(fits ? stored : copies, prices_.store + (update ? prices_.load : 0));
    if (update) ticks = std::max(ticks, times(chained, prices_.add_latency));
    return copies > prices_.code_copies ? times(ticks, 2) : ticks;
  }

  /// Bytes that a cache of `capacity` fetches. The data of the largest nest of inner loops that fits stay in the cache;
  /// the loop around it fetches what it touches once, and all of it again whenever it is entered.
  [[nodiscard]] std::int64_t traffic(std::span<const Access> accesses, std::int64_t capacity) const {
    std::size_t depth = open_.size();
    while (depth > 0 && touched(accesses, depth - 1) <= capacity) --depth;
    if (depth > 0) --depth;
    return times(runs(depth), touched(accesses, depth));
  }

  /// Bytes, in whole cache lines, that the accesses touch while one thread runs the loops from `depth` inwards.
  [[nodiscard]] std::int64_t touched(std::span<const Access> accesses, std::size_t depth) const {
    const auto range_of = [&](loops::Var var) {
      for (std::size_t l = depth; l < open_.size(); ++l) {
        if (open_[l].var == var) return program::Range{0, open_[l].runs - 1};
      }
      return program::Range{0, 0};
    };
    const auto line = static_cast<std::int64_t>(std::max<std::uint64_t>(target_.cache_line_bytes, 1));
    std::int64_t bytes = 0;
    for (const Access& a : accesses) {
      const loops::Buffer& buffer = nest_.buffers[a.buffer];
      const std::vector<std::int64_t> shape = buffer.physical_shape();
      auto own = static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
      // Neighbours that together have 32 bits count as one element, because instructions read them together.
      const bool of_terms = own < 4 && shape.size() > 1 && own * shape.back() == 4;
      const std::size_t row = a.physical.size() - (of_terms ? 2 : 1);
      for (std::size_t d = a.physical.size(); d-- > 0;) {
        own = times(own, std::min(a.physical[d].range(range_of).extent(), shape[d]));
        if (d == row) own = times(program::ceil_div(own, line), line);
      }
      bytes += own;
    }
    return bytes;
  }

  const loops::LoopNest nest_;
  const Target& target_;
  const Prices& prices_;
  std::uint64_t buffers_bytes_ = 0;
  std::vector<loops::TensorStatement> tensors_;            // that the target's instructions compute
  bool in_instruction_ = false;                            // whose loops are not run
  std::unordered_map<const loops::Loop*, bool> unrolled_;  // known loops: whether they become straight-line code
  std::vector<OpenLoop> open_;                             // loops around the visited node, outermost first
  std::vector<loops::Guard> holding_;                      // conditions of enclosing branches that hold at the node
  Share share_ = whole_share;                              // of all iterations: those that reach the node
  Share interior_ = 0;                                     // on a boundary: those that reach its interior instead
  Ticks total_ = 0;
};

}  // namespace tunewright::measurers::simulated
