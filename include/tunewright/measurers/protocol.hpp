// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "tunewright/detail/config.hpp"

namespace tunewright {
struct Task;
}

namespace tunewright::measurers {

/// What is evicted from all caches before each timed call.
enum class Evict : std::uint8_t {
  Nothing,    ///< consecutive calls find their data where the call before left them
  Constants,  ///< weights, as in a network whose weights exceed the caches: only activations are in them
  Everything  ///< all buffers of the kernel
};
inline constexpr std::size_t evict_count = 3;

/// How a kernel is timed. One repeat is the mean of as many consecutive calls as last `min_repeat_seconds`; the latency
/// is the median of the repeats.
///
///   part       if a best latency is known and a call takes longer than `partial_call_seconds`, the latency is
///              extrapolated from the first iterations of the parallel loops (`sandbox::PartialCall`). While the
///              extrapolation is within `nearly_best_factor` of the best, the call continues to its end and becomes the
///              checked call; otherwise it ends early. If a second call ends early too, its extrapolation is the
///              latency; the outputs are then not checked, only that writes stay within buffers. Does not apply to
///              targets of one thread, whose loops are not parallel
///   check      one call on poisoned outputs, compared with the reference; it also touches every page
///   warm up    `warmup_calls` calls; none if the checked call is long, i.e. took `partial_call_seconds`
///   calibrate  calls per repeat, from the last call; the first repeat is redone if it turns out too short
///   evict      before each timed call, if the kernel has buffers that `evict` names; then our threads are woken. A
///              repeat lasts as long with its evictions, but its latency is of the calls alone. At least one call warms
///              up, which tells how long an eviction takes
///   repeat     until (median absolute deviation) <= wanted_spread * median, at least `repeats_min` and at most
///              `repeats_max` repeats or `budget_seconds`; a series of all `repeats_max` whose spread is above
///              `noisy_spread` is taken once more, and the less noisy one is kept; one of fewer than `repeats_min`
///              repeats is not. If a best latency is known, long calls end earlier: a checked call that is not within
///              `nearly_best_factor` is the latency, and repeats end as soon as no call, including the checked one, was
///              within `wanted_spread` of the best
///
/// Paper:     Ansor, OSDI 2020, doi:10.5555/3488766.3488815 (time evaluator); TenSet (measuring again).
/// Deviates:  medians where they take means. Stops when precise, which gives a tuner more trials per second. A kernel
///            slower than `far_slower_factor` times the best is given up after three repeats (`repeats_min` if that is
///            fewer) that are all as slow, or earlier once they took a third of `budget_seconds`. Extrapolates from
///            partial calls, and makes only one or two long calls of a kernel that is not the best. Evicts by address:
///            constants or every buffer, where Ansor evicts all but the first.
/// Cost:      about 10 ms for a kernel under 0.4 ms, about 7 calls for one of 2 to 5 ms. For longer ones, 3 to 6 calls
///            of a kernel that may be the best, 1 or 2 of one that is nearly the best, and about twice
///            `partial_call_seconds`, but at least one iteration of a parallel loop, for others. Evictions take about
///            50 us a MiB.
struct Protocol {
  unsigned warmup_calls = 1;            ///< in addition to the checked call; skipped if that is long
  double min_repeat_seconds = 2e-3;     ///< minimum duration of a repeat
  unsigned repeats_min = 5;             ///< at least 1
  unsigned repeats_max = 12;            ///< at most `repeats_limit`
  double wanted_spread = 0.02;          ///< share of the median
  double noisy_spread = 0.1;            ///< share of the median above which a series is repeated
  double budget_seconds = 0.15;         ///< for repeats; checked after each, so one repeat always completes
  Evict evict = Evict::Nothing;         ///< before each timed call
  double far_slower_factor = 4;         ///< times the best latency so far; infinity gives none up as far slower
  double partial_call_seconds = 5e-3;   ///< longer calls are long; infinity times and checks whole calls of all kernels
  double nearly_best_factor = 1.1;      ///< times the best latency so far
  double cooldown_seconds = 0;          ///< pause before a series is repeated
  double run_timeout_seconds = 10;      ///< wall-clock limit per candidate, for check and repeats together
  double compile_timeout_seconds = 10;  ///< processor time per candidate, see `CompileTeam`

  static constexpr unsigned repeats_limit = 256;
  /// Number of repeats that must all be far slower than the best (`repeats_min` if that is fewer), so that a short
  /// disturbance does not decide.
  static constexpr unsigned far_slower_repeats = 3;
};

/// What `Evict` adds to the identity of measurements, which keeps them apart in journals: "", ", cold constants" or
/// ", cold buffers".
[[nodiscard]] std::string identity_suffix(Evict evict);

/// Identifies a task whose latencies this protocol can compare: evictions change them several times.
[[nodiscard]] std::uint64_t best_key(const Task& task, const Protocol& protocol);

/// Throws `std::invalid_argument` with the member's name for an invalid value.
void validate(const Protocol& protocol);

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(measurers)

#include "tunewright/core/hash.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/core/task.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE std::string identity_suffix(Evict evict) {
  switch (evict) {
    case Evict::Nothing: return "";
    case Evict::Constants: return ", cold constants";
    case Evict::Everything: return ", cold buffers";
  }
  return "";
}

TUNEWRIGHT_INLINE std::uint64_t best_key(const Task& task, const Protocol& protocol) {
  return StableHash().add(stable_hash(task)).add(static_cast<unsigned>(protocol.evict)).value();
}

TUNEWRIGHT_INLINE void validate(const Protocol& protocol) {
  const auto demand = [](bool holds, const char* member, double value, const char* remedy) {
    if (!holds) {
      throw std::invalid_argument("protocol: " + std::string(member) + " is " + number_text(value) + "; " + remedy);
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
