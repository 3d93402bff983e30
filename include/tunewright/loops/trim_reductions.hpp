// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Reduction trimming: if the lanes of a factored reduction do not divide its terms, the last terms get a loop of their
/// own.
///
/// With 16 lanes for 1000 terms, `schedule::Rfactor` selects zero for 8 lanes of the last of 63 vectors. All others
/// need no selection:
///
///                                                                   for k in 0..62:
///   for k in 0..63:                                                   sum[l] += x[16*k + l]
///     sum[l] += select(16*k + l < 1000, x[16*k + l], 0)     ->      for k in 62..63:
///                                                                     sum[l] += select(16*k + l < 1000, ..)
///
/// The same holds for other reductions, whose last terms are the identity of their combiner, such as minus infinity.
namespace tunewright::loops {

/// The terms of a reduction that are padding only in the last iteration of a reduction axis, see `last_terms`.
struct LastTerms {
  program::Expr term;                 ///< the term where it is not padding
  std::vector<IndexExpr> conditions;  ///< values over the operator's axes that are not negative where it is not padding
};

/// Nothing unless every term of the reduction is padded as a whole with the identity of its combiner, as
/// `schedule::Rfactor` does, and all but those in the last iteration of one reduction axis are not padding.
[[nodiscard]] std::optional<LastTerms> last_terms(const program::Operator& op);

namespace detail {

class ReductionTrimming {
 public:
  explicit ReductionTrimming(LoopNest& nest) : nest_(nest) {}

  void run(Body& body);

 private:
  /// A perfect nest as nodes without selections wherever possible.
  [[nodiscard]] Body trimmed(Node node);
  /// The number of iterations of `loop`, from the first on, for which all conditions hold, whatever the other loops do.
  [[nodiscard]] std::int64_t iterations_in_full(const Loop& loop, const std::vector<IndexExpr>& conditions) const;
  /// The nest with only the iterations of `loop` from `begin` to `end`.
  [[nodiscard]] Node part(Node node, Var loop, std::int64_t begin, std::int64_t end);

  LoopNest& nest_;
};

}  // namespace detail

/// Returns the nest with trimmed reductions. Semantics are unchanged. Only serial loops of perfect nests are divided.
[[nodiscard]] LoopNest trim_reductions(LoopNest nest);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/perfect_nest.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::optional<LastTerms> last_terms(const program::Operator& op) {
  if (op.combiner == program::Combiner::None || !op.body) return std::nullopt;
  std::optional<std::vector<IndexExpr>> conditions = padding_conditions(op.body, op.combiner);
  if (!conditions) return std::nullopt;
  const auto range_of = [&](Var axis) { return program::Range{0, op.axes[axis].extent - 1}; };
  std::erase_if(*conditions, [&](const IndexExpr& value) { return value.range(range_of).min >= 0; });
  for (Var axis = static_cast<Var>(op.rank()); axis < op.axes.size(); ++axis) {
    const auto but_last = [&](Var v) { return program::Range{0, op.axes[v].extent - (v == axis ? 2 : 1)}; };
    if (op.axes[axis].extent > 1 && std::all_of(conditions->begin(), conditions->end(),
                                                [&](const IndexExpr& value) { return value.range(but_last).min >= 0; }))
      return LastTerms{op.body->args[1], std::move(*conditions)};
  }
  return std::nullopt;
}

}  // namespace tunewright::loops

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void ReductionTrimming::run(Body& body) {
  Body result;
  result.reserve(body.size());
  for (Node& node : body) {
    const Statement* statement = only_statement(node);
    if (statement != nullptr && statement->kind == Statement::Kind::Update && last_terms(*statement->op)) {
      for (Node& part : trimmed(std::move(node))) result.push_back(std::move(part));
      continue;
    }
    if (auto* branch = std::get_if<Branch>(&node.content)) {
      run(branch->then);
      run(branch->otherwise);
    }
    if (auto* loop = std::get_if<Loop>(&node.content)) run(loop->body);
    result.push_back(std::move(node));
  }
  body = std::move(result);
}

TUNEWRIGHT_INLINE Body ReductionTrimming::trimmed(Node node) {
  Statement& statement = *only_statement(node);
  const LastTerms last = *last_terms(*statement.op);
  std::vector<IndexExpr> conditions;
  for (const IndexExpr& value : last.conditions) conditions.push_back(over_loops(nest_, statement, value));
  const auto range_of = [this](Var v) { return nest_.range_of(v); };
  std::erase_if(conditions, [&](const IndexExpr& value) { return value.range(range_of).min >= 0; });
  Body parts;
  if (conditions.empty()) {
    auto op = std::make_shared<program::Operator>(*statement.op);
    op->body = last.term;
    statement.op = std::move(op);
    parts.push_back(std::move(node));
    return parts;
  }
  for (const Loop* loop : perfect_loops(node)) {
    if (loop->kind != LoopKind::Serial || !loop->reduction) continue;
    const std::int64_t extent = nest_.variables[loop->var].extent, full = iterations_in_full(*loop, conditions);
    if (full <= 0) continue;
    const Var var = loop->var;
    for (Node& node_of_full : trimmed(part(node, var, 0, full))) parts.push_back(std::move(node_of_full));
    for (Node& node_of_rest : trimmed(part(std::move(node), var, full, extent)))
      parts.push_back(std::move(node_of_rest));
    return parts;
  }
  parts.push_back(std::move(node));
  return parts;
}

TUNEWRIGHT_INLINE std::int64_t ReductionTrimming::iterations_in_full(const Loop& loop,
                                                                     const std::vector<IndexExpr>& conditions) const {
  const auto holds = [&](std::int64_t iterations) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const IndexExpr& value) {
      return value.range([&](Var v) { return v == loop.var ? program::Range{0, iterations - 1} : nest_.range_of(v); })
                 .min >= 0;
    });
  };
  // Fewer iterations have fewer values, so what holds for some holds for fewer, too. For all of them it does not.
  std::int64_t full = 0, too_many = nest_.variables[loop.var].extent;
  while (too_many - full > 1) {
    const std::int64_t middle = full + (too_many - full) / 2;
    (holds(middle) ? full : too_many) = middle;
  }
  return full;
}

TUNEWRIGHT_INLINE Node ReductionTrimming::part(Node node, Var loop, std::int64_t begin, std::int64_t end) {
  const auto shorter = static_cast<Var>(nest_.variables.size());
  nest_.variables.push_back({nest_.variables[loop].name, end - begin});
  rebind(nest_, node, loop, shorter, begin);
  return node;
}

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest trim_reductions(LoopNest nest) {
  detail::ReductionTrimming(nest).run(nest.body);
  return nest;
}

}  // namespace tunewright::loops

#endif
