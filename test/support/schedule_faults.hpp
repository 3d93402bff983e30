// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tunewright/schedule/step.hpp"

namespace tunewright::test {

/// The name of the fault of the `ScheduleError` that `f` throws, or what it did instead.
template <class F>
std::string fault_of(const F& f) {
  try {
    f();
  } catch (const schedule::ScheduleError& error) {
    return std::string(schedule::name(error.fault()));
  }
  return "nothing was thrown";
}

}  // namespace tunewright::test
