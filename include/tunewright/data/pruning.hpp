// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/stats/robust.hpp"

namespace tunewright::data {

/// Which records of a large dataset are worth training on: the important tasks, and of each mostly what was
/// fast.
///
///   1. Failed records go, then groups (task on one target) with fewer than `min_records` left.
///   2. Tasks are drawn without replacement until `task_rows` of the rows are kept. A task of class c is drawn
///      with a probability in proportion to
///
///        sqrt(p_c f_c) / p_c * r,     p_c = share of the tasks that are of the class
///                                     f_c = share of weight * FLOPs that the class has
///                                     r   = rank of the task's FLOPs in its class / size of the class
///
///   3. Of a kept group, records at or above the quantile `floor` of its labels stay, and `slow_share` of the
///      others, at random: a model that has never seen a slow program takes new ones for fast.
///
///   data::Dataset lean = data.subset(data::prune(data, {.task_rows = 0.8}, Rng(7)));
///
/// Shares of classes tell nothing while FLOPs are unknown (0): then f_c = p_c and ranks are equal, which draws
/// tasks uniformly.
///
/// Paper:       Verma et al., Transfer Learning Across Heterogeneous Features For Efficient Tensor Program
///              Generation, 2023; they name what decides, not how, so formula and thresholds are ours.
/// Cost:        O(N log N). Determinism: a pure function of data, options and generator.
struct Pruning {
  std::size_t min_records = 48;  ///< valid ones of a group, as TenSet
  double task_rows = 0.85;       ///< share of the rows that the kept tasks have, in (0, 1]
  double floor = 0.4;            ///< quantile of the labels, in [0, 1]; 0 keeps all
  double slow_share = 0.1;       ///< of the records below the floor that stay, in [0, 1]
};

namespace pruning_detail {

/// How much each task wants to be drawn, [tasks]; 0 for tasks without rows.
inline std::vector<double> importance(const std::vector<DatasetTask>& tasks,
                                      const std::vector<std::size_t>& rows) {
  std::map<std::string, std::vector<std::size_t>> classes;
  double task_count = 0, total_flops = 0;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (rows[t] == 0) continue;
    classes[tasks[t].operator_class].push_back(t);
    task_count += 1;
    total_flops += tasks[t].weight * tasks[t].flops;
  }
  std::vector<double> weight(tasks.size());
  for (const auto& [name, members] : classes) {
    const double p = static_cast<double>(members.size()) / task_count;
    double class_flops = 0;
    for (const std::size_t t : members) class_flops += tasks[t].weight * tasks[t].flops;
    const double f = total_flops > 0 ? class_flops / total_flops : p;
    for (const std::size_t t : members) {
      double rank = 0.5;  // mean of first and last place among equals
      for (const std::size_t other : members) {
        if (tasks[other].flops < tasks[t].flops) rank += 1;
        if (tasks[other].flops == tasks[t].flops) rank += 0.5;
      }
      weight[t] = std::sqrt(p * f) / p * rank / static_cast<double>(members.size());
    }
  }
  return weight;
}

/// Tasks by weighted drawing without replacement (Efraimidis and Spirakis, 2006: the largest u^(1 / weight)
/// first), until they have the wanted number of rows.
inline std::vector<bool> draw_tasks(const std::vector<double>& weight, const std::vector<std::size_t>& rows,
                                    double wanted_rows, const Rng& rng) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t t = 0; t < weight.size(); ++t) {
    Rng own = rng.split(t);
    if (rows[t] > 0) order.emplace_back(std::log1p(-own.uniform()) / std::max(weight[t], 1e-12), t);
  }
  std::sort(order.begin(), order.end(), std::greater<>{});
  std::vector<bool> kept(weight.size());
  double have = 0;
  for (const auto& [luck, t] : order) {
    if (have >= wanted_rows) break;
    kept[t] = true;
    have += static_cast<double>(rows[t]);
  }
  return kept;
}

}  // namespace pruning_detail

/// The records to keep, ascending. Throws `std::invalid_argument` for shares outside their range.
[[nodiscard]] inline std::vector<std::size_t> prune(const Dataset& data, const Pruning& options,
                                                    const Rng& rng) {
  require(options.task_rows > 0 && options.task_rows <= 1, "Pruning", "task_rows", options.task_rows,
          "a share of the rows above 0 and up to 1");
  require(options.floor >= 0 && options.floor <= 1, "Pruning", "floor", options.floor,
          "a quantile in [0, 1]");
  require(options.slow_share >= 0 && options.slow_share <= 1, "Pruning", "slow_share", options.slow_share,
          "a share in [0, 1]");
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::size_t> rows(data.tasks.size());
  double all_rows = 0;
  for (const std::vector<std::size_t>& members : data.by_group()) {
    std::vector<std::size_t> valid;
    for (const std::size_t i : members)
      if (data.valid(i)) valid.push_back(i);
    if (valid.empty() || valid.size() < options.min_records) continue;
    rows[data.task[valid[0]]] += valid.size();
    all_rows += static_cast<double>(valid.size());
    groups.push_back(std::move(valid));
  }
  const std::vector<bool> task_kept = pruning_detail::draw_tasks(
      pruning_detail::importance(data.tasks, rows), rows, options.task_rows * all_rows, rng.split(0));

  std::vector<std::size_t> kept;
  for (const std::vector<std::size_t>& group : groups) {
    if (!task_kept[data.task[group[0]]]) continue;
    std::vector<double> speed;
    for (const std::size_t i : group) speed.push_back(1 / data.cost_s[i]);
    const double floor = stats::quantile(speed, options.floor);
    for (std::size_t i = 0; i < group.size(); ++i) {
      Rng own = rng.split(1).split(group[i]);
      if (speed[i] >= floor || own.uniform() < options.slow_share) kept.push_back(group[i]);
    }
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace tunewright::data
