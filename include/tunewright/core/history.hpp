// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Canonical keys of configurations.
using KeySet = std::unordered_set<std::uint64_t>;

/// Seconds of one run; infinite for a failed candidate.
[[nodiscard]] double cost_s(const Outcome& outcome) noexcept;

/// A configuration with its place in the search: what is to be measured.
template <class Config>
struct Candidate {
  Config config;
  std::uint64_t key = 0;  ///< canonical, from the space
  unsigned round = 0;
  unsigned slot = 0;                                          ///< position in the batch of the round
  float predicted = std::numeric_limits<float>::quiet_NaN();  ///< what the model said; NaN if nothing yet
};

/// A candidate and what measuring it gave.
template <class Config>
struct Trial {
  Candidate<Config> candidate;
  Outcome outcome;
  bool recalled = false;  ///< taken over from a journal instead of measured now

  /// Seconds of one run; infinite for a failed candidate.
  [[nodiscard]] double cost_s() const noexcept { return tunewright::cost_s(outcome); }
};

/// All trials of one task in the order of their candidates (not of their completion), each key once.
template <class Config>
class History {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return trials_.size(); }
  [[nodiscard]] const std::vector<Trial<Config>>& trials() const& noexcept { return trials_; }
  [[nodiscard]] std::vector<Trial<Config>> trials() && noexcept {
    return std::move(trials_);
  }  // for loops over a temporary
  [[nodiscard]] const KeySet& keys() const noexcept { return keys_; }
  [[nodiscard]] bool contains(std::uint64_t key) const { return keys_.count(key) != 0; }
  [[nodiscard]] std::size_t valid() const noexcept { return valid_; }

  /// The fastest trial, the earliest of equals; null while none is valid.
  [[nodiscard]] const Trial<Config>* best() const noexcept { return valid_ == 0 ? nullptr : &trials_[best_]; }

  /// Trials after the one that set the best; all of them while none is valid.
  [[nodiscard]] std::size_t trials_since_best() const noexcept {
    return valid_ == 0 ? trials_.size() : trials_.size() - 1 - best_;
  }

  /// Adds a trial; returns false and changes nothing if its key is already there.
  bool append(Trial<Config> trial) {
    if (!keys_.insert(trial.candidate.key).second) return false;
    const double cost = trial.cost_s();
    trials_.push_back(std::move(trial));
    if (trials_.back().outcome.valid()) {
      if (valid_ == 0 || cost < trials_[best_].cost_s()) best_ = trials_.size() - 1;
      ++valid_;
    }
    return true;
  }

  /// Up to `count` valid trials, fastest first. O(size log size).
  [[nodiscard]] std::vector<Trial<Config>> fastest_trials(std::size_t count) const {
    std::vector<Trial<Config>> trials;
    for (const std::size_t index : by_cost(count)) trials.push_back(trials_[index]);
    return trials;
  }

  /// Their configurations only.
  [[nodiscard]] std::vector<Config> fastest(std::size_t count) const {
    std::vector<Config> configs;
    for (const std::size_t index : by_cost(count)) configs.push_back(trials_[index].candidate.config);
    return configs;
  }

 private:
  [[nodiscard]] std::vector<std::size_t> by_cost(std::size_t count) const {
    return first_in_order(positions(trials_.size()), std::min(count, valid_), [&](std::size_t a, std::size_t b) {
      const double cost_a = trials_[a].cost_s();
      const double cost_b = trials_[b].cost_s();
      return cost_a != cost_b ? cost_a < cost_b : a < b;
    });
  }

  std::vector<Trial<Config>> trials_;
  KeySet keys_;
  std::size_t valid_ = 0;
  std::size_t best_ = 0;
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE double cost_s(const Outcome& outcome) noexcept {
  const Timing* timing = outcome.timing();
  return timing == nullptr ? std::numeric_limits<double>::infinity() : timing->median.count();
}

}  // namespace tunewright

#endif
