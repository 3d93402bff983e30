// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/program/index_expr.hpp"

/// The shared-memory layout of operands of warp-group instructions, which read them through a descriptor of the
/// matrix's address and the distances of its parts.
///
/// A core matrix is eight consecutive pieces of 16 bytes, or of 128 where these are swizzled, which offsets leave out
/// (`Buffer::swizzled`). A piece is either terms of one line (a row of `a` or a column of `b`), and a core matrix eight
/// such lines; or, for 16-bit types, lines at one term, and a core matrix eight such terms. Core matrices have one
/// constant distance along lines and another along terms, both multiples of a piece. PTX ISA, section "Shared Memory
/// Matrix Layout" of `wgmma.mma_async`: the layouts without and with 128-byte swizzling, "K-major" if terms are
/// contiguous, otherwise "MN-major"; the number of elements of a piece is `piece` below.
namespace tunewright::loops::device {

struct CoreMatrices {
  bool terms_are_neighbours = false;  ///< terms are contiguous in memory; otherwise lines are
  std::int64_t along_lines = 0;       ///< distance of core matrices in elements
  std::int64_t along_terms = 0;
};

/// The layout of elements at `offset`, where `line` counts lines and `term` terms; empty if it is not one of core
/// matrices with pieces of `piece` elements. Cost: a substitution for each line and each term.
[[nodiscard]] std::optional<CoreMatrices> core_matrices(const LoopNest& nest, const IndexExpr& offset, Var line,
                                                        Var term, std::int64_t piece);

}  // namespace tunewright::loops::device

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/device/pass.hpp"

namespace tunewright::loops::device {

TUNEWRIGHT_INLINE std::optional<CoreMatrices> core_matrices(const LoopNest& nest, const IndexExpr& offset, Var line,
                                                            Var term, std::int64_t piece) {
  constexpr std::int64_t pieces = 8;
  const auto uses = [](const IndexExpr::Term& t, Var v) {
    return t.kind == IndexExpr::Kind::Variable ? t.var == v : t.numerator->uses(v);
  };
  // Then lines and terms contribute independently, so each can be checked alone.
  const bool apart = std::none_of(offset.terms().begin(), offset.terms().end(),
                                  [&](const IndexExpr::Term& t) { return uses(t, line) && uses(t, term); });
  if (!apart) return std::nullopt;
  const auto at = [&](std::int64_t l, std::int64_t t) {
    return offset.substitute(
        [&](Var v) { return v == line   ? IndexExpr(l)
                            : v == term ? IndexExpr(t)
                                        : IndexExpr::variable(v); },
        [&](Var v) { return nest.range_of(v); });
  };
  const IndexExpr first = at(0, 0);
  const auto distance = [&](std::int64_t l, std::int64_t t) -> std::optional<std::int64_t> {
    const IndexExpr difference = at(l, t) - first;
    return difference.is_constant() ? std::optional(difference.constant()) : std::nullopt;
  };
  CoreMatrices found;
  found.terms_are_neighbours = distance(0, 1) == 1;
  const std::int64_t lines = found.terms_are_neighbours ? pieces : piece,
                     terms = found.terms_are_neighbours ? piece : pieces;
  const auto runs = [&](std::int64_t extent, std::int64_t inside, bool are_neighbours, std::int64_t& apart_by,
                        const auto& distance_of) {
    apart_by = distance_of(inside).value_or(0);
    for (std::int64_t i = 0; i < extent; ++i) {
      if (distance_of(i) != i % inside * (are_neighbours ? 1 : piece) + i / inside * apart_by) return false;
    }
    return apart_by % piece == 0;
  };
  const bool whole = runs(nest.variables[line].extent, lines, !found.terms_are_neighbours, found.along_lines,
                          [&](std::int64_t l) { return distance(l, 0); }) &&
                     runs(nest.variables[term].extent, terms, found.terms_are_neighbours, found.along_terms,
                          [&](std::int64_t t) { return distance(0, t); });
  return whole ? std::optional(found) : std::nullopt;
}

}  // namespace tunewright::loops::device

#endif
