// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Threads that help a caller with one piece of work after another, and the protocol by which they wake up and finish.
///
/// The caller prepares the work, calls `start`, does its own part and calls `finish`. In between every helper runs
/// `work(number)` exactly once; numbers start at 1, because the caller is worker 0. Writes of the caller before `start`
/// are visible to the helpers, and their writes are visible after `finish`. Work must not throw.
///
/// Waiting: a sleeping thread takes tens of microseconds to wake, so helpers spin for the next start, and the caller
/// for the end, for a while before they sleep. A thread that spins for long yields its processor between two looks, for
/// machines with more threads than processors.
///
/// Each helper has `stack_bytes` of stack, because kernels keep temporaries there: where stacks are unlimited, as on
/// many clusters, the system gives a thread as much as a kernel may take, and nothing for its frames.
///
/// Cost: about a microsecond for a start and a finish while all are awake; nothing while the helpers sleep.
class HelperThreads {
 public:
  static constexpr std::size_t stack_bytes = 8 << 20;

  using Work = std::function<void(unsigned number)>;
  /// How long a thread spins before it sleeps.
  struct Watch {
    std::chrono::nanoseconds helpers{};
    std::chrono::nanoseconds caller{};
  };

  /// `prepare(number)`, if given, runs once on each helper's thread. Throws `std::system_error`, without helpers left
  /// behind, if the system has no threads for all of them.
  HelperThreads(unsigned count, Watch watch, Work work, Work prepare = {});
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;
  ~HelperThreads();

  [[nodiscard]] unsigned count() const noexcept { return static_cast<unsigned>(helpers_.size()); }

  /// Starts all helpers; the previous work must be finished.
  void start();
  /// Returns when all helpers have finished the started work.
  void finish() {
    wait_while(busy_, watch_.caller, [](std::uint32_t busy) { return busy != 0; });
  }

 private:
  static void pause() noexcept;

  template <class Pending>
  static std::uint32_t wait_while(const std::atomic<std::uint32_t>& value, std::chrono::nanoseconds watch,
                                  Pending pending) {
    constexpr unsigned looks_before_yielding = 10000;
    constexpr unsigned looks_per_clock = 32;  // reading the clock takes longer than a look
    auto asleep_at = std::chrono::steady_clock::time_point::max();
    for (unsigned looks = 0;; ++looks) {
      const std::uint32_t seen = value.load(std::memory_order_acquire);
      if (!pending(seen)) return seen;
      if (looks < looks_before_yielding) {
        pause();
      } else {
        std::this_thread::yield();
      }
      if (looks % looks_per_clock != 0) continue;
      const auto time = std::chrono::steady_clock::now();
      if (looks == 0) asleep_at = time + watch;
      if (time >= asleep_at) value.wait(seen, std::memory_order_acquire);
    }
  }

  void announce();

  /// Ends all helpers; none may be at work.
  void stop();

  struct Helper {
    HelperThreads* team;
    unsigned number;
    pthread_t thread{};
  };
  [[nodiscard]] static int start_thread(Helper& helper);
  void help(unsigned number);

  const Watch watch_;
  const Work work_;
  const Work prepare_;
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // of work; a cache line that helpers alone read
  alignas(64) std::atomic<std::uint32_t> busy_{0};
  std::atomic<bool> stopping_{false};
  std::vector<Helper> helpers_;
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <string>
#include <system_error>

namespace tunewright {

TUNEWRIGHT_INLINE HelperThreads::HelperThreads(unsigned count, Watch watch, Work work, Work prepare)
    : watch_(watch), work_(std::move(work)), prepare_(std::move(prepare)) {
  helpers_.reserve(count);  // threads have the addresses of their helpers
  for (unsigned number = 1; number <= count; ++number) {
    helpers_.push_back({this, number});
    if (const int error = start_thread(helpers_.back()); error != 0) {
      helpers_.pop_back();
      stop();
      throw std::system_error(error, std::generic_category(),
                              "helper thread " + std::to_string(number) + " of " + std::to_string(count) +
                                  " cannot start; ask for fewer threads");
    }
  }
}

TUNEWRIGHT_INLINE HelperThreads::~HelperThreads() { stop(); }

TUNEWRIGHT_INLINE void HelperThreads::start() {
  busy_.store(count(), std::memory_order_relaxed);
  announce();
}

TUNEWRIGHT_INLINE void HelperThreads::pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

TUNEWRIGHT_INLINE void HelperThreads::announce() {
  generation_.fetch_add(1, std::memory_order_seq_cst);
  generation_.notify_all();
}

TUNEWRIGHT_INLINE void HelperThreads::stop() {
  stopping_ = true;
  announce();
  for (const Helper& helper : helpers_) pthread_join(helper.thread, nullptr);
}

TUNEWRIGHT_INLINE int HelperThreads::start_thread(Helper& helper) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) return error;
  int error = pthread_attr_setstacksize(&attributes, stack_bytes);
  const auto run = [](void* started) -> void* {
    const Helper& self = *static_cast<const Helper*>(started);
    self.team->help(self.number);
    return nullptr;
  };
  if (error == 0) error = pthread_create(&helper.thread, &attributes, run, &helper);
  pthread_attr_destroy(&attributes);
  return error;
}

TUNEWRIGHT_INLINE void HelperThreads::help(unsigned number) {
  if (prepare_) prepare_(number);
  for (std::uint32_t seen = 0;;) {
    seen = wait_while(generation_, watch_.helpers, [seen](std::uint32_t now) { return now == seen; });
    if (stopping_) return;
    work_(number);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace tunewright

#endif
