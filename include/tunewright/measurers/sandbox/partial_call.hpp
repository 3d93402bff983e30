// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::measurers::sandbox {

/// What a call took of which parallel loops may have ended early.
struct PartialTime {
  double spent_seconds = 0;
  double whole_seconds = 0;  ///< what the whole call would have taken; `spent_seconds` where it was whole
  bool complete = true;      ///< all iterations of all loops were run
};

/// A runtime whose parallel loops end early, so that a call of a kernel that takes long tells soon how long.
///
/// Every thread runs its part of a loop from the start, in ever larger pieces, until half of what is left of
/// `budget_seconds`, and at least a sixteenth of it, has passed; no less than one iteration. What the whole call would
/// take is
///
///   T = T_call - sum over loops T_loop + sum over loops max over threads t n / m
///
/// with m of the n iterations of a thread's part run in t seconds. The first iterations stand for the others, which
/// have the same work but for edges of the tensors, and meet colder caches.
///
/// What the kernel computes is incomplete. Where it reads what an earlier loop left out, it reads what was there
/// before: addresses in kernels do not depend on data.
class PartialCall {
 public:
  /// `whole` runs the loops, and outlives this.
  PartialCall(const codegen::tunewright_runtime& whole, double budget_seconds)
      : whole_(whole), budget_(budget_seconds) {}
  PartialCall(const PartialCall&) = delete;  // the runtime refers to it
  PartialCall& operator=(const PartialCall&) = delete;

  /// Calls `kernel(runtime)` and times it.
  template <class Kernel>
  [[nodiscard]] PartialTime time(const Kernel& kernel) {
    start_ = Clock::now();
    in_loops_ = estimated_ = 0;
    complete_ = true;
    kernel(&runtime_);
    const double spent = seconds_since(start_);
    if (complete_) return {spent, spent, true};
    return {spent, spent - in_loops_ + estimated_, false};
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Body = void (*)(void* context, std::int64_t begin, std::int64_t end);
  struct Loop {
    Body body = nullptr;
    void* context = nullptr;
    Clock::time_point deadline{};
    std::atomic<double> estimated{0};
    std::atomic<bool> complete{true};
  };

  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  static void parallel_for(const codegen::tunewright_runtime* self, std::int64_t count, Body body, void* context) {
    static_cast<PartialCall*>(self->state)->run(count, body, context);
  }
  void run(std::int64_t count, Body body, void* context);
  /// A thread's part of a loop.
  static void run_part(void* context, std::int64_t begin, std::int64_t end);

  const codegen::tunewright_runtime& whole_;
  const codegen::tunewright_runtime runtime_{&PartialCall::parallel_for, this};
  double budget_;
  Clock::time_point start_{};
  double in_loops_ = 0;   // seconds of this call
  double estimated_ = 0;  // seconds that the loops of this call would have taken whole
  bool complete_ = true;
};

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(measurers)

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE void PartialCall::run(std::int64_t count, Body body, void* context) {
  const Clock::time_point begin = Clock::now();
  const double left = budget_ - std::chrono::duration<double>(begin - start_).count();
  const std::chrono::duration<double> granted(std::max(left / 2, budget_ / 16));
  Loop loop{.body = body, .context = context, .deadline = begin + std::chrono::duration_cast<Clock::duration>(granted)};
  whole_.parallel_for(&whole_, count, &PartialCall::run_part, &loop);
  const double spent = seconds_since(begin);
  in_loops_ += spent;
  estimated_ += loop.complete ? spent : std::max<double>(spent, loop.estimated);
  complete_ = complete_ && loop.complete;
}

TUNEWRIGHT_CALLS_COMPILED_CODE TUNEWRIGHT_INLINE void PartialCall::run_part(void* context, std::int64_t begin,
                                                                            std::int64_t end) {
  Loop& loop = *static_cast<Loop*>(context);
  const Clock::time_point start = Clock::now();
  std::int64_t next = begin;
  for (std::int64_t piece = 1; next < end; piece *= 2) {
    const std::int64_t until = std::min(next + piece, end);
    loop.body(loop.context, next, until);
    next = until;
    if (next < end && Clock::now() >= loop.deadline) break;
  }
  if (next == end) return;
  loop.complete = false;
  const double whole = seconds_since(start) * static_cast<double>(end - begin) / static_cast<double>(next - begin);
  double known = loop.estimated;
  while (whole > known && !loop.estimated.compare_exchange_weak(known, whole)) {
  }
}

}  // namespace tunewright::measurers::sandbox

#endif
