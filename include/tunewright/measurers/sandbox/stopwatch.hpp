// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/sandbox/partial_call.hpp"
#include "tunewright/stats/robust.hpp"

namespace tunewright::measurers::sandbox {

/// Total seconds of `calls` calls. Uses the steady clock instead of the time-stamp counter: it needs no calibration, is
/// right on processors whose counters drift apart, and its 25 ns are negligible in a repeat of milliseconds. A call
/// with its own clock, such as a device's, measures itself: `call.seconds(calls)`.
template <class Call>
[[nodiscard]] double seconds_of(unsigned calls, const Call& call) {
  if constexpr (requires { call.seconds(calls); }) {
    return call.seconds(calls);
  } else {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    for (unsigned i = 0; i < calls; ++i) call();
    return std::chrono::duration<double>(Clock::now() - start).count();
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

/// Times one series, as `Protocol` describes, of a kernel whose call takes about `estimate`. `flush` is called before
/// each repeat, outside the timing.
template <class Call, class Flush>
[[nodiscard]] Series one_series(const Protocol& protocol, double best_seconds, double estimate, const Call& call,
                                const Flush& flush) {
  Series series;
  if (!protocol.flush_cache) series.calls = calls_filling(protocol.min_repeat_seconds, estimate);
  double total = 0;
  double fastest = estimate;
  for (;;) {
    flush();
    const double elapsed = seconds_of(series.calls, call);
    total += elapsed;
    const double each = elapsed / series.calls;
    if (!protocol.flush_cache && series.repeats.empty() && elapsed < 0.8 * protocol.min_repeat_seconds &&
        series.calls < 1'000'000) {
      series.calls = std::max(calls_filling(protocol.min_repeat_seconds, each), series.calls + series.calls / 2 + 1);
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
template <class Call, class Flush>
[[nodiscard]] Series time_kernel(const Protocol& protocol, double best_seconds, double first_call_seconds,
                                 const Call& call, const Flush& flush) {
  // The checked call met cold caches and fresh pages, which at most double its time.
  if (best_seconds > 0 && first_call_seconds > protocol.budget_seconds &&
      first_call_seconds > 4 * protocol.far_slower_factor * best_seconds) {
    return {{first_call_seconds}, 1, StopReason::FarSlower};
  }
  const bool is_long_call = is_long(protocol, first_call_seconds);
  if (best_seconds > 0 && is_long_call && first_call_seconds > protocol.nearly_best_factor * best_seconds)
    return {{first_call_seconds}, 1, StopReason::Slower};
  double estimate = first_call_seconds;
  if (!is_long_call && first_call_seconds < protocol.budget_seconds) {
    for (unsigned i = 0; i < protocol.warmup_calls; ++i) estimate = seconds_of(1, call);
  }
  Series series = one_series(protocol, best_seconds, estimate, call, flush);
  if (series.stopped == StopReason::Budget && series.repeats.size() >= protocol.repeats_max &&
      series.spread() > protocol.noisy_spread) {
    std::this_thread::sleep_for(std::chrono::duration<double>(protocol.cooldown_seconds));
    Series again = one_series(protocol, best_seconds, stats::median(series.repeats), call, flush);
    if (again.spread() < series.spread()) series = std::move(again);
  }
  return series;
}

/// One repeat, of `calls` calls or, if that is 0, of as many as the protocol requires, of a kernel that alternates with
/// others. Untimed calls restore clock and caches to the state of repeated calls first: weights of some megabytes must
/// be read from memory more than once before they stay in the cache.
template <class Call, class Flush>
[[nodiscard]] Series one_turn(const Protocol& protocol, unsigned calls, const Call& call, const Flush& flush) {
  constexpr double warm_up_repeats = 2;  // duration of the untimed calls in repeats; at least one call
  double estimate = 0;
  double spent = 0;
  do {
    estimate = seconds_of(1, call);
    spent += estimate;
  } while (spent < warm_up_repeats * protocol.min_repeat_seconds);
  Series series;
  series.calls = calls;
  if (calls == 0) series.calls = protocol.flush_cache ? 1 : calls_filling(protocol.min_repeat_seconds, estimate);
  flush();
  series.repeats.push_back(seconds_of(series.calls, call) / series.calls);
  return series;
}

/// Writes the lines of `memory` back and evicts them from all caches. Without an instruction for that, reads through 64
/// MiB of other memory instead, which evicts nearly everything.
void evict(std::span<const char> memory);

/// The latency and spread of raw repeats.
[[nodiscard]] Timing timing_of(std::span<const double> repeats, unsigned calls, StopReason stopped);

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(measurers)

namespace tunewright::measurers::sandbox {

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

TUNEWRIGHT_INLINE void evict(std::span<const char> memory) {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < memory.size(); at += 64) __builtin_ia32_clflush(memory.data() + at);
  if (!memory.empty()) __builtin_ia32_clflush(memory.data() + memory.size() - 1);
  __builtin_ia32_mfence();
#else
  static_cast<void>(memory);
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
