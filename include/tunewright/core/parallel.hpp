// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Calls `body(begin, end)` for contiguous parts of [0, n), one part per thread, and waits for all. 0 threads ask for
/// all hardware threads. The threads end with the call, so a process that forks between calls has one thread. If a part
/// throws, the exception is rethrown after all parts have ended. Parts for which the system has no thread run on the
/// caller's, one after the other.
///
/// Determinism: the parts depend on `threads`; a body that treats each index independently and writes only to its own
///              slots gives the same result at any number of threads.
void parallel_parts(unsigned threads, std::size_t n, const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "tunewright/core/thread_team.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE void parallel_parts(unsigned threads, std::size_t n,
                                      const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t parts = std::min<std::size_t>(threads == 0 ? hardware_threads() : threads, n);
  if (parts <= 1) {
    if (n != 0) body(std::size_t{0}, n);
    return;
  }
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto guarded = [&](std::size_t part) {
    try {
      body(n * part / parts, n * (part + 1) / parts);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> team;
    try {
      while (team.size() + 1 < parts) team.emplace_back(guarded, team.size() + 1);
    } catch (const std::system_error&) {
      // The caller runs the remaining parts.
    }
    guarded(0);
    for (std::size_t part = team.size() + 1; part < parts; ++part) guarded(part);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tunewright

#endif
