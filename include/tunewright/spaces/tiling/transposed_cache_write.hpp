// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

namespace tunewright::spaces::tiling {

/// Sums products with another axis in vectors than the last one, in a cache with this axis last; tiles of sums are
/// transposed on their way out, in registers where a tile is full. This pays if otherwise a larger operand would be
/// transposed, as B of A B^T where A has few rows, or if the last axis leaves lanes idle and operands are contiguous
/// along the other one, as in A^T B with few columns, or packed ahead of time, as the weights of convolutions with
/// channels first whose images are narrow or are read with stride 2. Not in Ansor.
struct AddTransposedCacheWrite {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// Elements of operands to transpose, or to read apart, for vectors of `axis`; empty if some operand cannot be.
  static std::optional<double> transposed_for(const State& state, const program::Operator& op, IterId axis);
  /// The axis to compute in vectors; empty if the last one is the best.
  static std::optional<IterId> vectorized_instead(const State& state, TensorId id, std::int64_t lanes);
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include <limits>
#include <utility>

#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/decisions/register_tile.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE std::optional<double> AddTransposedCacheWrite::transposed_for(const State& state,
                                                                                const program::Operator& op,
                                                                                IterId axis) {
  double elements = 0;
  for (const program::Reads& reads : program::reads_of(op)) {
    for (const auto& access : reads.accesses) {
      if (!uses_axis(access, axis) || is_contiguous(access, axis)) continue;
      const program::Operator& operand = *state.stages[reads.tensor].op;
      if (is_contiguous(access, axis, 2)) {  // two loads and a shuffle at every read, instead of a copy
        elements += program::spatial_points(operand);
        continue;
      }
      // `cache_operands` copies inputs that are read once, and packs constants with one reader ahead of time.
      if (operand.role == program::Role::Computed || reads.accesses.size() != 1 || !dimension_of(access, axis))
        return std::nullopt;
      if (operand.role == program::Role::Constant && readers(state, reads.tensor).size() == 1) continue;
      elements += program::spatial_points(operand);
    }
  }
  return elements;
}

TUNEWRIGHT_INLINE std::optional<IterId> AddTransposedCacheWrite::vectorized_instead(const State& state, TensorId id,
                                                                                    std::int64_t lanes) {
  const program::Operator& op = *state.stages[id].op;
  const auto last = static_cast<IterId>(op.rank() - 1);
  const auto busy = [&](IterId axis) { return 1 - decisions::waste(op.axes[axis].extent, lanes); };
  const double now = transposed_for(state, op, last).value_or(std::numeric_limits<double>::infinity());
  constexpr double many_idle = 0.9;        // busy lanes, as a share of those with the other axis
  constexpr double sum_per_element = 0.5;  // a tile of sums is in the innermost cache, an operand is copied from memory
  std::optional<IterId> best;
  double least = 0;  // elements of the best
  for (IterId axis = 0; axis < last; ++axis) {
    const std::optional<double> operands = transposed_for(state, op, axis);
    if (!operands || op.axes[axis].extent < lanes) continue;
    const bool fills_lanes = now == 0 && *operands == 0 && busy(last) < many_idle * busy(axis);
    const double elements = fills_lanes ? -1 : *operands + sum_per_element * program::spatial_points(op);
    if (best ? elements < least : elements <= now) best = axis, least = elements;
  }
  return best;
}

TUNEWRIGHT_INLINE Answer AddTransposedCacheWrite::meets(const Derivation& d, TensorId id, const Target& target) const {
  const State& state = d.builder.state();
  const Stage& stage = state.stages[id];
  const program::Operator& op = *stage.op;
  if (op.combiner != program::Combiner::Sum || op.type != program::ScalarType::Float32 || op.rank() < 2 ||
      !program::needs_multi_level_tiling(op) || is_cached(d, id) || !stage.is_untouched())
    return Answer::Skip;
  for (const program::Reads& reads : program::reads_of(op))
    if (state.stages[reads.tensor].op->type != program::ScalarType::Float32) return Answer::Skip;
  const TensorId reader = elementwise_reader(state, id);
  if (reader != id && !state.stages[reader].is_untouched()) return Answer::Skip;
  return vectorized_instead(state, id, decisions::CoreLimits(target).lanes) ? Answer::Apply : Answer::Skip;
}

TUNEWRIGHT_INLINE void AddTransposedCacheWrite::apply(Derivation d, TensorId id, const Target& target,
                                                      std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const bool has_reader = elementwise_reader(s.state(), id) != id;
  const IterId vectorized = *vectorized_instead(s.state(), id, decisions::CoreLimits(target).lanes);
  std::vector<IterId> axes;
  for (IterId axis = 0; axis < s.state().stages[id].op->rank(); ++axis)
    if (axis != vectorized) axes.push_back(axis);
  axes.push_back(vectorized);
  const TensorId cache = s.cache_write(id, Scope::Local);
  s.permute_axes(cache, std::move(axes));
  if (has_reader) s.compute_inline(id);
  d.cached.push_back(cache);
  // The cache takes the position of the stage, so it is visited next.
  out.push_back(std::move(d));
}

}  // namespace tunewright::spaces::tiling

#endif
