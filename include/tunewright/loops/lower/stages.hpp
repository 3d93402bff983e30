// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/lower/pass.hpp"

namespace tunewright::loops::detail {

/// Determines which stages exist and where they run: substitutes inlined producers into their readers, and attaches
/// stages to the loops of others in which they are computed.
class StagePlacement : Pass {
 public:
  explicit StagePlacement(Lowered& lowered) : Pass(lowered) {}

  void run();

 private:
  /// Substitutes inlined producers into the bodies of their consumers.
  void inline_stages();

  [[nodiscard]] bool is_inlined(TensorId id) const {
    return !state_.stages[id].is_source() && state_.stages[id].location.kind == Location::Kind::Inline;
  }

  template <class F>
  static void collect_reads(const Expr& body, const F& f) {
    program::visit(body, [&](const program::ExprNode& node) {
      if (node.op == Op::Load) f(node.tensor);
    });
  }

  void attach_stages();

  /// Throws for more than `max_nested_loops`.
  void count_nested_loops();
};

}  // namespace tunewright::loops::detail

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void StagePlacement::run() {
  inline_stages();
  attach_stages();
  count_nested_loops();
}

TUNEWRIGHT_INLINE void StagePlacement::inline_stages() {
  for (const TensorId id : state_.order) {
    const Stage& stage = state_.stages[id];
    StageInfo& info = info_[id];
    info.op = stage.op;
    if (stage.is_source()) continue;
    info.live = stage.location.kind != Location::Kind::Inline;
    std::unordered_map<const program::ExprNode*, std::size_t> uses;  // of loads of inlined stages
    program::visit(info.op->body, [&](const program::ExprNode& node) {
      if (node.op == Op::Load && is_inlined(node.tensor)) ++uses[&node];
    });
    if (!uses.empty()) {
      Operator substituted = *stage.op;
      const auto axis_range = [&](Var v) { return Range{0, stage.op->axes[v].extent - 1}; };
      std::size_t inlined = 0;
      substituted.body = program::rewrite(stage.op->body, [&](const Expr& node) -> Expr {
        if (node->op != Op::Load || !is_inlined(node->tensor)) return {};
        Expr value = program::substitute_indices(
            info_[node->tensor].op->body, [&](Var v) -> const IndexExpr& { return node->indices[v]; }, axis_range);
        inlined += uses.at(node.get()) * program::size_of(value);
        if (inlined > schedule::detail::max_body) {
          throw ScheduleError(ScheduleFault::NotInlineable,
                              "stages of " + std::to_string(inlined) + " terms are inlined into '" + stage.op->name +
                                  "', and at most " + std::to_string(schedule::detail::max_body) +
                                  " are possible; compute some that are read several times");
        }
        return value;
      });
      info.op = std::make_shared<const Operator>(std::move(substituted));
    }
    collect_reads(info.op->body, [&](TensorId read) {
      if (std::find(info.reads.begin(), info.reads.end(), read) == info.reads.end()) info.reads.push_back(read);
    });
  }
}

TUNEWRIGHT_INLINE void StagePlacement::attach_stages() {
  for (auto self = state_.order.begin(); self != state_.order.end(); ++self) {
    const TensorId id = *self;
    const Location& location = state_.stages[id].location;
    if (!info_[id].live || location.kind != Location::Kind::At) continue;
    const Stage& target = state_.stages[location.stage];
    const std::size_t place = target.position(location.iter);
    const auto refuse = [&](const std::string& why) {
      throw ScheduleError(
          ScheduleFault::BadLocation,
          "'" + state_.stages[id].op->name + "' is computed at a loop of '" + target.op->name + "' " + why);
    };
    if (!info_[location.stage].live || place == target.order.size()) refuse("that no longer exists");
    // The order is topological: readers of a stage come after it.
    if (std::find(self + 1, state_.order.end(), location.stage) == state_.order.end()) refuse("which does not read it");
    info_[location.stage].attached.push_back({place, id});
  }
}

TUNEWRIGHT_INLINE void StagePlacement::count_nested_loops() {
  for (auto id = state_.order.rbegin(); id != state_.order.rend(); ++id) {
    if (!info_[*id].live) continue;
    const Stage& stage = state_.stages[*id];
    const bool is_attached = stage.location.kind == Location::Kind::At;
    std::size_t& loops = info_[*id].nested_loops;
    loops = stage.order.size() + (is_attached ? info_[stage.location.stage].nested_loops : 0);
    if (loops <= max_nested_loops) continue;
    throw ScheduleError(ScheduleFault::Unsupported, "'" + stage.op->name + "' has " + std::to_string(loops) +
                                                        " loops with the stages that it is computed in, and at most " +
                                                        std::to_string(max_nested_loops) +
                                                        " are possible; split less, or compute it at the root");
  }
}

}  // namespace tunewright::loops::detail

#endif
