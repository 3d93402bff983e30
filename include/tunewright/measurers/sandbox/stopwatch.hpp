// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/sandbox/partial_call.hpp"
#include "tunewright/stats/robust.hpp"

namespace tunewright::measurers::sandbox {

/// Total seconds of `calls` calls. Uses the steady clock instead of the time-stamp counter: it needs no calibration, is
/// right on processors whose counters drift apart, and its 25 ns are negligible except in single calls of about a
/// microsecond, after evictions. A call with its own clock, such as a device's, measures itself: `call.seconds(calls)`.
template <class Call>
[[nodiscard]] double seconds_of(unsigned calls, const Call& call) {
  if constexpr (requires { call.seconds(calls); }) {
    return call.seconds(calls);
  } else {
    const auto start = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < calls; ++i) call();
    return seconds_since(start);
  }
}

/// The number of calls that take `seconds` if one takes `each`.
[[nodiscard]] unsigned calls_filling(double seconds, double each) noexcept;

/// Raw repeats of a kernel.
struct Series {
  std::vector<double> repeats;  ///< seconds per call
  unsigned calls = 1;
  StopReason stopped = StopReason::Budget;

  [[nodiscard]] double spread() const;
};

/// Whether `repeats`, which took `total` seconds, are all far slower than the best and sufficiently many. (A repeat
/// that lost a time slice of some milliseconds to another program looks far slower, too.)
[[nodiscard]] bool is_far_slower(const Protocol& protocol, double best_seconds, std::span<const double> repeats,
                                 double total);

/// Whether calls of `seconds` count as long: extrapolated and ended early.
[[nodiscard]] inline bool is_long(const Protocol& protocol, double seconds) {
  return seconds >= protocol.partial_call_seconds;
}

/// Evicts buffers from the caches and leaves threads ready; empty if caches stay as calls leave them.
using Eviction = std::function<void()>;

/// Seconds of calls, and with the evictions before them.
struct ElapsedSeconds {
  double of_calls = 0;
  double of_all = 0;
};

/// `calls` calls. If `eviction` is not empty, it precedes each one.
template <class Call>
[[nodiscard]] ElapsedSeconds elapsed_seconds(unsigned calls, const Call& call, const Eviction& eviction) {
  ElapsedSeconds elapsed;
  if (!eviction) {
    elapsed.of_calls = elapsed.of_all = seconds_of(calls, call);
    return elapsed;
  }
  // By the host's clock: a device evicts while the host goes on, before the call's own clock starts.
  elapsed.of_all = seconds_of(1, [&] {
    for (unsigned i = 0; i < calls; ++i) {
      eviction();
      elapsed.of_calls += seconds_of(1, call);
    }
  });
  return elapsed;
}

/// Times one series, as `Protocol` describes, of a kernel whose fastest call so far took `fastest`. A repeat makes
/// `calls` calls; the first repeat corrects the number if it is too small.
template <class Call>
[[nodiscard]] Series one_series(const Protocol& protocol, double best_seconds, unsigned calls, double fastest,
                                const Call& call, const Eviction& eviction = {}) {
  Series series;
  series.calls = calls;
  double total = 0;
  for (;;) {
    const ElapsedSeconds elapsed = elapsed_seconds(series.calls, call, eviction);
    total += elapsed.of_all;
    const double each = elapsed.of_calls / series.calls;
    if (series.repeats.empty() && elapsed.of_all < 0.8 * protocol.min_repeat_seconds && series.calls < 1'000'000) {
      series.calls = std::max(calls_filling(protocol.min_repeat_seconds, elapsed.of_all / series.calls),
                              series.calls + series.calls / 2 + 1);
      continue;
    }
    series.repeats.push_back(each);
    fastest = std::min(fastest, each);
    const auto taken = series.repeats.size();
    if (best_seconds > 0 && is_far_slower(protocol, best_seconds, series.repeats, total)) {
      series.stopped = StopReason::FarSlower;
      return series;
    }
    if (best_seconds > 0 && is_long(protocol, fastest) && fastest > (1 + protocol.wanted_spread) * best_seconds) {
      series.stopped = StopReason::Slower;
      return series;
    }
    if (taken >= protocol.repeats_min && series.spread() <= protocol.wanted_spread) {
      series.stopped = StopReason::Precise;
      return series;
    }
    if (taken >= protocol.repeats_max || total >= protocol.budget_seconds) return series;
  }
}

/// The latency extrapolated from partial calls of a kernel that is slower than the best. Empty if a partial call
/// completes or suggests that the kernel may be nearly the best, so that whole calls are needed. `call()` makes a
/// partial call, after `prepare()`, and returns a `PartialTime`. `best_seconds` is positive.
///
/// The first partial call meets cold caches, so the second one counts. The first is enough if it leaves no doubt and
/// took as long as two should: a lost time slice of some milliseconds may double the time of a short partial call.
template <class Call, class Prepare>
[[nodiscard]] std::optional<Series> extrapolate(const Protocol& protocol, double best_seconds, const Call& call,
                                                const Prepare& prepare) {
  constexpr double doubt = 1.5;  // factor by which a partial call may overestimate
  const double near_seconds = protocol.nearly_best_factor * best_seconds;
  const auto needs_whole = [&](const PartialTime& part) { return part.complete || part.whole_seconds <= near_seconds; };
  prepare();
  PartialTime part = call();
  if (needs_whole(part)) return std::nullopt;
  if (part.spent_seconds < 2 * protocol.partial_call_seconds || part.whole_seconds <= doubt * near_seconds) {
    prepare();
    part = call();
    if (needs_whole(part)) return std::nullopt;
  }
  const bool is_far = part.whole_seconds > protocol.far_slower_factor * best_seconds;
  return Series{{part.whole_seconds}, 1, is_far ? StopReason::FarSlower : StopReason::Extrapolated};
}

/// Warms up, calibrates and takes one or two series. `first_call_seconds` is the time of the checked call,
/// `best_seconds` the best latency so far or zero.
template <class Call>
[[nodiscard]] Series time_kernel(const Protocol& protocol, double best_seconds, double first_call_seconds,
                                 const Call& call, const Eviction& eviction = {}) {
  // The checked call met cold caches and fresh pages, which at most double its time.
  if (best_seconds > 0 && first_call_seconds > protocol.budget_seconds &&
      first_call_seconds > 4 * protocol.far_slower_factor * best_seconds) {
    return {{first_call_seconds}, 1, StopReason::FarSlower};
  }
  const bool is_long_call = is_long(protocol, first_call_seconds);
  if (best_seconds > 0 && is_long_call && first_call_seconds > protocol.nearly_best_factor * best_seconds)
    return {{first_call_seconds}, 1, StopReason::Slower};
  ElapsedSeconds estimate{first_call_seconds, first_call_seconds};
  if (!is_long_call && first_call_seconds < protocol.budget_seconds) {
    // Only a call after an eviction tells how many fit into a repeat.
    const unsigned warmup_calls = std::max(protocol.warmup_calls, eviction ? 1U : 0U);
    for (unsigned i = 0; i < warmup_calls; ++i) estimate = elapsed_seconds(1, call, eviction);
  }
  Series series = one_series(protocol, best_seconds, calls_filling(protocol.min_repeat_seconds, estimate.of_all),
                             estimate.of_calls, call, eviction);
  if (series.stopped == StopReason::Budget && series.repeats.size() >= protocol.repeats_max &&
      series.spread() > protocol.noisy_spread) {
    std::this_thread::sleep_for(std::chrono::duration<double>(protocol.cooldown_seconds));
    const double fastest = std::min(estimate.of_calls, *std::min_element(series.repeats.begin(), series.repeats.end()));
    Series again = one_series(protocol, best_seconds, series.calls, fastest, call, eviction);
    // The spread of a few repeats, which is 0 for one, says nothing.
    if (again.repeats.size() >= protocol.repeats_min && again.spread() < series.spread()) series = std::move(again);
  }
  return series;
}

/// One repeat, of `calls` calls or, if that is 0, of as many as the protocol requires, of a kernel that alternates with
/// others. Untimed calls restore clock and caches to the state of repeated calls first: weights of some megabytes must
/// be read from memory more than once before they stay in the cache.
template <class Call>
[[nodiscard]] Series one_turn(const Protocol& protocol, unsigned calls, const Call& call,
                              const Eviction& eviction = {}) {
  constexpr double warm_up_repeats = 2;  // duration of the untimed calls in repeats; at least one call
  double estimate = 0;
  double spent = 0;
  do {
    estimate = elapsed_seconds(1, call, eviction).of_all;
    spent += estimate;
  } while (spent < warm_up_repeats * protocol.min_repeat_seconds);
  Series series;
  series.calls = calls == 0 ? calls_filling(protocol.min_repeat_seconds, estimate) : calls;
  series.repeats.push_back(elapsed_seconds(series.calls, call, eviction).of_calls / series.calls);
  return series;
}

/// Calls `visit` with at least one address in each line of `memory`.
template <class Visit>
void for_each_line(std::span<const char> memory, std::size_t line_bytes, const Visit& visit) {
  for (std::size_t at = 0; at < memory.size(); at += line_bytes) visit(memory.data() + at);
  if (!memory.empty()) visit(&memory.back());  // perhaps in another line, if the first one is begun in its middle
}

/// Writes the lines of all `parts` back and evicts them from all caches, on x86-64 and 64-bit ARM. Elsewhere it writes
/// 64 MiB of other memory once, which evicts nearly everything.
/// Cost: about 3 ns a line; ten to a hundred times as much on an x86-64 processor without clflushopt, whose clflush
///       waits for the line before.
void evict(std::span<const std::span<const char>> parts);

/// The latency and spread of raw repeats.
[[nodiscard]] Timing timing_of(std::span<const double> repeats, unsigned calls, StopReason stopped);

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(measurers)

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tunewright::measurers::sandbox {

namespace detail {

#if defined(__x86_64__)
/// Whether the processor evicts lines without waiting for each one.
TUNEWRIGHT_INLINE bool has_clflushopt() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & bit_CLFLUSHOPT) != 0;
}
#elif defined(__aarch64__)
/// The smallest line of all data caches.
TUNEWRIGHT_INLINE std::size_t line_bytes_of_processor() {
  std::uint64_t cache_type = 0;
  asm("mrs %0, ctr_el0" : "=r"(cache_type));
  return std::size_t{4} << ((cache_type >> 16) & 15);
}
#endif

}  // namespace detail

TUNEWRIGHT_INLINE unsigned calls_filling(double seconds, double each) noexcept {
  if (!(each > 0)) return 1000;
  return static_cast<unsigned>(std::clamp(std::ceil(seconds / each), 1.0, 1e6));
}

TUNEWRIGHT_INLINE double Series::spread() const {
  const double middle = stats::median(repeats);
  return middle > 0 ? stats::median_absolute_deviation(repeats) / middle : 0;
}

TUNEWRIGHT_INLINE bool is_far_slower(const Protocol& protocol, double best_seconds, std::span<const double> repeats,
                                     double total) {
  const std::size_t enough = std::min(Protocol::far_slower_repeats, protocol.repeats_min);
  if (repeats.size() < enough && total < protocol.budget_seconds / Protocol::far_slower_repeats) return false;
  return *std::min_element(repeats.begin(), repeats.end()) > protocol.far_slower_factor * best_seconds;
}

TUNEWRIGHT_INLINE void evict(std::span<const std::span<const char>> parts) {
#if defined(__x86_64__)
  // Written in assembly, since this is compiled for processors that may lack clflushopt.
  static const bool unordered = detail::has_clflushopt();
  for (const std::span<const char> memory : parts) {
    for_each_line(memory, 64, [](const char* line) {
      if (unordered)
        asm volatile("clflushopt %0" : : "m"(*line) : "memory");
      else
        __builtin_ia32_clflush(line);
    });
  }
  __builtin_ia32_mfence();
#elif defined(__aarch64__)
  static const std::size_t line_bytes = detail::line_bytes_of_processor();
  for (const std::span<const char> memory : parts) {
    for_each_line(memory, line_bytes, [](const char* line) { asm volatile("dc civac, %0" : : "r"(line) : "memory"); });
  }
  asm volatile("dsb ish" : : : "memory");
#else
  static_cast<void>(parts);
  static std::vector<char> other(std::size_t{64} << 20, 1);
  for (std::size_t at = 0; at < other.size(); at += 64) static_cast<volatile char&>(other[at]) = other[at];
#endif
}

TUNEWRIGHT_INLINE Timing timing_of(std::span<const double> repeats, unsigned calls, StopReason stopped) {
  Timing timing;
  for (const double seconds : repeats) timing.repeats.emplace_back(seconds);
  timing.median = Seconds(stats::median(repeats));
  timing.median_absolute_deviation = Seconds(stats::median_absolute_deviation(repeats));
  timing.calls_per_repeat = calls;
  timing.stopped = stopped;
  return timing;
}

}  // namespace tunewright::measurers::sandbox

#endif
