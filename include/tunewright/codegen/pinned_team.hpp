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

/// A team of the calling thread and `threads - 1` helpers. A loop is divided into one contiguous part per thread, so
/// that repeated calls of a kernel find its data in the same caches.
///
/// Helpers spin for `spin_microseconds` after the last loop and then sleep. While they spin, starting and ending a loop
/// takes about a microsecond on an idle machine; waking them takes tens. A loop that is started inside a loop, or while
/// another thread uses the team, runs on its calling thread.
class PinnedTeam {
 public:
  /// Helper w is pinned to `processors[w]`, where the caller is number 0 (cyclically; empty: not pinned). The caller's
  /// own affinity is not changed. Throws `std::invalid_argument` for zero threads, and `std::system_error` if there are
  /// not as many.
  explicit PinnedTeam(unsigned threads, std::span<const int> processors = {}, unsigned spin_microseconds = 100);

  [[nodiscard]] unsigned threads() const noexcept { return helpers_.count() + 1; }
  /// The runtime to pass to kernels; valid during the lifetime of the team.
  [[nodiscard]] const tunewright_runtime* runtime() const noexcept { return &runtime_; }

  using Part = void (*)(void* context, std::int64_t begin, std::int64_t end);

  /// Calls `body` for a partition of [0, count) and returns when all parts are finished. Bodies must not throw.
  void run(std::int64_t count, Part body, void* context);

 private:
  // The caller spins for all but the longest parts, because it is timing a kernel.
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
  HelperThreads helpers_;  // last, because helpers use the members above
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
  // If it is refused, loops are slower, not wrong.
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof set, &set));
}

TUNEWRIGHT_CALLS_COMPILED_CODE TUNEWRIGHT_INLINE void PinnedTeam::help(unsigned worker) const {
  if (worker >= job_.parts) return;
  job_.body(job_.context, job_.count * worker / job_.parts, job_.count * (worker + 1) / job_.parts);
}

}  // namespace tunewright::codegen

#endif
