// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// A set of canonical keys of configurations. It is a class of its own so that its operations are compiled once, not in
/// every template of a search.
class KeySet : public std::unordered_set<std::uint64_t> {
 public:
  using std::unordered_set<std::uint64_t>::unordered_set;
  KeySet();
  KeySet(const KeySet& other);
  KeySet(KeySet&& other) noexcept;
  KeySet& operator=(const KeySet& other);
  KeySet& operator=(KeySet&& other) noexcept;
  ~KeySet();

  std::pair<iterator, bool> insert(std::uint64_t key);
  [[nodiscard]] std::size_t count(std::uint64_t key) const;
};

/// Seconds of one run; infinite for a failed candidate.
[[nodiscard]] double cost_s(const Outcome& outcome) noexcept;

/// The configuration-independent part of a history, in the order of the trials.
class TrialIndex {
 public:
  [[nodiscard]] const KeySet& keys() const noexcept { return keys_; }
  [[nodiscard]] std::size_t valid() const noexcept { return valid_; }
  /// Position of the fastest trial, the earliest among equals; 0 if none is valid.
  [[nodiscard]] std::size_t best() const noexcept { return best_; }

  /// Adds a trial; returns false and changes nothing if its key is already known.
  bool append(std::uint64_t key, const Outcome& outcome);

  /// Positions of up to `count` valid trials, fastest first, earlier ones first among equals.
  [[nodiscard]] std::vector<std::size_t> by_cost(std::size_t count) const;

 private:
  KeySet keys_;
  std::vector<double> cost_s_;
  std::size_t valid_ = 0;
  std::size_t best_ = 0;
};

/// A configuration to measure, with its place in the search.
template <class Config>
struct Candidate {
  Config config;
  std::uint64_t key = 0;  ///< canonical, from the space
  unsigned round = 0;
  unsigned slot = 0;                                          ///< position in the batch of the round
  float predicted = std::numeric_limits<float>::quiet_NaN();  ///< score of the model; NaN without one
};

/// A candidate and the outcome of its measurement.
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
  [[nodiscard]] const KeySet& keys() const noexcept { return index_.keys(); }
  [[nodiscard]] bool contains(std::uint64_t key) const { return keys().count(key) != 0; }
  [[nodiscard]] std::size_t valid() const noexcept { return index_.valid(); }

  /// The fastest trial, the earliest among equals; null if none is valid.
  [[nodiscard]] const Trial<Config>* best() const noexcept { return valid() == 0 ? nullptr : &trials_[index_.best()]; }

  /// Trials after the best one; all of them if none is valid.
  [[nodiscard]] std::size_t trials_since_best() const noexcept {
    return valid() == 0 ? trials_.size() : trials_.size() - 1 - index_.best();
  }

  /// Adds a trial; returns false and changes nothing if its key is already known.
  bool append(Trial<Config> trial) {
    if (!index_.append(trial.candidate.key, trial.outcome)) return false;
    trials_.push_back(std::move(trial));
    return true;
  }

  /// Up to `count` valid trials, fastest first. O(size log size).
  [[nodiscard]] std::vector<Trial<Config>> fastest_trials(std::size_t count) const {
    std::vector<Trial<Config>> trials;
    for (const std::size_t index : index_.by_cost(count)) trials.push_back(trials_[index]);
    return trials;
  }

  /// The configurations of `fastest_trials`.
  [[nodiscard]] std::vector<Config> fastest(std::size_t count) const {
    std::vector<Config> configs;
    for (const std::size_t index : index_.by_cost(count)) configs.push_back(trials_[index].candidate.config);
    return configs;
  }

  /// Up to `count` configurations of trials whose result was certainly checked (`is_of_checked_result`), fastest first,
  /// for uses that do not check results themselves.
  [[nodiscard]] std::vector<Config> fastest_checked(std::size_t count) const {
    std::vector<Config> configs;
    for (const std::size_t index : index_.by_cost(trials_.size())) {
      if (configs.size() == count) break;
      if (is_of_checked_result(trials_[index].outcome.timing()->stopped))
        configs.push_back(trials_[index].candidate.config);
    }
    return configs;
  }

 private:
  std::vector<Trial<Config>> trials_;
  TrialIndex index_;
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>

#include "tunewright/core/order.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE KeySet::KeySet() = default;
TUNEWRIGHT_INLINE KeySet::KeySet(const KeySet& other) = default;
TUNEWRIGHT_INLINE KeySet::KeySet(KeySet&& other) noexcept = default;
TUNEWRIGHT_INLINE KeySet& KeySet::operator=(const KeySet& other) = default;
TUNEWRIGHT_INLINE KeySet& KeySet::operator=(KeySet&& other) noexcept = default;
TUNEWRIGHT_INLINE KeySet::~KeySet() = default;

TUNEWRIGHT_INLINE std::pair<KeySet::iterator, bool> KeySet::insert(std::uint64_t key) {
  return std::unordered_set<std::uint64_t>::insert(key);
}
TUNEWRIGHT_INLINE std::size_t KeySet::count(std::uint64_t key) const {
  return std::unordered_set<std::uint64_t>::count(key);
}

TUNEWRIGHT_INLINE bool TrialIndex::append(std::uint64_t key, const Outcome& outcome) {
  if (!keys_.insert(key).second) return false;
  cost_s_.push_back(cost_s(outcome));
  if (!outcome.valid()) return true;
  if (valid_ == 0 || cost_s_.back() < cost_s_[best_]) best_ = cost_s_.size() - 1;
  ++valid_;
  return true;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> TrialIndex::by_cost(std::size_t count) const {
  return first_in_order(positions(cost_s_.size()), std::min(count, valid_), [&](std::size_t a, std::size_t b) {
    return cost_s_[a] != cost_s_[b] ? cost_s_[a] < cost_s_[b] : a < b;
  });
}

TUNEWRIGHT_INLINE double cost_s(const Outcome& outcome) noexcept {
  const Timing* timing = outcome.timing();
  return timing == nullptr ? std::numeric_limits<double>::infinity() : timing->median.count();
}

}  // namespace tunewright

#endif
