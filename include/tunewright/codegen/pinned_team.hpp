// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/helper_threads.hpp"
#include "tunewright/detail/config.hpp"

/// Threads that run the parallel loops of kernels.
namespace tunewright::codegen {

/// The calling thread and `threads - 1` helpers. A loop is cut into one contiguous part a thread, so that a kernel that
/// is called again finds its data in the same caches.
///
/// Helpers watch for work for `spin_microseconds` after the last loop and then sleep. While they watch, starting and
/// ending a loop costs about a microsecond on an idle machine; waking them costs tens. A loop started inside a loop, or
/// while another thread uses the team, runs on the thread that started it.
class PinnedTeam {
 public:
  /// Helper number w keeps to `processors[w]`, counting the caller as 0 (cyclically; none given: anywhere).
  /// The caller's own affinity is left alone. Throws `std::invalid_argument` for zero threads.
  explicit PinnedTeam(unsigned threads, std::span<const int> processors = {}, unsigned spin_microseconds = 100);

  [[nodiscard]] unsigned threads() const noexcept { return helpers_.count() + 1; }
  /// The runtime that kernels are called with; it is valid as long as the team.
  [[nodiscard]] const tunewright_runtime* runtime() const noexcept { return &runtime_; }

  using Part = void (*)(void* context, std::int64_t begin, std::int64_t end);

  /// Calls `body` for a partition of [0, count) and returns when all parts are done. Bodies must not throw.
  void run(std::int64_t count, Part body, void* context);

 private:
  // A kernel is being timed while its caller waits, so the caller stays awake for all but the longest parts.
  static constexpr std::chrono::milliseconds caller_watch{100};

  struct Job {
    std::int64_t count = 0;
    std::int64_t parts = 1;
    Part body = nullptr;
    void* context = nullptr;
  };

  static void parallel_for(const tunewright_runtime* self, std::int64_t count, Part body, void* context) {
    static_cast<PinnedTeam*>(self->state)->run(count, body, context);
  }
  static bool& inside_loop() noexcept;
  [[nodiscard]] static unsigned at_least_one(unsigned threads);

  void prepare(unsigned worker);

  void help(unsigned worker) const;

  tunewright_runtime runtime_;
  const std::vector<int> processors_;
  std::mutex mutex_;
  Job job_;
  HelperThreads helpers_;  // comes last: helpers use the members above
};

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

namespace tunewright::codegen {

TUNEWRIGHT_INLINE PinnedTeam::PinnedTeam(unsigned threads, std::span<const int> processors, unsigned spin_microseconds)
    : runtime_{&PinnedTeam::parallel_for, this},
      processors_(processors.begin(), processors.end()),
      helpers_(
          at_least_one(threads) - 1, {std::chrono::microseconds(spin_microseconds), caller_watch},
          [this](unsigned worker) { help(worker); }, [this](unsigned worker) { prepare(worker); }) {}

TUNEWRIGHT_CALLS_COMPILED_CODE TUNEWRIGHT_INLINE void PinnedTeam::run(std::int64_t count, Part body, void* context) {
  if (count <= 0) return;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (helpers_.count() == 0 || count == 1 || inside_loop() || !lock.try_lock()) {
    body(context, 0, count);
    return;
  }
  job_ = {count, std::min<std::int64_t>(count, threads()), body, context};
  helpers_.start();
  inside_loop() = true;
  body(context, 0, count / job_.parts);
  inside_loop() = false;
  helpers_.finish();
}

TUNEWRIGHT_INLINE bool& PinnedTeam::inside_loop() noexcept {
  static thread_local bool inside = false;
  return inside;
}

TUNEWRIGHT_INLINE unsigned PinnedTeam::at_least_one(unsigned threads) {
  if (threads == 0) throw std::invalid_argument("a team needs at least 1 thread, 0 were asked for");
  return threads;
}

TUNEWRIGHT_INLINE void PinnedTeam::prepare(unsigned worker) {
  inside_loop() = true;
  if (processors_.empty()) return;
  const int processor = processors_[worker % processors_.size()];
  if (processor < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  // A refusal makes loops slower, not wrong.
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof set, &set));
}

TUNEWRIGHT_CALLS_COMPILED_CODE TUNEWRIGHT_INLINE void PinnedTeam::help(unsigned worker) const {
  if (worker >= job_.parts) return;
  job_.body(job_.context, job_.count * worker / job_.parts, job_.count * (worker + 1) / job_.parts);
}

}  // namespace tunewright::codegen

#endif
