// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"

/// Quality of cost models, defined once. In all functions, `prediction` has scores, larger is better; `truth` is
/// throughput / best of the task (or any throughput), larger is better, 0 for a failed program; n programs of one task
/// unless stated. Different sizes and NaN throw `std::invalid_argument`. Minus infinity is a legal score.
namespace tunewright::stats {

namespace ranking_detail {

void check(std::span<const float> prediction, std::span<const float> truth);

inline void check_k(std::size_t k) {
  if (k == 0) throw std::invalid_argument("the best 0 programs were asked for; give a k of at least 1");
}

/// Programs by descending prediction; among equal predictions the worst program first, so that a model with equal
/// scores cannot look good by the order of the records.
std::vector<std::uint32_t> by_prediction(std::span<const float> prediction, std::span<const float> truth);

/// Ranks from 1; equal values share their mean rank.
std::vector<double> mean_ranks(std::span<const float> values);

/// Calls `visit(prediction, truth)` for the programs of each group, in ascending order of group numbers.
template <class Visit>
void for_each_task(std::span<const float> prediction, std::span<const float> truth,
                   std::span<const std::uint32_t> group, const Visit& visit) {
  if (group.size() != truth.size()) {
    throw std::invalid_argument(std::to_string(group.size()) + " group numbers for " + std::to_string(truth.size()) +
                                " programs; give one a program");
  }
  std::vector<std::uint32_t> order(truth.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return group[a] != group[b] ? group[a] < group[b] : a < b; });
  for (std::size_t begin = 0; begin < order.size();) {
    std::vector<float> p, y;
    std::size_t end = begin;
    for (; end < order.size() && group[order[end]] == group[order[begin]]; ++end) {
      p.push_back(prediction[order[end]]);
      y.push_back(truth[order[end]]);
    }
    visit(std::span<const float>(p), std::span<const float>(y));
    begin = end;
  }
}

}  // namespace ranking_detail

/// Root of the mean squared error; 0 for no programs.
[[nodiscard]] double rmse(std::span<const float> prediction, std::span<const float> truth);

/// Coefficient of determination, 1 - sum (p - y)^2 / sum (y - mean y)^2. As in TenSet, 1 if the truth hardly varies
/// (the divisor is below 1e-6).
[[nodiscard]] double r2(std::span<const float> prediction, std::span<const float> truth);

/// Share of the pairs with different truth that the model orders correctly; a pair of equal scores counts as half
/// right. 0.5, the value of chance, if no pair differs.
///
/// Deviates: TenSet's code also counts pairs of equal truth (right if the scores tie or fall the other way), which
///           rewards the order of the records; without ties in truth and scores the values are equal.
/// Cost:     O(n log n), by counting in a Fenwick tree over the ranks of the scores.
[[nodiscard]] double pairwise_accuracy(std::span<const float> prediction, std::span<const float> truth);

/// The same over several tasks: only pairs within a task are compared, and tasks are weighted by their number of
/// programs. group [n].
[[nodiscard]] double pairwise_accuracy(std::span<const float> prediction, std::span<const float> truth,
                                       std::span<const std::uint32_t> group);

/// Result of measuring the k best predicted programs: best true throughput among them / best of all, in [0, 1]. Uses
/// all programs if there are fewer than k; 1 if every program failed. TenSet calls it peak score.
[[nodiscard]] double top_k_score(std::span<const float> prediction, std::span<const float> truth, std::size_t k);

/// Mean of top_k_score for 1, 2, ..., k: TenSet's average peak score; Ansor's model reports it with k = 32.
[[nodiscard]] double average_top_k_score(std::span<const float> prediction, std::span<const float> truth,
                                         std::size_t k);

/// |k best predicted and k truly best| / k, with k at most n; 1 for no programs. Programs as good as the k-th
/// truly best one count as truly best.
[[nodiscard]] double recall(std::span<const float> prediction, std::span<const float> truth, std::size_t k);

/// Spearman's rank correlation; equal values share their mean rank. 0 if one side is constant.
[[nodiscard]] double spearman(std::span<const float> prediction, std::span<const float> truth);

/// Share of slow programs among the predicted best `share` of a task (at least one program): how often a model
/// recommends a program slower than `slow` times the best one.
///
///   |{p in the best predicted share * n : truth_p < slow * max truth}| / max(1, round(share * n))
///
/// 0 for no programs. Among equal predictions the slow one counts as predicted first.
[[nodiscard]] double overestimation(std::span<const float> prediction, std::span<const float> truth,
                                    double share = 0.01, double slow = 0.5);

/// Bias of a label-predicting model on slow programs, which it should not overestimate: mean of prediction - truth over
/// the programs with a truth below `slow`. 0 if there are none. Programs that could not be described (minus infinity)
/// are skipped. Only for predictions in the unit of the truth.
[[nodiscard]] double low_bias(std::span<const float> prediction, std::span<const float> truth, double slow = 0.5);

/// Unweighted mean of a metric over tasks: `metric(prediction, truth)` of the programs of one group. 0 for no programs.
/// group [n].
///
///   mean_over_tasks(p, y, group, [](auto p, auto y) { return top_k_score(p, y, 1); });
template <class Metric>
[[nodiscard]] double mean_over_tasks(std::span<const float> prediction, std::span<const float> truth,
                                     std::span<const std::uint32_t> group, const Metric& metric) {
  ranking_detail::check(prediction, truth);
  double sum = 0;
  std::size_t tasks = 0;
  ranking_detail::for_each_task(prediction, truth, group, [&](std::span<const float> p, std::span<const float> y) {
    sum += metric(p, y);
    ++tasks;
  });
  return tasks == 0 ? 0 : sum / static_cast<double>(tasks);
}

/// One task of a network, for network metrics: n programs, the number of occurrences, and the true latencies.
struct RankedTask {
  std::span<const float> prediction;  ///< [n]
  std::span<const float> latency_s;   ///< [n], infinite for a failed program
  double weight = 1;                  ///< occurrences in the network
};

/// Latency of a network with the best program of every task, over the latency with the best of the k predicted best
/// (TenSet; TLP, ASPLOS 2023, eq. 2):
///
///   sum_t w_t min_i L_t,i / sum_t w_t min_{i among the k best predicted} L_t,i
///
/// A task whose k programs all failed counts with 1e5 times its best latency, which is TenSet's floor of 1e-5 for
/// labels. Tasks without a valid program are skipped; 1 if none is left.
[[nodiscard]] double network_top_k_score(std::span<const RankedTask> tasks, std::size_t k);

/// Quality of a *set* of programs, such as that of a draft, if the following model errs: latency of a network with the
/// best program of every task, over the latency with the k-th best of the chosen ones (Pruner, ASPLOS 2025, Best-k).
///
///   sum_t w_t min_i L_t,i / sum_t w_t (k-th smallest L_t,i among the `chosen` best predicted)
///
/// k = 1 tests whether the best survived the draft. Failures and empty tasks as in network_top_k_score.
[[nodiscard]] double network_best_k_score(std::span<const RankedTask> tasks, std::size_t chosen, std::size_t k);

}  // namespace tunewright::stats

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/number_text.hpp"

namespace tunewright::stats::ranking_detail {

TUNEWRIGHT_INLINE void check(std::span<const float> prediction, std::span<const float> truth) {
  if (prediction.size() != truth.size()) {
    throw std::invalid_argument(std::to_string(prediction.size()) + " predictions for " + std::to_string(truth.size()) +
                                " true values; give one of each a program");
  }
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isnan(prediction[i]) || std::isnan(truth[i])) {
      throw std::invalid_argument("program " + std::to_string(i) +
                                  " has a value that is not a number; score what cannot be "
                                  "described minus infinity");
    }
  }
}

TUNEWRIGHT_INLINE std::vector<std::uint32_t> by_prediction(std::span<const float> prediction,
                                                           std::span<const float> truth) {
  std::vector<std::uint32_t> order(truth.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (prediction[a] != prediction[b]) return prediction[a] > prediction[b];
    return truth[a] != truth[b] ? truth[a] < truth[b] : a < b;
  });
  return order;
}

TUNEWRIGHT_INLINE std::vector<double> mean_ranks(std::span<const float> values) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = 0.5 * static_cast<double>(begin + 1 + end);
    begin = end;
  }
  return ranks;
}

}  // namespace tunewright::stats::ranking_detail

namespace tunewright::stats {

TUNEWRIGHT_INLINE double rmse(std::span<const float> prediction, std::span<const float> truth) {
  ranking_detail::check(prediction, truth);
  double sum = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double off = static_cast<double>(prediction[i]) - static_cast<double>(truth[i]);
    sum += off * off;
  }
  return truth.empty() ? 0 : std::sqrt(sum / static_cast<double>(truth.size()));
}

TUNEWRIGHT_INLINE double r2(std::span<const float> prediction, std::span<const float> truth) {
  ranking_detail::check(prediction, truth);
  const double n = static_cast<double>(truth.size());
  const double mean = truth.empty() ? 0 : std::accumulate(truth.begin(), truth.end(), 0.0) / n;
  double total = 0;
  for (const float y : truth) total += (static_cast<double>(y) - mean) * (static_cast<double>(y) - mean);
  const double off = rmse(prediction, truth);
  return total < 1e-6 ? 1 : 1 - off * off * n / total;
}

TUNEWRIGHT_INLINE double pairwise_accuracy(std::span<const float> prediction, std::span<const float> truth) {
  ranking_detail::check(prediction, truth);
  const std::size_t n = truth.size();
  std::vector<float> scores(prediction.begin(), prediction.end());
  std::sort(scores.begin(), scores.end());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<std::uint32_t> tree(scores.size() + 1, 0);
  const auto count_below = [&tree](std::size_t rank) {  // number of scores counted so far with a smaller rank
    std::uint64_t count = 0;
    for (; rank > 0; rank &= rank - 1) count += tree[rank];
    return count;
  };
  const auto rank_of = [&scores](float score) {
    return static_cast<std::size_t>(std::lower_bound(scores.begin(), scores.end(), score) - scores.begin());
  };

  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return truth[a] < truth[b]; });
  std::uint64_t pairs = 0, twice_right = 0;
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin;
    for (; end < n && truth[order[end]] == truth[order[begin]]; ++end) {
      const std::size_t rank = rank_of(prediction[order[end]]);
      twice_right += count_below(rank) + count_below(rank + 1);
    }
    pairs += static_cast<std::uint64_t>(begin) * (end - begin);
    for (; begin < end; ++begin) {
      for (std::size_t i = rank_of(prediction[order[begin]]) + 1; i < tree.size(); i += i & (~i + 1)) ++tree[i];
    }
  }
  return pairs == 0 ? 0.5 : 0.5 * static_cast<double>(twice_right) / static_cast<double>(pairs);
}

TUNEWRIGHT_INLINE double pairwise_accuracy(std::span<const float> prediction, std::span<const float> truth,
                                           std::span<const std::uint32_t> group) {
  ranking_detail::check(prediction, truth);
  double sum = 0;
  ranking_detail::for_each_task(prediction, truth, group, [&](std::span<const float> p, std::span<const float> y) {
    sum += static_cast<double>(y.size()) * pairwise_accuracy(p, y);
  });
  return truth.empty() ? 0.5 : sum / static_cast<double>(truth.size());
}

TUNEWRIGHT_INLINE double top_k_score(std::span<const float> prediction, std::span<const float> truth, std::size_t k) {
  ranking_detail::check(prediction, truth);
  ranking_detail::check_k(k);
  const auto order = ranking_detail::by_prediction(prediction, truth);
  double found = 0, best = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    best = std::max(best, static_cast<double>(truth[order[i]]));
    if (i < k) found = best;
  }
  return best > 0 ? found / best : 1;
}

TUNEWRIGHT_INLINE double average_top_k_score(std::span<const float> prediction, std::span<const float> truth,
                                             std::size_t k) {
  ranking_detail::check(prediction, truth);
  ranking_detail::check_k(k);
  const auto order = ranking_detail::by_prediction(prediction, truth);
  const double best = truth.empty() ? 0 : static_cast<double>(*std::max_element(truth.begin(), truth.end()));
  if (!(best > 0)) return 1;
  const std::size_t n = std::min(k, order.size());
  double found = 0, sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    found = std::max(found, static_cast<double>(truth[order[i]]));
    sum += found / best;
  }
  return (sum + static_cast<double>(k - n)) / static_cast<double>(k);  // from n on, each finds the best
}

TUNEWRIGHT_INLINE double recall(std::span<const float> prediction, std::span<const float> truth, std::size_t k) {
  ranking_detail::check(prediction, truth);
  ranking_detail::check_k(k);
  k = std::min(k, truth.size());
  if (k == 0) return 1;
  std::vector<float> sorted(truth.begin(), truth.end());
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k - 1), sorted.end(), std::greater<>{});
  const auto order = ranking_detail::by_prediction(prediction, truth);
  std::size_t hits = 0;
  for (std::size_t i = 0; i < k; ++i) hits += truth[order[i]] >= sorted[k - 1] ? 1U : 0U;
  return static_cast<double>(hits) / static_cast<double>(k);
}

TUNEWRIGHT_INLINE double spearman(std::span<const float> prediction, std::span<const float> truth) {
  ranking_detail::check(prediction, truth);
  const std::vector<double> p = ranking_detail::mean_ranks(prediction), y = ranking_detail::mean_ranks(truth);
  const double mean = 0.5 * static_cast<double>(truth.size() + 1);
  double py = 0, pp = 0, yy = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    py += (p[i] - mean) * (y[i] - mean);
    pp += (p[i] - mean) * (p[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return pp > 0 && yy > 0 ? py / std::sqrt(pp * yy) : 0;
}

TUNEWRIGHT_INLINE double overestimation(std::span<const float> prediction, std::span<const float> truth, double share,
                                        double slow) {
  ranking_detail::check(prediction, truth);
  if (!(share > 0 && share <= 1)) {
    throw std::invalid_argument("overestimation: a share of " + number_text(share) +
                                " of the programs was asked for; give one above 0 and up to 1");
  }
  if (truth.empty()) return 0;
  const auto order = ranking_detail::by_prediction(prediction, truth);
  const double best = static_cast<double>(*std::max_element(truth.begin(), truth.end()));
  const auto top =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(share * static_cast<double>(order.size()))));
  std::size_t count = 0;
  for (std::size_t i = 0; i < top; ++i) count += static_cast<double>(truth[order[i]]) < slow * best ? 1U : 0U;
  return static_cast<double>(count) / static_cast<double>(top);
}

TUNEWRIGHT_INLINE double low_bias(std::span<const float> prediction, std::span<const float> truth, double slow) {
  ranking_detail::check(prediction, truth);
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!(static_cast<double>(truth[i]) < slow) || std::isinf(prediction[i])) continue;
    sum += static_cast<double>(prediction[i]) - static_cast<double>(truth[i]);
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

TUNEWRIGHT_INLINE double network_top_k_score(std::span<const RankedTask> tasks, std::size_t k) {
  ranking_detail::check_k(k);
  double least = 0, found = 0;
  for (const RankedTask& task : tasks) {
    ranking_detail::check(task.prediction, task.latency_s);
    std::vector<float> speed(task.latency_s.size());
    std::transform(task.latency_s.begin(), task.latency_s.end(), speed.begin(), [](float latency) { return -latency; });
    const auto order = ranking_detail::by_prediction(task.prediction, speed);
    double best = std::numeric_limits<double>::infinity(), best_of_k = best;
    for (std::size_t i = 0; i < order.size(); ++i) {
      best = std::min(best, static_cast<double>(task.latency_s[order[i]]));
      if (i < k) best_of_k = best;
    }
    if (std::isinf(best)) continue;
    least += task.weight * best;
    found += task.weight * std::min(best_of_k, 1e5 * best);
  }
  return found > 0 ? least / found : 1;
}

TUNEWRIGHT_INLINE double network_best_k_score(std::span<const RankedTask> tasks, std::size_t chosen, std::size_t k) {
  ranking_detail::check_k(k);
  if (k > chosen) {
    throw std::invalid_argument("the " + std::to_string(k) + "-th best of " + std::to_string(chosen) +
                                " chosen programs was asked for; choose at least as many as k");
  }
  double least = 0, found = 0;
  for (const RankedTask& task : tasks) {
    ranking_detail::check(task.prediction, task.latency_s);
    if (task.latency_s.empty()) continue;
    const double best = static_cast<double>(*std::min_element(task.latency_s.begin(), task.latency_s.end()));
    if (std::isinf(best)) continue;
    std::vector<float> speed(task.latency_s.size());
    std::transform(task.latency_s.begin(), task.latency_s.end(), speed.begin(), [](float latency) { return -latency; });
    const auto order = ranking_detail::by_prediction(task.prediction, speed);
    std::vector<double> kept;
    for (std::size_t i = 0; i < std::min(chosen, order.size()); ++i)
      kept.push_back(static_cast<double>(task.latency_s[order[i]]));
    std::sort(kept.begin(), kept.end());
    least += task.weight * best;
    found += task.weight * std::min(kept[std::min(k, kept.size()) - 1], 1e5 * best);
  }
  return found > 0 ? least / found : 1;
}

}  // namespace tunewright::stats

#endif
