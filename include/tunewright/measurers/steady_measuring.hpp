// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/protocol.hpp"

namespace tunewright::measurers {

/// Runs kernels and times them.
struct KernelTimer {
  /// Checks and times a kernel, given the best latency so far or zero.
  std::function<Outcome(const codegen::Kernel&, Seconds best)> measure;
  /// Seconds per call of a kernel that was measured before, from one short repeat; empty if it fails.
  std::function<std::optional<Seconds>(const codegen::Kernel&)> time_again;
};

/// Notices that the machine is slower than usual. A processor that is shared with other machines is slower for tenths
/// of a second to seconds at a time, and then all repeats of a kernel agree on a latency that is too high.
///
/// One kernel of the task is timed now and then. It is among the fastest so far, so it needs the same units and caches
/// as the next candidates. Its usual latency is one that an eighth of its latest ones are below.
///
/// Cost: two or more calls of the kernel per check; checks take at most a sixteenth of the time.
class SpeedWatch {
 public:
  static constexpr Seconds usual_interval{0.02};
  static constexpr double usual_rest = 15;
  static constexpr double replacing_factor = 0.8;  ///< a kernel that is faster by this factor is timed instead
  static constexpr std::size_t remembered = 64;    ///< checks

  /// The next check is due after `interval` or, if that is longer, `rest` times the duration of the last one.
  explicit SpeedWatch(Seconds interval = usual_interval, double rest = usual_rest)
      : shortest_interval_(interval), rest_(rest), interval_(interval) {}

  /// Tells that `kernel` was measured.
  void note(const codegen::Kernel& kernel, Seconds latency);
  /// Whether it is time for a check; never before a kernel was measured.
  [[nodiscard]] bool is_due() const { return latency_ > Seconds(0) && Clock::now() - checked_ >= interval_; }
  /// Whether the kernel takes at most `factor` times its usual latency now; true if there is none.
  [[nodiscard]] bool is_steady(const KernelTimer& timer, double factor);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Seconds usual() const;

  Seconds shortest_interval_;
  double rest_;
  Seconds interval_;
  codegen::Kernel kernel_;
  Seconds latency_{0};
  std::vector<Seconds> checks_;  // a ring
  std::size_t next_ = 0;
  Clock::time_point checked_{};
};

/// Measures the kernels of a batch one after another, and those again that met a disturbance: of two latencies the
/// lower counts, since disturbances only add to it. Outcomes are reported once each, when they are final; those of
/// later kernels may come first.
///
/// Kernels count as disturbed if the machine was slower than usual at the check before or after them, unless they are
/// far slower than the best. After a check that finds it slow, the next kernel waits up to some tens of milliseconds.
class SteadyMeasuring {
 public:
  using Report = std::function<void(std::size_t, Outcome)>;
  static constexpr std::size_t most_waiting = 8;  ///< disturbed kernels, for the usual speed to return
  static constexpr int patience = 4;              ///< pauses before a kernel is measured on a slow machine
  static constexpr Seconds pause{0.01};

  /// `best` is the best latency so far or zero, and is updated. References must outlive this object.
  SteadyMeasuring(const KernelTimer& timer, const Protocol& protocol, SpeedWatch& watch, Seconds& best, Report report)
      : timer_(timer), protocol_(protocol), watch_(watch), best_(best), report_(std::move(report)) {}

  /// Measures the kernel with number `i`.
  void measure(std::size_t i, const codegen::Kernel& kernel, Seconds compile_time);
  /// Reports all that is left.
  void finish();

 private:
  struct Measured {
    std::size_t i;
    codegen::Kernel kernel;
    Outcome outcome;
  };

  [[nodiscard]] Outcome timed(const codegen::Kernel& kernel);
  /// Judges the kernels since the last check.
  void check();
  void measure_again();

  const KernelTimer& timer_;
  const Protocol& protocol_;
  SpeedWatch& watch_;
  Seconds& best_;
  Report report_;
  bool was_steady_ = true;
  std::vector<Measured> since_check_;
  std::vector<Measured> disturbed_;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(sandbox)

#include <algorithm>
#include <cmath>
#include <thread>

#include "tunewright/core/latency.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE void SpeedWatch::note(const codegen::Kernel& kernel, Seconds latency) {
  if (latency_ > Seconds(0) && latency > replacing_factor * latency_) return;
  kernel_ = kernel;
  latency_ = latency;
  checks_.clear();
  next_ = 0;
}

TUNEWRIGHT_INLINE bool SpeedWatch::is_steady(const KernelTimer& timer, double factor) {
  if (latency_ == Seconds(0)) return true;
  const auto start = Clock::now();
  const std::optional<Seconds> now = timer.time_again(kernel_);
  checked_ = Clock::now();
  interval_ = std::max<Seconds>(shortest_interval_, rest_ * (checked_ - start));
  if (!now) return true;
  if (checks_.size() < remembered) checks_.resize(checks_.size() + 1);
  checks_[next_] = *now;
  next_ = (next_ + 1) % remembered;
  return *now <= factor * usual();
}

TUNEWRIGHT_INLINE Seconds SpeedWatch::usual() const {
  std::vector<Seconds> sorted = checks_;
  const auto low = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 8);
  std::nth_element(sorted.begin(), low, sorted.end());
  return *low;
}

TUNEWRIGHT_INLINE Outcome SteadyMeasuring::timed(const codegen::Kernel& kernel) {
  Outcome outcome = timer_.measure(kernel, best_);
  if (const Timing* timing = outcome.timing()) watch_.note(kernel, timing->median);
  best_ = best_with(best_, outcome);
  return outcome;
}

TUNEWRIGHT_INLINE void SteadyMeasuring::measure(std::size_t i, const codegen::Kernel& kernel, Seconds compile_time) {
  Outcome outcome = timed(kernel);
  outcome.compile_time = compile_time;
  if (!std::isfinite(protocol_.disturbed_factor)) {
    report_(i, std::move(outcome));
    return;
  }
  since_check_.push_back({i, kernel, std::move(outcome)});
  if (watch_.is_due()) check();
}

TUNEWRIGHT_INLINE void SteadyMeasuring::check() {
  bool steady = watch_.is_steady(timer_, protocol_.disturbed_factor);
  for (Measured& m : since_check_) {
    const Timing* timing = m.outcome.timing();
    const bool matters = timing != nullptr && timing->median <= protocol_.far_slower_factor * best_;
    if (matters && !(steady && was_steady_)) {
      disturbed_.push_back(std::move(m));
    } else {
      report_(m.i, std::move(m.outcome));
    }
  }
  since_check_.clear();
  for (int pauses = 0; !steady && pauses < patience; ++pauses) {
    std::this_thread::sleep_for(pause);
    steady = watch_.is_steady(timer_, protocol_.disturbed_factor);
  }
  was_steady_ = steady;
  if (steady || disturbed_.size() >= most_waiting) measure_again();
}

TUNEWRIGHT_INLINE void SteadyMeasuring::measure_again() {
  for (Measured& m : disturbed_) {
    Outcome again = timed(m.kernel);
    const Timing* timing = again.timing();
    if (timing == nullptr || timing->median < m.outcome.timing()->median) m.outcome.result = std::move(again.result);
    m.outcome.run_time += again.run_time;
    report_(m.i, std::move(m.outcome));
  }
  disturbed_.clear();
}

TUNEWRIGHT_INLINE void SteadyMeasuring::finish() {
  if (!since_check_.empty()) check();
  measure_again();
}

}  // namespace tunewright::measurers

#endif
