// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/core/training_set.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// The recipe-independent part of what `tell` receives: everything except configurations.
struct ToldBatch {
  std::vector<std::uint64_t> keys;    // [B]
  std::vector<std::uint32_t> rounds;  // [B]
  std::vector<float> predicted;       // [B]
  std::span<const Outcome> outcomes;  // [B]

  template <class Config>
  ToldBatch(std::span<const Candidate<Config>> batch, std::span<const Outcome> told) : outcomes(told) {
    for (const Candidate<Config>& candidate : batch) add(candidate.key, candidate.round, candidate.predicted);
  }
  void add(std::uint64_t key, std::uint32_t round, float score);

  /// Throws `std::invalid_argument` if the numbers of outcomes and candidates differ, for latencies that are not
  /// positive and finite, and for candidates that are in `known` or repeated in the batch.
  void check(const KeySet& known) const;

  /// Adds the candidates with their rows `x` to the training data of the models of `task`.
  void add_to(TrainingSet& training, std::uint64_t task, const FeatureBatch& x) const;
};

/// The common part of all records of a session, without `outcome`, `key`, `config` and position of the candidate.
[[nodiscard]] Record record_of_session(const Task& task, std::uint64_t task_hash, const std::string& compiler,
                                       std::uint64_t seed);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/hash.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/core/number_text.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE void ToldBatch::add(std::uint64_t key, std::uint32_t round, float score) {
  keys.push_back(key);
  rounds.push_back(round);
  predicted.push_back(score);
}

TUNEWRIGHT_INLINE void ToldBatch::check(const KeySet& known) const {
  if (keys.size() != outcomes.size()) {
    throw std::invalid_argument("Session::tell: " + std::to_string(outcomes.size()) + " outcomes for a batch of " +
                                std::to_string(keys.size()) + "; give one a candidate, in the same order");
  }
  KeySet told;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string who = "Session::tell: candidate " + to_hex(keys[i]);
    if (known.count(keys[i]) != 0 || !told.insert(keys[i]).second)
      throw std::invalid_argument(who + " was told before; tell each once");
    if (const auto latency = impossible_latency(outcomes[i])) {
      throw std::invalid_argument(who + " took " + number_text(latency->count()) +
                                  " s; tell a positive latency, or a Failure");
    }
  }
}

TUNEWRIGHT_INLINE void ToldBatch::add_to(TrainingSet& training, std::uint64_t task, const FeatureBatch& x) const {
  std::vector<double> costs_s;
  for (const Outcome& outcome : outcomes) costs_s.push_back(cost_s(outcome));
  training.add(task, x, costs_s, {.round = rounds, .predicted = predicted});
}

TUNEWRIGHT_INLINE Record record_of_session(const Task& task, std::uint64_t task_hash, const std::string& compiler,
                                           std::uint64_t seed) {
  return {.task = task_hash,
          .target = stable_hash(task.target),
          .task_name = task.name,
          .target_name = task.target.name,
          .key = 0,
          .config = {},
          .compiler = compiler,
          .outcome = {},
          .seed = seed};
}

}  // namespace tunewright

#endif
