// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/samplers/concept.hpp"

namespace tunewright::samplers {

/// Whether a candidate with this score may be chosen before the others: it could be described, and the model has a
/// score for it.
[[nodiscard]] inline bool described(float score) noexcept {
  return score > -std::numeric_limits<float>::infinity();  // not for NaN
}

/// Positions of the described candidates, ascending.
[[nodiscard]] std::vector<std::size_t> described_positions(std::span<const float> score);

/// Positions of the labelled programs with rows, ascending; the others have no features.
[[nodiscard]] std::vector<std::size_t> described_positions(const Labelled& labelled);

/// Throws `std::invalid_argument` unless the sizes of the arguments of `select` match.
void check_pool(const char* who, const FeatureBatch& x, std::span<const float> score, const Labelled& labelled);

/// The first `count` of `among` by `value` [P], largest first and NaN last; among equals the better-scored, then the
/// earlier one in the pool.
[[nodiscard]] std::vector<std::size_t> largest(std::vector<std::size_t> among, std::size_t count,
                                               std::span<const float> value, std::span<const float> score);

/// Appends the best-scored remaining candidates until `chosen` has min(n, P): for samplers that run out of described
/// candidates.
void fill_up(std::vector<std::size_t>& chosen, std::span<const float> score, std::size_t n);

/// How many programs of the task of the pool's first candidate are labelled.
[[nodiscard]] std::size_t labelled_of_pool_task(const Labelled& labelled);

/// How many of the `n` trials after `measured` others are random, so that a share `epsilon` of all trials is:
///
///   floor(epsilon (measured + n)) - floor(epsilon measured)
///
/// Batches that are too small for a random trial of their own thus have one every now and then.
[[nodiscard]] std::size_t random_share(double epsilon, std::size_t measured, std::size_t n);

/// How many of the described candidates are considered: `most`, or fewer, so that the rest has `random` of them.
[[nodiscard]] std::size_t considered_beside(std::size_t random, std::size_t most, std::span<const float> score);

/// `count` described positions drawn from those that `considered` lacks; all of them where they are fewer.
[[nodiscard]] std::vector<std::size_t> random_others(std::span<const float> score,
                                                     std::span<const std::size_t> considered, std::size_t count,
                                                     Rng& rng);

/// What belongs to one task: positions in the pool and in the labelled programs, ascending.
struct TaskMembers {
  std::vector<std::size_t> pool;
  std::vector<std::size_t> labelled;
};

/// The described members of every task with candidates in the pool, by task number.
[[nodiscard]] std::map<std::uint32_t, TaskMembers> by_task(std::span<const float> score, const Labelled& labelled);

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/order.hpp"

namespace tunewright::samplers {

TUNEWRIGHT_INLINE std::vector<std::size_t> described_positions(std::span<const float> score) {
  std::vector<std::size_t> result;
  for (std::size_t p = 0; p < score.size(); ++p) {
    if (described(score[p])) result.push_back(p);
  }
  return result;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> described_positions(const Labelled& labelled) {
  std::vector<std::size_t> result;
  for (std::size_t l = 0; l < labelled.size(); ++l) {
    if (labelled.x.offsets()[l] != labelled.x.offsets()[l + 1]) result.push_back(l);
  }
  return result;
}

TUNEWRIGHT_INLINE void check_pool(const char* who, const FeatureBatch& x, std::span<const float> score,
                                  const Labelled& labelled) {
  const auto check = [&](const char* what, std::size_t have, std::size_t want, bool optional) {
    if (have == want || (optional && have == 0)) return;
    throw std::invalid_argument("samplers::" + std::string(who) + ": " + std::to_string(have) + " " + what + " where " +
                                std::to_string(want) + " are needed, one a program");
  };
  check("programs in the features of the pool", x.programs(), score.size(), false);
  check("task numbers of the pool", labelled.pool_task.size(), score.size(), true);
  check("labels", labelled.y.size(), labelled.size(), true);
  check("task numbers of labelled programs", labelled.task.size(), labelled.size(), true);
  check("rounds of labelled programs", labelled.round.size(), labelled.size(), true);
  check("predictions of labelled programs", labelled.predicted.size(), labelled.size(), true);
  if (labelled.x.rows() > 0 && x.rows() > 0 && labelled.x.columns() != x.columns()) {
    throw std::invalid_argument("samplers::" + std::string(who) + ": labelled programs of " +
                                std::to_string(labelled.x.columns()) + " columns and a pool of " +
                                std::to_string(x.columns()) + "; use one featurizer for both");
  }
}

TUNEWRIGHT_INLINE std::vector<std::size_t> largest(std::vector<std::size_t> among, std::size_t count,
                                                   std::span<const float> value, std::span<const float> score) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  const auto key = [](float number) { return std::isnan(number) ? lowest : number; };
  return first_in_order(std::move(among), count, [&](std::size_t a, std::size_t b) {
    if (key(value[a]) != key(value[b])) return key(value[a]) > key(value[b]);
    if (key(score[a]) != key(score[b])) return key(score[a]) > key(score[b]);
    return a < b;
  });
}

TUNEWRIGHT_INLINE void fill_up(std::vector<std::size_t>& chosen, std::span<const float> score, std::size_t n) {
  if (chosen.size() >= n || chosen.size() >= score.size()) return;
  std::vector<bool> taken(score.size());
  for (const std::size_t p : chosen) taken[p] = true;
  std::vector<std::size_t> rest;
  for (std::size_t p = 0; p < score.size(); ++p) {
    if (!taken[p]) rest.push_back(p);
  }
  rest = largest(std::move(rest), n - chosen.size(), score, score);
  chosen.insert(chosen.end(), rest.begin(), rest.end());
}

TUNEWRIGHT_INLINE std::size_t labelled_of_pool_task(const Labelled& labelled) {
  const std::uint32_t task = labelled.pool_task_of(0);
  std::size_t count = 0;
  for (std::size_t l = 0; l < labelled.size(); ++l) count += labelled.task_of(l) == task ? 1 : 0;
  return count;
}

TUNEWRIGHT_INLINE std::size_t random_share(double epsilon, std::size_t measured, std::size_t n) {
  // The nudge keeps 0.05 * 60 at 3, whatever its rounding.
  const auto random_of = [&](std::size_t trials) {
    return static_cast<std::size_t>(std::floor(epsilon * static_cast<double>(trials) + 1e-9));
  };
  return random_of(measured + n) - random_of(measured);
}

TUNEWRIGHT_INLINE std::size_t considered_beside(std::size_t random, std::size_t most, std::span<const float> score) {
  const auto all = static_cast<std::size_t>(std::count_if(score.begin(), score.end(), described));
  return std::min(most, all - std::min(all, random));
}

TUNEWRIGHT_INLINE std::vector<std::size_t> random_others(std::span<const float> score,
                                                         std::span<const std::size_t> considered, std::size_t count,
                                                         Rng& rng) {
  if (count == 0) return {};
  std::vector<bool> known(score.size());
  for (const std::size_t p : considered) known[p] = true;
  std::vector<std::size_t> others = described_positions(score);
  std::erase_if(others, [&](std::size_t p) { return known[p]; });
  rng.shuffle(std::span<std::size_t>(others));
  others.resize(std::min(count, others.size()));
  return others;
}

TUNEWRIGHT_INLINE std::map<std::uint32_t, TaskMembers> by_task(std::span<const float> score, const Labelled& labelled) {
  std::map<std::uint32_t, TaskMembers> tasks;
  for (const std::size_t p : described_positions(score)) tasks[labelled.pool_task_of(p)].pool.push_back(p);
  for (const std::size_t l : described_positions(labelled)) {
    if (const auto found = tasks.find(labelled.task_of(l)); found != tasks.end()) found->second.labelled.push_back(l);
  }
  return tasks;
}

}  // namespace tunewright::samplers

#endif
