// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/gbdt/binned_rows.hpp"
#include "tunewright/models/gbdt/ensemble.hpp"
#include "tunewright/models/gbdt/objective.hpp"
#include "tunewright/models/gbdt/tree_grower.hpp"

namespace tunewright::models::gbdt {

struct BoostingRules {
  unsigned rounds = 100;
  unsigned early_stopping_rounds = 0;
  float program_share = 1;
  float column_share = 1;
  ObjectiveRules objective;
  GrowthRules growth;
};

/// The random programs and columns for the trees of one round.
class RoundSample {
 public:
  RoundSample(const BoostingRules& rules, std::size_t columns);

  /// Zeroes the slopes of omitted programs.
  void leave_out(Rng rng, std::span<Slope> slopes) const;

  /// The columns of this round, one byte each; empty for all.
  std::span<const std::uint8_t> columns(Rng rng);

 private:
  double program_share_;
  std::size_t wanted_ = 1;
  std::vector<std::uint32_t> order_;   // [F]
  std::vector<std::uint8_t> allowed_;  // [F]
};

/// Every row of a program takes the whole step, so a program of m rows moves learning_rate * m times as far as its
/// gradient asks, and diverges if that exceeds 2. If it exceeds 1, the hessian is scaled by it, so that the program
/// reaches its target but does not overshoot. Deviates from XGBoost with Ansor's objective, which diverges in that
/// case.
void bound_steps(float learning_rate, std::span<const std::uint32_t> offsets, std::span<Slope> slope);

/// Trains trees one after another. `offsets` [P + 1] are the rows of the programs; y [P], group [P] or empty; `columns`
/// = D; `start` [P] are the scores before the first tree, empty for zeros. No trees if no program with rows has a
/// gradient, since their scores would all be zero, unless there is a `start`. Bit-identical at any number of threads.
[[nodiscard]] Ensemble boost(const BinnedRows& data, std::span<const std::uint32_t> offsets, std::size_t columns,
                             std::span<const float> y, std::span<const std::uint32_t> group,
                             std::span<const float> start, const BoostingRules& rules, const Rng& rng,
                             ThreadTeam& team);

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/models/gbdt/ensemble_builder.hpp"
#include "tunewright/models/gbdt/split.hpp"

namespace tunewright::models::gbdt {

TUNEWRIGHT_INLINE RoundSample::RoundSample(const BoostingRules& rules, std::size_t columns)
    : program_share_(static_cast<double>(rules.program_share)), order_(columns), allowed_(columns) {
  constexpr double of_float = 1e-7;  // the rounding of a share: 0.1F is more than 0.1
  wanted_ = std::max<std::size_t>(scaled_count(static_cast<double>(rules.column_share), columns, of_float), 1);
}

TUNEWRIGHT_INLINE void RoundSample::leave_out(Rng rng, std::span<Slope> slopes) const {
  if (program_share_ >= 1) return;
  for (Slope& slope : slopes) {
    if (rng.uniform() >= program_share_) slope = {};
  }
}

TUNEWRIGHT_INLINE std::span<const std::uint8_t> RoundSample::columns(Rng rng) {
  if (wanted_ >= order_.size()) return {};
  for (std::size_t f = 0; f < order_.size(); ++f) order_[f] = static_cast<std::uint32_t>(f);
  rng.shuffle(std::span(order_));
  std::fill(allowed_.begin(), allowed_.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < wanted_; ++i) allowed_[order_[i]] = 1;
  return allowed_;
}

TUNEWRIGHT_INLINE void bound_steps(float learning_rate, std::span<const std::uint32_t> offsets,
                                   std::span<Slope> slope) {
  for (std::size_t p = 0; p < slope.size(); ++p)
    slope[p].hessian *= std::max(1.0F, learning_rate * static_cast<float>(offsets[p + 1] - offsets[p]));
}

[[nodiscard]] TUNEWRIGHT_INLINE bool has_gradient(std::span<const std::uint32_t> offsets,
                                                  std::span<const Slope> slope) {
  for (std::size_t p = 0; p < slope.size(); ++p) {
    if (slope[p].gradient != 0 && offsets[p] != offsets[p + 1]) return true;
  }
  return false;
}

TUNEWRIGHT_INLINE Ensemble boost(const BinnedRows& data, std::span<const std::uint32_t> offsets, std::size_t columns,
                                 std::span<const float> y, std::span<const std::uint32_t> group,
                                 std::span<const float> start, const BoostingRules& rules, const Rng& rng,
                                 ThreadTeam& team) {
  const std::size_t programs = y.size();
  const auto groups = RankingGroups::of(offsets, y, group);
  std::vector<float> score(start.begin(), start.end()), row_value(data.rows);
  score.resize(programs);
  std::vector<Slope> slope(programs);
  std::vector<PackedSum> of_program(programs), of_row(data.rows);
  TreeGrower grower(data, rules.growth, team);
  RoundSample sample(rules, data.columns.size());
  EnsembleBuilder builder(data, columns);
  double least_error = std::numeric_limits<double>::infinity();
  std::size_t best_round = 0;
  for (std::size_t round = 0; round < rules.rounds; ++round) {
    const Rng of_round = rng.split(round);
    slopes(rules.objective, score, y, groups, of_round, team, slope);
    if (round == 0 && start.empty() && !has_gradient(offsets, slope)) return {};
    bound_steps(rules.growth.learning_rate, offsets, slope);
    sample.leave_out(of_round.split(0xa11), slope);
    const Quanta quanta = pack_slopes(slope, offsets, of_program);
    std::fill(of_row.begin(), of_row.end(), PackedSum{0});
    for (std::size_t p = 0; p < programs; ++p) {
      for (std::uint32_t r = offsets[p]; r < offsets[p + 1]; ++r) of_row[data.distinct_of[r]] += of_program[p];
    }
    builder.add(grower.grow(of_row, quanta, sample.columns(of_round.split(0xc01)), row_value));
    for (std::size_t p = 0; p < programs; ++p) {
      for (std::uint32_t r = offsets[p]; r < offsets[p + 1]; ++r) score[p] += row_value[data.distinct_of[r]];
    }
    if (rules.early_stopping_rounds == 0) continue;
    if (const double error = loss(rules.objective, score, y); error < least_error) {
      least_error = error;
      best_round = round;
    } else if (round - best_round >= rules.early_stopping_rounds) {
      break;
    }
  }
  return std::move(builder).finish(rules.early_stopping_rounds == 0 ? rules.rounds : best_round + 1);
}

}  // namespace tunewright::models::gbdt

#endif
