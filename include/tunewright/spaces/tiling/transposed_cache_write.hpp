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
/// transposed on their way out. This pays if otherwise a larger operand would be transposed, as B of A B^T where A has
/// few rows, or if the last axis leaves most lanes idle and the other has an operand that is contiguous along it, as in
/// A^T B with few columns. Not in Ansor.
struct AddTransposedCacheWrite {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// The axis to compute in vectors; empty if the last one is the best.
  static std::optional<IterId> vectorized_instead(const State& state, TensorId id, std::int64_t lanes);
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/decisions/register_tile.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE std::optional<IterId> AddTransposedCacheWrite::vectorized_instead(const State& state, TensorId id,
                                                                                    std::int64_t lanes) {
  const program::Operator& op = *state.stages[id].op;
  const auto elements = [](const program::Operator& of) {
    double all = 1;
    for (const std::int64_t extent : of.shape()) all *= static_cast<double>(extent);
    return all;
  };
  // Elements to transpose if `axis` is in vectors; empty if some operand cannot be. Constants are packed ahead of time.
  const auto transposed_for = [&](IterId axis) -> std::optional<double> {
    double sum = 0;
    for (const program::Reads& reads : program::reads_of(op)) {
      for (const auto& access : reads.accesses) {
        const auto uses = [axis](const program::IndexExpr& index) { return index.uses(axis); };
        if (std::none_of(access.begin(), access.end(), uses) || is_contiguous(access, axis)) continue;
        const Stage& operand = state.stages[reads.tensor];
        if (operand.op->role == program::Role::Constant) continue;
        if (!dimension_of(access, axis)) return std::nullopt;
        sum += elements(*operand.op);
      }
    }
    return sum;
  };
  const auto last = static_cast<IterId>(op.rank() - 1);
  const auto busy = [&](IterId axis) {
    const double extent = static_cast<double>(op.axes[axis].extent), width = static_cast<double>(lanes);
    return extent / (std::ceil(extent / width) * width);
  };
  const double now = transposed_for(last).value_or(std::numeric_limits<double>::infinity());
  constexpr double many_idle = 0.75;  // busy lanes, as a share of those with the other axis
  std::optional<IterId> best;
  double least = now;
  for (IterId axis = 0; axis < last; ++axis) {
    const std::optional<double> operands = transposed_for(axis);
    if (!operands || op.axes[axis].extent < lanes) continue;
    const bool fills_lanes = now == 0 && *operands == 0 && busy(last) < many_idle * busy(axis);
    const double sum = fills_lanes ? -1 : *operands + elements(op);
    if (sum < least) best = axis, least = sum;
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
  const TensorId reader = elementwise_reader(state, id);
  if (reader != id && !state.stages[reader].is_untouched()) return Answer::Skip;
  return vectorized_instead(state, id, decisions::lanes(target)) ? Answer::Apply : Answer::Skip;
}

TUNEWRIGHT_INLINE void AddTransposedCacheWrite::apply(Derivation d, TensorId id, const Target& target,
                                                      std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const bool has_reader = elementwise_reader(s.state(), id) != id;
  const IterId vectorized = *vectorized_instead(s.state(), id, decisions::lanes(target));
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
