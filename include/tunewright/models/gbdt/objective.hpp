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
#include "tunewright/core/thread_team.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::models::gbdt {

/// The training objective of trees. s = a program's score, the sum over its rows; y = its label. Every row of a program
/// gets its program's gradient g and hessian h.
enum class Objective : std::uint8_t {
  /// 1/2 (s - y)^2:  g = s - y,  h = 1. With one row per program this is ordinary regression.
  Squared,
  /// 1/2 y (s - y)^2:  g = (s - y) y,  h = y. Ansor's loss (OSDI 2020, 5.2): slow programs have less weight, failed
  /// ones none.
  SummedOverStatements,
  /// 1/2 y (s - log2 y)^2:  g = (s - log2 y) y,  h = y. The same for the logarithm of the label, whose errors are
  /// relative.
  SummedLogarithms,
  /// Sum over pairs of one task with y_i > y_j of log(1 + exp(s_j - s_i)) (RankNet, ICML 2005).
  RankPairwise,
  /// The same, each pair weighted by the change of the task's NDCG if the two are swapped, with gains 2^y - 1
  /// (LambdaRank; Burges, MSR-TR-2010-82; with these gains it is TenSet's loss).
  LambdaRank,
  /// a (y - s) if s < y, (1 - a) (s - y) otherwise:  g = -a or 1 - a (0 if s = y),  h = 1. The score is the a-quantile
  /// of the labels of similar programs (Koenker and Bassett, 1978).
  Quantile,
  /// log(1 + exp(s)) - y s, times `positive_weight` if y > 1/2:  g = w (p - y),  h = w p (1 - p) with p = 1 / (1 +
  /// exp(-s)). The score is the log-odds of y = 1.
  Logistic,
};

[[nodiscard]] constexpr bool is_ranking(Objective objective) noexcept {
  return objective == Objective::RankPairwise || objective == Objective::LambdaRank;
}

/// An objective and its parameters.
struct ObjectiveRules {
  Objective objective = Objective::SummedOverStatements;
  unsigned pairs_per_program = 8;  ///< drawn by ranking objectives
  float quantile = 0.5F;           ///< a of Quantile
  float positive_weight = 1;       ///< of Logistic
};

/// Gradient and hessian of one program.
struct Slope {
  float gradient = 0;
  float hessian = 0;
};

/// Programs by ranking group. `members` are indices of programs.
struct RankingGroups {
  std::vector<std::uint32_t> members;  ///< those of one group next to each other, by label, then by index
  std::vector<std::uint32_t> offsets;  ///< [groups + 1]

  /// Groups by equality, in order of first appearance; an empty `group` is one group. Programs without rows, according
  /// to `rows` [P + 1], are not members, because nothing can be learned from them. `y` [P] are the labels.
  static RankingGroups of(std::span<const std::uint32_t> rows, std::span<const float> y,
                          std::span<const std::uint32_t> group);
};

inline void squared_slopes(std::span<const float> score, std::span<const float> y, std::span<Slope> out) {
  for (std::size_t p = 0; p < y.size(); ++p) out[p] = {score[p] - y[p], 1.0F};
}

inline void summed_slopes(std::span<const float> score, std::span<const float> y, std::span<Slope> out) {
  for (std::size_t p = 0; p < y.size(); ++p) out[p] = {(score[p] - y[p]) * y[p], y[p]};
}

inline void logarithm_slopes(std::span<const float> score, std::span<const float> y, std::span<Slope> out) {
  for (std::size_t p = 0; p < y.size(); ++p)
    out[p] = y[p] > 0 ? Slope{(score[p] - std::log2(y[p])) * y[p], y[p]} : Slope{};
}

/// Adds the slopes of one group, whose `members` are in order of their labels, to `out`.
///
/// Every program is compared with `pairs_per_program` others, drawn by `rng` from those of another label, so that many
/// equal labels, such as those of failures, do not leave a program without a comparison; XGBoost before 2.0 draws
/// likewise. A drawn pair weighs 1 / (2 `pairs_per_program`). A small group uses all pairs once, at the weight that is
/// expected of drawn ones:
///
///   (1 / o_i + 1 / o_j) / 2     o = programs of another label;  1 / (programs - 1) if all labels differ
///
/// Hessians, and with them the meaning of lambda and min_child_weight, thus do not depend on the size of a task.
void ranking_slopes(std::span<const std::uint32_t> members, std::span<const float> score, std::span<const float> y,
                    bool by_ndcg, unsigned pairs_per_program, Rng rng, std::span<Slope> out);

void quantile_slopes(std::span<const float> score, std::span<const float> y, float quantile, std::span<Slope> out);

void logistic_slopes(std::span<const float> score, std::span<const float> y, float positive_weight,
                     std::span<Slope> out);

/// Slopes of every program. `rng` only draws the pairs of a ranking objective; groups are independent, so threads
/// process them in parallel.
void slopes(const ObjectiveRules& rules, std::span<const float> score, std::span<const float> y,
            const RankingGroups& groups, const Rng& rng, ThreadTeam& team, std::span<Slope> out);

/// The loss of an objective without pairs, summed over the programs.
[[nodiscard]] double loss(const ObjectiveRules& rules, std::span<const float> score, std::span<const float> y);

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/models/labels.hpp"

namespace tunewright::models::gbdt {

TUNEWRIGHT_INLINE RankingGroups RankingGroups::of(std::span<const std::uint32_t> rows, std::span<const float> y,
                                                  std::span<const std::uint32_t> group) {
  RankingGroups out;
  for (std::uint32_t p = 0; p + 1 < rows.size(); ++p) {
    if (rows[p] < rows[p + 1]) out.members.push_back(p);
  }
  out.offsets.push_back(0);
  std::vector<std::uint32_t> number(y.size());
  if (!group.empty()) number = numbered_by_appearance(group);
  std::stable_sort(out.members.begin(), out.members.end(),
                   [&](auto a, auto b) { return number[a] != number[b] ? number[a] < number[b] : y[a] < y[b]; });
  if (!group.empty()) {
    for (std::size_t i = 1; i < out.members.size(); ++i) {
      if (group[out.members[i]] != group[out.members[i - 1]]) out.offsets.push_back(static_cast<std::uint32_t>(i));
    }
  }
  if (!out.members.empty()) out.offsets.push_back(static_cast<std::uint32_t>(out.members.size()));
  return out;
}

TUNEWRIGHT_INLINE void ranking_slopes(std::span<const std::uint32_t> members, std::span<const float> score,
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
    if (i < j) std::swap(i, j);  // members are in order of their labels, and those of i and j differ
    if (by_ndcg) {
      const float gain = std::exp2(y[members[i]]) - std::exp2(y[members[j]]);
      // A pair of average importance has a weight of about one, as without NDCG, so the learning rate keeps its
      // meaning.
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
  const bool all_pairs = n - 1 <= 2 * static_cast<std::size_t>(pairs_per_program);
  for (std::size_t first = 0, last = 0; first < n; first = last) {  // members of equal labels, from first to last
    while (last < n && y[members[last]] == y[members[first]]) ++last;
    const std::size_t alike = last - first, others = n - alike;
    if (others == 0) return;
    // Every pair is met from both sides, each of which adds its half of the weight.
    const float weight = 0.5F / static_cast<float>(all_pairs ? others : pairs_per_program);
    for (std::size_t i = first; i < last; ++i) {
      for (std::size_t pair = 0; pair < (all_pairs ? others : pairs_per_program); ++pair) {
        const auto other = all_pairs ? pair : static_cast<std::size_t>(rng.below(others));
        meet(i, other < first ? other : other + alike, weight);
      }
    }
  }
}

TUNEWRIGHT_INLINE void quantile_slopes(std::span<const float> score, std::span<const float> y, float quantile,
                                       std::span<Slope> out) {
  for (std::size_t p = 0; p < y.size(); ++p) {
    const float gradient = score[p] < y[p] ? -quantile : score[p] > y[p] ? 1 - quantile : 0.0F;
    out[p] = {gradient, 1.0F};
  }
}

TUNEWRIGHT_INLINE void logistic_slopes(std::span<const float> score, std::span<const float> y, float positive_weight,
                                       std::span<Slope> out) {
  for (std::size_t p = 0; p < y.size(); ++p) {
    const float weight = y[p] > 0.5F ? positive_weight : 1.0F;
    const float probability = 1.0F / (1.0F + std::exp(-score[p]));
    out[p] = {weight * (probability - y[p]), weight * std::max(probability * (1.0F - probability), 1e-16F)};
  }
}

TUNEWRIGHT_INLINE void slopes(const ObjectiveRules& rules, std::span<const float> score, std::span<const float> y,
                              const RankingGroups& groups, const Rng& rng, ThreadTeam& team, std::span<Slope> out) {
  switch (rules.objective) {
    case Objective::Squared: return squared_slopes(score, y, out);
    case Objective::SummedOverStatements: return summed_slopes(score, y, out);
    case Objective::SummedLogarithms: return logarithm_slopes(score, y, out);
    case Objective::Quantile: return quantile_slopes(score, y, rules.quantile, out);
    case Objective::Logistic: return logistic_slopes(score, y, rules.positive_weight, out);
    case Objective::RankPairwise:
    case Objective::LambdaRank: break;
  }
  std::fill(out.begin(), out.end(), Slope{});
  if (groups.offsets.size() < 2) return;
  team.for_each(groups.offsets.size() - 1, [&](std::size_t g, unsigned) {
    const auto members =
        std::span(groups.members).subspan(groups.offsets[g], groups.offsets[g + 1] - groups.offsets[g]);
    ranking_slopes(members, score, y, rules.objective == Objective::LambdaRank, rules.pairs_per_program, rng.split(g),
                   out);
  });
}

TUNEWRIGHT_INLINE double loss(const ObjectiveRules& rules, std::span<const float> score, std::span<const float> y) {
  double sum = 0;
  for (std::size_t p = 0; p < y.size(); ++p) {
    const double s = static_cast<double>(score[p]), label = static_cast<double>(y[p]), off = s - label;
    switch (rules.objective) {
      case Objective::SummedOverStatements: sum += label * off * off; break;
      case Objective::SummedLogarithms:
        if (label > 0) sum += label * std::pow(s - std::log2(label), 2);
        break;
      case Objective::Quantile: {
        const double quantile = static_cast<double>(rules.quantile);
        sum += off < 0 ? -quantile * off : (1 - quantile) * off;
        break;
      }
      case Objective::Logistic:
        sum += (std::max(s, 0.0) + std::log1p(std::exp(-std::abs(s))) - label * s) *
               (label > 0.5 ? static_cast<double>(rules.positive_weight) : 1.0);
        break;
      default: sum += off * off;
    }
  }
  return sum;
}

}  // namespace tunewright::models::gbdt

#endif
