// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "tunewright/core/helper_threads.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Number of hardware threads; 1 if the system does not tell.
[[nodiscard]] unsigned hardware_threads() noexcept;

/// A team of threads for many short loops, one after another: the caller and `threads - 1` helpers that live as long as
/// the team. (`parallel_parts` is for occasional loops; it has no threads between loops.)
///
/// Contract of a loop body `f(index, worker)`: it runs exactly once for every index in [0, n). Free threads take
/// indices one by one, so the *order* and the *worker* are not determined. A body that writes only to places determined
/// by its index (and to scratch space of its worker) therefore gives the same result with any number of threads; sum
/// across indices in the caller, after the loop. If a body throws, the others still run; then the exception of the
/// lowest index is rethrown, independent of the number of threads.
///
/// Cost: about ten microseconds per loop while the helpers are awake. They spin for some ten microseconds and then
///       sleep, so an idle team costs nothing. One loop at a time: a body must not start another loop on the same team.
class ThreadTeam {
 public:
  /// `threads` counts the caller; 0 asks for `hardware_threads()`. Throws `std::system_error` if there are not as many.
  explicit ThreadTeam(unsigned threads = 0)
      : helpers_((threads == 0 ? hardware_threads() : threads) - 1, {watch, watch},
                 [this](unsigned worker) { work(worker); }) {}

  [[nodiscard]] unsigned threads() const noexcept { return helpers_.count() + 1; }

  /// Runs `f(index, worker)` for every index in [0, n), worker in [0, threads()).
  template <class F>
  void for_each(std::size_t n, F&& f) {
    using Body = std::remove_reference_t<F>;
    body_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
    call_ = [](void* body, std::size_t index, unsigned worker) { (*static_cast<Body*>(body))(index, worker); };
    run(n);
  }

 private:
  // Loops of a model fit follow each other within microseconds, while a sleep and a wake-up take tens of them.
  static constexpr std::chrono::microseconds watch{10};

  void run(std::size_t n);
  void work(unsigned worker);

  std::size_t count_ = 0;
  void* body_ = nullptr;
  void (*call_)(void*, std::size_t, unsigned) = nullptr;
  std::atomic<std::size_t> next_{0};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::size_t failed_index_ = 0;
  HelperThreads helpers_;  // comes last: helpers use the members above
};

/// `f(index)` for every index in [0, n) on `threads` threads (0: all hardware threads), under the contract of
/// `ThreadTeam`. Threads take indices one by one, which balances bodies of different length.
template <class F>
void parallel_for(std::size_t n, unsigned threads, F&& f) {
  const std::size_t wanted = threads == 0 ? hardware_threads() : threads;
  ThreadTeam team(static_cast<unsigned>(wanted < n ? wanted : (n == 0 ? 1 : n)));
  team.for_each(n, [&f](std::size_t index, unsigned) { f(index); });
}

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE unsigned hardware_threads() noexcept {
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1U : count;
}

TUNEWRIGHT_INLINE void ThreadTeam::run(std::size_t n) {
  if (n == 0) return;
  count_ = n;
  next_.store(0, std::memory_order_relaxed);
  failure_ = nullptr;
  const bool alone = n == 1 || helpers_.count() == 0;
  if (!alone) helpers_.start();
  work(0);
  if (!alone) helpers_.finish();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

TUNEWRIGHT_INLINE void ThreadTeam::work(unsigned worker) {
  for (;;) {
    const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    try {
      call_(body_, index, worker);
    } catch (...) {
      const std::lock_guard lock(failure_mutex_);
      if (!failure_ || index < failed_index_) {
        failure_ = std::current_exception();
        failed_index_ = index;
      }
    }
  }
}

}  // namespace tunewright

#endif
