// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "tunewright/detail/config.hpp"

namespace tunewright::measurers {

/// How a kernel is timed. One repeat is the mean of so many calls in a row that it lasts `min_repeat_seconds`;
/// the latency is the median of the repeats.
///
///   part       where there is a best so far and a call takes longer than `partial_call_seconds`, it is extrapolated
///              from the first iterations of its parallel loops (`sandbox::PartialCall`). As long as the whole is
///              within `nearly_best_factor` of the best, the call goes on to its end and is the checked one; else it
///              ends. Unless a second such call goes on, what it tells is the latency, and what the kernel computes is
///              not checked, only that it writes where it may; not for targets of one thread, whose loops are not
///              parallel
///   check      one call on poisoned outputs, compared with the reference; it also touches every page
///   warm up    `warmup_calls` calls; none where the checked call is long, that is, took `partial_call_seconds`
///   calibrate  calls a repeat, from the last call; the first repeat is redone if it turns out too short
///   repeat     until (median absolute deviation) <= wanted_spread * median, at least `repeats_min`, at most
///              `repeats_max` repeats or `budget_seconds`; a series whose spread is above `noisy_spread` is
///              taken once more, and the calmer one is kept. Long calls end earlier where there is a best so far: the
///              checked one is the latency where it is not within `nearly_best_factor`, and repeats end as soon as no
///              call, the checked one included, came within `wanted_spread` of the best
///
/// Paper:     Ansor, OSDI 2020, doi:10.5555/3488766.3488815 (time evaluator); TenSet (measuring again).
/// Deviates:  medians where they take means; stops when precise, which a tuner turns into more trials a
///            second; a kernel slower than `far_slower_factor` times the best so far is given up after three repeats,
///            all of them as slow: after `repeats_min` if that is fewer, and as soon as they have taken a third of
///            `budget_seconds`; calls in part, and long calls of what is not the best once or twice; flushing evicts
///            every buffer, Ansor keeps the first.
/// Cost:      about 10 ms for a kernel under 0.4 ms, about 7 calls for one of 2 to 5 ms. For longer ones 3 to 6 calls
///            of one that may be the best, 1 or 2 of one that is nearly, and about twice `partial_call_seconds` for
///            others, but an iteration of a parallel loop at least.
struct Protocol {
  unsigned warmup_calls = 1;           ///< on top of the checked call; skipped where that is long
  double min_repeat_seconds = 2e-3;    ///< a repeat lasts at least so long
  unsigned repeats_min = 5;            ///< at least 1
  unsigned repeats_max = 12;           ///< at most `repeats_limit`
  double wanted_spread = 0.02;         ///< share of the median
  double noisy_spread = 0.1;           ///< share of the median above which a series is taken again
  double budget_seconds = 0.15;        ///< of repeats; checked after each, so one repeat always completes
  bool flush_cache = false;            ///< evict the buffers before each repeat, which is then a single call
  double far_slower_factor = 4;        ///< over the best so far; infinity measures every kernel in full
  double partial_call_seconds = 5e-3;  ///< calls above are long; infinity times and checks whole calls only, all alike
  double nearly_best_factor = 1.1;     ///< over the best so far
  double cooldown_seconds = 0;         ///< sleep before a series is taken again
  double run_timeout_seconds = 10;     ///< wall clock of one candidate, check and repeats together
  double compile_timeout_seconds = 10;

  static constexpr unsigned repeats_limit = 256;
  /// That must all be far slower than the best, `repeats_min` if that is fewer: then a disturbance that lasts as long
  /// as these decides.
  static constexpr unsigned far_slower_repeats = 3;
};

/// Throws `std::invalid_argument` with the member's name for a value that cannot be followed.
void validate(const Protocol& protocol);

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(measurers)

namespace tunewright::measurers {

TUNEWRIGHT_INLINE void validate(const Protocol& protocol) {
  const auto demand = [](bool holds, const char* member, double value, const char* remedy) {
    if (!holds) {
      throw std::invalid_argument("protocol: " + std::string(member) + " is " + std::to_string(value) + "; " + remedy);
    }
  };
  demand(protocol.repeats_min >= 1, "repeats_min", protocol.repeats_min, "take at least 1 repeat");
  demand(protocol.repeats_max >= protocol.repeats_min && protocol.repeats_max <= Protocol::repeats_limit, "repeats_max",
         protocol.repeats_max, "give a number from repeats_min to 256");
  demand(std::isfinite(protocol.min_repeat_seconds) && protocol.min_repeat_seconds >= 0, "min_repeat_seconds",
         protocol.min_repeat_seconds, "give seconds, 0 or more");
  demand(protocol.budget_seconds > 0, "budget_seconds", protocol.budget_seconds, "give a positive number of seconds");
  demand(protocol.wanted_spread >= 0, "wanted_spread", protocol.wanted_spread, "give a share of the median, 0 or more");
  demand(protocol.noisy_spread >= protocol.wanted_spread, "noisy_spread", protocol.noisy_spread,
         "give at least wanted_spread");
  demand(protocol.far_slower_factor > 1, "far_slower_factor", protocol.far_slower_factor, "give a factor above 1");
  demand(protocol.partial_call_seconds > 0, "partial_call_seconds", protocol.partial_call_seconds,
         "give a positive number of seconds");
  demand(protocol.nearly_best_factor >= 1, "nearly_best_factor", protocol.nearly_best_factor,
         "give a factor of 1 or more");
  demand(std::isfinite(protocol.cooldown_seconds) && protocol.cooldown_seconds >= 0, "cooldown_seconds",
         protocol.cooldown_seconds, "give seconds, 0 or more");
  demand(protocol.run_timeout_seconds > 0, "run_timeout_seconds", protocol.run_timeout_seconds,
         "give a positive number of seconds");
  demand(protocol.compile_timeout_seconds > 0, "compile_timeout_seconds", protocol.compile_timeout_seconds,
         "give a positive number of seconds");
}

}  // namespace tunewright::measurers

#endif
