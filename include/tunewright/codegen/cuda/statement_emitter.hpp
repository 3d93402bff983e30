// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/codegen/cuda/asynchronous_copies.hpp"
#include "tunewright/codegen/cuda/kernel_parts.hpp"
#include "tunewright/codegen/cuda/lane_plan.hpp"
#include "tunewright/codegen/cuda/scalar_emitter.hpp"
#include "tunewright/codegen/cuda/source_writer.hpp"

namespace tunewright::codegen::cuda {

/// Variables of loads and conditions that have been written already.
using Loads = std::unordered_map<const ExprNode*, std::string>;

/// Emits statements of a kernel, under their guards.
class StatementEmitter {
 public:
  StatementEmitter(SourceContext& context, const loops::DeviceKernel& kernel, SourceWriter& out)
      : context_(context), nest_(context.nest), kernel_(kernel), out_(out) {}

  [[nodiscard]] bool is_private(BufferId id) const {
    return std::find(kernel_.local.begin(), kernel_.local.end(), id) != kernel_.local.end();
  }

  [[nodiscard]] std::string condition(const std::vector<loops::Guard>& guards) {
    std::vector<std::string> all;
    const auto add = [&](std::string text) {
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
    };
    for (const loops::Guard& written : guards) {
      const loops::Guard guard = without_division(written);
      const program::Range range = guard.value.range([&](loops::Var v) { return nest_.range_of(v); });
      if (guard.below && range.min < 0) add(context_.index(guard.value).in(Text::Relation + 1) + " >= 0");
      if (guard.above && range.max >= guard.extent)
        add(context_.index(guard.value).in(Text::Relation + 1) + " < " + std::to_string(guard.extent) +
            (context_.index.is_wide(IndexExpr(guard.extent)) ? "LL" : ""));
    }
    std::string text;
    for (const std::string& one : all) text += (text.empty() ? "" : " && ") + one;
    return text;
  }
  /// Emits `inside` under the condition `when`; an empty text means always. `copies`: `inside` only issues asynchronous
  /// copies.
  template <class Inside>
  void emit_where(const std::string& when, bool copies, const Inside& inside) {
    if (when.empty()) {
      inside();
    } else if (copies) {
      const std::string wanted = context_.names.unique("wanted");
      out_.line("const bool " + wanted + " = " + (wanted_.empty() ? "" : wanted_ + " && ") + when + ";");
      const std::string before = std::exchange(wanted_, wanted);
      inside();
      wanted_ = before;
    } else {
      out_.block("if (" + when + ")", inside);
    }
  }
  /// Emits `inside`, which writes `lanes` elements at a time, under the guards of `statement`.
  template <class Inside>
  void emit_guarded(const loops::Statement& statement, const Inside& inside, std::int64_t lanes = 1) {
    emit_where(condition(statement.guards), takes_predicate(statement, lanes), inside);
  }
  /// Whether the statement issues asynchronous copies, and its own condition may be evaluated even if they are not
  /// wanted, because it does not read memory that may not exist.
  [[nodiscard]] bool takes_predicate(const loops::Statement& statement, std::int64_t lanes) {
    if (!is_copied_by_device(statement, lanes)) return false;
    const ExprNode& body = *statement.op->body;
    return body.op != Op::Select || !reads_memory(body.args[0]);
  }
  [[nodiscard]] bool is_copied_by_device(const loops::Statement& statement, std::int64_t lanes) {
    return statement.asynchronous && is_copied_at_once(context_.type(nest_.buffers[statement.target].type), lanes);
  }

  template <class Substitute>
  void emit_statement(const loops::Statement& s, const Loads& loads, const Substitute& substitute) {
    const std::string target = context_.element(s.target, substitute(store_offset(nest_, s)));
    if (s.kind == loops::Statement::Kind::Initialise) {
      out_.line(target + " = " + identity(s) + ";");
      return;
    }
    ScalarEmitter scalar(context_, s, loads, substitute);
    if (is_copied_by_device(s, 1)) {
      emit_copy(s, 1, target, scalar, substitute);
      return;
    }
    const bool assigns = s.kind == loops::Statement::Kind::Assign;
    const Text value = assigns ? scalar.value() : scalar.term();
    for (const std::string& declaration : scalar.declarations()) out_.line(declaration);
    if (assigns) {
      out_.line(target + " = " + value.text + ";");
    } else {
      out_.line(
          ScalarEmitter::combine(context_, s.op->combiner, context_.type(nest_.buffers[s.target].type), target, value));
    }
  }
  /// Issues an asynchronous copy of `lanes` elements to `target`, or of zeros if the condition of the statement fails.
  template <class Substitute>
  void emit_copy(const loops::Statement& s, std::int64_t lanes, const std::string& target, ScalarEmitter& scalar,
                 const Substitute& substitute) {
    const ExprNode& body = *s.op->body;
    const bool conditional = body.op == Op::Select;
    const ExprNode& load = conditional ? *body.args[1] : body;
    const std::string bytes = std::to_string(lanes * context_.type(load.type).bytes);
    const std::string form = "<" + bytes + (has_whole_lines(nest_.buffers[s.target]) ? ", true>(" : ">(");
    const std::string copy =
        (wanted_.empty() ? "copy_async" + form : "copy_async_if" + form + wanted_ + ", ") + "&" + target + ", &";
    const BufferId from = nest_.buffer_of[load.tensor];
    const IndexExpr place = substitute(load_offset(nest_, s, load));
    if (!conditional) {
      out_.line(copy + context_.element(from, place) + ");");
      return;
    }
    const std::string when = scalar.value_of(*body.args[0]).text;
    for (const std::string& declaration : scalar.declarations()) out_.line(declaration);
    const std::string inside = context_.names.unique("inside");
    out_.line("const bool " + inside + " = " + when + ";");
    // If nothing is to be read, an existing address is selected by its index, because a selection between pointers
    // becomes a branch.
    out_.line(copy + context_.buffers[memory_of(nest_, from)] + "[" + inside + " ? " +
              context_.index(place).in(Text::Ternary) + " : 0], " + inside + " ? " + bytes + " : 0);");
  }
  [[nodiscard]] std::string identity(const loops::Statement& s) {
    const CudaType& type = context_.type(nest_.buffers[s.target].type);
    const std::string text = context_.constant(program::identity(s.op->combiner, s.op->type), type);
    return type.emulated ? "to_" + std::string(type.spelling) + "(" + text + ")" : text;
  }

 private:
  /// The same guard without division: a + floor(n / d) < e if and only if a d + n < e d, and similarly for the lower
  /// bound.
  [[nodiscard]] loops::Guard without_division(loops::Guard guard) const {
    const auto is_quotient = [](const IndexExpr::Term& t) {
      return t.kind == IndexExpr::Kind::Quotient && t.coefficient == 1;
    };
    for (;;) {
      const auto& terms = guard.value.terms();
      const auto found = std::find_if(terms.begin(), terms.end(), is_quotient);
      if (found == terms.end()) return guard;
      IndexExpr value = guard.value - IndexExpr::from_term(*found);
      value *= found->divisor;
      value += *found->numerator;
      const std::int64_t extent = guard.extent * found->divisor;
      if (context_.index.is_wide(value) || context_.index.is_wide(IndexExpr(extent))) return guard;
      guard.value = std::move(value);
      guard.extent = extent;
    }
  }

  SourceContext& context_;
  const loops::LoopNest& nest_;
  const loops::DeviceKernel& kernel_;
  SourceWriter& out_;
  std::string wanted_;  ///< the condition of asynchronous copies; empty: always
};

}  // namespace tunewright::codegen::cuda
