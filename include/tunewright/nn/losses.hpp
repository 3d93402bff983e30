// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright::nn {

/// Losses of one list of n programs; each adds dL/ds to `gradient` and returns L.
namespace losses {

/// Positions by descending value; equal values keep their order. NaN, the score of a network whose weights diverged,
/// comes last: sorting needs an order of all values.
template <class T>
[[nodiscard]] std::vector<std::uint32_t> descending(std::span<const T> value) {
  std::vector<std::uint32_t> order(value.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t i) {
    return std::isnan(value[i]) ? -std::numeric_limits<T>::infinity() : value[i];
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  return order;
}

/// LambdaRank: each pair is weighted by the change of the discounted cumulative gain (DCG) if its two ranks were
/// swapped:
///
///   D_i = log2(1 + rank of i by score, from 1);   G_i = (2^y_i - 1) / (highest DCG of any order)
///   L = - sum over y_i > y_j of |1/D_i - 1/D_j| |G_i - G_j| log2 sigmoid(s_i - s_j)
///
/// Ranks are constants in the gradient. Equal scores are ranked in the given order.
/// Paper:    Burges, From RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82; TenSet, NeurIPS 2021.
/// Deviates: TenSet clamps the sigmoid at 1e-10, below which its pairs have no gradient; here they keep it.
/// Cost:     O(n^2), vectorised.
template <class T>
T lambda_rank(std::span<const T> score, std::span<const T> y, std::span<T> gradient) {
  const std::size_t n = score.size();
  const auto by_score = descending(score), by_label = descending(y);
  std::vector<T> of_rank(n), discount(n), gain(n), s(n), slope(n, T{0});
  T most = 0;
  for (std::size_t r = 0; r < n; ++r) {
    const T d = T{1} / std::log2(static_cast<T>(r + 2));
    of_rank[by_score[r]] = d;
    most += (std::exp2(y[by_label[r]]) - 1) * d;
  }
  if (!(most > 0)) return 0;
  for (std::size_t i = 0; i < n; ++i) {
    discount[i] = of_rank[by_label[i]];
    gain[i] = (std::exp2(y[by_label[i]]) - 1) / most;
    s[i] = score[by_label[i]];
  }
  // Sorted by label, so i is never worse than what follows; pairs of equal labels have equal gains and contribute 0.
  const T log2_e = static_cast<T>(1.4426950408889634);
  Eigen::Array<T, Eigen::Dynamic, 1> weight(static_cast<Eigen::Index>(n)), wrong(static_cast<Eigen::Index>(n));
  T loss = 0;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const std::size_t rest = n - i - 1;
    const auto count = static_cast<Eigen::Index>(rest);
    const auto other = array(std::as_const(s).data() + i + 1, rest);
    auto w = weight.head(count);
    auto e = wrong.head(count);
    w = (array(std::as_const(discount).data() + i + 1, rest) - discount[i]).abs() *
        (gain[i] - array(std::as_const(gain).data() + i + 1, rest));
    // -log sigmoid(d) = max(-d, 0) + log(1 + exp(-|d|)), d = s_i - s_j
    e = (-(other - s[i]).abs()).exp();
    loss += (w * ((other - s[i]).max(T{0}) + (1 + e).log())).sum();
    // 1 - sigmoid(d) = 1 / (1 + exp(d))
    w *= (other > s[i]).select(T{1} / (1 + e), e / (1 + e));
    slope[i] -= w.sum();
    array(slope.data() + i + 1, rest) += w;
  }
  for (std::size_t i = 0; i < n; ++i) gradient[by_label[i]] += log2_e * slope[i];
  return loss * log2_e;
}

/// RankNet: L = - mean over pairs with y_i > y_j of log2 sigmoid(s_i - s_j).
/// Paper: Burges et al., Learning to rank using gradient descent, ICML 2005. O(n^2).
template <class T>
T pairwise(std::span<const T> score, std::span<const T> y, std::span<T> gradient) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < y.size(); ++j) pairs += y[i] > y[j];
  if (pairs == 0) return 0;
  const T scale = static_cast<T>(1.4426950408889634 / static_cast<double>(pairs));
  T loss = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      if (!(y[i] > y[j])) continue;
      const T d = score[i] - score[j];
      const T e = std::exp(-std::abs(d));
      loss += scale * (std::max(-d, T{0}) + std::log1p(e));
      const T wrong = scale * (d > 0 ? e / (1 + e) : 1 / (1 + e));
      gradient[i] -= wrong;
      gradient[j] += wrong;
    }
  }
  return loss;
}

/// Squared error: sum w (s - y)^2 / n, with w = y if `weighted`, else 1.
template <class T>
T mean_squared(std::span<const T> score, std::span<const T> y, bool weighted, std::span<T> gradient) {
  T loss = 0;
  const T n = static_cast<T>(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const T off = score[i] - y[i], weight = (weighted ? y[i] : T{1}) / n;
    loss += weight * off * off;
    gradient[i] += 2 * weight * off;
  }
  return loss;
}

/// Pinball loss of quantile q: sum max(q (y - s), (q - 1) (y - s)) / n.
template <class T>
T pinball(std::span<const T> score, std::span<const T> y, T q, std::span<T> gradient) {
  T loss = 0;
  const T n = static_cast<T>(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const T below = y[i] - score[i];
    loss += (below > 0 ? q : q - 1) * below / n;
    gradient[i] -= (below > 0 ? q : q - 1) / n;
  }
  return loss;
}

}  // namespace losses

/// The loss of one head. NaN labels are missing and contribute nothing. Ranking losses without `across_tasks` are
/// summed over the tasks in `group` ([n], or empty for one task).
template <class T>
T loss_of(const Training& training, std::span<const T> score, std::span<const T> y,
          std::span<const std::uint32_t> group, std::span<T> gradient) {
  const bool by_task = training.ranks() && !training.across_tasks && !group.empty();
  std::vector<std::uint32_t> known;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isnan(y[i])) known.push_back(static_cast<std::uint32_t>(i));
  }
  if (by_task) {
    std::sort(known.begin(), known.end(),
              [&](std::uint32_t a, std::uint32_t b) { return group[a] != group[b] ? group[a] < group[b] : a < b; });
  }
  T loss = 0;
  std::vector<T> s, label, slope;
  for (std::size_t first = 0; first < known.size();) {
    std::size_t last = by_task ? first : known.size();
    while (last < known.size() && group[known[last]] == group[known[first]]) ++last;
    s.clear();
    label.clear();
    slope.assign(last - first, T{0});
    for (std::size_t i = first; i < last; ++i) {
      s.push_back(score[known[i]]);
      label.push_back(y[known[i]]);
    }
    const std::span<const T> scores(s), labels(label);
    switch (training.loss) {
      case Loss::LambdaRank: loss += losses::lambda_rank<T>(scores, labels, slope); break;
      case Loss::Pairwise: loss += losses::pairwise<T>(scores, labels, slope); break;
      case Loss::MeanSquared: loss += losses::mean_squared<T>(scores, labels, false, slope); break;
      case Loss::WeightedMeanSquared: loss += losses::mean_squared<T>(scores, labels, true, slope); break;
      case Loss::Quantile: loss += losses::pinball<T>(scores, labels, static_cast<T>(training.quantile), slope); break;
    }
    for (std::size_t i = first; i < last; ++i) gradient[known[i]] += slope[i - first];
    first = last;
  }
  return loss;
}

}  // namespace tunewright::nn
