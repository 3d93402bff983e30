// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Stores that bypass the caches (non-temporal stores, "movnt" on x86). An ordinary store first reads the cache line
/// that it writes to, so an elementwise kernel whose output exceeds the last-level cache moves four bytes where three
/// would do: c = a + b reads a, b and c, and writes c.
namespace tunewright::codegen {

/// Whether little of an output would be found in the caches after the kernel: it takes half of the last-level cache at
/// least, and the arguments of the kernel together exceed it by a quarter.
[[nodiscard]] bool outgrows_caches(const loops::LoopNest& nest, loops::BufferId output, const Target& target);

/// The buffers that may be written around the caches, by `BufferId`: outputs that outgrow the caches and that no
/// statement reads or adds to. None for targets other than x86-64.
[[nodiscard]] std::vector<bool> streamed_buffers(const loops::LoopNest& nest, const Target& target);

/// Whether a vectorised loop over `vector`, of `extent` iterations, writes whole cache lines of a buffer that starts at
/// one, one line after the other: a line that is written in parts costs more than the read that it saves. `offset`
/// counts elements of `element_bytes`.
[[nodiscard]] bool writes_whole_lines(const loops::IndexExpr& offset, loops::Var vector, std::int64_t extent,
                                      std::int64_t element_bytes);

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include <algorithm>

#include "tunewright/loops/tensor_operands.hpp"
#include "tunewright/program/expr.hpp"

namespace tunewright::codegen {

TUNEWRIGHT_INLINE bool outgrows_caches(const loops::LoopNest& nest, loops::BufferId output, const Target& target) {
  const auto cache_bytes = static_cast<std::int64_t>(std::max(target.l2_bytes, target.l3_bytes));
  std::int64_t argument_bytes = 0;
  for (const loops::BufferId argument : nest.arguments) argument_bytes += nest.buffers[argument].bytes();
  return nest.buffers[output].bytes() >= cache_bytes / 2 && argument_bytes > cache_bytes + cache_bytes / 4;
}

TUNEWRIGHT_INLINE std::vector<bool> streamed_buffers(const loops::LoopNest& nest, const Target& target) {
  std::vector<bool> streamed(nest.buffers.size(), false);
  if (family_of(target.isa) != CpuFamily::X86_64) return streamed;
  for (const loops::BufferId argument : nest.arguments) {
    streamed[argument] =
        nest.buffers[argument].role == loops::BufferRole::Output && outgrows_caches(nest, argument, target);
  }
  loops::for_each_statement(nest.body, [&](const loops::Statement& s) {
    if (s.kind != loops::Statement::Kind::Assign) streamed[loops::memory_of(nest, s.target)] = false;
    program::visit(s.op->body, [&](const program::ExprNode& node) {
      if (node.op != program::Op::Load) return;
      const loops::BufferId id = nest.buffer_of[node.tensor];
      if (id != loops::LoopNest::no_buffer) streamed[loops::memory_of(nest, id)] = false;
    });
  });
  return streamed;
}

TUNEWRIGHT_INLINE bool writes_whole_lines(const loops::IndexExpr& offset, loops::Var vector, std::int64_t extent,
                                          std::int64_t element_bytes) {
  constexpr std::int64_t line_bytes = 64;
  const loops::IndexExpr start = offset - loops::IndexExpr::variable(vector);
  const std::int64_t line = line_bytes / element_bytes;
  return !start.uses(vector) && extent % line == 0 && loops::is_multiple(start, line);
}

}  // namespace tunewright::codegen

#endif
