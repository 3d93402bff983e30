// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"

namespace tunewright::models::gbdt {

/// What trees are grown to lower. s = a program's score, the sum over its rows; y = its label. Every row of a
/// program gets its program's gradient g and hessian h.
enum class Objective : std::uint8_t {
  /// 1/2 (s - y)^2:  g = s - y,  h = 1. With one row a program this is ordinary regression.
  Squared,
  /// 1/2 y (s - y)^2:  g = (s - y) y,  h = y. Ansor's loss (OSDI 2020, 5.2): slow programs matter less,
  /// failed ones not at all.
  SummedOverStatements,
  /// Sum over pairs of one task with y_i > y_j of log(1 + exp(s_j - s_i)) (RankNet, ICML 2005).
  RankPairwise,
  /// The same, each pair weighted by how much swapping the two would change the task's NDCG, gains 2^y - 1
  /// (LambdaRank; Burges, MSR-TR-2010-82; with these gains it is TenSet's loss).
  LambdaRank,
};

/// Gradient and hessian of one program.
struct Slope {
  float gradient = 0;
  float hessian = 0;
};

/// Programs of a ranking group, compared with each other. `members` are indices of programs, P = programs.
struct RankingGroups {
  std::vector<std::uint32_t> members;  ///< [P], those of one group next to each other, in order of index
  std::vector<std::uint32_t> offsets;  ///< [groups + 1]

  /// Groups by equality; `group` may be empty: one group.
  static RankingGroups of(std::size_t programs, std::span<const std::uint32_t> group) {
    RankingGroups out;
    out.members.resize(programs);
    for (std::size_t p = 0; p < programs; ++p) out.members[p] = static_cast<std::uint32_t>(p);
    out.offsets.push_back(0);
    if (!group.empty()) {
      std::sort(out.members.begin(), out.members.end(),
                [&](auto a, auto b) { return group[a] != group[b] ? group[a] < group[b] : a < b; });
      for (std::size_t i = 1; i < programs; ++i) {
        if (group[out.members[i]] != group[out.members[i - 1]])
          out.offsets.push_back(static_cast<std::uint32_t>(i));
      }
    }
    if (programs > 0) out.offsets.push_back(static_cast<std::uint32_t>(programs));
    return out;
  }
};

inline void squared_slopes(std::span<const float> score, std::span<const float> y, std::span<Slope> out) {
  for (std::size_t p = 0; p < y.size(); ++p) out[p] = {score[p] - y[p], 1.0F};
}

inline void summed_slopes(std::span<const float> score, std::span<const float> y, std::span<Slope> out) {
  for (std::size_t p = 0; p < y.size(); ++p) out[p] = {(score[p] - y[p]) * y[p], y[p]};
}

/// Slopes of one group, added to `out`. Every program meets up to `pairs_per_program` others drawn by `rng`;
/// a group small enough for all its pairs gets all of them, each once. Pairs are scaled so that one drawn
/// pair stands for those left out, and the whole by 1 / (programs - 1), which keeps hessians, and with them
/// the meaning of lambda and min_child_weight, independent of the size of a task.
inline void ranking_slopes(std::span<const std::uint32_t> members, std::span<const float> score,
                           std::span<const float> y, bool by_ndcg, unsigned pairs_per_program, Rng rng,
                           std::span<Slope> out) {
  const std::size_t n = members.size();
  if (n < 2) return;
  std::vector<float> discount;  // by position in `members`
  float best_dcg = 1;
  if (by_ndcg) {
    std::vector<std::uint32_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::uint32_t>(i);
    const auto descending = [&](std::span<const float> by) {
      std::sort(order.begin(), order.end(), [&](auto a, auto b) {
        return by[members[a]] != by[members[b]] ? by[members[a]] > by[members[b]] : a < b;
      });
    };
    descending(score);
    discount.resize(n);
    for (std::size_t rank = 0; rank < n; ++rank)
      discount[order[rank]] = 1.0F / std::log2(static_cast<float>(rank) + 2.0F);
    descending(y);
    best_dcg = 0;
    for (std::size_t rank = 0; rank < n; ++rank) {
      best_dcg += (std::exp2(y[members[order[rank]]]) - 1.0F) / std::log2(static_cast<float>(rank) + 2.0F);
    }
    if (best_dcg <= 0) return;
  }
  const auto meet = [&](std::size_t i, std::size_t j, float weight) {
    if (y[members[i]] == y[members[j]]) return;
    if (y[members[i]] < y[members[j]]) std::swap(i, j);
    if (by_ndcg) {
      const float gain = std::exp2(y[members[i]]) - std::exp2(y[members[j]]);
      // A pair of average importance weighs about one, as without NDCG: the learning rate keeps its meaning.
      weight *= gain * std::abs(discount[i] - discount[j]) / best_dcg * static_cast<float>(n);
    }
    const float wrong =
        1.0F / (1.0F + std::exp(score[members[i]] - score[members[j]]));  // probability given to j over i
    const float hessian = std::max(wrong * (1.0F - wrong), 1e-6F) * weight;
    out[members[i]].gradient -= wrong * weight;
    out[members[j]].gradient += wrong * weight;
    out[members[i]].hessian += hessian;
    out[members[j]].hessian += hessian;
  };
  if (n - 1 <= 2 * static_cast<std::size_t>(pairs_per_program)) {
    const float weight = 1.0F / static_cast<float>(n - 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) meet(i, j, weight);
    }
  } else {
    const float weight = 0.5F / static_cast<float>(pairs_per_program);
    for (std::size_t i = 0; i < n; ++i) {
      for (unsigned draw = 0; draw < pairs_per_program; ++draw) {
        const auto other = static_cast<std::size_t>(rng.below(n - 1));
        meet(i, other < i ? other : other + 1, weight);
      }
    }
  }
}

/// Slopes of every program. `round` only varies which pairs a ranking objective draws.
inline void slopes(Objective objective, std::span<const float> score, std::span<const float> y,
                   const RankingGroups& groups, unsigned pairs_per_program, const Rng& rng,
                   std::uint64_t round, std::span<Slope> out) {
  switch (objective) {
    case Objective::Squared: return squared_slopes(score, y, out);
    case Objective::SummedOverStatements: return summed_slopes(score, y, out);
    case Objective::RankPairwise:
    case Objective::LambdaRank: break;
  }
  std::fill(out.begin(), out.end(), Slope{});
  for (std::size_t g = 0; g + 1 < groups.offsets.size(); ++g) {
    const auto members =
        std::span(groups.members).subspan(groups.offsets[g], groups.offsets[g + 1] - groups.offsets[g]);
    ranking_slopes(members, score, y, objective == Objective::LambdaRank, pairs_per_program,
                   rng.split(round).split(g), out);
  }
}

}  // namespace tunewright::models::gbdt
