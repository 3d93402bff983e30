// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tunewright/core/weighted_task.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::study {

/// A network on which recipes are compared as `MultiTaskTuner`s: its tasks, among which a scheduler divides the trials
/// of a search, their space, and a measurer.
///
///   study::NetworkProblem<Space, measurers::OrcJit> problem{.name = "resnet18", .tasks = partition.tasks};
///
/// The latency of a search is that of the network, the sum over its tasks of weight times best; it is infinite until
/// each has a valid program. Trials are of all tasks together. `measurer` is as in `Problem`. With another scheduler it
/// is another problem, which needs another name. `Study::compare` refuses what `network_tasks` does, and fewer trials
/// than tasks.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer, class Scheduler = schedulers::Gradient>
struct NetworkProblem {
  std::string name;  ///< as of `Problem`
  std::vector<WeightedTask> tasks{};
  Space space = Space();
  std::function<Measurer()> measurer{};  ///< a new one; one by default where there is no function
  Scheduler scheduler{};
  std::size_t trials = 0;  ///< of a search, where a network has a budget of its own

  [[nodiscard]] const std::vector<WeightedTask>& weighted_tasks() const { return tasks; }
};

}  // namespace tunewright::study
