// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Calls `body(begin, end)` for the contiguous parts of [0, n), one part a thread, and waits for all. Threads
/// end with the call, so a process that forks between calls has one thread. An exception of a part is thrown
/// here once all have ended.
///
/// Determinism: which indices meet in a part depends on `threads`; a body that treats each index by itself
/// and writes only to its own slots gives the same result at any number.
void parallel_parts(unsigned threads, std::size_t n, const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tunewright {

TUNEWRIGHT_INLINE void parallel_parts(unsigned threads, std::size_t n,
                                      const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t parts = std::min<std::size_t>(std::max(1U, threads), n);
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
    for (std::size_t part = 1; part < parts; ++part) team.emplace_back(guarded, part);
    guarded(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tunewright

#endif
