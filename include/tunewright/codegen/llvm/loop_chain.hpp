// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>
#include <vector>

#include "tunewright/loops/nest.hpp"

/// Nested loops around a single statement.
namespace tunewright::codegen::llvm_backend {

/// The statement in `loop` if that contains, apart from loops, nothing else; otherwise null.
[[nodiscard]] inline const loops::Statement* only_statement(const loops::Loop& loop) {
  const loops::Loop* current = &loop;
  while (current->body.size() == 1) {
    if (const auto* s = std::get_if<loops::Statement>(&current->body[0].content)) return s;
    current = std::get_if<loops::Loop>(&current->body[0].content);
    if (current == nullptr) return nullptr;
  }
  return nullptr;
}

/// `loop` and the loops inside it, outermost first; `loop` must have an only statement.
[[nodiscard]] inline std::vector<const loops::Loop*> chain(const loops::Loop& loop) {
  std::vector<const loops::Loop*> list{&loop};
  while (const auto* inner = std::get_if<loops::Loop>(&list.back()->body[0].content)) list.push_back(inner);
  return list;
}

/// Whether a loop of the chain moves `e`.
[[nodiscard]] inline bool varies_in(const loops::Loop& loop, const loops::IndexExpr& e) {
  for (const loops::Loop* inner : chain(loop)) {
    if (e.uses(inner->var)) return true;
  }
  return false;
}

}  // namespace tunewright::codegen::llvm_backend
