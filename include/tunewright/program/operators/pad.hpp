// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/range.hpp"

namespace tunewright::program::operators {

struct PadOptions {
  std::vector<std::int64_t> before;  ///< elements added in front, one number a dimension
  std::vector<std::int64_t> after;   ///< elements added behind
  double value = 0;
  std::string name = "pad";
};

namespace detail {

/// index >= least and index <= most, without conditions that the range of the index implies; empty if it implies both.
[[nodiscard]] Expr guard(const IndexExpr& index, Range range, std::int64_t least, std::int64_t most);

}  // namespace detail

/// `x` surrounded by `value`: out[i..] = x[i - before..] if that exists, else `value`.
///
/// The body is a select whose untaken branch would be out of bounds, so it is never evaluated. Returns `x` itself if
/// nothing is added. Throws `std::invalid_argument` for negative amounts or a wrong number of them, and for a value
/// that is not a number of the type of x; for integers and Booleans, an infinity means the end of the type.
Tensor pad(ComputeGraph& graph, const Tensor& x, const PadOptions& options);

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators::detail {

TUNEWRIGHT_INLINE Expr guard(const IndexExpr& index, Range range, std::int64_t least, std::int64_t most) {
  Expr condition;
  if (range.min < least) condition = index_value(index) >= index_value(least);
  if (range.max > most) {
    Expr upper = index_value(index) <= index_value(most);
    condition = condition ? condition && upper : upper;
  }
  return condition;
}

}  // namespace tunewright::program::operators::detail

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor pad(ComputeGraph& graph, const Tensor& x, const PadOptions& options) {
  const std::size_t rank = x.shape.size();
  if (options.before.size() != rank || options.after.size() != rank) {
    detail::refuse(options.name, std::to_string(options.before.size()) + " amounts before and " +
                                     std::to_string(options.after.size()) + " after were given for a tensor of shape " +
                                     detail::shape_text(x.shape) + "; give one a dimension");
  }
  std::vector<Axis> axes = detail::axes_over(x.shape);
  bool unchanged = true;
  for (std::size_t d = 0; d < rank; ++d) {
    detail::require_number(options.name, "padding before dimension " + std::to_string(d), options.before[d], 0);
    detail::require_number(options.name, "padding after dimension " + std::to_string(d), options.after[d], 0);
    axes[d].extent += options.before[d] + options.after[d];
    unchanged = unchanged && axes[d].extent == x.shape[d];
  }
  if (unchanged) return x;
  const double value = std::isinf(options.value) ? detail::within_range_of(options.value, x.type) : options.value;
  detail::require_number_of(options.name, "the padding value", value, x);
  const std::vector<Axis> padded = axes;
  return graph.compute(options.name, std::move(axes), [&](auto i) {
    Expr inside;
    std::vector<IndexExpr> source;
    for (std::size_t d = 0; d < rank; ++d) {
      const Range range{0, padded[d].extent - 1};
      const std::int64_t first = options.before[d];
      if (const Expr here = detail::guard(i[d], range, first, first + x.shape[d] - 1)) {
        inside = inside ? inside && here : here;
      }
      source.push_back(i[d] - first);
    }
    return select(inside, x.at(std::move(source)), cast(constant(value, ScalarType::Float64), x.type));
  });
}

}  // namespace tunewright::program::operators

#endif
