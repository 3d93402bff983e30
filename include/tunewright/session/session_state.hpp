// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/session/described_rows.hpp"

namespace tunewright {

/// The recipe-independent state of a session.
struct SessionState {
  Task task;
  std::uint64_t task_hash;
  std::string compiler{};    ///< as the measurer identifies it
  DescribedRows ranked{};    ///< rows ranked by the current `ask`
  DescribedRows asked{};     ///< rows of candidates that were asked for or measured, and not told yet
  Seconds untold_best{0};    ///< best latency measured and not told yet; 0: none
  ReasonCounts rejected{};   ///< by the filter
  std::size_t unscored = 0;  ///< described candidates whose score was NaN
  unsigned round = 0;

  /// Goes on after a round, of which all or a part was told.
  void end_round(unsigned ended) noexcept {
    if (ended >= round && ended < std::numeric_limits<unsigned>::max()) round = ended + 1;
  }

  explicit SessionState(const Task& searched);
  SessionState(const SessionState& other);
  SessionState(SessionState&& other) noexcept;
  SessionState& operator=(const SessionState& other);
  SessionState& operator=(SessionState&& other) noexcept;
  ~SessionState();
};

/// Candidates that a session can be asked for at once; explorers keep several times as many.
inline constexpr std::size_t most_asked = std::size_t{1} << 20;

/// Throws `std::invalid_argument` if a session is asked for 0 candidates, or for more than `most_asked`.
void check_asked(std::size_t candidates);

/// Throws `std::invalid_argument`, because the space has no configuration for `task` that the filter did not reject,
/// for the reasons in `rejected`. `only_given`: it draws nothing, see `spaces::GivenOnly`.
[[noreturn]] void refuse_empty_space(const Task& task, const ReasonCounts& rejected, bool only_given = false);

/// Number of programs of `x` with rows whose `score` is NaN.
[[nodiscard]] std::size_t count_unscored(const FeatureBatch& x, std::span<const float> score);

/// The keys of `known` and `more`.
[[nodiscard]] KeySet joined(const KeySet& known, std::span<const std::uint64_t> more);

/// Positions in `keys` whose rows `known` lacks.
[[nodiscard]] std::vector<std::size_t> undescribed(const DescribedRows& known, std::span<const std::uint64_t> keys);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <cmath>
#include <stdexcept>

namespace tunewright {

TUNEWRIGHT_INLINE SessionState::SessionState(const Task& searched) : task(searched), task_hash(stable_hash(searched)) {}
TUNEWRIGHT_INLINE SessionState::SessionState(const SessionState& other) = default;
TUNEWRIGHT_INLINE SessionState::SessionState(SessionState&& other) noexcept = default;
TUNEWRIGHT_INLINE SessionState& SessionState::operator=(const SessionState& other) = default;
TUNEWRIGHT_INLINE SessionState& SessionState::operator=(SessionState&& other) noexcept = default;
TUNEWRIGHT_INLINE SessionState::~SessionState() = default;

TUNEWRIGHT_INLINE void check_asked(std::size_t candidates) {
  if (candidates == 0) throw std::invalid_argument("Session::ask: 0 candidates were asked for; ask for at least 1");
  if (candidates > most_asked) {
    throw std::invalid_argument("Session::ask: " + std::to_string(candidates) +
                                " candidates were asked for at once; ask for at most " + std::to_string(most_asked) +
                                ", again and again");
  }
}

TUNEWRIGHT_INLINE void refuse_empty_space(const Task& task, const ReasonCounts& rejected, bool only_given) {
  std::string reasons;
  for (const auto& [reason, count] : rejected)
    reasons += (reasons.empty() ? " (the filter rejected " : ", ") + std::to_string(count) + " as '" + reason + "'";
  if (!reasons.empty()) reasons += ")";
  const char* remedy = only_given ? "; the space draws none, so give some that the target can run by Parts::starts"
                                  : "; check its shapes against the space, or loosen the limits of the target";
  throw std::invalid_argument("the search space gave no feasible configuration for task '" + task.name + "'" + reasons +
                              remedy);
}

TUNEWRIGHT_INLINE std::size_t count_unscored(const FeatureBatch& x, std::span<const float> score) {
  std::size_t count = 0;
  for (std::size_t p = 0; p < score.size(); ++p) count += std::isnan(score[p]) && !x.program(p).empty() ? 1U : 0U;
  return count;
}

TUNEWRIGHT_INLINE KeySet joined(const KeySet& known, std::span<const std::uint64_t> more) {
  KeySet all = known;
  for (const std::uint64_t key : more) all.insert(key);
  return all;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> undescribed(const DescribedRows& known,
                                                       std::span<const std::uint64_t> keys) {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!known.contains(keys[i])) missing.push_back(i);
  return missing;
}

}  // namespace tunewright

#endif
