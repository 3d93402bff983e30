// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda/scalar_emitter.hpp"
#include "tunewright/codegen/cuda/tensor_helpers.hpp"
#include "tunewright/loops/device/fragments.hpp"

namespace tunewright::codegen::cuda {

/// Products on tensor cores inside unrolled loops over the fragments of a warp, without other content: each factor is
/// loaded once for all of them.
struct FragmentTile {
  std::vector<loops::Var> around;  ///< outermost first; empty for a single product
  const loops::Loop* product = nullptr;
  loops::device::FragmentWork work;
};

/// The tile whose outermost loop is `loop`, if there is one.
[[nodiscard]] inline std::optional<FragmentTile> fragment_tile(const loops::LoopNest& nest, const loops::Loop& loop) {
  FragmentTile tile;
  const loops::Loop* inner = &loop;
  while (inner->intrinsic == nullptr) {
    if (inner->kind != loops::LoopKind::Unrolled || inner->body.size() != 1) return std::nullopt;
    tile.around.push_back(inner->var);
    inner = std::get_if<loops::Loop>(&inner->body[0].content);
    if (inner == nullptr) return std::nullopt;
  }
  tile.product = inner;
  tile.work = loops::device::fragment_work(nest, *inner);
  const loops::Statement& s = *tile.work.statement;
  if (s.kind != loops::Statement::Kind::Update) return std::nullopt;
  // A condition that differs within the tile separates its products.
  for (const loops::Guard& guard : s.guards) {
    for (const loops::Var var : tile.around) {
      if (guard.value.uses(var)) return std::nullopt;
    }
  }
  return tile;
}

/// Those variables of `around` on which `offset` depends.
[[nodiscard]] inline std::vector<loops::Var> used_of(const std::vector<loops::Var>& around, const IndexExpr& offset) {
  std::vector<loops::Var> used;
  for (const loops::Var var : around) {
    if (offset.uses(var)) used.push_back(var);
  }
  return used;
}

/// The linear number of an iteration of nested loops; the last loop varies fastest.
[[nodiscard]] inline IndexExpr number_in(const loops::LoopNest& nest, const std::vector<loops::Var>& loops) {
  IndexExpr number;
  for (const loops::Var var : loops) {
    number *= nest.variables[var].extent;
    number += IndexExpr::variable(var);
  }
  return number;
}
[[nodiscard]] inline std::int64_t points_of(const loops::LoopNest& nest, const std::vector<loops::Var>& loops) {
  std::int64_t points = 1;
  for (const loops::Var var : loops) points *= nest.variables[var].extent;
  return points;
}

/// A fragment type for an accumulator whose sums are only read, so that only the type of the sums is known.
[[nodiscard]] inline const FragmentType& fragments_of_sums(program::ScalarType sums) {
  return fragment_type(program::is_float(sums) ? program::ScalarType::Float16 : program::ScalarType::Int8);
}

}  // namespace tunewright::codegen::cuda
