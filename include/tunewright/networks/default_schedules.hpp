// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::networks {

struct DefaultScheduleOptions {
  std::size_t candidates = 64;  ///< drawn for each task; at least 1
  std::uint64_t seed = 1;
  unsigned threads = 1;  ///< that draw, 0: all hardware threads; does not change the result
};

/// A schedule without measurements, so that a network runs before it is tuned: the best of `candidates` random
/// schedules of `spaces::MultiLevelTiling`, ranked by `drafts::SymbolAnalyzer`.
///
/// Errors: `std::invalid_argument` for 0 candidates and a task without a graph, `std::runtime_error` if the space has
///         no schedule for it.
/// Cost: about a millisecond.
/// Determinism: a function of task, candidates and seed.
[[nodiscard]] schedule::Schedule default_schedule(const Task& task, const DefaultScheduleOptions& options = {});

/// The default schedule of each task.
[[nodiscard]] std::vector<schedule::Schedule> default_schedules(std::span<const WeightedTask> tasks,
                                                                const DefaultScheduleOptions& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tunewright/core/require.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/spaces/draw.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE schedule::Schedule default_schedule(const Task& task, const DefaultScheduleOptions& options) {
  require(options.candidates >= 1, "default_schedule", "candidates", static_cast<double>(options.candidates),
          "at least 1");
  const spaces::MultiLevelTiling space;
  std::vector<schedule::Schedule> drawn =
      spaces::draw(space, task, options.candidates, {}, options.threads, Rng(options.seed).split(task.workload_hash));
  if (drawn.empty()) {
    throw std::runtime_error("no schedule could be drawn for task '" + task.name +
                             "'; give more candidates or another seed");
  }
  std::vector<float> score(drawn.size());
  drafts::SymbolAnalyzer{}.score(space, task, drawn, score);
  const auto best = std::max_element(score.begin(), score.end()) - score.begin();
  return std::move(drawn[static_cast<std::size_t>(best)]);
}

TUNEWRIGHT_INLINE std::vector<schedule::Schedule> default_schedules(std::span<const WeightedTask> tasks,
                                                                    const DefaultScheduleOptions& options) {
  require(options.candidates >= 1, "default_schedules", "candidates", static_cast<double>(options.candidates),
          "at least 1");
  std::vector<schedule::Schedule> chosen;
  for (const WeightedTask& weighted : tasks) chosen.push_back(default_schedule(weighted.task, options));
  return chosen;
}

}  // namespace tunewright::networks

#endif
