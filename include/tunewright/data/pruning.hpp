// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Selects records of a large dataset for training: the most dissimilar ones of every task and, on request, only of
/// important tasks and mostly fast ones.
///
///   1. Failed records go, then groups (task on one target) with fewer than `min_records` left.
///   2. Tasks are drawn without replacement until `task_rows` of the rows are kept. A task of class c is drawn
///      with a probability in proportion to
///
///        sqrt(p_c f_c) / p_c * r,     p_c = share of the tasks that are of the class
///                                     f_c = share of weight * FLOPs that the class has
///                                     r   = rank of the task's FLOPs in its class / size of the class
///
///   3. In a kept group, records at or above the quantile `floor` of its labels are kept, and a random `slow_share`
///      of the others: a model that has never seen a slow program overestimates new ones.
///
///   4. Of the rest of a group, `distinct_share` is kept: the fastest, and repeatedly the record farthest from
///      all kept ones. Distance is Euclidean between sums of the rows of x, each column scaled to deviation 1 over the
///      group. Without features these are random.
///
/// By default stages 2 and 3 keep everything: on the logs of the pruning study, dropping tasks costs most and dropping
/// slow programs some accuracy. Stage 4 costs no more there than removing as many records randomly, and no less either.
///
///   data::Dataset lean = data.subset(data::prune(data, {}, Rng(7)));
///
/// If FLOPs are unknown (0), shares of classes are meaningless: then f_c = p_c and ranks are equal, so tasks are drawn
/// uniformly.
///
/// Paper:       Verma et al., Transfer Learning Across Heterogeneous Features For Efficient Tensor Program Generation,
///              2023; it names the criteria, but not the method, so formula and thresholds are ours.
/// Cost:        O(N log N + R D + sum over groups of n kept D) for groups of n records, R rows and D columns.
/// Determinism: a pure function of data, options and generator.
/// Deviates:    the fourth stage is ours, and it is the only one by default.
struct Pruning {
  std::size_t min_records = 48;  ///< minimum number of valid records in a group, as in TenSet
  double task_rows = 1;          ///< share of the rows in kept tasks, in (0, 1]
  double floor = 0;              ///< quantile of the labels, in [0, 1]; 0 keeps all
  double slow_share = 0.1;       ///< kept share of the records below the floor, in [0, 1]
  double distinct_share = 0.55;  ///< kept share of the records of a group, the most dissimilar ones, in (0, 1]
};

namespace pruning_detail {

/// The drawing weight of each task, [tasks]; 0 for tasks without rows.
std::vector<double> importance(std::span<const DatasetTask> tasks, const std::vector<std::size_t>& rows);

/// Draws tasks by weight without replacement (Efraimidis and Spirakis, 2006: the largest u^(1 / weight) first), until
/// they have the wanted number of rows.
std::vector<bool> draw_tasks(const std::vector<double>& weight, const std::vector<std::size_t>& rows,
                             double wanted_rows, const Rng& rng);

/// Sums of the rows of the programs `members`, each column scaled to deviation 1 over them, [members, D].
std::vector<float> scaled_sums(const FeatureBatch& x, const std::vector<std::size_t>& members);

/// `wanted` of the programs `members`, farthest first from `members[first]`; the first among equals.
std::vector<std::size_t> least_alike(const FeatureBatch& x, const std::vector<std::size_t>& members, std::size_t first,
                                     std::size_t wanted);

}  // namespace pruning_detail

/// The records to keep, ascending. Throws `std::invalid_argument` for shares out of range, for FLOPs or weights of
/// tasks outside [0, 1e100], and as `Dataset::check`.
[[nodiscard]] std::vector<std::size_t> prune(const Dataset& data, const Pruning& options, const Rng& rng);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include "tunewright/core/number_text.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/stats/robust.hpp"

namespace tunewright::data::pruning_detail {

TUNEWRIGHT_INLINE std::vector<double> importance(std::span<const DatasetTask> tasks,
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

TUNEWRIGHT_INLINE std::vector<bool> draw_tasks(const std::vector<double>& weight, const std::vector<std::size_t>& rows,
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

TUNEWRIGHT_INLINE std::vector<float> scaled_sums(const FeatureBatch& x, const std::vector<std::size_t>& members) {
  const std::size_t columns = x.columns();
  std::vector<float> sums(members.size() * columns, 0.0F);
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::span<const float> rows = x.program(members[m]);
    for (std::size_t k = 0; k < rows.size(); ++k) sums[m * columns + k % columns] += rows[k];
  }
  for (std::size_t c = 0; c < columns; ++c) {
    double mean = 0, square = 0;
    const auto count = static_cast<double>(members.size());
    for (std::size_t i = c; i < sums.size(); i += columns) mean += double{sums[i]} / count;
    for (std::size_t i = c; i < sums.size(); i += columns) square += std::pow(double{sums[i]} - mean, 2) / count;
    // A column with an infinite feature counts for nothing, as one that is the same everywhere.
    const double scale = square > 1e-12 * mean * mean && std::isfinite(square) ? 1 / std::sqrt(square) : 0;
    for (std::size_t i = c; i < sums.size(); i += columns)
      sums[i] = scale > 0 ? static_cast<float>((double{sums[i]} - mean) * scale) : 0.0F;
  }
  return sums;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> least_alike(const FeatureBatch& x, const std::vector<std::size_t>& members,
                                                       std::size_t first, std::size_t wanted) {
  const std::vector<float> at = scaled_sums(x, members);
  const std::size_t columns = x.columns();
  constexpr float taken = -1;
  std::vector<float> nearest(members.size(), std::numeric_limits<float>::infinity());  // squared
  std::vector<std::size_t> kept;
  for (std::size_t next = first; kept.size() < wanted;) {
    kept.push_back(members[next]);
    nearest[next] = taken;
    std::size_t farthest = next;
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (nearest[m] == taken) continue;
      float squared = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const float off = at[m * columns + c] - at[next * columns + c];
        squared += off * off;
      }
      nearest[m] = std::min(nearest[m], squared);
      if (nearest[m] > nearest[farthest]) farthest = m;
    }
    next = farthest;
  }
  return kept;
}

}  // namespace tunewright::data::pruning_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE std::vector<std::size_t> prune(const Dataset& data, const Pruning& options, const Rng& rng) {
  require(options.task_rows > 0 && options.task_rows <= 1, "Pruning", "task_rows", options.task_rows,
          "a share of the rows above 0 and up to 1");
  require(options.floor >= 0 && options.floor <= 1, "Pruning", "floor", options.floor, "a quantile in [0, 1]");
  require(options.slow_share >= 0 && options.slow_share <= 1, "Pruning", "slow_share", options.slow_share,
          "a share in [0, 1]");
  require(options.distinct_share > 0 && options.distinct_share <= 1, "Pruning", "distinct_share",
          options.distinct_share, "a share above 0 and up to 1");
  constexpr double most = 1e100;  // sums of products of two stay finite
  for (const DatasetTask& task : data.tasks) {
    if (task.flops >= 0 && task.flops <= most && task.weight >= 0 && task.weight <= most) continue;
    throw std::invalid_argument("prune: task '" + task.name + "' has " + number_text(task.flops) +
                                " FLOPs and weight " + number_text(task.weight) +
                                "; give numbers of 0 to 1e100, 0 FLOPs where they are unknown");
  }
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
  const std::vector<bool> task_kept = pruning_detail::draw_tasks(pruning_detail::importance(data.tasks, rows), rows,
                                                                 options.task_rows * all_rows, rng.split(0));

  std::vector<std::size_t> kept;
  for (const std::vector<std::size_t>& group : groups) {
    if (!task_kept[data.task[group[0]]]) continue;
    std::vector<double> speed;
    for (const std::size_t i : group) speed.push_back(1 / data.cost_s[i]);
    const double floor = stats::quantile(speed, options.floor);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < group.size(); ++i) {
      Rng own = rng.split(1).split(group[i]);
      if (speed[i] >= floor || own.uniform() < options.slow_share) left.push_back(group[i]);
    }
    const auto wanted =
        static_cast<std::size_t>(std::ceil(options.distinct_share * static_cast<double>(left.size()) - 1e-9));
    if (wanted < left.size() && data.x.programs() == 0) {
      rng.split(2).split(left[0]).shuffle(std::span(left));
      left.resize(wanted);
    } else if (wanted < left.size()) {
      const auto fastest = std::min_element(
          left.begin(), left.end(), [&](std::size_t a, std::size_t b) { return data.cost_s[a] < data.cost_s[b]; });
      left = pruning_detail::least_alike(data.x, left, static_cast<std::size_t>(fastest - left.begin()), wanted);
    }
    kept.insert(kept.end(), left.begin(), left.end());
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace tunewright::data

#endif
