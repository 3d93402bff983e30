// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "tunewright/core/order.hpp"
#include "tunewright/schedule/state.hpp"

/// Semantics of steps that change the loops of a stage.
namespace tunewright::schedule::detail {

inline void apply_step(State& state, const Split& s) {
  if (!has_possible_domain(s)) {
    throw ScheduleError(ScheduleFault::BadFactor, "a split says that it divides an extent of " +
                                                      std::to_string(s.extent) + ", the last factor at most " +
                                                      std::to_string(s.max_innermost) +
                                                      "; give 0 to 2^53, and -1 to 2^31");
  }
  split(state, s.stage, s.iter, s.factors);
}

inline Factors followed_factors(const State& state, const FollowSplit& s) {
  if (s.source >= state.factors_end.size() || s.parts < 1 || s.parts > state.factors_of_step(s.source).size()) {
    throw ScheduleError(ScheduleFault::BadFactor, "a split cannot follow step " + std::to_string(s.source) + " with " +
                                                      std::to_string(s.parts) +
                                                      " inner parts; follow an earlier split and make at most as many");
  }
  const std::span<const std::int64_t> source = state.factors_of_step(s.source);
  Factors factors(source.begin(), source.begin() + (s.parts - 1));
  std::int64_t rest = 1;
  for (std::size_t f = s.parts - 1; f < source.size(); ++f) rest *= source[f];
  factors.push_back(rest);
  return factors;
}

inline void apply_step(State& state, const FollowSplit& s) {
  const Factors factors = followed_factors(state, s);
  split(state, s.stage, s.iter, {factors.data(), factors.size()});
}

inline void apply_step(State& state, const FollowFusedSplit& s) {
  if (s.sources.empty())
    throw ScheduleError(ScheduleFault::BadFactor, "a fused split follows no step; name at least one split");
  std::int64_t product = 1;
  for (const std::uint32_t source : s.sources) {
    const bool known = source < state.factors_end.size() && s.level < state.factors_of_step(source).size();
    const std::int64_t factor = known ? state.factors_of_step(source)[s.level] : 0;
    if (!known || factor > max_split / product) {
      throw ScheduleError(
          ScheduleFault::BadFactor,
          "a fused split cannot follow factor " + std::to_string(s.level) + " of step " + std::to_string(source) +
              (known ? "; the product is more than 2^31" : "; follow earlier splits that have as many factors"));
    }
    product *= factor;
  }
  split(state, s.stage, s.iter, {&product, 1});
}

inline void apply_step(State& state, const Fuse& s) {
  Stage& stage = computed_stage(state, s.stage);
  if (s.count < 1 || s.count > s.iters.size()) {
    throw ScheduleError(ScheduleFault::BadChoice, "cannot fuse " + std::to_string(s.count) + " of " +
                                                      std::to_string(s.iters.size()) + " iterators of stage '" +
                                                      stage.op->name + "'");
  }
  const std::size_t first = live_position(stage, s.iters[0]);
  check_room(stage, 1);
  Relation relation;
  std::size_t origins = 0;
  for (std::size_t i = 0; i < s.count; ++i) {
    if (live_position(stage, s.iters[i]) != first + i) {
      throw ScheduleError(
          ScheduleFault::NotAdjacent,
          describe_iterator(stage, s.iters[i]) + " does not directly follow the one it is fused with; reorder first");
    }
    if (stage.iterators[s.iters[i]].kind != stage.iterators[s.iters[0]].kind) {
      throw ScheduleError(ScheduleFault::MixedKinds,
                          describe_iterator(stage, s.iters[i]) + ": spatial and reduction iterators cannot be fused");
    }
    relation.parents.push_back(s.iters[i]);
    origins += stage.iterators[s.iters[i]].origins;
    if (origins > max_origins) {
      throw ScheduleError(ScheduleFault::Unsupported,
                          "a fused loop of stage '" + stage.op->name + "' has " + std::to_string(origins) +
                              " parts of axes, and at most " + std::to_string(max_origins) +
                              " are possible; do not split and fuse the same loops again and again");
    }
  }
  const auto child = static_cast<IterId>(stage.iterators.size());
  relation.children.push_back(child);
  stage.iterators.push_back({stage.iterators[s.iters[0]].kind, LoopKind::Serial, static_cast<std::uint16_t>(origins)});
  stage.order.erase(stage.order.begin() + static_cast<std::ptrdiff_t>(first + 1),
                    stage.order.begin() + static_cast<std::ptrdiff_t>(first + s.count));
  stage.order[first] = child;
  stage.relations.push_back(std::move(relation));  // fusing one iterator gives a relation that is a split into itself
}

inline void apply_step(State& state, const Reorder& s) {
  Stage& stage = computed_stage(state, s.stage);
  boost::container::small_vector<std::size_t, 32> sorted;
  for (const IterId iter : s.order) sorted.push_back(live_position(stage, iter));
  sort_few(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw ScheduleError(ScheduleFault::BadOrder,
                        "an iterator of stage '" + stage.op->name + "' is named twice in a reorder");
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) stage.order[sorted[i]] = s.order[i];
}

inline void apply_step(State& state, const Annotate& s) {
  Stage& stage = computed_stage(state, s.stage);
  live_position(stage, s.iter);
  Iterator& iterator = stage.iterators[s.iter];
  const bool may_carry_reduction = s.kind == LoopKind::Serial || s.kind == LoopKind::Unrolled ||
                                   s.kind == LoopKind::Vectorized || schedule::is_thread_index(s.kind);
  if (iterator.kind == AxisKind::Reduction && !may_carry_reduction) {
    throw ScheduleError(ScheduleFault::BadAnnotation, describe_iterator(stage, s.iter) +
                                                          " carries a reduction and cannot run " +
                                                          std::string(schedule::name(s.kind)) + "; use rfactor first");
  }
  iterator.annotation = s.kind;
}

inline void apply_step(State& state, const UnrollLimit& s) {
  Stage& stage = computed_stage(state, s.stage);
  if (s.selected >= s.choices.size() || s.choices[s.selected] < 0 || s.choices[s.selected] > max_split) {
    throw ScheduleError(ScheduleFault::BadChoice, "unroll limit " + std::to_string(s.selected) + " of stage '" +
                                                      stage.op->name + "' is not one of its choices");
  }
  stage.unroll_limit = s.choices[s.selected];
}

}  // namespace tunewright::schedule::detail
