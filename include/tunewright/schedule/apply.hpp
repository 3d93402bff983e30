// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/state.hpp"

/// The semantics of steps: `apply(state, step)` changes the state, or throws `ScheduleError` and nothing else.
namespace tunewright::schedule {

/// Applies one step. Throws `ScheduleError` if the step is illegal; the state is then unusable. Cost: a few hundred
/// nanoseconds; steps that create stages copy an operator, `MergeAxes` all of them.
void apply(State& state, const Step& step);

}  // namespace tunewright::schedule

#if TUNEWRIGHT_DEFINES(schedule)

#include "tunewright/schedule/apply/loop_steps.hpp"
#include "tunewright/schedule/apply/stage_steps.hpp"
#include "tunewright/schedule/apply/storage_steps.hpp"
#include "tunewright/schedule/apply/tensor_unit_steps.hpp"

namespace tunewright::schedule {

TUNEWRIGHT_INLINE void apply(State& state, const Step& step) {
  std::visit(
      [&](const auto& s) {
        detail::apply_step(state, s);
        using S = std::remove_cvref_t<decltype(s)>;
        if constexpr (std::is_same_v<S, Split> || std::is_same_v<S, FollowSplit> ||
                      std::is_same_v<S, FollowFusedSplit>) {
          const Factors& factors = state.stages[s.stage].relations.back().factors;
          state.split_factors.insert(state.split_factors.end(), factors.begin(), factors.end());
        }
      },
      step);
  state.factors_end.push_back(static_cast<std::uint32_t>(state.split_factors.size()));
}

}  // namespace tunewright::schedule

#endif
