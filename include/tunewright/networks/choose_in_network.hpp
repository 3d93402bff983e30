// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::networks {

struct InNetworkOptions {
  CompiledNetworkOptions network = {};
  unsigned turns = 11;       ///< of each of two networks that are compared; at least 1
  unsigned inferences = 3;   ///< timed in a turn, after one that warms up; at least 1
  double least_gain = 0.01;  ///< share of a task's time that another schedule must save, in [0, 1)
  Clock clock = steady_seconds();
};

/// What `choose_in_network` found.
struct InNetworkChoice {
  std::vector<schedule::Schedule> schedules;  ///< [T], for `CompiledNetwork`
  std::vector<std::size_t> chosen;            ///< [T], which of the task's candidates each is
  double gain = 0;  ///< share of an inference with all first candidates that the chosen ones save; 0 if these are they
};

/// Chooses the schedule of each task by timing it where it runs, inside the network.
///
/// A search times a kernel alone and again and again, with its data in the caches. In a network, weights come from
/// memory and inputs from the kernel before, so the fastest alone is often not the fastest there. This begins with the
/// first candidate of every task. The network of all second candidates then runs in turns with it, each call timed; a
/// task takes its second candidate if that needs less time by `least_gain`, by the median over pairs of turns that ran
/// right after each other. The same follows with the third candidates, and so on. In the end the chosen schedules run
/// in turns with the first ones; unless the whole inference is faster, the first ones stay.
///
/// `candidates` has at least one schedule per task, in the order of `partition.tasks`: those that were the fastest
/// alone (`History::fastest_checked`: results are not compared here), the best one first. `values` has inputs and
/// constants, by tensor, as for `CompiledNetwork::run`.
///
/// Not from a paper; Ansor takes the fastest alone.
/// Errors: as `CompiledNetwork` and its `run`, and `std::invalid_argument` for another number of lists than tasks, an
///         empty list, options outside their ranges, and an empty clock.
/// Cost: for C candidates at most 2 C networks are compiled and C pairs compared, each by
///       `2 * turns * (inferences + 1)` inferences. Two networks with their weights are in memory.
/// Determinism: a function of its arguments and the times that the clock shows.
[[nodiscard]] InNetworkChoice choose_in_network(const Network& network, const Partition& partition,
                                                std::span<const std::vector<schedule::Schedule>> candidates,
                                                const reference::Tensors& values, const InNetworkOptions& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(orc)

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/core/require.hpp"
#include "tunewright/stats/robust.hpp"

namespace tunewright::networks::detail {

/// Seconds of the tasks of a network, all calls of a task together.
using TaskSeconds = std::vector<double>;  // [T]

/// One turn of a network that has its inputs.
TUNEWRIGHT_INLINE TaskSeconds turn_of(CompiledNetwork& network, const InNetworkOptions& options) {
  const std::vector<TaskCall>& calls = network.partition().calls;
  TaskSeconds seconds(network.partition().tasks.size());
  network.execute();
  for (unsigned i = 0; i < options.inferences; ++i) {
    Seconds before = options.clock();
    network.execute([&](std::size_t call) {
      const Seconds now = options.clock();
      seconds[calls[call].task] += (now - before).count();
      before = now;
    });
  }
  return seconds;
}

/// Share of its time that each task saves with the challenger, by the median over pairs of turns; the last element is
/// that of the whole inference. Who begins changes from pair to pair.
TUNEWRIGHT_INLINE std::vector<double> savings(CompiledNetwork& champion, CompiledNetwork& challenger,
                                              const InNetworkOptions& options) {
  const std::size_t tasks = champion.partition().tasks.size();
  std::vector<std::vector<double>> saved(tasks + 1);  // [T + 1][turns]
  for (unsigned turn = 0; turn < options.turns; ++turn) {
    std::array<TaskSeconds, 2> seconds;
    for (unsigned which : {turn % 2, 1 - turn % 2}) {
      TaskSeconds& of_tasks = seconds[which] = turn_of(which == 0 ? champion : challenger, options);
      double all = 0;
      for (const double of_task : of_tasks) all += of_task;
      of_tasks.push_back(all);
    }
    for (std::size_t t = 0; t <= tasks; ++t)
      saved[t].push_back(seconds[0][t] > 0 ? 1 - seconds[1][t] / seconds[0][t] : 0);
  }
  std::vector<double> middle;
  for (std::vector<double>& of_turns : saved) middle.push_back(stats::median(std::move(of_turns)));
  return middle;
}

TUNEWRIGHT_INLINE void check(const Partition& partition, std::span<const std::vector<schedule::Schedule>> candidates,
                             const InNetworkOptions& options) {
  if (candidates.size() != partition.tasks.size()) {
    throw std::invalid_argument("choose_in_network: " + std::to_string(candidates.size()) +
                                " lists of candidates were given for " + std::to_string(partition.tasks.size()) +
                                " tasks; give one a task, in the order of the partition");
  }
  for (std::size_t t = 0; t < candidates.size(); ++t) {
    if (!candidates[t].empty()) continue;
    throw std::invalid_argument("choose_in_network: task '" + partition.tasks[t].task.name +
                                "' has no candidate; give at least networks::default_schedule of it");
  }
  require(options.turns >= 1, "choose_in_network", "turns", options.turns, "at least 1");
  require(options.inferences >= 1, "choose_in_network", "inferences", options.inferences, "at least 1");
  require(options.least_gain >= 0 && options.least_gain < 1, "choose_in_network", "least_gain", options.least_gain,
          "a share, 0 or more and below 1");
  tunewright::check(options.clock);
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE InNetworkChoice choose_in_network(const Network& network, const Partition& partition,
                                                    std::span<const std::vector<schedule::Schedule>> candidates,
                                                    const reference::Tensors& values, const InNetworkOptions& options) {
  detail::check(partition, candidates, options);
  const std::size_t tasks = candidates.size();
  const auto network_of = [&](const std::vector<std::size_t>& numbers) {
    std::vector<schedule::Schedule> schedules;
    for (std::size_t t = 0; t < tasks; ++t) schedules.push_back(candidates[t][numbers[t]]);
    CompiledNetwork compiled(network, partition, schedules, values, options.network);
    compiled.set_inputs(values);
    return compiled;
  };
  const std::vector<std::size_t> first(tasks, 0);
  std::vector<std::size_t> chosen = first;
  std::size_t most = 1;
  for (const auto& list : candidates) most = std::max(most, list.size());
  std::optional<CompiledNetwork> champion;
  if (most > 1) champion = network_of(chosen);
  for (std::size_t next = 1; next < most; ++next) {
    std::vector<std::size_t> others = chosen;
    for (std::size_t t = 0; t < tasks; ++t)
      if (next < candidates[t].size()) others[t] = next;
    CompiledNetwork challenger = network_of(others);
    const std::vector<double> saved = detail::savings(*champion, challenger, options);
    std::vector<std::size_t> improved = chosen;
    for (std::size_t t = 0; t < tasks; ++t)
      if (others[t] != chosen[t] && saved[t] > options.least_gain) improved[t] = others[t];
    if (improved == chosen) continue;
    chosen = std::move(improved);
    champion.reset();  // before the next one takes as much memory
    champion = chosen == others ? std::move(challenger) : network_of(chosen);
  }
  InNetworkChoice choice;
  if (chosen != first) {
    CompiledNetwork before = network_of(first);
    choice.gain = detail::savings(before, *champion, options).back();
    if (choice.gain <= 0) {
      chosen = first;
      choice.gain = 0;
    }
  }
  for (std::size_t t = 0; t < tasks; ++t) choice.schedules.push_back(candidates[t][chosen[t]]);
  choice.chosen = std::move(chosen);
  return choice;
}

}  // namespace tunewright::networks

#endif
