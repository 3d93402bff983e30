// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/features/per_statement/affine.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/nest_summary.hpp"

/// The describers' view of programs, lowered or summarized: loops, statements and allocations in program order.
namespace tunewright::features::per_statement {

/// An entered loop.
struct WalkedLoop {
  loops::Var var = 0;
  std::int64_t extent = 1;
  loops::LoopKind kind = loops::LoopKind::Serial;
  std::int64_t unroll_limit = 0;

  /// False for serial loops of a single iteration, which do not count.
  [[nodiscard]] bool runs() const noexcept { return extent > 1 || kind != loops::LoopKind::Serial; }
};

/// A statement; that of a fill has no loads.
struct WalkedStatement {
  loops::Statement::Kind kind = loops::Statement::Kind::Assign;
  loops::BufferId target = 0;
  const std::shared_ptr<const program::Operator>* op = nullptr;
  AffineForms::Values axis_values{};
};

/// Calls `visitor.enter(loop)`, `leave(loop)`, `run(statement)` and `allocate(buffer)`. It walks one side of a branch,
/// because both have the same statements and one only checks more. Throws `std::invalid_argument` for undeclared loops.
template <class Visitor>
void walk(const loops::LoopNest& nest, const loops::Body& body, Visitor& visitor) {
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      const WalkedLoop walked{loop->var, loops::checked_extent(nest, *loop), loop->kind, loop->unroll_limit};
      visitor.enter(walked);
      walk(nest, loop->body, visitor);
      visitor.leave(walked);
    } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
      visitor.run({statement->kind, statement->target, &statement->op, {.of_nest = statement->axis_values}});
    } else if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) {
      visitor.allocate(allocate->buffer);
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      walk(nest, branch->then.empty() ? branch->otherwise : branch->then, visitor);
    }
  }
}
template <class Visitor>
void walk(const loops::LoopNest& nest, Visitor& visitor) {
  walk(nest, nest.body, visitor);
}

template <class Visitor>
void walk(const loops::NestSummary& summary, Visitor& visitor) {
  using Event = loops::NestSummary::Event;
  std::vector<WalkedLoop> open;
  const auto walked = [&](const loops::StatementSummary& s) {
    return WalkedStatement{s.kind, s.target, s.op, {.of_summary = s.axis_values, .arena = &summary.indices}};
  };
  for (const loops::NestSummary::Step& step : summary.steps()) {
    switch (step.event) {
      case Event::Enter: {
        const loops::LoopSummary& loop = summary.loops[step.of];
        open.push_back({loop.var, loop.extent, loop.kind, loop.unroll_limit});
        visitor.enter(open.back());
        break;
      }
      case Event::Leave:
        visitor.leave(open.back());
        open.pop_back();
        break;
      case Event::Run: visitor.run(walked(summary.statements[step.of])); break;
      case Event::Fill: visitor.run(walked(summary.fills[step.of])); break;
      case Event::Allocate: visitor.allocate(step.of); break;
      case Event::Next: break;
    }
  }
}

/// The number of loop variables that a program declares.
[[nodiscard]] inline std::size_t variables_of(const loops::LoopNest& nest) { return nest.variables.size(); }
[[nodiscard]] inline std::size_t variables_of(const loops::NestSummary& summary) {
  return summary.indices.extents.size();
}

/// The name of a program in messages.
[[nodiscard]] inline const std::string& name_of(const loops::LoopNest& nest) { return nest.name; }
[[nodiscard]] inline std::string name_of(const loops::NestSummary&) { return "kernel"; }

}  // namespace tunewright::features::per_statement
