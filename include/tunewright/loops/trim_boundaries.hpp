// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Boundary trimming: if tiles do not divide an axis, the last tile gets a separate loop of the remaining length.
///
/// With tiles of 6 along an axis of 14, the last tile always has 2 iterations. With a loop of this length it needs no
/// guards, keeps its sums in registers, and has no idle iterations:
///
///                                                if 6*i.0 + 5 < 14:
///   for i.1 in 0..6:                               for i.1 in 0..6: S
///     S  if 6*i.0 + i.1 < 14            ->       else:
///                                                  for i.1 in 0..2: S
namespace tunewright::loops {

namespace detail {

class BoundaryTrimming {
 public:
  BoundaryTrimming(LoopNest& nest, std::int64_t vector_bytes) : nest_(nest), vector_bytes_(vector_bytes) {}

  void run(Body& body);

 private:
  /// A guard `outer + var < extent`, where `var` is the variable of an unrolled or vectorized loop of the tile.
  struct Edge {
    Guard guard;
    Var var = 0;
    IndexExpr outer;                ///< start of a tile, over loops outside of it
    std::int64_t left = 0;          ///< iterations of the last tile; 0: tiles divide the axis
    bool overcomputes = false;      ///< some iterations of the last tile are beyond the axis
    bool has_full_tiles = true;     ///< some tile is within the axis
    bool may_start_beyond = false;  ///< some tile is beyond the axis
  };

  /// The nodes, perfect nests of one tile, divided into full tiles and the last one along each axis that allows it.
  [[nodiscard]] Body trimmed(Body nodes);

  [[nodiscard]] std::optional<Edge> find_edge(const Body& nodes) const;
  [[nodiscard]] std::optional<Edge> edge_of(const Guard& guard, const std::vector<const Loop*>& loops,
                                            const Statement& statement) const;

  static void remove_guard(Body& nodes, const Guard& guard);

  /// Shortens the loop of the edge to the iterations of the last tile.
  void shorten(Body& nodes, const Edge& edge);

  LoopNest& nest_;
  std::int64_t vector_bytes_;
};

}  // namespace detail

/// Returns the nest with trimmed boundaries. Semantics are unchanged; each axis at most doubles the copies of a tile.
///
/// Unrolled and vectorized loops are trimmed. Of several vectors in a tile, some may have no element within the axis,
/// and masks of a loop of known length are constants. If a statement may overcompute, lanes beyond the axis need no
/// mask, so its vectors, of `vector_bytes`, stay whole, and their guards remain. A serial loop gains little. Nests with
/// a tensor instruction are not divided, because `TensorStatements` expects one nest per product.
[[nodiscard]] LoopNest trim_boundaries(LoopNest nest, std::size_t vector_bytes);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "tunewright/loops/perfect_nest.hpp"

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void BoundaryTrimming::run(Body& body) {
  Body result;
  result.reserve(body.size());
  for (std::size_t n = 0; n < body.size(); ++n) {
    if (auto* branch = std::get_if<Branch>(&body[n].content)) {
      run(branch->then);
      run(branch->otherwise);
    } else if (auto* loop = std::get_if<Loop>(&body[n].content)) {
      const std::size_t last = last_of_group(body, n);
      if (transposes(nest_, body[n])) {
        // Full tiles are transposed in registers, so their loops stay together.
      } else if (only_statement(body[last]) == nullptr || !is_innermost(body[last])) {
        run(loop->body);
      } else if (!only_statement(body[last])->guards.empty()) {
        Body tile;
        for (; n <= last; ++n) tile.push_back(std::move(body[n]));
        --n;
        for (Node& node : trimmed(std::move(tile))) result.push_back(std::move(node));
        continue;
      }
    }
    result.push_back(std::move(body[n]));
  }
  body = std::move(result);
}

TUNEWRIGHT_INLINE Body BoundaryTrimming::trimmed(Body nodes) {
  const std::optional<Edge> edge = find_edge(nodes);
  if (!edge) return nodes;
  Body last;
  if (edge->left > 0) {
    last = nodes;
    if (!edge->overcomputes) remove_guard(last, edge->guard);
    shorten(last, *edge);
    last = trimmed(std::move(last));
    if (edge->may_start_beyond) {
      Branch within{{{edge->outer, edge->guard.extent, false, true, edge->guard.axis}}, std::move(last), {}};
      last = {};
      last.emplace_back(std::move(within));
    }
  }
  if (!edge->has_full_tiles) return last;
  remove_guard(nodes, edge->guard);
  Branch full;
  full.conditions = {
      {edge->outer + IndexExpr(nest_.range_of(edge->var).max), edge->guard.extent, false, true, edge->guard.axis}};
  full.then = trimmed(std::move(nodes));
  full.otherwise = std::move(last);
  Body parts;
  parts.emplace_back(std::move(full));
  return parts;
}

TUNEWRIGHT_INLINE std::optional<BoundaryTrimming::Edge> BoundaryTrimming::find_edge(const Body& nodes) const {
  const std::vector<const Loop*> loops = perfect_loops(nodes.back());
  if (std::any_of(loops.begin(), loops.end(), [](const Loop* loop) { return loop->intrinsic != nullptr; }))
    return std::nullopt;
  const Statement& statement = *only_statement(nodes.back());
  for (const Guard& guard : statement.guards) {
    if (std::optional<Edge> edge = edge_of(guard, loops, statement)) return edge;
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::optional<BoundaryTrimming::Edge> BoundaryTrimming::edge_of(const Guard& guard,
                                                                                  const std::vector<const Loop*>& loops,
                                                                                  const Statement& statement) const {
  if (guard.axis == Guard::padding || guard.below || !guard.above) return std::nullopt;
  Edge edge{guard, 0, guard.value};
  const Loop* of_tile = nullptr;
  for (const Loop* loop : loops) {
    if (!guard.value.uses(loop->var)) continue;
    const bool is_trimmed = loop->kind == LoopKind::Unrolled || loop->kind == LoopKind::Vectorized;
    if (!is_trimmed || guard.value.coefficient(loop->var) != 1 || of_tile != nullptr) return std::nullopt;
    of_tile = loop;
  }
  if (of_tile == nullptr) return std::nullopt;
  edge.var = of_tile->var;
  edge.outer -= IndexExpr::variable(edge.var);
  if (edge.outer.uses(edge.var)) return std::nullopt;

  // Tiles start at a constant plus multiples of `step`. Tiles that extend beyond the axis start in its last `size - 1`
  // positions: if only one multiple is among these, the remaining length is known.
  const std::int64_t size = nest_.range_of(edge.var).extent();
  std::int64_t step = 0;
  for (const IndexExpr::Term& term : edge.outer.terms()) step = std::gcd(step, term.coefficient);
  for (std::int64_t start = guard.extent - size + 1; start < guard.extent; ++start) {
    const std::int64_t from_first = start - edge.outer.constant();
    if (step == 0 ? from_first != 0 : from_first % step != 0) continue;
    if (edge.left > 0) return std::nullopt;
    edge.left = guard.extent - start;
  }
  const program::Range starts = edge.outer.range([this](Var v) { return nest_.range_of(v); });
  if (starts.min < 0) return std::nullopt;
  edge.has_full_tiles = starts.min + size <= guard.extent;
  if (of_tile->kind == LoopKind::Vectorized && statement.may_overcompute && edge.left > 0) {
    const program::ScalarType type = nest_.buffers[statement.target].type;
    const std::size_t bytes = program::is_narrow_float(type) ? sizeof(float) : program::size_in_bytes(type);
    const std::int64_t lanes = std::max<std::int64_t>(vector_bytes_ / static_cast<std::int64_t>(bytes), 1);
    const std::int64_t whole = program::ceil_div(edge.left, lanes) * lanes;
    if (whole >= size) return std::nullopt;
    edge.overcomputes = whole > edge.left;
    edge.left = whole;
  }
  edge.may_start_beyond = starts.max >= guard.extent;
  return edge;
}

TUNEWRIGHT_INLINE void BoundaryTrimming::remove_guard(Body& nodes, const Guard& guard) {
  const Guard removed = guard;
  for (Node& node : nodes) {
    std::erase_if(only_statement(node)->guards, [&](const Guard& other) {
      return other.axis == removed.axis && other.extent == removed.extent && other.value == removed.value;
    });
  }
}

TUNEWRIGHT_INLINE void BoundaryTrimming::shorten(Body& nodes, const Edge& edge) {
  const auto shorter = static_cast<Var>(nest_.variables.size());
  nest_.variables.push_back({nest_.variables[edge.var].name, edge.left});
  for (Node& node : nodes) rebind(nest_, node, edge.var, shorter);
}

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest trim_boundaries(LoopNest nest, std::size_t vector_bytes) {
  detail::BoundaryTrimming(nest, static_cast<std::int64_t>(vector_bytes)).run(nest.body);
  return nest;
}

}  // namespace tunewright::loops

#endif
