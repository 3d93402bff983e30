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
#include <vector>

#include "../collection_index.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/data/splits.hpp"

/// Networks of a collection as what is held out and as what is made faster.
namespace tunewright::study {

/// Who has each task, by its name in the dataset.
using NetworksOfTasks = std::map<std::string, bench::Occurrences>;

/// Adds who has a task on one more target, which may have been collected for other networks than those before it.
inline void add_networks(NetworksOfTasks& networks, const std::string& task, const bench::Occurrences& of_target) {
  networks[task].insert(of_target.begin(), of_target.end());
}

/// Whose programs teach the model that meets a network on a target.
enum class Teachers : std::uint8_t {
  OtherNetworks,  ///< tasks that the network does not have, on the same target
  OtherTargets,   ///< its own tasks, on other targets
  Both            ///< tasks that it does not have, on other targets
};

/// Tests on all programs of `network` on `target`, and learns from those of `teachers`. Throws `std::invalid_argument`
/// if one side would be empty.
inline data::Split hold_out(const data::Dataset& data, const NetworksOfTasks& networks, const std::string& network,
                            const std::string& target, Teachers teachers) {
  std::vector<bool> own;  // [tasks]
  for (const data::DatasetTask& task : data.tasks) {
    const auto known = networks.find(task.name);
    own.push_back(known != networks.end() && known->second.contains(network));
  }
  const bool other_network = teachers != Teachers::OtherTargets, other_target = teachers != Teachers::OtherNetworks;
  data::Split split;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const bool is_other_network = !own[data.task[i]], is_other_target = data.targets[data.target[i]] != target;
    if (!is_other_network && !is_other_target)
      split.test.push_back(i);
    else if (is_other_network == other_network && is_other_target == other_target)
      split.train.push_back(i);
  }
  if (split.train.empty() || split.test.empty()) {
    throw std::invalid_argument("hold_out: of " + network + " on " + target + " the " +
                                (split.test.empty() ? "test" : "training") +
                                " side would be empty; collect programs of another network and target too");
  }
  return split;
}

/// A task of a network on a target: its programs in the order of measurement, as a model scores them.
struct ScoredTask {
  double occurrences = 1;
  std::vector<float> score{};       // [P], larger is better
  std::vector<double> latency_s{};  // [P], infinite for a failure
  std::size_t drawn = 0;            // of these, the first ones: drawn at random, no search had a part in them
};

/// Which programs of a task are chosen from.
enum class Among : std::uint8_t { All, Drawn };

/// Latency of a network of which each task runs the fastest of the `k` programs that score highest, over that of the
/// network with the fastest known programs:
///
///   sum over tasks of occurrences * min over top k of latency  /  sum of occurrences * min of latency
///
/// Chosen are programs that `among` tells; the fastest known may be any. A task whose choice fails entirely, or that
/// has nothing to choose from, counts with its slowest program, and one without any that works is left out. Equal
/// scores are ordered by position. Throws `std::invalid_argument` for `k` of 0 and if no task is left.
inline double relative_latency(std::span<const ScoredTask> tasks, std::size_t k, Among among = Among::All) {
  if (k == 0) throw std::invalid_argument("relative_latency: 0 programs a task were asked for; choose at least one");
  double chosen_s = 0, best_s = 0;
  for (const ScoredTask& task : tasks) {
    double best = std::numeric_limits<double>::infinity(), slowest = 0;
    for (const double latency : task.latency_s) {
      if (!std::isfinite(latency)) continue;
      best = std::min(best, latency);
      slowest = std::max(slowest, latency);
    }
    if (slowest == 0) continue;
    const std::size_t n = among == Among::Drawn ? std::min(task.drawn, task.score.size()) : task.score.size();
    double chosen = std::numeric_limits<double>::infinity();
    for (const std::size_t i : first_in_order(positions(n), std::min(k, n), [&](std::size_t a, std::size_t b) {
           return task.score[a] != task.score[b] ? task.score[a] > task.score[b] : a < b;
         }))
      chosen = std::min(chosen, task.latency_s[i]);
    chosen_s += task.occurrences * (std::isfinite(chosen) ? chosen : slowest);
    best_s += task.occurrences * best;
  }
  if (best_s == 0)
    throw std::invalid_argument("relative_latency: no task has a program that works; give measured ones");
  return chosen_s / best_s;
}

}  // namespace tunewright::study
