// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/statement_plan.hpp"
#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::codegen::cuda {

using loops::BufferId;
using loops::LoopKind;

/// A kernel and its global memory.
struct KernelParts {
  loops::DeviceKernel kernel;
  std::vector<BufferId> arguments;  ///< shared by all threads, ascending
  std::set<BufferId> written;       ///< the arguments that it writes
};

namespace detail {

class ArgumentReader {
 public:
  ArgumentReader(const loops::LoopNest& nest, KernelParts& parts) : nest_(nest), parts_(parts) {
    own_.insert(parts.kernel.shared.begin(), parts.kernel.shared.end());
    own_.insert(parts.kernel.local.begin(), parts.kernel.local.end());
  }

  void read() {
    visit(parts_.kernel.body);
    parts_.arguments.assign(touched_.begin(), touched_.end());
  }

 private:
  void touch(BufferId id, bool writes) {
    id = loops::memory_of(nest_, id);
    if (own_.count(id) != 0) return;
    touched_.insert(id);
    if (writes) parts_.written.insert(id);
  }

  void visit(std::span<const loops::Node> body) {
    for (const loops::Node& node : body) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
        visit(loop->body);
      } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
        visit(branch->then);
        visit(branch->otherwise);
      } else if (const auto* reduction = std::get_if<loops::CrossThreadReduction>(&node.content)) {
        touch(reduction->partial, false);
        touch(reduction->target, true);
      } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
        touch(statement->target, true);
        if (statement->kind == loops::Statement::Kind::Initialise) continue;
        program::visit(statement->op->body, [&](const program::ExprNode& e) {
          if (e.op == program::Op::Load && nest_.buffer_of.at(e.tensor) != loops::LoopNest::no_buffer)
            touch(nest_.buffer_of[e.tensor], false);
        });
      }
    }
  }

  const loops::LoopNest& nest_;
  KernelParts& parts_;
  std::set<BufferId> own_;
  std::set<BufferId> touched_;
};

}  // namespace detail

/// The kernel with the buffers that it reads and writes but does not allocate.
[[nodiscard]] inline KernelParts kernel_parts(const loops::LoopNest& nest, loops::DeviceKernel kernel) {
  KernelParts parts{std::move(kernel), {}, {}};
  detail::ArgumentReader(nest, parts).read();
  return parts;
}

}  // namespace tunewright::codegen::cuda
