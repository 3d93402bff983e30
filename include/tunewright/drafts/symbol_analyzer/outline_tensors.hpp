// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <variant>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/relax.hpp"
#include "tunewright/loops/skip_zeros.hpp"
#include "tunewright/loops/tensor_statements.hpp"

namespace tunewright::drafts {

/// Finds the tensor statements of a lowered nest: those of the nest that code is generated for, which differs where there
/// are guards or padding.
class OutlineTensors {
 public:
  /// One for each statement, with the share of both sides of its branches. Pointers lead into the nest, or into what was
  /// made of it, which lasts until the next call.
  void find(const loops::LoopNest& nest, std::vector<loops::TensorStatement>& found) {
    const bool is_final = is_emitted_as_it_is(nest.body);
    if (!is_final) emitted_ = loops::partition(loops::relax(loops::skip_zeros(nest)));
    statements_.find(is_final ? nest : emitted_, found);
    auto end = found.begin();
    for (auto next = found.begin(); next != found.end(); ++next) {
      const auto known =
          std::find_if(found.begin(), end, [&](const auto& t) { return t.number == next->number; });
      if (known != end)
        known->share += next->share;
      else
        *end++ = *next;
    }
    found.erase(end, found.end());
  }

 private:
  [[nodiscard]] static bool is_emitted_as_it_is(const loops::Body& body) {
    return std::all_of(body.begin(), body.end(), [](const loops::Node& node) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) return is_emitted_as_it_is(loop->body);
      if (std::holds_alternative<loops::Branch>(node.content)) return false;
      const auto* s = std::get_if<loops::Statement>(&node.content);
      if (s == nullptr) return true;
      bool chooses = false;
      if (s->op->body)
        program::visit(s->op->body,
                       [&](const program::ExprNode& e) { chooses = chooses || e.op == program::Op::Select; });
      return s->guards.empty() && !chooses;
    });
  }

  loops::TensorStatements statements_;
  loops::LoopNest emitted_;
};

}  // namespace tunewright::drafts
