// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright {

/// The loop nest a schedule stands for, as text, before guards are hoisted.
/// Throws `schedule::ScheduleError` when the steps do not fit together.
[[nodiscard]] inline std::string explain(const schedule::Schedule& schedule) {
  return loops::to_string(loops::lower(schedule));
}

}  // namespace tunewright
