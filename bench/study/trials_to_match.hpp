// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace tunewright::study {

/// With what a search of a network ended.
struct Ended {
  std::size_t trials = 0;
  double latency_s = 0;  ///< infinite if a task has no valid program
};

/// The trials that `search` took to the latency of `reference`, as a share of the `trials` that `reference` was given;
/// 2, the most that it was given itself, where it did not get there, also if it ended sooner because there was nothing
/// new to try. Throws `std::runtime_error` if `reference` ended with nothing that could be reached.
inline double share_of_trials(const Ended& search, const Ended& reference, std::size_t trials) {
  constexpr double most = 2;
  if (!std::isfinite(reference.latency_s)) {
    throw std::runtime_error("the search to be matched found no valid program of some task in " +
                             std::to_string(reference.trials) + " trials; give it more");
  }
  if (search.latency_s > reference.latency_s) return most;
  return static_cast<double>(search.trials) / static_cast<double>(trials);
}

}  // namespace tunewright::study
