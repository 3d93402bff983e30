// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// The source of time. It is always an argument, so that replayed studies run on recorded time and tests on simulated
/// time.
using Clock = std::function<Seconds()>;

/// Seconds since an arbitrary moment, never going back.
[[nodiscard]] Clock steady_seconds();

/// Seconds from `start` until now.
[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

/// Seconds since 1970, for time stamps only.
[[nodiscard]] Clock calendar_seconds();

/// Throws `std::invalid_argument` for the clock of a tuner that holds no function.
void check(const Clock& clock);

/// A clock that moves only when told. Copies share one time, so a measurer can drive the clock that a budget reads.
class VirtualClock {
 public:
  void advance(Seconds by) const noexcept { *now_ += by; }
  [[nodiscard]] Seconds operator()() const noexcept { return *now_; }

 private:
  std::shared_ptr<Seconds> now_ = std::make_shared<Seconds>(0);
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <stdexcept>

namespace tunewright {

TUNEWRIGHT_INLINE Clock steady_seconds() {
  return [] { return Seconds(std::chrono::steady_clock::now().time_since_epoch()); };
}

TUNEWRIGHT_INLINE Clock calendar_seconds() {
  return [] { return Seconds(std::chrono::system_clock::now().time_since_epoch()); };
}

TUNEWRIGHT_INLINE void check(const Clock& clock) {
  if (!clock) throw std::invalid_argument("the clock is empty; give one, or leave the default, steady_seconds()");
}

}  // namespace tunewright

#endif
