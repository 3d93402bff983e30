// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/context.hpp"

/// Loops that become straight-line code: their variables are bound to one value, or to the lanes of one vector, at a
/// time.
namespace tunewright::codegen::llvm_backend {

/// Calls `f` with the variable of a loop bound to each constant or vector of lanes in turn, from iteration `from` on.
template <class F>
void for_each_binding(EmissionContext& context, const loops::Loop& loop, const F& f, std::int64_t from = 0) {
  const Binding saved = context.bindings[loop.var];
  Binding& binding = context.bindings[loop.var];
  const std::int64_t extent = context.plan.extent(loop.var);
  if (extent > 1 && loop.kind == loops::LoopKind::Vectorized) {
    for (const EmissionPlan::Chunk& chunk : context.plan.chunks(loop, from)) {
      binding = context.start_of(chunk);
      f();
    }
    context.leave_chunk();
  } else {
    for (std::int64_t i = from; i < extent; ++i) {
      binding = context.constant(i);
      f();
    }
  }
  context.bindings[loop.var] = saved;
}

/// Calls `f` with the variables of vectorised loops, and of loops that move the target, bound to each of their values.
template <class F>
void for_each_element(EmissionContext& context, const std::vector<const loops::Loop*>& around,
                      const loops::Statement& s, const F& f, std::size_t from = 0) {
  if (from == around.size()) {
    f();
    return;
  }
  const loops::Loop& loop = *around[from];
  const bool vectorised = loop.kind == loops::LoopKind::Vectorized;
  const std::int64_t extent = context.plan.extent(loop.var);
  if (extent > 1 && !vectorised && !context.plan.of(s).target.offset.uses(loop.var)) {
    for_each_element(context, around, s, f, from + 1);
    return;
  }
  for_each_binding(context, loop, [&] { for_each_element(context, around, s, f, from + 1); });
}

/// Calls `f` with the variables of `inside` bound to their first values.
template <class F>
void at_first_iteration(EmissionContext& context, const std::vector<const loops::Loop*>& inside, const F& f) {
  std::vector<Binding> saved;
  for (const loops::Loop* loop : inside)
    saved.push_back(std::exchange(context.bindings[loop->var], context.first_value()));
  f();
  for (std::size_t l = 0; l < saved.size(); ++l) context.bindings[inside[l]->var] = saved[l];
}

}  // namespace tunewright::codegen::llvm_backend
