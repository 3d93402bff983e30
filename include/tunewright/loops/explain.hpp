// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright {

/// The loop nest of a schedule as text, before guards are hoisted. Throws `schedule::ScheduleError` if the steps
/// contradict each other.
[[nodiscard]] std::string explain(const schedule::Schedule& schedule);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE std::string explain(const schedule::Schedule& schedule) {
  return loops::to_string(loops::lower(schedule));
}

}  // namespace tunewright

#endif
