// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/schedule_summarizer.hpp"
#include "tunewright/loops/summary_limits.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/spaces/decisions.hpp"
#include "tunewright/spaces/utilisation.hpp"

namespace tunewright::spaces {

/// Gives the sketches of a task: schedules that are complete but for their open decisions.
template <class G>
concept SketchGenerator = requires(const G& generator, const Task& task) {
  { generator.sketches(task) } -> std::convertible_to<std::vector<schedule::Schedule>>;
};

/// The space of all ways to decide the open decisions of a generator's sketches.
///
/// A configuration is a `schedule::Schedule`. Sketches are generated once a task and kept. Sampling draws a
/// sketch uniformly and then every decision (`decisions::draw_all`); mutation changes one decision.
///
/// Models:      SearchSpace. Program: `loops::LoopNest`.
/// Errors:      `std::invalid_argument` when the task has no graph, the generator finds no sketch, or an option
///              is out of its range.
/// Cost:        some microseconds a sample or mutation, where the sketch was met before; the limits of a sample are
///              those of its summary, and it is lowered only where that does not tell.
/// Determinism: functions of their arguments alone.
template <SketchGenerator Generator>
struct SketchSpace {
  using config_type = schedule::Schedule;
  using program_type = loops::LoopNest;
  using summary_type = loops::NestSummary;

  Generator generator = {};
  unsigned max_tries = 24;       ///< draws of decisions before a sample is given up, at least 1
  double min_utilisation = 0.8;  ///< share of the machine that is used, below which a draw is repeated; in [0, 1]

  [[nodiscard]] std::optional<config_type> sample(const Task& task, Rng& rng) const {
    require(max_tries >= 1, "SketchSpace", "max_tries", max_tries, "at least 1");
    require(min_utilisation >= 0 && min_utilisation <= 1, "SketchSpace", "min_utilisation", min_utilisation,
            "a share, 0 to 1");
    const std::vector<config_type>& all = sketches(task);
    auto summarize = summarizer();
    for (unsigned attempt = 0; attempt < max_tries; ++attempt) {
      config_type config = all[static_cast<std::size_t>(rng.below(all.size()))];
      decisions::draw_all(config.steps, task.target, rng);
      try {
        // Threads that wait for each other are a waste hardly any candidate makes up for; the last tries take
        // what comes.
        const double least = attempt + 4 < max_tries ? min_utilisation : 0;
        if (is_acceptable(config, task.target, least, summarize(config))) return config;
      } catch (const schedule::ScheduleError&) {  // decisions that do not fit together; draw others
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<config_type> mutate(const Task& task, const config_type& config, Rng& rng) const {
    config_type changed = config;
    if (!decisions::mutate_one(changed.steps, task.target, rng)) return std::nullopt;
    return changed;
  }

  /// Replays, lowers and respects the static limits of the target.
  [[nodiscard]] bool feasible(const Task& task, const config_type& config) const {
    return why_infeasible(task, config).empty();
  }
  [[nodiscard]] std::string_view why_infeasible(const Task& task, const config_type& config) const {
    try {
      auto summarize = summarizer();
      if (const auto* summary = summarize(config))
        if (const auto exceeded = why_infeasible(task, *summary)) return *exceeded;
      return loops::exceeded_limit(loops::lower(config), task.target);
    } catch (const schedule::ScheduleError& error) {
      return schedule::name(error.fault());
    }
  }

  /// The same of what a configuration was lowered to.
  [[nodiscard]] std::string_view why_infeasible(const Task& task, const program_type& program) const {
    return loops::exceeded_limit(program, task.target);
  }
  /// The same of its summary; nothing where it has to be lowered to tell.
  [[nodiscard]] std::optional<std::string_view> why_infeasible(const Task& task, const summary_type& summary) const {
    return loops::exceeded_limit(summary, task.target);
  }

  /// See SummarizingSpace.
  [[nodiscard]] loops::ScheduleSummarizers::Lease summarizer() const { return cache->summarizers.lease(); }

  [[nodiscard]] std::uint64_t key(const config_type& config) const { return schedule::stable_hash(config.steps); }

  [[nodiscard]] std::string encode(const config_type& config) const { return schedule::to_json(config.steps); }

  [[nodiscard]] std::optional<config_type> decode(const Task& task, std::string_view text) const {
    try {
      require_program(task);
      config_type config{task.graph, schedule::steps_from_json(text)};
      (void)loops::lower(config);
      return config;
    } catch (const schedule::ScheduleError&) {
      return std::nullopt;
    }
  }

  [[nodiscard]] program_type lower(const Task&, const config_type& config) const { return loops::lower(config); }

  /// The sketches of a task, generated at the first call.
  [[nodiscard]] const std::vector<config_type>& sketches(const Task& task) const {
    const std::lock_guard lock(cache->mutex);
    std::vector<config_type>& known = cache->by_workload[{task.workload_hash, stable_hash(task.target)}];
    if (known.empty()) {
      require_program(task);
      known = generator.sketches(task);
      if (known.empty())
        throw std::invalid_argument("the search space of task '" + task.name +
                                    "' is empty: no sketch could be derived");
    }
    return known;
  }

  /// Throws `std::invalid_argument` for a task without a graph.
  static void require_program(const Task& task) {
    if (task.graph != nullptr) return;
    throw std::invalid_argument("task '" + task.name + "' has no program to schedule; make it with program::make_task");
  }

  /// Shared by copies of the space; filled by `sketches` and `summarizer`.
  struct Cache {
    loops::ScheduleSummarizers summarizers;
    std::mutex mutex;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<config_type>> by_workload;
  };
  std::shared_ptr<Cache> cache = std::make_shared<Cache>();

 private:
  /// Whether a configuration uses at least that share of the machine and exceeds no limit. `summary` may be null.
  [[nodiscard]] static bool is_acceptable(const config_type& config, const Target& target, double least_utilisation,
                                          const summary_type* summary) {
    const auto is_used = [&](const auto& program) {
      return least_utilisation == 0 || utilisation(program, target) >= least_utilisation;
    };
    if (summary != nullptr) {
      if (!is_used(*summary)) return false;
      if (const auto exceeded = loops::exceeded_limit(*summary, target)) return exceeded->empty();
    }
    const loops::LoopNest nest = loops::lower(config);
    return is_used(nest) && loops::exceeded_limit(nest, target).empty();
  }
};

}  // namespace tunewright::spaces
