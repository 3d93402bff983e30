// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright {

using Seconds = std::chrono::duration<double>;

/// The reason why a candidate has no latency. The list is closed: journals, counters and exporters rely on it. Ansor's
/// record format has a number for each except `OutOfBounds`, which it writes as a run error.
enum class Fault : std::uint8_t {
  InvalidSchedule,     ///< the steps do not replay, or a static limit is exceeded
  CompileError,        ///< the host compiler rejected the program
  DeviceCompileError,  ///< the device compiler rejected the program
  RunError,            ///< the kernel crashed or the device reported an error
  WrongResult,         ///< the output differs from the reference by more than the tolerance
  CompileTimeout,
  RunTimeout,
  Unknown,      ///< e.g. the measuring process vanished without a message
  OutOfBounds,  ///< the kernel accessed memory outside its buffers
};

inline constexpr std::array<std::string_view, 9> fault_names{
    "invalid_schedule", "compile_error", "device_compile_error", "run_error", "wrong_result", "compile_timeout",
    "run_timeout",      "unknown",       "out_of_bounds"};

[[nodiscard]] constexpr std::string_view name(Fault fault) noexcept {
  return fault_names[static_cast<std::size_t>(fault)];
}

/// Error number of the Ansor record format (1 to 8).
[[nodiscard]] constexpr int ansor_error_number(Fault fault) noexcept {
  return fault == Fault::OutOfBounds ? 4 : static_cast<int>(fault) + 1;
}

/// Invalidity word of the T4 result schema.
[[nodiscard]] constexpr std::string_view t4_invalidity(Fault fault) noexcept {
  switch (fault) {
    case Fault::InvalidSchedule: return "constraints";
    case Fault::CompileError:
    case Fault::DeviceCompileError: return "compile";
    case Fault::WrongResult: return "correctness";
    case Fault::CompileTimeout:
    case Fault::RunTimeout: return "timeout";
    case Fault::RunError:
    case Fault::OutOfBounds:
    case Fault::Unknown: break;
  }
  return "runtime";
}

/// The reason why measuring stopped.
enum class StopReason : std::uint8_t {
  Precise,       ///< the spread is below the wanted share of the median
  Budget,        ///< the allowed repeats or seconds are used up
  FarSlower,     ///< so much slower than the best that precision does not matter; a call cut short was not checked
  Extrapolated,  ///< slower than the best, extrapolated from partial calls; the result was not checked
  Slower         ///< slower than the best, by one or two whole calls of a long kernel; the result was checked
};

inline constexpr std::array<std::string_view, 5> stop_names{"precise", "budget", "far_slower", "extrapolated",
                                                            "slower"};

[[nodiscard]] constexpr std::string_view name(StopReason stopped) noexcept {
  return stop_names[static_cast<std::size_t>(stopped)];
}

/// Whether a latency of this kind is of a kernel whose result was certainly checked.
[[nodiscard]] constexpr bool is_of_checked_result(StopReason stopped) noexcept {
  return stopped != StopReason::FarSlower && stopped != StopReason::Extrapolated;
}

/// A measured latency. `repeats` are kept raw, in the order taken; each is the mean of `calls_per_repeat` calls.
struct Timing {
  std::vector<Seconds> repeats;
  Seconds median{0};
  Seconds median_absolute_deviation{0};
  unsigned calls_per_repeat = 1;
  StopReason stopped = StopReason::Budget;
  bool operator==(const Timing&) const = default;
};

struct Failure {
  Fault fault = Fault::Unknown;
  std::string detail;  ///< one line for people
  bool operator==(const Failure&) const = default;
};

/// Either a timing, by default an empty one, or a failure. A class of its own, so that its copy operations are compiled
/// once.
class TimingOrFailure : public std::variant<Timing, Failure> {
 public:
  using std::variant<Timing, Failure>::variant;
  using std::variant<Timing, Failure>::operator=;
  TimingOrFailure();
  TimingOrFailure(const TimingOrFailure& other);
  TimingOrFailure(TimingOrFailure&& other) noexcept;
  TimingOrFailure& operator=(const TimingOrFailure& other);
  TimingOrFailure& operator=(TimingOrFailure&& other) noexcept;
  ~TimingOrFailure();
};

/// The result of measuring one candidate, and its cost. A failed candidate is data, not an exception.
struct Outcome {
  TimingOrFailure result;
  Seconds compile_time{0};  ///< spent compiling, on this or another thread
  Seconds run_time{0};      ///< spent in the measuring process, checks included

  [[nodiscard]] const Timing* timing() const noexcept { return std::get_if<Timing>(&result); }
  [[nodiscard]] const Failure* failure() const noexcept { return std::get_if<Failure>(&result); }
  [[nodiscard]] bool valid() const noexcept { return timing() != nullptr; }
  bool operator==(const Outcome&) const = default;
};

/// Whether the first of two outcomes of one candidate says more than the other: a latency of a checked result more than
/// another latency, any latency more than a failure.
[[nodiscard]] inline bool says_more(const Outcome& a, const Outcome& b) noexcept {
  const auto said = [](const Outcome& outcome) {
    return outcome.valid() ? 1 + static_cast<int>(is_of_checked_result(outcome.timing()->stopped)) : 0;
  };
  return said(a) > said(b);
}

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE TimingOrFailure::TimingOrFailure() = default;
TUNEWRIGHT_INLINE TimingOrFailure::TimingOrFailure(const TimingOrFailure& other) = default;
TUNEWRIGHT_INLINE TimingOrFailure::TimingOrFailure(TimingOrFailure&& other) noexcept = default;
TUNEWRIGHT_INLINE TimingOrFailure& TimingOrFailure::operator=(const TimingOrFailure& other) = default;
TUNEWRIGHT_INLINE TimingOrFailure& TimingOrFailure::operator=(TimingOrFailure&& other) noexcept = default;
TUNEWRIGHT_INLINE TimingOrFailure::~TimingOrFailure() = default;

}  // namespace tunewright

#endif
