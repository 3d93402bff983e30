// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/budget.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/record.hpp"

namespace tunewright {

/// Measures the `count` candidates of a round until time is up, at least the first few: the rest is dropped.
/// `measure(begin, size)` returns the outcomes of some of them and leaves the time in `status.elapsed`.
template <class Measure>
  requires std::is_invocable_r_v<std::vector<Outcome>, const Measure&, std::size_t, std::size_t>
[[nodiscard]] std::vector<Outcome> measure_in_time(const Budget& budget, const RunStatus& status, std::size_t count,
                                                   const Measure& measure) {
  std::vector<Outcome> outcomes;
  do {
    const std::size_t next =
        trials_before_next_look(budget, status.trials - status.recalled, status.elapsed, count - outcomes.size());
    std::vector<Outcome> measured = measure(outcomes.size(), next);
    std::move(measured.begin(), measured.end(), std::back_inserter(outcomes));
  } while (outcomes.size() < count && status.elapsed < budget.time);
  return outcomes;
}

/// Times that no record has yet; the next one takes them.
struct TimesBetweenRecords {
  Seconds searching{0}, learning{0};

  [[nodiscard]] Record taken_by(Record record) {
    record.search_time = std::exchange(searching, Seconds(0));
    record.learn_time = std::exchange(learning, Seconds(0));
    return record;
  }
};

}  // namespace tunewright
