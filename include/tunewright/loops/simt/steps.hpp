// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/statement_program.hpp"

/// The code of a kernel's threads, prepared for running one thread after the other.
namespace tunewright::loops::detail {

/// A prepared node.
struct SimtStep {
  enum class Kind : std::uint8_t { Loop, Branch, Statement, Allocate, Barrier, Combine, Commit, Wait };
  Kind kind = Kind::Barrier;
  bool together = false;  ///< contains a node at which all threads meet
  bool asynchronous = false;
  std::uint32_t under_way = 0;
  bool by_warp = false;  ///< the whole warp executes it
  Var var = 0;
  std::int64_t extent = 1;
  BufferId buffer = 0;
  std::size_t program = 0;  ///< index into the kernel's programs
  const Branch* branch = nullptr;
  const CrossThreadReduction* combine = nullptr;
  std::vector<SimtStep> body;
  std::vector<SimtStep> otherwise;
};

/// The nodes of a kernel in device form. Appends the computations of their statements to `programs`.
[[nodiscard]] std::vector<SimtStep> simt_steps(const LoopNest& nest, std::span<const Node> body,
                                               std::vector<StatementProgram>& programs);

}  // namespace tunewright::loops::detail

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE std::vector<SimtStep> simt_steps(const LoopNest& nest, std::span<const Node> body,
                                                   std::vector<StatementProgram>& programs) {
  std::vector<SimtStep> steps;
  for (const Node& node : body) {
    if (std::holds_alternative<WaitForProducts>(node.content)) continue;  // products are complete after they have run
    SimtStep& step = steps.emplace_back();
    if (const auto* loop = std::get_if<Loop>(&node.content)) {
      step.kind = SimtStep::Kind::Loop;
      step.var = loop->var;
      step.extent = checked_extent(nest, *loop);
      step.by_warp = loop->intrinsic != nullptr;
      step.body = simt_steps(nest, loop->body, programs);
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      step.kind = SimtStep::Kind::Branch;
      step.branch = branch;
      step.body = simt_steps(nest, branch->then, programs);
      step.otherwise = simt_steps(nest, branch->otherwise, programs);
    } else if (const auto* statement = std::get_if<Statement>(&node.content)) {
      step.kind = SimtStep::Kind::Statement;
      step.program = programs.size();
      step.asynchronous = statement->asynchronous;
      programs.emplace_back(nest, *statement);
    } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
      step.kind = SimtStep::Kind::Allocate;
      step.buffer = allocate->buffer;
    } else if (std::holds_alternative<CommitCopies>(node.content)) {
      step.kind = SimtStep::Kind::Commit;
    } else if (const auto* wait = std::get_if<WaitForCopies>(&node.content)) {
      step.kind = SimtStep::Kind::Wait;
      step.under_way = wait->under_way;
    } else {
      step.together = true;
      step.combine = std::get_if<CrossThreadReduction>(&node.content);
      if (step.combine != nullptr) step.kind = SimtStep::Kind::Combine;
    }
    for (const SimtStep& inner : step.body) step.together = step.together || inner.together;
    for (const SimtStep& inner : step.otherwise) step.together = step.together || inner.together;
  }
  return steps;
}

}  // namespace tunewright::loops::detail

#endif
