// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::program::operators {

/// The position of an image's channels: NHWC (also NWC, NDHWC) or NCHW (also NCW, NCDHW).
enum class Layout : std::uint8_t { ChannelsLast, ChannelsFirst };

/// One integer per window dimension D; a single number applies to all of them: `.stride = 2`, `.stride = {2, 1}`.
template <std::size_t D>
class PerDimension {
 public:
  PerDimension(std::int64_t all) { values_.fill(all); }  // NOLINT: numbers read well in options
  /// Throws `std::invalid_argument` unless there are 1 or D numbers.
  PerDimension(std::initializer_list<std::int64_t> values) {
    if (values.size() != 1 && values.size() != D) {
      throw std::invalid_argument(std::to_string(values.size()) + " numbers were given for " + std::to_string(D) +
                                  " window dimensions; give one for all or one for each");
    }
    for (std::size_t d = 0; d < D; ++d) values_[d] = values.begin()[values.size() == 1 ? 0 : d];
  }
  std::int64_t operator[](std::size_t d) const noexcept { return values_[d]; }

 private:
  std::array<std::int64_t, D> values_{};
};

namespace detail {

[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);

/// Throws `std::invalid_argument("<who>: <what>")`.
[[noreturn]] inline void refuse(std::string_view who, const std::string& what) {
  throw std::invalid_argument(std::string(who) + ": " + what);
}

void require_rank(std::string_view who, std::string_view operand, const Tensor& t, std::size_t rank,
                  std::string_view expected);

void require_extent(std::string_view who, std::string_view what, std::int64_t actual, std::int64_t expected,
                    std::string_view remedy);

/// Throws unless `actual` is from `least` to 2^31, so that no product of two such numbers overflows.
void require_number(std::string_view who, std::string_view what, std::int64_t actual, std::int64_t least);

/// Throws unless each extent, named as its member of a shape, is from 1 to 2^31.
inline void require_extents(std::string_view who,
                            std::initializer_list<std::pair<std::string_view, std::int64_t>> extents) {
  for (const auto& [what, extent] : extents) require_number(who, what, extent, 1);
}

void require_same_type(std::string_view who, const Tensor& a, const Tensor& b);

/// Throws unless `t` has floating-point elements, for operators whose formula has fractions: a literal takes the type
/// of the tensor, so a half would become 0 for integers.
void require_floating_point(std::string_view who, std::string_view operand, const Tensor& t);

/// `value`, saturated to the doubles in the range of an integer type.
[[nodiscard]] inline double within_range_of(double value, ScalarType type) {
  const double most = is_number_of(highest(type), type) ? highest(type) : std::nextafter(highest(type), 0);
  return std::clamp(value, lowest(type), most);
}

/// Throws unless `value` is a number of the type of `t`; for integers no infinity is.
void require_number_of(std::string_view who, std::string_view what, double value, const Tensor& t);

/// The type in which products of elements of `a` and `b` are computed and summed: `wanted`, or by default
/// `accumulator_type`. Throws unless the operands have one type, or are signed and unsigned 8-bit integers, and the
/// accumulator can represent all their values.
[[nodiscard]] ScalarType accumulator_for(std::string_view who, const Tensor& a, const Tensor& b,
                                         std::optional<ScalarType> wanted);

/// a * b in the type `accumulator`.
[[nodiscard]] inline Expr product_in(ScalarType accumulator, Expr a, Expr b) {
  return cast(std::move(a), accumulator) * cast(std::move(b), accumulator);
}

/// Turns a possibly negative dimension number (-1 is the last) into one below `rank`.
[[nodiscard]] std::size_t dimension(std::string_view who, int wanted, std::size_t rank);

/// Axes named `prefix`0, `prefix`1, .. over a shape.
[[nodiscard]] std::vector<Axis> axes_over(const std::vector<std::int64_t>& shape, std::string_view prefix = "i");

/// Ranges of the axes of an operator under construction, for index simplification.
struct AxisRanges {
  const std::vector<std::int64_t>& extents;
  Range operator()(Var var) const { return {0, extents[var] - 1}; }
};

}  // namespace detail
}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/core/number_text.hpp"

namespace tunewright::program::operators::detail {

TUNEWRIGHT_INLINE std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + "]";
}

TUNEWRIGHT_INLINE void require_rank(std::string_view who, std::string_view operand, const Tensor& t, std::size_t rank,
                                    std::string_view expected) {
  if (t.shape.size() == rank) return;
  refuse(who, std::string(operand) + " has shape " + shape_text(t.shape) + "; give it rank " + std::to_string(rank) +
                  ", " + std::string(expected));
}

TUNEWRIGHT_INLINE void require_extent(std::string_view who, std::string_view what, std::int64_t actual,
                                      std::int64_t expected, std::string_view remedy) {
  if (actual == expected) return;
  refuse(who, std::string(what) + " is " + std::to_string(actual) + " but must be " + std::to_string(expected) + "; " +
                  std::string(remedy));
}

TUNEWRIGHT_INLINE void require_number(std::string_view who, std::string_view what, std::int64_t actual,
                                      std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (actual >= least && actual <= most) return;
  refuse(who, std::string(what) + " is " + std::to_string(actual) + "; give at " +
                  (actual < least ? "least " + std::to_string(least) : "most " + std::to_string(most)));
}

TUNEWRIGHT_INLINE void require_same_type(std::string_view who, const Tensor& a, const Tensor& b) {
  if (a.type == b.type) return;
  refuse(who, "operands have types " + std::string(name(a.type)) + " and " + std::string(name(b.type)) +
                  "; cast one of them first");
}

TUNEWRIGHT_INLINE void require_floating_point(std::string_view who, std::string_view operand, const Tensor& t) {
  if (is_float(t.type)) return;
  refuse(who, std::string(operand) + " holds " + std::string(name(t.type)) +
                  ", which loses the fractions in between; cast it to float32 first");
}

TUNEWRIGHT_INLINE void require_number_of(std::string_view who, std::string_view what, double value, const Tensor& t) {
  if (is_number_of(value, t.type)) return;
  refuse(who, std::string(what) + " is " + number_text(value) + ", no " + std::string(name(t.type)) +
                  "; give a whole number that the type holds, or cast the input to float32 first");
}

TUNEWRIGHT_INLINE ScalarType accumulator_for(std::string_view who, const Tensor& a, const Tensor& b,
                                             std::optional<ScalarType> wanted) {
  const auto is_byte = [](const Tensor& t) { return t.type == ScalarType::Int8 || t.type == ScalarType::UInt8; };
  if (!is_byte(a) || !is_byte(b)) require_same_type(who, a, b);
  const ScalarType operands = common_type(a.type, b.type);
  const ScalarType accumulator = wanted.value_or(accumulator_type(operands));
  if (!holds(accumulator, operands)) {
    refuse(who, "products of " + std::string(name(a.type)) + " and " + std::string(name(b.type)) +
                    " cannot be summed in " + std::string(name(accumulator)) + ", which does not hold their values; " +
                    "ask for " + std::string(name(accumulator_type(operands))));
  }
  return accumulator;
}

TUNEWRIGHT_INLINE std::size_t dimension(std::string_view who, int wanted, std::size_t rank) {
  const int count = static_cast<int>(rank);
  if (wanted < -count || wanted >= count) {
    refuse(who, "dimension " + std::to_string(wanted) + " does not exist in a tensor of rank " + std::to_string(rank) +
                    "; give one from " + std::to_string(-count) + " to " + std::to_string(count - 1));
  }
  return static_cast<std::size_t>(wanted < 0 ? wanted + count : wanted);
}

TUNEWRIGHT_INLINE std::vector<Axis> axes_over(const std::vector<std::int64_t>& shape, std::string_view prefix) {
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    axes.push_back({std::string(prefix) + std::to_string(d), shape[d], AxisKind::Spatial});
  }
  return axes;
}

}  // namespace tunewright::program::operators::detail

#endif
