// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/codegen/cuda/statement_text.hpp"
#include "tunewright/codegen/cuda/tensor_text.hpp"

namespace tunewright::codegen::cuda {

/// Writes what a warp does as a whole with fragments, which tensor units work on.
class FragmentText : public StatementText {
 public:
  using StatementText::StatementText;

 protected:
  /// What a warp does as a whole. False where `loop` begins nothing of the kind.
  bool emit_fragments(const loops::Loop& loop) {
    const std::optional<FragmentTile> tile = fragment_tile(nest_, loop);
    if (tile) {
      emit_products(*tile);
    } else if (loop.intrinsic != nullptr) {
      const loops::device::FragmentWork work = loops::device::fragment_work(nest_, loop);
      for (const loops::Var var : work.loops) declare_variable(var);
      if (work.statement->kind == loops::Statement::Kind::Initialise) {
        line("#pragma unroll");
        line("for (int element = 0; element < " + std::to_string(registers_of_sums) + "; ++element) " +
             fragment(loop, work, work.statement->target, store_offset(nest_, *work.statement)) +
             "[element] = " + identity(*work.statement) + ";");
      } else {
        take_out(loop, work);
      }
    }
    return tile || loop.intrinsic != nullptr;
  }

 private:
  /// A fragment of an accumulator, as an array of what a thread holds of it.
  [[nodiscard]] std::string fragment(const loops::Loop& marked, const loops::device::FragmentWork& work,
                                     BufferId id, const IndexExpr& offset) {
    const IndexExpr number = loops::device::fragment_number(nest_, *marked.intrinsic, work, offset);
    return context_.buffers[id] + "[" + context_.index(number).text + "]";
  }
  [[nodiscard]] std::string helper(const TensorHelper& function) {
    context_.helpers.emplace(function.name, function.definition);
    context_.require(function.since);
    return function.name;
  }
  template <class Inside>
  void unrolled(const std::vector<loops::Var>& loops, const Inside& inside, std::size_t next = 0) {
    if (next == loops.size()) {
      inside();
      return;
    }
    declare_variable(loops[next]);
    line("#pragma unroll");
    block(loop_head(loops[next], 1), [&] { unrolled(loops, inside, next + 1); });
  }

  void emit_products(const FragmentTile& tile) {
    const loops::Statement& s = *tile.work.statement;
    const FragmentType& type = fragment_type(tile.work.a.read->type);
    const auto load = [&](const loops::device::FragmentOperand& o, char matrix) {
      const std::vector<loops::Var> loops = used_of(tile.around, o.first);
      const std::string name = context_.names.unique(nest_.buffers[o.buffer].name + "_fragments");
      line("unsigned " + name + "[" + std::to_string(points_of(nest_, loops)) + "][" +
           std::to_string(type.registers) + "];");
      unrolled(loops, [&] {
        line(helper(load_helper(type, matrix, o.by_columns)) + "(" + name + "[" +
             context_.index(number_in(nest_, loops)).text + "], &" + context_.element(o.buffer, o.first) +
             ", " + std::to_string(o.pitch) + ");");
      });
      return name;
    };
    for (const loops::Var var : tile.work.loops) declare_variable(var);
    for (const loops::Var var : tile.around) declare_variable(var);
    const auto all = [&] {
      const std::string a = load(tile.work.a, 'a'), b = load(tile.work.b, 'b');
      unrolled(tile.around, [&] {
        const auto of = [&](const std::string& name, const IndexExpr& first) {
          return name + "[" + context_.index(number_in(nest_, used_of(tile.around, first))).text + "]";
        };
        line(helper(multiply_helper(type, tile.work.a.by_columns, tile.work.b.by_columns)) + "(" +
             fragment(*tile.product, tile.work, s.target, store_offset(nest_, s)) + ", " +
             of(a, tile.work.a.first) + ", " + of(b, tile.work.b.first) + ");");
      });
    };
    const std::string guards = condition(s.guards);
    block(guards.empty() ? "" : "if (" + guards + ")", all);
  }

  /// A fragment on its way out: through shared memory of the warp, from where each thread takes elements that are
  /// neighbours of those that other threads take at the same time.
  void take_out(const loops::Loop& marked, const loops::device::FragmentWork& work) {
    const loops::Statement& s = *work.statement;
    Loads loads;
    std::optional<BufferId> sums;
    IndexExpr offset;
    program::visit(s.op->body, [&](const ExprNode& node) {
      if (node.op != Op::Load) return;
      const BufferId id = nest_.buffer_of[node.tensor];
      if (id == loops::LoopNest::no_buffer || nest_.buffers[id].scope != loops::Scope::Accumulator) return;
      const IndexExpr here = load_offset(nest_, s, node);
      if (sums && (*sums != id || !(here == offset)))
        throw Unsupported("operator '" + s.op->name + "' takes elements of several fragments at once");
      sums = id;
      offset = here;
      loads.emplace(&node, "staged[element]");
    });
    if (!sums) throw Unsupported("operator '" + s.op->name + "' stores to fragments what is not in them");
    const FragmentType& type = fragments_of_sums(nest_.buffers[*sums].type);
    const std::string number = warp_number();
    block("", [&] {
      line(std::string(type.spelling) + "* const staged = reinterpret_cast<" + std::string(type.spelling) +
           "*>(staging) + " + (number == "0" ? "" : number + " * ") + (number == "0" ? "0" : "256") + ";");
      line(helper(store_helper(type)) + "(staged, " + fragment(marked, work, *sums, offset) + ");");
      line("__syncwarp();");
      line("#pragma unroll");
      // A number of iterations that is known, so that they can be written out.
      block("for (int part = 0; part < 8; ++part)", [&] {
        line("const int element = (int)threadIdx.x + 32 * part;");
        std::vector<loops::Guard> guards = s.guards;
        for (std::size_t l = 0; l < 2; ++l) {
          const loops::Var var = work.loops[l];
          line("const int " + context_.variables[var] + " = element " + (l == 0 ? "/" : "%") + " 16;");
          const std::int64_t extent = nest_.variables[var].extent;
          if (extent < 16)
            line("if (" + context_.variables[var] + " >= " + std::to_string(extent) + ") continue;");
        }
        const std::string when = condition(guards);
        const auto store = [&] { emit_statement(s, loads, [](IndexExpr e) { return e; }); };
        if (when.empty()) {
          store();
        } else {
          block("if (" + when + ")", store);
        }
      });
      line("__syncwarp();");
    });
  }
  /// The number of a thread's warp, which ThreadX numbers the threads of.
  [[nodiscard]] std::string warp_number() const {
    if (kernel_.block[1] * kernel_.block[2] == 1) return "0";
    if (kernel_.block[2] == 1) return "(int)threadIdx.y";
    return "((int)threadIdx.y + " + std::to_string(kernel_.block[1]) + " * (int)threadIdx.z)";
  }
};

}  // namespace tunewright::codegen::cuda
