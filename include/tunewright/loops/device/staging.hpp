// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/device/pass.hpp"

namespace tunewright::loops::device {

/// Copies in two halves, so that a thread can compute while its loads are in flight.
struct StagedCopies {
  Body registers;  ///< allocations
  Body loads;      ///< into registers
  Body stores;     ///< from registers to the destination of the copies
};

/// Splits copies into halves with separate loops.
class CopyStaging {
 public:
  explicit CopyStaging(LoopNest& nest) : nest_(nest) {}

  [[nodiscard]] StagedCopies run(const Body& copies) {
    StagedCopies staged;
    staged.loads = copies;
    staged.stores = copies;
    split(staged.loads, staged.stores, staged.registers);
    return staged;
  }

  /// Number of elements that one thread copies.
  [[nodiscard]] std::int64_t elements(const Body& copies) const {
    std::int64_t sum = 0;
    for (const Node& node : copies) {
      if (const auto* loop = std::get_if<Loop>(&node.content))
        sum += nest_.variables[loop->var].extent * elements(loop->body);
      if (const auto* branch = std::get_if<Branch>(&node.content))
        sum += elements(branch->then) + elements(branch->otherwise);
      if (std::holds_alternative<Statement>(node.content)) ++sum;
    }
    return sum;
  }

 private:
  void split(Body& loads, Body& stores, Body& registers) {
    for (std::size_t n = 0; n < loads.size(); ++n) {
      if (auto* loop = std::get_if<Loop>(&loads[n].content)) {
        around_.push_back({loop->var, nest_.variables[loop->var].extent});
        split(loop->body, std::get<Loop>(stores[n].content).body, registers);
        around_.pop_back();
      } else if (auto* branch = std::get_if<Branch>(&loads[n].content)) {
        auto& other = std::get<Branch>(stores[n].content);
        split(branch->then, other.then, registers);
        split(branch->otherwise, other.otherwise, registers);
      } else if (auto* statement = std::get_if<Statement>(&loads[n].content)) {
        const BufferId kept = add_registers(*statement);
        statement->target = kept;
        auto& store = std::get<Statement>(stores[n].content);
        store.op = copy_of(*store.op, nest_.buffers[kept].tensor);
        registers.push_back(Allocate{kept});
      }
    }
  }

  /// One element per iteration of the surrounding loops; the position in the tensor is dropped.
  BufferId add_registers(const Statement& copy) {
    const std::size_t rank = copy.op->rank();
    Buffer kept;
    kept.name = nest_.buffers[copy.target].name + ".next";
    kept.tensor = static_cast<TensorId>(nest_.buffer_of.size());
    kept.type = copy.op->type;
    kept.scope = Scope::Local;
    kept.shape.assign(rank, 1);
    kept.origin.assign(copy.axis_values.begin(), copy.axis_values.begin() + static_cast<std::ptrdiff_t>(rank));
    kept.private_to = around_;
    const auto id = static_cast<BufferId>(nest_.buffers.size());
    nest_.buffer_of.push_back(id);
    nest_.buffers.push_back(std::move(kept));
    return id;
  }

  static std::shared_ptr<const program::Operator> copy_of(const program::Operator& op, TensorId from) {
    program::Operator copy = op;
    std::vector<IndexExpr> indices;
    for (Var axis = 0; axis < op.rank(); ++axis) indices.push_back(IndexExpr::variable(axis));
    copy.body = program::load(from, op.type, std::move(indices));
    return std::make_shared<const program::Operator>(std::move(copy));
  }

  LoopNest& nest_;
  std::vector<CopySelector> around_;
};

/// The halves of `copies`; empty if a thread would need more registers than it is worth.
[[nodiscard]] inline std::optional<StagedCopies> staged_copies(LoopNest& nest, const Body& copies) {
  constexpr std::int64_t max_elements = 64;
  CopyStaging staging(nest);
  if (staging.elements(copies) > max_elements) return std::nullopt;
  return staging.run(copies);
}

}  // namespace tunewright::loops::device
