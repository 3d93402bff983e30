// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

namespace tunewright {

/// Calls a function of the system, such as `[&] { return ::fsync(fd); }`, until no signal interrupts it. Returns what
/// it returned then: a negative number for an error, with its `errno`. A function that may not be repeated, such as
/// `close`, does not belong here.
template <class Call>
[[nodiscard]] auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace tunewright
