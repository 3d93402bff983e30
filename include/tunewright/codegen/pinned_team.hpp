// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tunewright/codegen/kernel.hpp"

/// Threads that run the parallel loops of kernels.
namespace tunewright::codegen {

/// The calling thread and `threads - 1` helpers. A loop is cut into one contiguous part a thread, so that a
/// kernel called again finds its data in the same caches.
///
/// Helpers watch for work for `spin_microseconds` after the last loop and then sleep. While they watch,
/// starting and ending a loop costs about a microsecond on an idle machine; waking them costs tens. A loop
/// started inside a loop, or while another thread uses the team, runs on the thread that started it.
class PinnedTeam {
 public:
  /// Helper number w keeps to `processors[w]`, counting the caller as 0 (cyclically; none given: anywhere).
  /// The caller's own affinity is left alone. Throws `std::invalid_argument` for zero threads.
  explicit PinnedTeam(unsigned threads, std::span<const int> processors = {}, unsigned spin_microseconds = 100)
      : spin_(std::chrono::microseconds(spin_microseconds)) {
    if (threads == 0) throw std::invalid_argument("a team needs at least 1 thread, 0 were asked for");
    runtime_ = {&PinnedTeam::parallel_for, this};
    for (unsigned worker = 1; worker < threads; ++worker) {
      const int processor = processors.empty() ? -1 : processors[worker % processors.size()];
      helpers_.emplace_back([this, worker, processor] { help(worker, processor); });
    }
  }
  PinnedTeam(const PinnedTeam&) = delete;
  PinnedTeam& operator=(const PinnedTeam&) = delete;
  ~PinnedTeam() {
    stopping_ = true;
    announce();
    for (std::thread& helper : helpers_) helper.join();
  }

  [[nodiscard]] unsigned threads() const noexcept { return static_cast<unsigned>(helpers_.size()) + 1; }
  /// What kernels take; valid as long as the team.
  [[nodiscard]] const tunewright_runtime* runtime() const noexcept { return &runtime_; }

  using Part = void (*)(void* context, std::int64_t begin, std::int64_t end);

  /// Calls `body` for a partition of [0, count) and returns when all parts are done. Bodies must not throw.
  void run(std::int64_t count, Part body, void* context) {
    if (count <= 0) return;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (helpers_.empty() || count == 1 || inside_loop() || !lock.try_lock()) {
      body(context, 0, count);
      return;
    }
    job_ = {count, std::min<std::int64_t>(count, threads()), body, context};
    pending_.store(static_cast<unsigned>(helpers_.size()), std::memory_order_relaxed);
    announce();
    inside_loop() = true;
    body(context, 0, count / job_.parts);
    inside_loop() = false;
    for (unsigned spins = 0; pending_.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < 10000) {
        pause();
      } else {
        std::this_thread::yield();  // more threads than processors
      }
    }
  }

 private:
  struct Job {
    std::int64_t count = 0;
    std::int64_t parts = 1;
    Part body = nullptr;
    void* context = nullptr;
  };

  static void parallel_for(const tunewright_runtime* self, std::int64_t count, Part body, void* context) {
    static_cast<PinnedTeam*>(self->state)->run(count, body, context);
  }
  static bool& inside_loop() noexcept {
    static thread_local bool inside = false;
    return inside;
  }
  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void announce() {
    generation_.fetch_add(1, std::memory_order_seq_cst);
    generation_.notify_all();
  }

  [[nodiscard]] std::uint32_t next_generation(std::uint32_t seen) const {
    auto asleep_at = std::chrono::steady_clock::time_point::max();
    for (unsigned spins = 0;; ++spins) {
      const std::uint32_t now = generation_.load(std::memory_order_acquire);
      if (now != seen) return now;
      pause();
      if (spins % 32 != 0) continue;
      const auto time = std::chrono::steady_clock::now();
      if (spins == 0) asleep_at = time + spin_;
      if (time >= asleep_at) generation_.wait(seen, std::memory_order_acquire);
    }
  }

  void help(unsigned worker, int processor) {
    if (processor >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(processor), &set);
      // A refusal makes loops slower, not wrong.
      static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof set, &set));
    }
    inside_loop() = true;
    for (std::uint32_t seen = 0;;) {
      seen = next_generation(seen);
      if (stopping_) return;
      const Job job = job_;
      if (worker < job.parts) {
        job.body(job.context, job.count * worker / job.parts, job.count * (worker + 1) / job.parts);
      }
      pending_.fetch_sub(1, std::memory_order_release);
    }
  }

  const std::chrono::nanoseconds spin_;
  tunewright_runtime runtime_{};
  std::mutex mutex_;
  Job job_;
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<unsigned> pending_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace tunewright::codegen
