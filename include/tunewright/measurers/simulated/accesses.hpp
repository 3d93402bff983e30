// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tunewright/core/bounded_product.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// The memory accesses of a statement, for the analytic machines.
namespace tunewright::measurers::simulated {

/// Time in sixteenths of a cycle: integers, so that the result does not depend on compiler, options or order of
/// additions.
using Ticks = std::int64_t;

/// a * b, at most a 64th of the largest number, so that sums of products do not overflow either.
[[nodiscard]] constexpr std::int64_t times(std::int64_t a, std::int64_t b) noexcept {
  return bounded_product(a, b, std::numeric_limits<std::int64_t>::max() / 64);
}

/// A buffer and the physical indices, as functions of loop variables, of the accessed element.
struct Access {
  loops::BufferId buffer = 0;
  std::vector<program::IndexExpr> physical;

  [[nodiscard]] bool moved_by(loops::Var var) const;
};

[[nodiscard]] inline Access access(const loops::LoopNest& nest, loops::BufferId id,
                                   std::vector<program::IndexExpr> coordinates) {
  return {id, loops::physical_indices(nest, nest.buffers[id], std::move(coordinates))};
}

/// The element that `s` writes.
[[nodiscard]] Access store_of(const loops::LoopNest& nest, const loops::Statement& s);

/// The distinct elements that the body of `s` reads, in the order of its loads: code loads once what is named twice.
[[nodiscard]] std::vector<Access> loads_of(const loops::LoopNest& nest, const loops::Statement& s);

}  // namespace tunewright::measurers::simulated

#if TUNEWRIGHT_DEFINES(simulated)

namespace tunewright::measurers::simulated {

TUNEWRIGHT_INLINE bool Access::moved_by(loops::Var var) const {
  return std::any_of(physical.begin(), physical.end(),
                     [var](const program::IndexExpr& index) { return index.uses(var); });
}

TUNEWRIGHT_INLINE Access store_of(const loops::LoopNest& nest, const loops::Statement& s) {
  const auto rank = static_cast<std::ptrdiff_t>(nest.buffers[s.target].shape.size());
  return access(nest, s.target, {s.axis_values.begin(), s.axis_values.begin() + rank});
}

TUNEWRIGHT_INLINE std::vector<Access> loads_of(const loops::LoopNest& nest, const loops::Statement& s) {
  std::vector<Access> loads;
  if (s.kind == loops::Statement::Kind::Initialise) return loads;
  program::DistinctParts().visit(s.op->body, [&](const program::ExprNode& node) {
    if (node.op != program::Op::Load) return;
    std::vector<program::IndexExpr> coordinates;
    for (const program::IndexExpr& index : node.indices) coordinates.push_back(loops::over_loops(nest, s, index));
    loads.push_back(access(nest, nest.buffer_of[node.tensor], std::move(coordinates)));
  });
  return loads;
}

}  // namespace tunewright::measurers::simulated

#endif
