// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "tunewright/loops/nest.hpp"

namespace tunewright::codegen {

/// The code generator does not support the nest; the message gives the reason and an alternative.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bytes of a value in a vector register: 16-bit floating-point types are computed in float32.
[[nodiscard]] constexpr std::size_t register_bytes(program::ScalarType type) noexcept {
  return program::is_narrow_float(type) ? 4 : program::size_in_bytes(type);
}

/// An element of a buffer as an expression over loop variables.
struct Access {
  loops::BufferId buffer = 0;
  loops::IndexExpr offset;
  bool inside = false;  ///< always within the buffer when the statement runs
};

/// The accesses of one statement.
struct StatementPlan {
  Access target;
  std::unordered_map<const program::ExprNode*, Access> loads;
  std::unordered_map<const program::ExprNode*, loops::IndexExpr> indices;
  /// `loads` and `indices` for code that also runs where spatial guards fail: coordinates are clamped, so that reads
  /// stay in bounds. `clamp_variables` has, for each guard, the variable of the clamped coordinate, or `no_variable`
  /// for a guard that is not clamped.
  std::unordered_map<const program::ExprNode*, Access> clamped_loads;
  std::unordered_map<const program::ExprNode*, loops::IndexExpr> clamped_indices;
  std::vector<loops::Var> clamp_variables;
  /// For each guard, whether it decides which elements of the target are computed: that of a spatial axis, or of an
  /// inner split of one, beyond which another iteration computes the same element.
  std::vector<bool> guards_target;
  bool loads_can_be_clamped = false;
  bool bypasses_caches = false;   ///< the target is written by non-temporal stores, see streamed_stores.hpp
  bool target_holds_all = false;  ///< the target's window has space for the elements beyond the guards
};

inline constexpr loops::Var no_variable = ~loops::Var{0};

}  // namespace tunewright::codegen
