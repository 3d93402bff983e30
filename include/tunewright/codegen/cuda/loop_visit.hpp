// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "tunewright/loops/nest.hpp"

namespace tunewright::codegen::cuda {

/// Calls `f(node, loop)` for every loop in `body` and the node that contains it, inner loops first. Skips loops that a
/// tensor instruction replaces. `f` may replace the node.
template <class F>
void for_each_loop(loops::Body& body, const F& f) {
  for (loops::Node& node : body) {
    if (auto* branch = std::get_if<loops::Branch>(&node.content)) {
      for_each_loop(branch->then, f);
      for_each_loop(branch->otherwise, f);
    }
    auto* loop = std::get_if<loops::Loop>(&node.content);
    if (loop == nullptr || loop->intrinsic != nullptr) continue;
    for_each_loop(loop->body, f);
    f(node, *loop);
  }
}

}  // namespace tunewright::codegen::cuda
