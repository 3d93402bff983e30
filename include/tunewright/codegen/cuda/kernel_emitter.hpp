// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda/fragment_emitter.hpp"
#include "tunewright/codegen/cuda/lane_plan.hpp"
#include "tunewright/codegen/cuda/reduction_emitter.hpp"
#include "tunewright/codegen/cuda/register_loops.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/loops/written_statements.hpp"

namespace tunewright::codegen::cuda {

/// Emits the body of one kernel.
class KernelEmitter {
 public:
  KernelEmitter(SourceContext& context, const KernelParts& parts)
      : context_(context), nest_(context.nest), kernel_(parts.kernel) {}
  KernelEmitter(const KernelEmitter&) = delete;
  KernelEmitter& operator=(const KernelEmitter&) = delete;

  [[nodiscard]] std::string body() {
    for (const loops::Loop* loop : kernel_.bound) context_.declare_variable(loop->var);
    emit(kernel_.body, 0);
    const std::string inside = out_.take();
    for (const loops::Loop* loop : kernel_.bound) {
      if (!context_.index.uses(loop->var)) continue;
      const std::string index = schedule::is_thread_index(loop->kind) ? "threadIdx." : "blockIdx.";
      out_.line("const int " + context_.variables[loop->var] + " = (int)" + index +
                "xyz"[schedule::dimension_of_index(loop->kind)] + ";  // below " +
                std::to_string(nest_.variables[loop->var].extent));
    }
    return out_.take() + inside;
  }
  [[nodiscard]] const ReductionEmitter& reductions() const noexcept { return reductions_; }

 private:
  void emit(std::span<const loops::Node> body, std::int64_t unroll_limit) {
    const auto waits_for_products = [&](std::size_t n) {
      return n < body.size() && std::holds_alternative<loops::WaitForProducts>(body[n].content);
    };
    for (std::size_t n = 0; n < body.size(); ++n) {
      const loops::Node& node = body[n];
      std::visit(
          [&](const auto& content) {
            using T = std::decay_t<decltype(content)>;
            if constexpr (std::is_same_v<T, loops::Loop>) {
              emit_loop(content, unroll_limit, waits_for_products(n + 1));
            } else if constexpr (std::is_same_v<T, loops::Branch>) {
              emit_branch(content, unroll_limit);
            } else if constexpr (std::is_same_v<T, loops::Statement>) {
              statements_.emit_guarded(content,
                                       [&] { statements_.emit_statement(content, {}, [](IndexExpr e) { return e; }); });
            } else if constexpr (std::is_same_v<T, loops::Allocate>) {
              emit_allocate(content.buffer);
            } else if constexpr (std::is_same_v<T, loops::Barrier>) {
              // A barrier after a wait for products only protects the products' factors from being overwritten.
              const bool shows_stores = n == 0 || !waits_for_products(n - 1);
              if (shows_stores && kernel_.instructions.by_warp_groups())
                out_.line(context_.helper(show_stores_helper()) + "();");
              out_.line("__syncthreads();");
            } else if constexpr (std::is_same_v<T, loops::CommitCopies>) {
              context_.copies_asynchronously = true;
              context_.require(Target::asynchronous_copies_since);
              out_.line("commit_copies();");
            } else if constexpr (std::is_same_v<T, loops::WaitForCopies>) {
              out_.line("wait_for_copies<" + std::to_string(content.under_way) + ">();");
            } else if constexpr (std::is_same_v<T, loops::WaitForProducts>) {
              fragments_.wait_for_products(content.under_way);
            } else {
              reductions_.emit(content);
            }
          },
          node.content);
    }
  }

  void emit_allocate(BufferId id) {
    const loops::Buffer& buffer = nest_.buffers[id];
    if (buffer.scope == loops::Scope::Shared) return;  // declared at the start of the kernel
    if (context_.buffers[id].empty()) context_.buffers[id] = context_.names.unique(buffer.name);
    if (buffer.scope == loops::Scope::Accumulator) {
      const schedule::TensorIntrinsic& intrinsic = fragments_.intrinsic_of(id);
      out_.line(std::string(fragments_of_sums(buffer.type).spelling) + " " + context_.buffers[id] + "[" +
                std::to_string(fragments_.fragments_in(id)) + "][" + std::to_string(intrinsic.sums_of_thread()) +
                "];  // fragments, of the warp" + (intrinsic.by_warp_group() ? " group" : ""));
      return;
    }
    const std::string declaration = std::string(context_.type(buffer.type).spelling) + " " + context_.buffers[id];
    out_.line(SourceContext::is_scalar(buffer) ? declaration + ";"
                                               : declaration + "[" + std::to_string(buffer.elements()) + "];");
  }

  // Loops.
  void emit_loop(const loops::Loop& loop, std::int64_t unroll_limit, bool products_run_on) {
    unroll_limit = std::max(unroll_limit, loop.unroll_limit);
    context_.declare_variable(loop.var);
    const std::optional<FragmentTile> products = fragments_.products_in(loop);
    if (products) fragments_.begin_products(*products);
    emit_loop_itself(loop, unroll_limit);
    if (products) fragments_.finish_products(*products, products_run_on);
  }
  void emit_loop_itself(const loops::Loop& loop, std::int64_t unroll_limit) {
    if (fragments_.emit(loop)) return;
    if (loop.kind == LoopKind::Vectorized && emit_vectorized(loop)) return;
    const std::int64_t together = written_together(loop, unroll_limit);
    const bool all = together == nest_.variables[loop.var].extent;
    context_.unrolled[loop.var] = all || together > 1;
    if (context_.unrolled[loop.var]) out_.line("#pragma unroll" + (all ? "" : " " + std::to_string(together)));
    const std::int64_t around = std::exchange(copies_, copies_ * together);
    out_.loop(context_.loop_head(loop.var, 1), [&] { emit(loop.body, unroll_limit); });
    copies_ = around;
  }

  /// Number of iterations of a loop that are unrolled here; 1: the compiler decides.
  [[nodiscard]] std::int64_t written_together(const loops::Loop& loop, std::int64_t unroll_limit) const {
    const std::int64_t extent = nest_.variables[loop.var].extent;
    if (loop.kind == LoopKind::Unrolled || loop.kind == LoopKind::Vectorized) return extent;
    if (unroll_limit > 0 && loops::statements_of(nest_, loop, unroll_limit) <= unroll_limit) return extent;
    if (is_short_fetch(nest_, loop)) return extent;
    return terms_together(nest_, loop, copies_, [&](BufferId id) { return statements_.is_private(id); });
  }

  // Conditions.

  /// Whether nodes do nothing unless all `conditions` hold, because their statements have the same guards: the other
  /// side of a branch whose guard no inner loop affects.
  [[nodiscard]] static bool does_nothing(std::span<const loops::Node> body,
                                         const std::vector<loops::Guard>& conditions) {
    return std::all_of(body.begin(), body.end(), [&](const loops::Node& node) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) return does_nothing(loop->body, conditions);
      const auto* statement = std::get_if<loops::Statement>(&node.content);
      return statement != nullptr && std::all_of(conditions.begin(), conditions.end(), [&](const loops::Guard& c) {
               return std::any_of(statement->guards.begin(), statement->guards.end(), [&](const loops::Guard& g) {
                 return g.value == c.value && g.extent == c.extent && g.below >= c.below && g.above >= c.above;
               });
             });
    });
  }
  void emit_branch(const loops::Branch& branch, std::int64_t unroll_limit) {
    const std::string when = statements_.condition(branch.conditions);
    if (when.empty()) {
      emit(branch.then, unroll_limit);
      return;
    }
    const auto then = [&] { emit(branch.then, unroll_limit); };
    if (does_nothing(branch.otherwise, branch.conditions)) {
      statements_.emit_where(when, only_copies(branch.then), then);
      return;
    }
    out_.line("if (" + when + ") {");
    out_.indented(then);
    out_.line("} else {");
    out_.indented([&] { emit(branch.otherwise, unroll_limit); });
    out_.line("}");
  }
  /// Whether nodes only issue asynchronous copies, under predicates if necessary.
  [[nodiscard]] bool only_copies(std::span<const loops::Node> body) {
    return std::all_of(body.begin(), body.end(), [&](const loops::Node& node) {
      if (const auto* branch = std::get_if<loops::Branch>(&node.content))
        return only_copies(branch->then) && only_copies(branch->otherwise);
      if (const auto* statement = std::get_if<loops::Statement>(&node.content))
        return statements_.takes_predicate(*statement, 1);
      const auto* loop = std::get_if<loops::Loop>(&node.content);
      if (loop == nullptr) return false;
      const std::optional<LanePlan> plan = loop->kind == LoopKind::Vectorized ? plan_of(*loop) : std::nullopt;
      return plan ? statements_.takes_predicate(*plan->statement, plan->lanes) : only_copies(loop->body);
    });
  }

  // Vectors.

  /// Moves the lanes of a vectorized loop around one statement together if they are consecutive in memory. Returns
  /// false if that has no advantage; the loop is then unrolled.
  bool emit_vectorized(const loops::Loop& loop) {
    const std::optional<LanePlan> plan = plan_of(loop);
    if (!plan) return false;
    const loops::Statement& s = *plan->statement;
    const auto in_vectors = [&] {
      if (plan->lanes < nest_.variables[loop.var].extent) {
        out_.line("#pragma unroll");
        out_.block(context_.loop_head(loop.var, plan->lanes),
                   [&] { emit_lanes(*plan, IndexExpr::variable(loop.var)); });
      } else {
        out_.block("", [&] { emit_lanes(*plan, IndexExpr(0)); });
      }
    };
    statements_.emit_guarded(s, in_vectors, plan->lanes);
    return true;
  }

  [[nodiscard]] std::optional<LanePlan> plan_of(const loops::Loop& loop) const {
    return plan_lanes(nest_, loop, [&](BufferId id) { return statements_.is_private(id); });
  }

  void emit_lanes(const LanePlan& plan, const IndexExpr& first) {
    const loops::Statement& s = *plan.statement;
    const auto at = [&](std::int64_t lane) {
      return [this, &plan, value = first + IndexExpr(lane)](const IndexExpr& e) {
        return e.substitute([&](loops::Var v) { return v == plan.var ? value : IndexExpr::variable(v); },
                            [&](loops::Var v) { return nest_.range_of(v); });
      };
    };
    if (statements_.is_copied_by_device(s, plan.lanes)) {
      ScalarEmitter scalar(context_, s, {}, at(0));
      statements_.emit_copy(s, plan.lanes, context_.element(s.target, at(0)(store_offset(nest_, s))), scalar, at(0));
      return;
    }
    const Loads decided = decide_once(plan, at(0));
    const Loads vectors = load_vectors(plan, decided, at(0));
    const CudaType& type = context_.type(nest_.buffers[s.target].type);
    const std::string target = context_.element(s.target, at(0)(store_offset(nest_, s)));
    std::string result;
    if (plan.stores) {
      const std::string word = context_.vector_of(type, plan.lanes);
      if (plan.is_copy) {
        out_.line("*reinterpret_cast<" + word + "*>(&" + target + ") = " + vectors.begin()->second + ";");
        return;
      }
      result = context_.names.unique(nest_.buffers[s.target].name + "_lanes");
      out_.line(word + " " + result + ";");
    }
    for (std::int64_t lane = 0; lane < plan.lanes; ++lane) {
      Loads loads = decided;
      for (const LanePlan::VectorLoad& load : plan.loads) {
        const CudaType& from = context_.type(load.node->type);
        loads.emplace(load.node, lane_of(from, vectors.at(load.node), lane));
      }
      if (!plan.stores) {
        statements_.emit_statement(s, loads, at(lane));
        continue;
      }
      const std::string place = lane_of(type, result, lane);
      if (s.kind == loops::Statement::Kind::Initialise) {
        out_.line(place + " = " + statements_.identity(s) + ";");
        continue;
      }
      ScalarEmitter scalar(context_, s, loads, at(lane));
      const Text value = scalar.value();
      for (const std::string& declaration : scalar.declarations()) out_.line(declaration);
      out_.line(place + " = " + value.text + ";");
    }
    if (plan.stores)
      out_.line("*reinterpret_cast<" + context_.vector_of(type, plan.lanes) + "*>(&" + target + ") = " + result + ";");
  }
  /// Declares variables for the vectors that are loaded; `decided` has their conditions.
  template <class Substitute>
  [[nodiscard]] Loads load_vectors(const LanePlan& plan, const Loads& decided, const Substitute& substitute) {
    Loads vectors;
    for (const LanePlan::VectorLoad& load : plan.loads) {
      const BufferId id = nest_.buffer_of[load.node->tensor];
      const CudaType& type = context_.type(nest_.buffers[id].type);
      const std::string name = context_.names.unique(nest_.buffers[id].name + "_lanes");
      const std::string word = context_.vector_of(type, plan.lanes);
      const std::string read = "*reinterpret_cast<const " + word + "*>(&" +
                               context_.element(id, substitute(load_offset(nest_, *plan.statement, *load.node))) + ")";
      if (load.conditions.empty()) {
        out_.line("const " + word + " " + name + " = " + read + ";");
      } else {
        std::string when;
        for (const auto& [condition, wanted] : load.conditions)
          when += (when.empty() ? "" : " && ") + std::string(wanted ? "" : "!") + decided.at(condition);
        out_.line(word + " " + name + " = {};");
        out_.line("if (" + when + ") " + name + " = " + read + ";");
      }
      vectors.emplace(load.node, name);
    }
    return vectors;
  }
  /// Declares variables for the conditions of loads, which are equal in all lanes.
  template <class Substitute>
  [[nodiscard]] Loads decide_once(const LanePlan& plan, const Substitute& substitute) {
    Loads decided;
    for (const LanePlan::VectorLoad& load : plan.loads) {
      for (const auto& [condition, wanted] : load.conditions) {
        if (decided.count(condition) != 0) continue;
        ScalarEmitter scalar(context_, *plan.statement, decided, substitute);
        const std::string text = scalar.value_of(*condition).text;
        const std::string name = context_.names.unique("inside");
        out_.line("const bool " + name + " = " + text + ";");
        decided.emplace(condition, name);
      }
    }
    return decided;
  }

  SourceContext& context_;
  const loops::LoopNest& nest_;
  const loops::DeviceKernel& kernel_;
  SourceWriter out_;
  StatementEmitter statements_{context_, kernel_, out_};
  FragmentEmitter fragments_{context_, kernel_, out_, statements_};
  ReductionEmitter reductions_{context_, kernel_, out_, statements_};
  std::int64_t copies_ = 1;  // copies of the emitted code because of unrolled outer loops
};

}  // namespace tunewright::codegen::cuda
