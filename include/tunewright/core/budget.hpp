// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Limits of a run. Trials recalled from a journal count; seconds count from the start of the run.
struct Budget {
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();  ///< for `trials`

  std::size_t trials = 1000;                              ///< measurements, failed ones included
  std::size_t batch = 64;                                 ///< measurements a round
  Seconds time{std::numeric_limits<double>::infinity()};  ///< checked every few measurements
  std::size_t patience_trials = 0;                        ///< stop after so many without a new best; 0: never
  bool operator==(const Budget&) const = default;
};

enum class Stop : std::uint8_t { Trials, Time, Patience, Exhausted, Requested };

/// The reason why a run ended, as text.
[[nodiscard]] constexpr std::string_view name(Stop stop) noexcept {
  switch (stop) {
    case Stop::Trials: return "all trials used";
    case Stop::Time: return "time used up";
    case Stop::Patience: return "no better program for a long time";
    case Stop::Exhausted: return "nothing new in the search space";
    case Stop::Requested: return "stopped on request";
  }
  return "unknown";
}

/// Throws `std::invalid_argument` for a budget that allows nothing.
void check(const Budget& budget);

/// The reason why a run must stop before the next round, if it must.
[[nodiscard]] std::optional<Stop> exhausted(const Budget& budget, std::size_t trials, std::size_t trials_since_best,
                                            Seconds elapsed);

/// The measurements to make before the clock is read again, at most `left`: all of them if time is unlimited, otherwise
/// as many as take a quarter of the remaining time at the speed so far, and at least `trials_between_looks`. `trials`
/// were measured in `elapsed`.
[[nodiscard]] std::size_t trials_before_next_look(const Budget& budget, std::size_t trials, Seconds elapsed,
                                                  std::size_t left);

/// Few, so that a run ends in time; enough for the threads that compile them.
inline constexpr std::size_t trials_between_looks = 8;

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/number_text.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE void check(const Budget& budget) {
  if (budget.trials == 0) throw std::invalid_argument("budget: 0 trials allow no measurement; give at least 1");
  if (budget.batch == 0)
    throw std::invalid_argument("budget: a batch of 0 measures nothing; give at least 1 (64 is usual)");
  if (!(budget.time > Seconds(0))) {
    throw std::invalid_argument("budget: time is " + number_text(budget.time.count()) +
                                " s; give a positive time or leave it out");
  }
}

TUNEWRIGHT_INLINE std::optional<Stop> exhausted(const Budget& budget, std::size_t trials, std::size_t trials_since_best,
                                                Seconds elapsed) {
  if (trials >= budget.trials) return Stop::Trials;
  if (elapsed >= budget.time) return Stop::Time;
  if (budget.patience_trials != 0 && trials_since_best >= budget.patience_trials) return Stop::Patience;
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::size_t trials_before_next_look(const Budget& budget, std::size_t trials, Seconds elapsed,
                                                      std::size_t left) {
  if (std::isinf(budget.time.count())) return left;
  // No time may have passed yet, or all of it; the comparison is false for 0 / 0.
  const double affordable = static_cast<double>(trials) * ((budget.time - elapsed) / elapsed) / 4;
  const auto least = static_cast<double>(std::min(left, trials_between_looks));
  return affordable > least ? static_cast<std::size_t>(std::min(affordable, static_cast<double>(left)))
                            : static_cast<std::size_t>(least);
}

}  // namespace tunewright

#endif
