// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "tunewright/loops/tensor_work.hpp"

namespace tunewright::test {

/// Appends the loops of `body` around `statement`, outermost first, all run by one worker; false where it is not in
/// there.
inline bool add_loops_around(const loops::LoopNest& nest, const loops::Body& body, const loops::Statement* statement,
                             std::int64_t unroll_limit, std::vector<loops::WorkerLoop>& around) {
  for (const loops::Node& node : body) {
    if (const auto* s = std::get_if<loops::Statement>(&node.content)) {
      if (s == statement) return true;
    } else if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      const std::int64_t limit = std::max(unroll_limit, loop->unroll_limit);
      around.push_back({nest.variables[loop->var].extent, loop->kind, limit});
      if (add_loops_around(nest, loop->body, statement, limit, around)) return true;
      around.pop_back();
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      if (add_loops_around(nest, branch->then, statement, unroll_limit, around) ||
          add_loops_around(nest, branch->otherwise, statement, unroll_limit, around))
        return true;
    }
  }
  return false;
}

/// What `tensor`, of `nest`, does in all, if each of its instructions runs.
inline loops::TensorWork work_of(const loops::LoopNest& nest, const loops::TensorStatement& tensor,
                                 std::int64_t vector_registers = 32) {
  std::vector<loops::WorkerLoop> around;
  (void)add_loops_around(nest, nest.body, tensor.statement, 0, around);
  return loops::tensor_work(tensor, around, vector_registers);
}

}  // namespace tunewright::test
