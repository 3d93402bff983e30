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

/// A runtime whose parallel loops end early, so that a call of a kernel that takes long tells soon how long; a call
/// that turns out to be promising goes on to its end, as if nothing had been looked at.
///
/// Every thread runs its part of a loop from the start, in pieces, until half of what is left of `budget_seconds`, and
/// at least a sixteenth of it, has passed; no less than one iteration. What the whole call would take is
///
///   T = T_call - sum over loops T_loop + sum over loops max over threads (t + (n - m) (t - t_1) / (m - 1))
///
/// with m of the n iterations of a thread's part run in t seconds, the first of them in t_1: that one meets cold caches
/// and stands for the others only where it was alone (t n / m). The others have the same work but for edges of the
/// tensors. Where T is at most `promising_seconds`, a thread runs another piece and looks again; where it is more, all
/// threads end after the pieces they are at.
///
/// What the kernel computes is incomplete, unless the call is. Where it reads what an earlier loop left out, it reads
/// what was there before: addresses in kernels do not depend on data.
class PartialCall {
 public:
  /// `whole` runs the loops, and outlives this.
  PartialCall(const codegen::tunewright_runtime& whole, double budget_seconds, double promising_seconds = 0)
      : whole_(whole), budget_(budget_seconds), promising_(promising_seconds) {}
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
    return {spent, complete_ ? spent : spent - in_loops_ + estimated_, complete_};
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Body = void (*)(void* context, std::int64_t begin, std::int64_t end);
  struct Loop {
    Body body = nullptr;
    void* context = nullptr;
    Clock::time_point deadline{};
    double promising = 0;  ///< seconds of this loop
    std::atomic<double> estimated{0};
    std::atomic<bool> complete{true};
  };
  static constexpr std::int64_t most_pieces = 8;  ///< of a part, or a few more: how often a thread looks at the clock

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
  double budget_, promising_;
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
  const double before = seconds_since(start_) - in_loops_ + estimated_;
  Loop loop{.body = body,
            .context = context,
            .deadline = begin + std::chrono::duration_cast<Clock::duration>(granted),
            .promising = promising_ - before};
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
  const std::int64_t largest = std::max<std::int64_t>(1, (end - begin) / most_pieces);
  double spent = 0, first = 0;
  std::int64_t next = begin;
  const auto whole = [&] {
    const auto done = static_cast<double>(next - begin), left = static_cast<double>(end - next);
    return spent + left * (done > 1 ? (spent - first) / (done - 1) : spent);
  };
  for (std::int64_t piece = 1; next < end; piece = std::min(2 * piece, largest)) {
    const std::int64_t until = std::min(next + piece, end);
    loop.body(loop.context, next, until);
    const Clock::time_point now = Clock::now();
    spent = std::chrono::duration<double>(now - start).count();
    if (next == begin) first = spent;
    next = until;
    if (now >= loop.deadline && (!loop.complete || whole() > loop.promising)) break;
  }
  if (next == end) return;
  loop.complete = false;
  double known = loop.estimated;
  while (whole() > known && !loop.estimated.compare_exchange_weak(known, whole())) {
  }
}

}  // namespace tunewright::measurers::sandbox

#endif
