// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/helper_threads.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/detail/config.hpp"

/// Threads that run the parallel loops of kernels.
namespace tunewright::codegen {

/// A team of the calling thread and `threads - 1` helpers. A loop is divided into one contiguous share per thread, so
/// that repeated calls of a kernel find its data in the same caches. Not all threads are equally fast: cores differ, or
/// other programs use them. So a thread takes half of its share, half of what is left, and so on down to a sixteenth,
/// and then does the same with what is left of the shares of the next three threads. A loop with one iteration for each
/// thread is not cut.
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
  /// The same threads, each of which runs all of its share and nothing else, in one call: for who times shares.
  [[nodiscard]] const tunewright_runtime* dividing_runtime() const noexcept { return &dividing_runtime_; }

  using Part = void (*)(void* context, std::int64_t begin, std::int64_t end);

  /// Calls `body` for a partition of [0, count) and returns when all parts are finished. Bodies must not throw.
  void run(std::int64_t count, Part body, void* context) { run(count, body, context, true); }

 private:
  // The caller spins for all but the longest parts, because it is timing a kernel.
  static constexpr std::chrono::milliseconds caller_watch{100};

  static constexpr std::int64_t smallest_part = 16;  // a piece is at least so great a part of a share
  static constexpr std::int64_t most_helped = 3;     // threads that one helps after its share

  struct Job {
    std::int64_t count = 0;
    std::int64_t shares = 1;
    std::int64_t least_piece = 0;  ///< iterations; 0: a share is not cut
    Part body = nullptr;
    void* context = nullptr;

    [[nodiscard]] std::int64_t begin_of(std::int64_t share) const noexcept {
      return count / shares * share + count % shares * share / shares;  // count * share may overflow
    }
  };
  /// Iterations of a thread's share that nobody has taken. The thread writes it when it begins; nobody takes any
  /// before, because it is 0 since the last loop.
  struct alignas(64) Left {
    std::atomic<std::int64_t> iterations{0};
  };

  static void parallel_for(const tunewright_runtime* self, std::int64_t count, Part body, void* context) {
    static_cast<PinnedTeam*>(self->state)->run(count, body, context);
  }
  static void divide(const tunewright_runtime* self, std::int64_t count, Part body, void* context) {
    static_cast<PinnedTeam*>(self->state)->run(count, body, context, false);
  }
  void run(std::int64_t count, Part body, void* context, bool in_pieces);
  static bool& inside_loop() noexcept;
  [[nodiscard]] static unsigned at_least_one(unsigned threads);

  void prepare(unsigned worker);

  void work(unsigned worker);
  void take_pieces_of(std::int64_t share);

  tunewright_runtime runtime_;
  tunewright_runtime dividing_runtime_;
  const std::vector<int> processors_;
  std::mutex mutex_;
  Job job_;
  std::vector<Left> left_;  // by share
  HelperThreads helpers_;   // last, because helpers use the members above
};

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

namespace tunewright::codegen {

TUNEWRIGHT_INLINE PinnedTeam::PinnedTeam(unsigned threads, std::span<const int> processors, unsigned spin_microseconds)
    : runtime_{&PinnedTeam::parallel_for, this},
      dividing_runtime_{&PinnedTeam::divide, this},
      processors_(processors.begin(), processors.end()),
      left_(at_least_one(threads)),
      helpers_(
          threads - 1, {std::chrono::microseconds(spin_microseconds), caller_watch},
          [this](unsigned worker) { work(worker); }, [this](unsigned worker) { prepare(worker); }) {}

TUNEWRIGHT_CALLS_COMPILED_CODE TUNEWRIGHT_INLINE void PinnedTeam::run(std::int64_t count, Part body, void* context,
                                                                      bool in_pieces) {
  if (count <= 0) return;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (helpers_.count() == 0 || count == 1 || inside_loop() || !lock.try_lock()) {
    body(context, 0, count);
    return;
  }
  const std::int64_t shares = std::min<std::int64_t>(count, threads());
  const bool cut = in_pieces && count > shares;
  job_ = {count, shares, cut ? std::max<std::int64_t>(1, count / shares / smallest_part) : 0, body, context};
  helpers_.start();
  inside_loop() = true;
  work(0);
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
  const cpu_set_t set = host::cpu_set_of(std::span(&processor, 1));
  // If it is refused, loops are slower, not wrong.
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof set, &set));
}

TUNEWRIGHT_CALLS_COMPILED_CODE TUNEWRIGHT_INLINE void PinnedTeam::work(unsigned worker) {
  if (worker >= job_.shares) return;
  const std::int64_t begin = job_.begin_of(worker), end = job_.begin_of(worker + 1);
  if (job_.least_piece == 0) return job_.body(job_.context, begin, end);
  left_[worker].iterations.store(end - begin, std::memory_order_release);
  for (std::int64_t next = 0; next <= std::min(most_helped, job_.shares - 1); ++next)
    take_pieces_of((worker + next) % job_.shares);
}

TUNEWRIGHT_CALLS_COMPILED_CODE TUNEWRIGHT_INLINE void PinnedTeam::take_pieces_of(std::int64_t share) {
  std::atomic<std::int64_t>& left = left_[static_cast<std::size_t>(share)].iterations;
  const std::int64_t end = job_.begin_of(share + 1);
  for (std::int64_t seen = left.load(std::memory_order_acquire); seen > 0;) {
    const std::int64_t piece = std::min(seen, std::max(job_.least_piece, (seen + 1) / 2));
    if (!left.compare_exchange_weak(seen, seen - piece, std::memory_order_acquire)) continue;
    job_.body(job_.context, end - seen, end - seen + piece);
    seen = left.load(std::memory_order_acquire);
  }
}

}  // namespace tunewright::codegen

#endif
