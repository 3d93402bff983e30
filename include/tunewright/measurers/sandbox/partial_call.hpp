// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::measurers::sandbox {

/// Time of a call whose parallel loops may have ended early.
struct PartialTime {
  double spent_seconds = 0;
  double whole_seconds = 0;  ///< estimate for the whole call; equals `spent_seconds` if the call is complete
  bool complete = true;      ///< all iterations of all loops were run
};

/// A runtime whose parallel loops end early, so that a long call of a kernel soon shows how long it takes; a call that
/// looks promising continues to its end as an ordinary call.
///
/// Every thread runs its part of a loop from the start, in pieces, until half of the remaining `budget_seconds`, and at
/// least a sixteenth of all, has passed, but at least one iteration. The estimate for the whole call is
///
///   T = T_call - sum over loops T_loop + sum over loops max over threads (t + (n - m) (t - t_1) / (m - 1))
///
/// if a thread ran m of its n iterations in t seconds, and the first of them took t_1: the first meets cold caches, and
/// represents the others only if it was the only one (t n / m). Iterations have equal work except at the edges of
/// tensors. While T is at most `promising_seconds`, a thread runs another piece and checks again; otherwise all threads
/// end after their current pieces.
///
/// An incomplete call computes only a part of its outputs. If the kernel reads elements that an earlier loop did not
/// write, it reads their previous contents: addresses in kernels do not depend on data.
class PartialCall {
 public:
  /// `whole` runs the loops, a thread's part in one call, and must outlive this object.
  PartialCall(const codegen::tunewright_runtime& whole, double budget_seconds, double promising_seconds = 0)
      : whole_(whole), budget_(budget_seconds), promising_(promising_seconds) {}
  PartialCall(const PartialCall&) = delete;  // the runtime refers to it
  PartialCall& operator=(const PartialCall&) = delete;

  /// Calls `kernel(runtime)` and times it.
  template <class Kernel>
  [[nodiscard]] PartialTime time(const Kernel& kernel) {
    start_ = SteadyClock::now();
    in_loops_ = estimated_ = 0;
    complete_ = true;
    kernel(&runtime_);
    const double spent = seconds_since(start_);
    return {spent, complete_ ? spent : spent - in_loops_ + estimated_, complete_};
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  using Body = void (*)(void* context, std::int64_t begin, std::int64_t end);
  struct Loop {
    Body body = nullptr;
    void* context = nullptr;
    SteadyClock::time_point deadline{};
    double promising = 0;  ///< limit for this loop
    std::atomic<double> estimated{0};
    std::atomic<bool> complete{true};
  };
  static constexpr std::int64_t most_pieces = 8;  ///< per part, or a few more: how often a thread reads the clock

  static void parallel_for(const codegen::tunewright_runtime* self, std::int64_t count, Body body, void* context) {
    static_cast<PartialCall*>(self->state)->run(count, body, context);
  }
  void run(std::int64_t count, Body body, void* context);
  /// Runs a thread's part of a loop.
  static void run_part(void* context, std::int64_t begin, std::int64_t end);

  const codegen::tunewright_runtime& whole_;
  const codegen::tunewright_runtime runtime_{&PartialCall::parallel_for, this};
  double budget_, promising_;
  SteadyClock::time_point start_{};
  double in_loops_ = 0;   // seconds in loops of this call
  double estimated_ = 0;  // estimated seconds of the complete loops of this call
  bool complete_ = true;
};

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(measurers)

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE void PartialCall::run(std::int64_t count, Body body, void* context) {
  const SteadyClock::time_point begin = SteadyClock::now();
  const double left = budget_ - std::chrono::duration<double>(begin - start_).count();
  const std::chrono::duration<double> granted(std::max(left / 2, budget_ / 16));
  const double before = seconds_since(start_) - in_loops_ + estimated_;
  Loop loop{.body = body,
            .context = context,
            .deadline = begin + std::chrono::duration_cast<SteadyClock::duration>(granted),
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
  const SteadyClock::time_point start = SteadyClock::now();
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
    const SteadyClock::time_point now = SteadyClock::now();
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
