// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/codegen/cuda/fragment_tile.hpp"
#include "tunewright/codegen/cuda/matrix_helpers.hpp"
#include "tunewright/codegen/cuda/statement_emitter.hpp"
#include "tunewright/codegen/cuda/warp_group_helpers.hpp"

namespace tunewright::codegen::cuda {

/// Emits code that a warp or warp group executes together on fragments, the operands of tensor cores.
class FragmentEmitter {
 public:
  FragmentEmitter(SourceContext& context, const loops::DeviceKernel& kernel, SourceWriter& out,
                  StatementEmitter& statements)
      : context_(context), nest_(context.nest), kernel_(kernel), out_(out), statements_(statements) {}

  /// The instruction that computes into an accumulator. Throws `Unsupported` if there is none.
  [[nodiscard]] const schedule::TensorIntrinsic& intrinsic_of(BufferId id) const {
    const schedule::TensorIntrinsic* found = kernel_.instructions.storing_to(id);
    if (found == nullptr)
      throw Unsupported("no tensor instruction computes '" + nest_.buffers[id].name + "'; keep it in another scope");
    return *found;
  }
  [[nodiscard]] std::int64_t fragments_in(BufferId id) const {
    const schedule::TensorIntrinsic& intrinsic = intrinsic_of(id);
    return nest_.buffers[id].elements() / (intrinsic.m * intrinsic.n);
  }

  /// The products of a warp group that are the only content of `loop`, so that they can run asynchronously while the
  /// threads start others. Empty if the loop has other content, or a surrounding loop has these products already.
  [[nodiscard]] std::optional<FragmentTile> products_in(const loops::Loop& loop) const {
    if (products_started_) return std::nullopt;
    const loops::Loop* inner = &loop;
    while (inner != nullptr) {
      std::optional<FragmentTile> tile = fragment_tile(nest_, *inner);
      if (tile) return tile->product->intrinsic->by_warp_group() ? std::move(tile) : std::nullopt;
      if (inner->intrinsic != nullptr || inner->body.size() != 1) break;
      inner = std::get_if<loops::Loop>(&inner->body[0].content);
    }
    return std::nullopt;
  }
  void begin_products(const FragmentTile& tile) {
    products_started_ = true;
    keep_sums(tile);
    out_.line(context_.helper(begin_products_helper()) + "();");
  }
  /// `run_on`: a later node in the same body waits for the products.
  void finish_products(const FragmentTile& tile, bool run_on) {
    products_started_ = false;
    out_.line(context_.helper(commit_products_helper()) + "();");
    unfinished_products_.push_back(tile);
    if (!run_on) wait_for_products(0);
  }
  /// Waits until at most `under_way` groups of products are running. If that is 0, their sums can be used.
  void wait_for_products(std::uint32_t under_way) {
    out_.line(context_.helper(wait_for_products_helper(under_way)) + "();");
    if (under_way > 0) return;
    for (const FragmentTile& tile : std::exchange(unfinished_products_, {})) keep_sums(tile);
  }

  /// Emits `loop` as work of a whole warp. Returns false if it is no such work.
  bool emit(const loops::Loop& loop) {
    const std::optional<FragmentTile> tile = fragment_tile(nest_, loop);
    if (tile) {
      emit_products(*tile);
    } else if (loop.intrinsic != nullptr) {
      const loops::device::FragmentWork work = loops::device::fragment_work(nest_, loop);
      for (const loops::Var var : work.loops) context_.declare_variable(var);
      if (work.statement->kind == loops::Statement::Kind::Initialise) {
        out_.line("#pragma unroll");
        out_.line("for (int element = 0; element < " + std::to_string(loop.intrinsic->sums_of_thread()) +
                  "; ++element) " + fragment(loop, work, work.statement->target, store_offset(nest_, *work.statement)) +
                  "[element] = " + statements_.identity(*work.statement) + ";");
      } else {
        store_fragment(loop, work);
      }
    }
    return tile || loop.intrinsic != nullptr;
  }

 private:
  /// The C++ expression of an accumulator fragment: the array of the elements that a thread holds.
  [[nodiscard]] std::string fragment(const loops::Loop& marked, const loops::device::FragmentWork& work, BufferId id,
                                     const IndexExpr& offset) {
    const IndexExpr number = loops::device::fragment_number(nest_, *marked.intrinsic, work, offset);
    return context_.buffers[id] + "[" + context_.index(number).text + "]";
  }
  template <class Inside>
  void unrolled(const std::vector<loops::Var>& loops, const Inside& inside, std::size_t next = 0) {
    if (next == loops.size()) {
      inside();
      return;
    }
    context_.declare_variable(loops[next]);
    out_.line("#pragma unroll");
    out_.block(context_.loop_head(loops[next], 1), [&] { unrolled(loops, inside, next + 1); });
  }

  void keep_sums(const FragmentTile& tile) {
    const BufferId sums = tile.work.statement->target;
    out_.line("#pragma unroll");
    out_.line("for (int fragment = 0; fragment < " + std::to_string(fragments_in(sums)) + "; ++fragment) " +
              context_.helper(keep_sums_helper(fragments_of_sums(nest_.buffers[sums].type), *tile.product->intrinsic)) +
              "(" + context_.buffers[sums] + "[fragment]);");
  }

  /// Products of matrices that the instruction reads from shared memory through descriptors.
  void emit_described_products(const FragmentTile& tile) {
    context_.multiplies_by_warp_groups = true;
    const loops::Statement& s = *tile.work.statement;
    const auto describe = [&](const loops::device::FragmentOperand& o) {
      const auto size = static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers[o.buffer].type));
      const std::string terms = std::to_string(o.matrices.along_terms * size),
                        lines = std::to_string(o.matrices.along_lines * size);
      const std::string first = "(&" + context_.unswizzled_element(o.buffer, o.first) + ", ";
      if (!nest_.buffers[o.buffer].swizzled)
        return context_.helper(describe_matrix_helper()) + first + terms + ", " + lines + ")";
      // A row of terms holds all that one instruction reads.
      const bool rows_of_terms = o.matrices.terms_are_neighbours;
      return context_.helper(describe_swizzled_matrix_helper()) + first +
             (rows_of_terms ? "16, " + lines : lines + ", " + terms) + ")";
    };
    for (const loops::Var var : tile.work.loops) context_.declare_variable(var);
    for (const loops::Var var : tile.around) context_.declare_variable(var);
    const std::string guards = statements_.condition(s.guards);
    out_.block(guards.empty() ? "" : "if (" + guards + ")", [&] {
      unrolled(tile.around, [&] {
        const loops::device::FragmentOperand &a = tile.work.a, &b = tile.work.b;
        out_.line(context_.helper(multiply_described_helper(*tile.product->intrinsic, fragment_type(a.read->type),
                                                            fragment_type(b.read->type), a.by_columns, b.by_columns)) +
                  "(" + fragment(*tile.product, tile.work, s.target, store_offset(nest_, s)) + ", " + describe(a) +
                  ", " + describe(b) + ");");
      });
    });
  }

  void emit_products(const FragmentTile& tile) {
    if (tile.product->intrinsic->by_warp_group()) return emit_described_products(tile);
    const loops::Statement& s = *tile.work.statement;
    const FragmentType& type = fragment_type(tile.work.a.read->type);
    const bool known = tile.product->intrinsic->layout_is_known;
    const auto load = [&](const loops::device::FragmentOperand& o, char matrix) {
      const std::vector<loops::Var> loops = used_of(tile.around, o.first);
      const std::string name = context_.names.unique(nest_.buffers[o.buffer].name + "_fragments");
      out_.line("unsigned " + name + "[" + std::to_string(points_of(nest_, loops)) + "][" +
                std::to_string(known ? matrix_registers : type.registers) + "];");
      unrolled(loops, [&] {
        out_.line(context_.helper(known ? load_matrices_helper(fragment_type(o.read->type), matrix, o.by_columns)
                                        : load_helper(type, matrix, o.by_columns)) +
                  "(" + name + "[" + context_.index(number_in(nest_, loops)).text + "], &" +
                  context_.element(o.buffer, o.first) + ", " + std::to_string(o.pitch) + ");");
      });
      return name;
    };
    for (const loops::Var var : tile.work.loops) context_.declare_variable(var);
    for (const loops::Var var : tile.around) context_.declare_variable(var);
    const auto all = [&] {
      const std::string a = load(tile.work.a, 'a'), b = load(tile.work.b, 'b');
      unrolled(tile.around, [&] {
        const auto of = [&](const std::string& name, const IndexExpr& first) {
          return name + "[" + context_.index(number_in(nest_, used_of(tile.around, first))).text + "]";
        };
        out_.line(context_.helper(known ? multiply_matrices_helper(type, fragment_type(tile.work.b.read->type))
                                        : multiply_helper(type, tile.work.a.by_columns, tile.work.b.by_columns)) +
                  "(" + fragment(*tile.product, tile.work, s.target, store_offset(nest_, s)) + ", " +
                  of(a, tile.work.a.first) + ", " + of(b, tile.work.b.first) + ");");
      });
    };
    const std::string guards = statements_.condition(s.guards);
    out_.block(guards.empty() ? "" : "if (" + guards + ")", all);
  }

  /// The fragment from which a statement reads sums.
  struct StoredFragment {
    BufferId sums = 0;
    IndexExpr offset;
    std::vector<const ExprNode*> loads;
  };
  [[nodiscard]] StoredFragment stored_fragment(const loops::Statement& s) const {
    StoredFragment found;
    program::visit(s.op->body, [&](const ExprNode& node) {
      if (node.op != Op::Load) return;
      const BufferId id = nest_.buffer_of[node.tensor];
      if (id == loops::LoopNest::no_buffer || nest_.buffers[id].scope != loops::Scope::Accumulator) return;
      const IndexExpr here = load_offset(nest_, s, node);
      if (!found.loads.empty() && (found.sums != id || !(here == found.offset)))
        throw Unsupported("operator '" + s.op->name + "' takes elements of several fragments at once");
      found.sums = id;
      found.offset = here;
      found.loads.push_back(&node);
    });
    if (found.loads.empty()) throw Unsupported("operator '" + s.op->name + "' stores to fragments what is not in them");
    return found;
  }

  void store_fragment(const loops::Loop& marked, const loops::device::FragmentWork& work) {
    const StoredFragment from = stored_fragment(*work.statement);
    const std::string sums = fragment(marked, work, from.sums, from.offset);
    if (marked.intrinsic->layout_is_known) {
      const schedule::TensorIntrinsic& intrinsic = *marked.intrinsic;
      const SumPlace place = place_of_sum("(int)threadIdx.x", "part", intrinsic.by_warp_group());
      const bool pairs = stores_pairs(work);
      out_.line("#pragma unroll");
      const std::string parts = std::to_string(intrinsic.sums_of_thread());
      out_.block("for (int part = 0; part < " + parts + "; " + (pairs ? "part += 2" : "++part") + ")", [&] {
        declare_position(work, intrinsic, {place.row, place.column});
        if (pairs) {
          store_pair(work, from, sums);
        } else {
          store_element(work, from, sums + "[part]");
        }
      });
    } else {
      store_through_shared_memory(work, *marked.intrinsic, from, sums);
    }
  }
  /// Stores the fragment to the warp's shared memory first; then neighbouring threads read neighbouring elements.
  void store_through_shared_memory(const loops::device::FragmentWork& work, const schedule::TensorIntrinsic& intrinsic,
                                   const StoredFragment& from, const std::string& sums) {
    const FragmentType& type = fragments_of_sums(nest_.buffers[from.sums].type);
    const std::string number = warp_number();
    out_.block("", [&] {
      out_.line(std::string(type.spelling) + "* const staged = reinterpret_cast<" + std::string(type.spelling) +
                "*>(staging) + " + (number == "0" ? "" : number + " * ") + (number == "0" ? "0" : "256") + ";");
      out_.line(context_.helper(store_helper(type)) + "(staged, " + sums + ");");
      out_.line("__syncwarp();");
      out_.line("#pragma unroll");
      // A constant number of iterations, so that the compiler can unroll the loop.
      out_.block("for (int part = 0; part < 8; ++part)", [&] {
        out_.line("const int element = (int)threadIdx.x + 32 * part;");
        declare_position(work, intrinsic, {"element / 16", "element % 16"});
        store_element(work, from, "staged[element]");
      });
      out_.line("__syncwarp();");
    });
  }
  /// Declares row and column of the current element of a thread, and skips elements beyond the tensor.
  void declare_position(const loops::device::FragmentWork& work, const schedule::TensorIntrinsic& intrinsic,
                        const std::array<std::string, 2>& place) {
    for (std::size_t l = 0; l < 2; ++l) {
      const loops::Var var = work.loops[l];
      out_.line("const int " + context_.variables[var] + " = " + place[l] + ";");
      const std::int64_t extent = nest_.variables[var].extent;
      if (extent < (l == 0 ? intrinsic.m : intrinsic.n))
        out_.line("if (" + context_.variables[var] + " >= " + std::to_string(extent) + ") continue;");
    }
  }
  /// Stores the current element, whose value is `value`.
  void store_element(const loops::device::FragmentWork& work, const StoredFragment& from, const std::string& value) {
    Loads loads;
    for (const ExprNode* load : from.loads) loads.emplace(load, value);
    const loops::Statement& s = *work.statement;
    statements_.emit_guarded(s, [&] { statements_.emit_statement(s, loads, [](IndexExpr e) { return e; }); });
  }

  /// Whether the elements of an even column and the next one are stored to adjacent, aligned addresses, and are either
  /// both within the tensor or both outside.
  [[nodiscard]] bool stores_pairs(const loops::device::FragmentWork& work) const {
    const loops::Statement& s = *work.statement;
    const loops::Var column = work.loops[1];
    const auto counts_pairs = [&](const IndexExpr& e) {
      return loops::stride(e, column) == 1 &&
             loops::device::is_multiple_of(loops::device::at_first(nest_, e, {column}), 2);
    };
    return nest_.variables[column].extent % 2 == 0 && counts_pairs(store_offset(nest_, s)) &&
           std::all_of(s.guards.begin(), s.guards.end(), [&](const loops::Guard& guard) {
             return !guard.value.uses(column) || (guard.extent % 2 == 0 && counts_pairs(guard.value));
           });
  }
  /// Stores the current element and the next one of its row.
  void store_pair(const loops::device::FragmentWork& work, const StoredFragment& from, const std::string& sums) {
    const loops::Statement& s = *work.statement;
    statements_.emit_guarded(s, [&] {
      const CudaType& type = context_.type(nest_.buffers[s.target].type);
      const std::string pair = context_.vector_of(type, 2);
      const std::string result = context_.names.unique(nest_.buffers[s.target].name + "_lanes");
      out_.line(pair + " " + result + ";");
      for (const std::int64_t lane : {0, 1}) {
        Loads loads;
        for (const ExprNode* load : from.loads) loads.emplace(load, sums + (lane == 0 ? "[part]" : "[part + 1]"));
        ScalarEmitter scalar(context_, s, loads, [&](const IndexExpr& e) {
          return e.substitute(
              [&](loops::Var v) { return IndexExpr::variable(v) + IndexExpr(v == work.loops[1] ? lane : 0); },
              [&](loops::Var v) { return nest_.range_of(v); });
        });
        const Text value = scalar.value();
        for (const std::string& declaration : scalar.declarations()) out_.line(declaration);
        out_.line(lane_of(type, result, lane) + " = " + value.text + ";");
      }
      out_.line("*reinterpret_cast<" + pair + "*>(&" + context_.element(s.target, store_offset(nest_, s)) +
                ") = " + result + ";");
    });
  }
  /// The number of a thread's warp or warp group; ThreadX is the number of the thread in it.
  [[nodiscard]] std::string warp_number() const {
    if (kernel_.block[1] * kernel_.block[2] == 1) return "0";
    if (kernel_.block[2] == 1) return "(int)threadIdx.y";
    return "((int)threadIdx.y + " + std::to_string(kernel_.block[1]) + " * (int)threadIdx.z)";
  }

  SourceContext& context_;
  const loops::LoopNest& nest_;
  const loops::DeviceKernel& kernel_;
  SourceWriter& out_;
  StatementEmitter& statements_;
  bool products_started_ = false;
  std::vector<FragmentTile> unfinished_products_;  // products for which no node has waited yet
};

}  // namespace tunewright::codegen::cuda
