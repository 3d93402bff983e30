// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
  Seconds time{std::numeric_limits<double>::infinity()};  ///< checked between rounds
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

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE void check(const Budget& budget) {
  if (budget.trials == 0) throw std::invalid_argument("budget: 0 trials allow no measurement; give at least 1");
  if (budget.batch == 0)
    throw std::invalid_argument("budget: a batch of 0 measures nothing; give at least 1 (64 is usual)");
  if (!(budget.time > Seconds(0))) {
    throw std::invalid_argument("budget: time is " + std::to_string(budget.time.count()) +
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

}  // namespace tunewright

#endif
