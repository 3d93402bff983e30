// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda/asynchronous_copies.hpp"
#include "tunewright/codegen/cuda/kernel_parts.hpp"
#include "tunewright/codegen/cuda/lane_plan.hpp"
#include "tunewright/codegen/cuda/register_loops.hpp"
#include "tunewright/codegen/cuda/scalar_text.hpp"
#include "tunewright/codegen/cuda/tensor_text.hpp"
#include "tunewright/core/target.hpp"

namespace tunewright::codegen::cuda {

/// Writes the body of one kernel.
class KernelText {
 public:
  KernelText(SourceContext& context, const KernelParts& parts)
      : context_(context), nest_(context.nest), kernel_(parts.kernel) {}

  [[nodiscard]] std::string body() {
    for (const loops::Loop* loop : kernel_.bound) declare_variable(loop->var);
    emit(kernel_.body, 0);
    const std::string inside = std::exchange(out_, {});
    for (const loops::Loop* loop : kernel_.bound) {
      static constexpr const char* indices[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                                "threadIdx.x", "threadIdx.y", "threadIdx.z"};
      if (!context_.index.uses(loop->var)) continue;
      const auto index = static_cast<std::size_t>(loop->kind) - static_cast<std::size_t>(LoopKind::BlockX);
      line("const int " + context_.variables[loop->var] + " = (int)" + indices[index] + ";  // below " +
           std::to_string(nest_.variables[loop->var].extent));
    }
    return out_ + inside;
  }

  /// Declarations that the body needs ahead of it, once it is written.
  [[nodiscard]] std::string scratch_declaration() const {
    if (scratch_bytes_ == 0) return {};
    return "  __shared__ __align__(16) unsigned char " + scratch_ + "[" + std::to_string(scratch_bytes_) +
           "];\n";
  }
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept { return scratch_bytes_; }

 private:
  void line(const std::string& text) { out_ += std::string(2 * depth_, ' ') + text + "\n"; }
  template <class Inside>
  void block(const std::string& head, const Inside& inside) {
    line(head.empty() ? "{" : head + " {");
    ++depth_;
    inside();
    --depth_;
    line("}");
  }

  void declare_variable(loops::Var var) {
    if (context_.variables[var].empty())
      context_.variables[var] = context_.names.unique(nest_.variables[var].name);
  }

  void emit(std::span<const loops::Node> body, std::int64_t unroll_limit) {
    for (const loops::Node& node : body) {
      std::visit(
          [&](const auto& content) {
            using T = std::decay_t<decltype(content)>;
            if constexpr (std::is_same_v<T, loops::Loop>) {
              emit_loop(content, unroll_limit);
            } else if constexpr (std::is_same_v<T, loops::Branch>) {
              emit_branch(content, unroll_limit);
            } else if constexpr (std::is_same_v<T, loops::Statement>) {
              emit_guarded(content, [&] { emit_statement(content, {}, [](IndexExpr e) { return e; }); });
            } else if constexpr (std::is_same_v<T, loops::Allocate>) {
              emit_allocate(content.buffer);
            } else if constexpr (std::is_same_v<T, loops::Barrier>) {
              line("__syncthreads();");
            } else if constexpr (std::is_same_v<T, loops::CommitCopies>) {
              context_.copies_asynchronously = true;
              context_.require(Target::asynchronous_copies_since);
              line("commit_copies();");
            } else if constexpr (std::is_same_v<T, loops::WaitForCopies>) {
              line("wait_for_copies<" + std::to_string(content.under_way) + ">();");
            } else {
              emit_reduction(content);
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
      const std::int64_t fragments = buffer.elements() / (registers_of_sums * loops::device::threads_of_warp);
      line(std::string(fragments_of_sums(buffer.type).spelling) + " " + context_.buffers[id] + "[" +
           std::to_string(fragments) + "][" + std::to_string(registers_of_sums) +
           "];  // fragments, of the warp");
      return;
    }
    const std::string declaration =
        std::string(context_.type(buffer.type).spelling) + " " + context_.buffers[id];
    line(SourceContext::is_scalar(buffer) ? declaration + ";"
                                          : declaration + "[" + std::to_string(buffer.elements()) + "];");
  }

  // Loops.

  [[nodiscard]] bool is_private(BufferId id) const {
    return std::find(kernel_.local.begin(), kernel_.local.end(), id) != kernel_.local.end();
  }

  void emit_loop(const loops::Loop& loop, std::int64_t unroll_limit) {
    unroll_limit = std::max(unroll_limit, loop.unroll_limit);
    declare_variable(loop.var);
    if (emit_fragments(loop)) return;
    if (loop.kind == LoopKind::Vectorized && emit_vectorized(loop)) return;
    const bool small = unroll_limit > 0 && statements_of(nest_, loop, unroll_limit) <= unroll_limit;
    if (loop.kind == LoopKind::Unrolled || loop.kind == LoopKind::Vectorized || small) line("#pragma unroll");
    block(loop_head(loop.var, 1), [&] {
      ++loop_depth_;
      emit(loop.body, unroll_limit);
      --loop_depth_;
    });
  }
  [[nodiscard]] std::string loop_head(loops::Var var, std::int64_t step) const {
    const std::string& name = context_.variables[var];
    const std::int64_t extent = nest_.variables[var].extent;
    const bool wide = extent > std::int64_t{1} << 30;
    return "for (" + std::string(wide ? "long long " : "int ") + name + " = 0; " + name + " < " +
           std::to_string(extent) + (wide ? "LL" : "") + "; " +
           (step == 1 ? "++" + name : name + " += " + std::to_string(step)) + ")";
  }

  // Conditions.

  [[nodiscard]] std::string condition(const std::vector<loops::Guard>& guards) {
    std::string all;
    for (const loops::Guard& guard : guards) {
      const program::Range range = guard.value.range([&](loops::Var v) { return nest_.range_of(v); });
      const auto add = [&](const std::string& text) { all += (all.empty() ? "" : " && ") + text; };
      if (guard.below && range.min < 0) add(context_.index(guard.value).in(Text::Relation + 1) + " >= 0");
      if (guard.above && range.max >= guard.extent)
        add(context_.index(guard.value).in(Text::Relation + 1) + " < " + std::to_string(guard.extent) +
            (context_.index.is_wide(IndexExpr(guard.extent)) ? "LL" : ""));
    }
    return all;
  }
  template <class Inside>
  void emit_guarded(const loops::Statement& statement, const Inside& inside) {
    const std::string guards = condition(statement.guards);
    if (guards.empty()) {
      inside();
    } else {
      block("if (" + guards + ")", inside);
    }
  }
  /// Whether nodes are idle where `conditions` do not all hold, because their statements ask for the same: the
  /// rest of a branch on a guard that no loop inside takes part in.
  [[nodiscard]] static bool does_nothing(std::span<const loops::Node> body,
                                         const std::vector<loops::Guard>& conditions) {
    return std::all_of(body.begin(), body.end(), [&](const loops::Node& node) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content))
        return does_nothing(loop->body, conditions);
      const auto* statement = std::get_if<loops::Statement>(&node.content);
      return statement != nullptr &&
             std::all_of(conditions.begin(), conditions.end(), [&](const loops::Guard& c) {
               return std::any_of(statement->guards.begin(), statement->guards.end(),
                                  [&](const loops::Guard& g) {
                                    return g.value == c.value && g.extent == c.extent && g.below >= c.below &&
                                           g.above >= c.above;
                                  });
             });
    });
  }
  void emit_branch(const loops::Branch& branch, std::int64_t unroll_limit) {
    const std::string when = condition(branch.conditions);
    if (when.empty()) {
      emit(branch.then, unroll_limit);
      return;
    }
    line("if (" + when + ") {");
    ++depth_;
    emit(branch.then, unroll_limit);
    --depth_;
    if (!does_nothing(branch.otherwise, branch.conditions)) {
      line("} else {");
      ++depth_;
      emit(branch.otherwise, unroll_limit);
      --depth_;
    }
    line("}");
  }

  // Statements.

  using Loads = std::unordered_map<const ExprNode*, std::string>;

  template <class Substitute>
  void emit_statement(const loops::Statement& s, const Loads& loads, const Substitute& substitute) {
    const std::string target = context_.element(s.target, substitute(store_offset(nest_, s)));
    if (s.kind == loops::Statement::Kind::Initialise) {
      line(target + " = " + identity(s) + ";");
      return;
    }
    ScalarText scalar(context_, s, loads, substitute);
    if (s.asynchronous && is_copied_at_once(context_.type(nest_.buffers[s.target].type), 1)) {
      emit_copy(s, 1, target, scalar, substitute);
      return;
    }
    const Text value = scalar.value();
    for (const std::string& declaration : scalar.declarations()) line(declaration);
    if (s.kind == loops::Statement::Kind::Assign) {
      line(target + " = " + value.text + ";");
    } else {
      line(ScalarText::combine(context_, s.op->combiner, context_.type(nest_.buffers[s.target].type), target,
                               value));
    }
  }
  /// Asks for `lanes` elements to be copied to `target`, or zeros where the condition of the statement fails.
  template <class Substitute>
  void emit_copy(const loops::Statement& s, std::int64_t lanes, const std::string& target, ScalarText& scalar,
                 const Substitute& substitute) {
    const ExprNode& body = *s.op->body;
    const bool conditional = body.op == Op::Select;
    const ExprNode& load = conditional ? *body.args[1] : body;
    const BufferId from = nest_.buffer_of[load.tensor];
    const std::string source = "&" + context_.element(from, substitute(load_offset(nest_, s, load)));
    const std::string bytes = std::to_string(lanes * context_.type(load.type).bytes);
    const std::string copy = "copy_async<" + bytes + ">(&" + target + ", ";
    if (!conditional) {
      line(copy + source + ");");
      return;
    }
    const std::string when = scalar.value_of(*body.args[0]).text;
    for (const std::string& declaration : scalar.declarations()) line(declaration);
    const std::string inside = context_.names.unique("inside");
    line("const bool " + inside + " = " + when + ";");
    const std::string nowhere = context_.buffers[memory_of(nest_, from)];  // an address that there is
    line(copy + inside + " ? " + source + " : " + nowhere + ", " + inside + " ? " + bytes + " : 0);");
  }
  [[nodiscard]] std::string identity(const loops::Statement& s) {
    const CudaType& type = context_.type(nest_.buffers[s.target].type);
    const std::string text = context_.constant(program::identity(s.op->combiner), type);
    return type.emulated ? "to_" + std::string(type.spelling) + "(" + text + ")" : text;
  }

  // Tensor units.

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

  // Reductions across threads.

  void emit_reduction(const loops::CrossThreadReduction& r) {
    const loops::Buffer& buffer = nest_.buffers[r.partial];
    const CudaType& type = context_.type(buffer.type);
    const auto along = [&](std::size_t d) { return kernel_.block[d]; };
    const std::string own = context_.element(r.partial, element_offset(nest_, buffer, r.axis_values));
    line("{");
    ++depth_;
    const std::string total = context_.names.unique(nest_.buffers[r.target].name + "_total");
    line(std::string(type.spelling) + " " + total + " = " + own + ";");
    const bool only_x = r.over[0] && !r.over[1] && !r.over[2];
    if (loops::device::stays_in_warp(kernel_, r)) {
      shuffle(r, type, total, along(0));
    } else if (only_x && along(0) % 32 == 0) {
      shuffle(r, type, total, 32);
      across_warps(r, type, total);
    } else {
      in_shared_memory(r, type, total);
    }
    const std::string target =
        context_.element(r.target, element_offset(nest_, nest_.buffers[r.target], r.axis_values));
    std::string stores;
    if (!is_private(r.target)) {
      static constexpr const char* indices[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
      for (std::size_t d = 0; d < 3; ++d) {
        if (r.over[d] && along(d) > 1)
          stores += (stores.empty() ? "" : " && ") + std::string(indices[d]) + " == 0";
      }
      if (const std::string guards = condition(r.guards); !guards.empty())
        stores += (stores.empty() ? "" : " && ") + guards;
    }
    line((stores.empty() ? "" : "if (" + stores + ") ") + target + " = " + total + ";");
    --depth_;
    line("}");
  }

  [[nodiscard]] std::string combined(const loops::CrossThreadReduction& r, const CudaType& type,
                                     const std::string& kept, const std::string& value) {
    return ScalarText::combine(context_, r.op->combiner, type, kept, {value});
  }

  /// Combines groups of `lanes` neighbours within a warp; all of them get the result.
  void shuffle(const loops::CrossThreadReduction& r, const CudaType& type, const std::string& total,
               std::int64_t lanes) {
    if (lanes == 1) return;
    const std::int64_t threads = kernel_.threads();
    std::string mask = "0xffffffffu";
    if (threads % 32 != 0) {  // the last warp is not full
      const std::string part = std::to_string((std::int64_t{1} << threads % 32) - 1) + "u";
      mask = threads < 32 ? part
                          : "(" + thread_number() + " / 32 == " + std::to_string(threads / 32) + " ? " +
                                part + " : " + mask + ")";
    }
    line("#pragma unroll");
    block("for (int lanes = " + std::to_string(lanes / 2) + "; lanes > 0; lanes /= 2)",
          [&] { line(combined(r, type, total, exchanged(type, mask, total))); });
  }

  /// What another lane holds. Types below 32 bits travel as integers.
  [[nodiscard]] static std::string exchanged(const CudaType& type, const std::string& mask,
                                             const std::string& total) {
    const auto exchange = [&](const std::string& value) {
      return "__shfl_xor_sync(" + mask + ", " + value + ", lanes)";
    };
    if (type.emulated)
      return std::string(type.spelling) + "{(unsigned short)" + exchange("(int)" + total + ".bits") + "}";
    if (type.bytes < 4) return "(" + std::string(type.spelling) + ")" + exchange("(int)" + total);
    return exchange(total);
  }

  /// Combines what the warps along x have, which lie one after the other.
  void across_warps(const loops::CrossThreadReduction& r, const CudaType& type, const std::string& total) {
    const std::int64_t warps = kernel_.block[0] / 32;
    if (warps == 1) return;
    const std::string scratch = scratch_array(type, warps * kernel_.block[1] * kernel_.block[2]);
    line("if (threadIdx.x % 32 == 0) " + scratch + "[" + thread_number() + " / 32] = " + total + ";");
    line("__syncthreads();");
    const std::string first =
        "(" + thread_number() + ") / " + std::to_string(kernel_.block[0]) + " * " + std::to_string(warps);
    line(total + " = " + scratch + "[" + first + "];");
    line("#pragma unroll");
    block("for (int warp = 1; warp < " + std::to_string(warps) + "; ++warp)",
          [&] { line(combined(r, type, total, scratch + "[" + first + " + warp]")); });
  }

  /// Combines any threads of the block, as a tree.
  void in_shared_memory(const loops::CrossThreadReduction& r, const CudaType& type,
                        const std::string& total) {
    static constexpr const char* indices[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
    const std::int64_t threads = kernel_.threads();
    const std::string scratch = scratch_array(type, threads);
    std::int64_t size = 1;  // of a group
    std::string member = "0";
    std::string group = "0";
    for (std::size_t d = 3; d-- > 0;) {
      const std::string extent = std::to_string(kernel_.block[d]);
      if (kernel_.block[d] == 1) continue;
      std::string& number = r.over[d] ? member : group;
      number = number == "0" ? "(int)" + std::string(indices[d])
                             : "(" + number + ") * " + extent + " + (int)" + indices[d];
      if (r.over[d]) size *= kernel_.block[d];
    }
    line("const int member = " + member + ";");
    line(std::string(type.spelling) + "* const group = " + scratch + " + (" + group + ") * " +
         std::to_string(size) + ";");
    line("group[member] = " + total + ";");
    std::int64_t half = 1;
    while (2 * half < size) half *= 2;
    block("for (int distance = " + std::to_string(size == 1 ? 0 : half) + "; distance > 0; distance /= 2)",
          [&] {
            line("__syncthreads();");
            block("if (member < distance && member + distance < " + std::to_string(size) + ")",
                  [&] { line(combined(r, type, "group[member]", "group[member + distance]")); });
          });
    line("__syncthreads();");
    line(total + " = group[0];");
  }

  /// Shared memory for a reduction, free to be written. Reductions follow one another, so they share it.
  [[nodiscard]] std::string scratch_array(const CudaType& type, std::int64_t elements) {
    if (scratch_.empty()) scratch_ = context_.names.unique("combined");
    // Others may still read what the reduction before left, or the iteration before.
    if (loop_depth_ > 0 || scratch_bytes_ > 0) line("__syncthreads();");
    scratch_bytes_ = std::max(scratch_bytes_, elements * static_cast<std::int64_t>(type.bytes));
    const std::string name = context_.names.unique("shares");
    const std::string spelling(type.spelling);
    line(spelling + "* const " + name + " = reinterpret_cast<" + spelling + "*>(" + scratch_ + ");");
    return name;
  }
  [[nodiscard]] std::string thread_number() const {
    std::string number = "threadIdx.x";
    if (kernel_.block[1] * kernel_.block[2] > 1) {
      const std::string yz = kernel_.block[2] > 1
                                 ? "(threadIdx.y + " + std::to_string(kernel_.block[1]) + " * threadIdx.z)"
                                 : "threadIdx.y";
      number = "(threadIdx.x + " + std::to_string(kernel_.block[0]) + " * " + yz + ")";
    }
    return number;
  }

  // Vectors.

  /// A vectorized loop around one statement whose lanes are consecutive in memory moves them together. False
  /// where there is nothing to gain; the loop is then unrolled.
  bool emit_vectorized(const loops::Loop& loop) {
    const std::optional<LanePlan> plan = plan_lanes(nest_, loop, [&](BufferId id) { return is_private(id); });
    if (!plan) return false;
    const loops::Statement& s = *plan->statement;
    emit_guarded(s, [&] {
      if (plan->lanes < nest_.variables[loop.var].extent) {
        line("#pragma unroll");
        block(loop_head(loop.var, plan->lanes), [&] { emit_lanes(*plan, IndexExpr::variable(loop.var)); });
      } else {
        block("", [&] { emit_lanes(*plan, IndexExpr(0)); });
      }
    });
    return true;
  }

  void emit_lanes(const LanePlan& plan, const IndexExpr& first) {
    const loops::Statement& s = *plan.statement;
    const auto at = [&](std::int64_t lane) {
      return [this, &plan, value = first + IndexExpr(lane)](const IndexExpr& e) {
        return e.substitute([&](loops::Var v) { return v == plan.var ? value : IndexExpr::variable(v); },
                            [&](loops::Var v) { return nest_.range_of(v); });
      };
    };
    if (s.asynchronous && is_copied_at_once(context_.type(nest_.buffers[s.target].type), plan.lanes)) {
      ScalarText scalar(context_, s, {}, at(0));
      emit_copy(s, plan.lanes, context_.element(s.target, at(0)(store_offset(nest_, s))), scalar, at(0));
      return;
    }
    std::unordered_map<const ExprNode*, std::string> vectors;
    const Loads decided = decide_once(plan, at(0));
    for (const LanePlan::VectorLoad& load : plan.loads) {
      const BufferId id = nest_.buffer_of[load.node->tensor];
      const CudaType& type = context_.type(nest_.buffers[id].type);
      const std::string name = context_.names.unique(nest_.buffers[id].name + "_lanes");
      const std::string word = vector_of(type, plan.lanes);
      const std::string read = "*reinterpret_cast<const " + word + "*>(&" +
                               context_.element(id, at(0)(load_offset(nest_, s, *load.node))) + ")";
      if (load.conditions.empty()) {
        line("const " + word + " " + name + " = " + read + ";");
      } else {
        std::string when;
        for (const auto& [condition, wanted] : load.conditions)
          when += (when.empty() ? "" : " && ") + std::string(wanted ? "" : "!") + decided.at(condition);
        line(word + " " + name + " = {};");
        line("if (" + when + ") " + name + " = " + read + ";");
      }
      vectors.emplace(load.node, name);
    }
    const CudaType& type = context_.type(nest_.buffers[s.target].type);
    const std::string target = context_.element(s.target, at(0)(store_offset(nest_, s)));
    std::string result;
    if (plan.stores) {
      const std::string word = vector_of(type, plan.lanes);
      if (plan.is_copy) {
        line("*reinterpret_cast<" + word + "*>(&" + target + ") = " + vectors.begin()->second + ";");
        return;
      }
      result = context_.names.unique(nest_.buffers[s.target].name + "_lanes");
      line(word + " " + result + ";");
    }
    for (std::int64_t lane = 0; lane < plan.lanes; ++lane) {
      Loads loads = decided;
      for (const LanePlan::VectorLoad& load : plan.loads) {
        const CudaType& from = context_.type(load.node->type);
        loads.emplace(load.node, lane_of(from, vectors.at(load.node), lane));
      }
      if (!plan.stores) {
        emit_statement(s, loads, at(lane));
        continue;
      }
      const std::string place = lane_of(type, result, lane);
      if (s.kind == loops::Statement::Kind::Initialise) {
        line(place + " = " + identity(s) + ";");
        continue;
      }
      ScalarText scalar(context_, s, loads, at(lane));
      const Text value = scalar.value();
      for (const std::string& declaration : scalar.declarations()) line(declaration);
      line(place + " = " + value.text + ";");
    }
    if (plan.stores)
      line("*reinterpret_cast<" + vector_of(type, plan.lanes) + "*>(&" + target + ") = " + result + ";");
  }
  /// Names for the conditions of loads, which are the same for all lanes.
  template <class Substitute>
  [[nodiscard]] Loads decide_once(const LanePlan& plan, const Substitute& substitute) {
    Loads decided;
    for (const LanePlan::VectorLoad& load : plan.loads) {
      for (const auto& [condition, wanted] : load.conditions) {
        if (decided.count(condition) != 0) continue;
        ScalarText scalar(context_, *plan.statement, decided, substitute);
        const std::string text = scalar.value_of(*condition).text;
        const std::string name = context_.names.unique("inside");
        line("const bool " + name + " = " + text + ";");
        decided.emplace(condition, name);
      }
    }
    return decided;
  }
  [[nodiscard]] std::string vector_of(const CudaType& type, std::int64_t lanes) {
    context_.uses_vectors = context_.uses_vectors || type.vector.empty();
    return vector_type(type, lanes);
  }

  SourceContext& context_;
  const loops::LoopNest& nest_;
  const loops::DeviceKernel& kernel_;
  std::string out_;
  std::size_t depth_ = 1;
  int loop_depth_ = 0;
  std::string scratch_;
  std::int64_t scratch_bytes_ = 0;
};

}  // namespace tunewright::codegen::cuda
