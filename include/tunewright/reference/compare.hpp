// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/number_text.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/reference/array.hpp"
#include "tunewright/reference/evaluate.hpp"

namespace tunewright::reference {

/// An element passes if |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double absolute = 1e-6;
  double relative = 1e-5;
};

namespace detail {

/// Number of roundings to `type` that an element of tensor `id` may accumulate, in units of the rounding unit: 1 plus
/// the terms of each sum that is rounded at every step, times the square root of the number of terms of sums in wider
/// types. 0 if no path to the tensor rounds to the type.
[[nodiscard]] double narrow_roundings(const ComputeGraph& graph, TensorId id, ScalarType type);

}  // namespace detail

/// Tolerance for tensor `id` if inputs are of order 1.
///
/// With e the rounding unit of the type and L the largest number of terms that are summed (or multiplied) on any path
/// to the tensor, i.e. the product over the sums of a path, both bounds are 4*e*L with a minimum of 8*e. A sum of L
/// terms of order 1 that is rounded at each step has an error of about 0.1*e*L, so a correct kernel passes with any
/// order of summation, while a missing term is an error of order 1.
///
/// Roundings to 16 bits are counted separately, because most of a graph does none: inputs are exact, selecting values
/// is exact, and products of 16-bit numbers are summed in float32. If results are rounded to 16 bits, the bounds of
/// that type are added, with L the number of terms summed in it and only the square root of the number of terms of a
/// later sum, because individual roundings have random signs. Integers are compared exactly.
[[nodiscard]] Tolerance tolerance_for(const ComputeGraph& graph, TensorId id);

/// Result of a comparison; `passed` if all elements are within the tolerance.
struct Comparison {
  bool passed = true;
  std::size_t mismatches = 0;
  double worst = 0;                 ///< largest error relative to the tolerance; a mismatch if above 1
  std::int64_t worst_element = -1;  ///< row-major number
  double actual = 0;                ///< at the worst element
  double expected = 0;
  std::vector<std::int64_t> shape;

  /// Coordinates of the worst element.
  [[nodiscard]] std::vector<std::int64_t> worst_index() const;
  /// One line of text, e.g. "3 elements differ, worst [1, 7]: got 0.5, expected 0.25".
  [[nodiscard]] std::string text() const;
};

namespace detail {

void compare_element(Comparison& c, std::int64_t flat, double actual, double expected, const Tolerance& tolerance);

}  // namespace detail

inline std::string Comparison::text() const {
  std::string index = "[";
  for (const std::int64_t i : worst_index()) index += (index.size() > 1 ? ", " : "") + std::to_string(i);
  return (passed ? "equal within the tolerance" : std::to_string(mismatches) + " elements differ") + ", worst " +
         index + "]: got " + number_text(actual) + ", expected " + number_text(expected);
}

/// Compares all elements. NaN equals NaN, and an infinity equals only itself. Throws `std::invalid_argument` for
/// different shapes.
[[nodiscard]] Comparison compare(const Array& actual, const Array& expected, const Tolerance& tolerance = {});

/// Compares the elements with row-major numbers `points` of `actual` with `expected`, e.g. the result of `evaluate_at`.
/// Throws `std::invalid_argument` for lists of different lengths.
[[nodiscard]] Comparison compare_at(const Array& actual, std::span<const std::int64_t> points,
                                    std::span<const double> expected, const Tolerance& tolerance = {});

}  // namespace tunewright::reference

#if TUNEWRIGHT_DEFINES(reference)

namespace tunewright::reference::detail {

TUNEWRIGHT_INLINE double narrow_roundings(const ComputeGraph& graph, TensorId id, ScalarType type) {
  std::vector<double> carried(graph.size(), 0);
  for (TensorId t = 0; t <= id; ++t) {
    const program::Operator& op = graph.op(t);
    if (!op.body) continue;
    for (const TensorId producer : graph.producers(t)) carried[t] = std::max(carried[t], carried[producer]);
    bool rounds = false;
    program::visit(op.body, [&](const program::ExprNode& node) {
      using program::Op;
      const bool picks = node.op == Op::Constant || node.op == Op::Load || node.op == Op::Select ||
                         node.op == Op::Min || node.op == Op::Max || node.op == Op::Negate || node.op == Op::Abs;
      rounds = rounds || (!picks && node.type == type);
    });
    double terms = 1;
    for (std::size_t a = op.rank(); a < op.axes.size(); ++a) terms *= static_cast<double>(op.axes[a].extent);
    const bool sums = op.combiner == program::Combiner::Sum || op.combiner == program::Combiner::Product;
    if (sums) carried[t] *= op.type == type ? terms : std::sqrt(terms);
    if (rounds) carried[t] += 2;
    if (sums && op.type == type) carried[t] += terms;
  }
  return carried[id];
}

}  // namespace tunewright::reference::detail

namespace tunewright::reference {

TUNEWRIGHT_INLINE Tolerance tolerance_for(const ComputeGraph& graph, TensorId id) {
  std::vector<double> terms(graph.size(), 1);
  for (TensorId t = 0; t <= id; ++t) {
    const program::Operator& op = graph.op(t);
    for (const TensorId producer : graph.producers(t)) terms[t] = std::max(terms[t], terms[producer]);
    if (op.combiner != program::Combiner::Sum && op.combiner != program::Combiner::Product) continue;
    for (std::size_t a = op.rank(); a < op.axes.size(); ++a) terms[t] *= static_cast<double>(op.axes[a].extent);
  }
  const ScalarType type = graph.op(id).type;
  if (!is_float(type)) return {0, 0};
  double narrow = 0;
  for (const ScalarType unit : {ScalarType::Float16, ScalarType::BFloat16})
    narrow += epsilon(unit) * 4 * detail::narrow_roundings(graph, id, unit);
  if (is_narrow_float(type) && narrow == 0) return {0, 0};  // values are only selected
  // A path through float32 tensors is at most as accurate as float32.
  bool single = false;
  for (TensorId t = 0; t <= id; ++t) single = single || graph.op(t).type == ScalarType::Float32;
  const double unit = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const double bound = unit * (32 + 4 * terms[id]) + narrow;
  return {bound, bound};
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> Comparison::worst_index() const {
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t rest = worst_element;
  for (std::size_t d = shape.size(); d-- > 0 && rest > 0;) {
    index[d] = rest % shape[d];
    rest /= shape[d];
  }
  return index;
}

}  // namespace tunewright::reference

namespace tunewright::reference::detail {

TUNEWRIGHT_INLINE void compare_element(Comparison& c, std::int64_t flat, double actual, double expected,
                                       const Tolerance& tolerance) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) {
    if (c.worst_element < 0) c.worst_element = flat, c.actual = actual, c.expected = expected;
    return;
  }
  const double allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  double error = std::abs(actual - expected) / allowed;
  // A NaN or an infinity on one side only, and a difference where none is allowed, count as an infinite error.
  if (std::isnan(error) || !std::isfinite(expected)) error = std::numeric_limits<double>::infinity();
  if (error > 1) {
    ++c.mismatches;
    c.passed = false;
  }
  if (error > c.worst || c.worst_element < 0) {
    c.worst = error;
    c.worst_element = flat;
    c.actual = actual;
    c.expected = expected;
  }
}

}  // namespace tunewright::reference::detail

namespace tunewright::reference {

TUNEWRIGHT_INLINE Comparison compare(const Array& actual, const Array& expected, const Tolerance& tolerance) {
  Comparison c;
  c.shape = expected.shape();
  if (actual.shape() != c.shape) {
    throw std::invalid_argument("arrays of " + std::to_string(actual.size()) + " and " +
                                std::to_string(expected.size()) + " elements were compared; give both the same shape");
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    detail::compare_element(c, static_cast<std::int64_t>(i), actual.get(i), expected.get(i), tolerance);
  }
  return c;
}

TUNEWRIGHT_INLINE Comparison compare_at(const Array& actual, std::span<const std::int64_t> points,
                                        std::span<const double> expected, const Tolerance& tolerance) {
  if (points.size() != expected.size()) {
    throw std::invalid_argument(std::to_string(points.size()) + " points came with " + std::to_string(expected.size()) +
                                " values; give one a point");
  }
  Comparison c;
  c.shape = actual.shape();
  for (std::size_t i = 0; i < points.size(); ++i) {
    detail::compare_element(c, points[i], actual.get(static_cast<std::size_t>(points[i])), expected[i], tolerance);
  }
  return c;
}

}  // namespace tunewright::reference

#endif
