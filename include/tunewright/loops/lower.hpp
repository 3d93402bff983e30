// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/schedule/schedule.hpp"

/// Lowers a scheduled state to a loop nest in four passes: which stages exist and where they run (`lower/stages.hpp`),
/// the window that each computes (`lower/windows.hpp`), its storage (`lower/storage_layout.hpp`), and the loops
/// (`lower/emission.hpp`).
namespace tunewright::loops {

/// Lowers a scheduled state. Throws `schedule::ScheduleError` if the steps contradict each other (e.g. a stage is
/// computed at a loop that does not contain its readers, or a tensor cannot be packed). Guards stay in the statements;
/// `partition` hoists them. Cost: some tens of microseconds for a tiled convolution.
[[nodiscard]] LoopNest lower(const schedule::State& state);

/// Replays and lowers a schedule.
[[nodiscard]] inline LoopNest lower(const schedule::Schedule& candidate) { return lower(schedule::replay(candidate)); }

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/lower/emission.hpp"
#include "tunewright/loops/lower/pass.hpp"
#include "tunewright/loops/lower/stages.hpp"
#include "tunewright/loops/lower/storage_layout.hpp"
#include "tunewright/loops/lower/windows.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest lower(const schedule::State& state) {
  detail::Lowered lowered{state, std::vector<detail::StageInfo>(state.stages.size()), {}};
  detail::StagePlacement(lowered).run();
  detail::WindowInference(lowered).run();
  detail::StorageLayout(lowered).run();
  detail::Emission(lowered).run();
  return std::move(lowered.nest);
}

}  // namespace tunewright::loops

#endif
