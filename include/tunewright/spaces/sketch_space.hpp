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
#include <vector>

#include "tunewright/core/function_ref.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/schedule_summarizers.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::spaces {

/// Generates the sketches of a task: schedules that are complete except for their open decisions.
template <class G>
concept SketchGenerator = requires(const G& generator, const Task& task) {
  { generator.sketches(task) } -> std::convertible_to<std::vector<schedule::Schedule>>;
};

/// The parts of `SketchSpace` that do not depend on the generator.
namespace sketching {

using SchedulesOf = FunctionRef<std::vector<schedule::Schedule>(const Task&)>;

/// Sketches and plans of their schedules, shared by copies of a space. Thread-safe.
class Cache {
 public:
  loops::ScheduleSummarizers summarizers;

  /// The sketches of a task, generated at the first call.
  [[nodiscard]] const std::vector<schedule::Schedule>& of(const Task& task, SchedulesOf generate);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<schedule::Schedule>> by_workload_;
};

/// Limits of draws and mutations; see `SketchSpace`.
struct Drawing {
  unsigned max_tries;
  double min_utilisation;
};

/// A sketch with all decisions drawn; empty if no try is feasible.
[[nodiscard]] std::optional<schedule::Schedule> draw(const std::vector<schedule::Schedule>& sketches, const Task& task,
                                                     const Drawing& drawing, loops::ScheduleSummarizers& summarizers,
                                                     Rng& rng);
/// The schedule with one decision changed; empty if it has no open decisions, or the change contradicts another one or
/// takes the utilisation below both the least one and that of the candidate.
[[nodiscard]] std::optional<schedule::Schedule> mutate(const schedule::Schedule& candidate, const Target& target,
                                                       const Drawing& drawing, loops::ScheduleSummarizers& summarizers,
                                                       Rng& rng);
/// Equal for schedules that lower to the same program. Those that must be lowered to tell have one for each list of
/// steps.
[[nodiscard]] std::uint64_t key(const schedule::Schedule& candidate, loops::ScheduleSummarizers& summarizers);
[[nodiscard]] std::string_view why_infeasible(const schedule::Schedule& candidate, const Target& target,
                                              loops::ScheduleSummarizers& summarizers);
[[nodiscard]] std::string_view why_infeasible(const loops::LoopNest& program, const Target& target);
[[nodiscard]] std::optional<std::string_view> why_infeasible(const loops::NestSummary& summary, const Target& target);
/// Throws `std::invalid_argument` for a task without a graph.
[[nodiscard]] std::optional<schedule::Schedule> decode(const Task& task, std::string_view text);
[[nodiscard]] std::string encode(const schedule::Schedule& candidate);

}  // namespace sketching

/// The space of all values of the open decisions of a generator's sketches.
///
/// A configuration is a `schedule::Schedule`. Sketches are generated once per task. Sampling draws a sketch uniformly
/// and then every decision (`decisions::draw_all`); mutation changes one decision.
///
/// Models:      SearchSpace. Program: `loops::LoopNest`.
/// Errors:      `std::invalid_argument` if the task has no graph, the generator finds no sketch, or an option is out of
///              range.
/// Cost:        some microseconds per sample or mutation once the sketches are generated. Both are checked by their
///              summary, and lowered only if the summary is not sufficient.
/// Determinism: a function of the arguments.
template <SketchGenerator Generator>
struct SketchSpace {
  using config_type = schedule::Schedule;
  using program_type = loops::LoopNest;
  using summary_type = loops::NestSummary;

  Generator generator = {};
  unsigned max_tries = 24;       ///< draws of decisions per sample, at least 1
  double min_utilisation = 0.8;  ///< draws that use less of the machine are repeated, mutations refused; in [0, 1]

  [[nodiscard]] std::optional<config_type> sample(const Task& task, Rng& rng) const {
    return sketching::draw(sketches(task), task, {max_tries, min_utilisation}, cache->summarizers, rng);
  }
  [[nodiscard]] std::optional<config_type> mutate(const Task& task, const config_type& config, Rng& rng) const {
    return sketching::mutate(config, task.target, {max_tries, min_utilisation}, cache->summarizers, rng);
  }

  /// Whether the schedule replays, lowers, and respects the static limits of the target.
  [[nodiscard]] bool feasible(const Task& task, const config_type& config) const {
    return why_infeasible(task, config).empty();
  }
  [[nodiscard]] std::string_view why_infeasible(const Task& task, const config_type& config) const {
    return sketching::why_infeasible(config, task.target, cache->summarizers);
  }
  /// The same for a lowered configuration.
  [[nodiscard]] std::string_view why_infeasible(const Task& task, const program_type& program) const {
    return sketching::why_infeasible(program, task.target);
  }
  /// The same for its summary; empty if it must be lowered to tell.
  [[nodiscard]] std::optional<std::string_view> why_infeasible(const Task& task, const summary_type& summary) const {
    return sketching::why_infeasible(summary, task.target);
  }

  /// See SummarizingSpace.
  [[nodiscard]] loops::ScheduleSummarizers::Lease summarizer() const { return cache->summarizers.lease(); }

  [[nodiscard]] std::uint64_t key(const config_type& config) const {
    return sketching::key(config, cache->summarizers);
  }
  [[nodiscard]] std::string encode(const config_type& config) const { return sketching::encode(config); }
  [[nodiscard]] std::optional<config_type> decode(const Task& task, std::string_view text) const {
    return sketching::decode(task, text);
  }
  [[nodiscard]] program_type lower(const Task&, const config_type& config) const { return loops::lower(config); }

  /// The sketches of a task, generated at the first call.
  [[nodiscard]] const std::vector<config_type>& sketches(const Task& task) const {
    return cache->of(task, [&](const Task& of) -> std::vector<config_type> { return generator.sketches(of); });
  }

  std::shared_ptr<sketching::Cache> cache = std::make_shared<sketching::Cache>();  ///< shared by copies of the space
};

}  // namespace tunewright::spaces

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/core/require.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/program_hash.hpp"
#include "tunewright/loops/schedule_summarizer.hpp"
#include "tunewright/loops/summary_limits.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/spaces/decisions.hpp"
#include "tunewright/spaces/decisions/unroll_limit.hpp"
#include "tunewright/spaces/utilisation.hpp"

namespace tunewright::spaces::sketching {

/// Throws `std::invalid_argument` for a task without a graph.
TUNEWRIGHT_INLINE void require_program(const Task& task) {
  if (task.graph != nullptr) return;
  throw std::invalid_argument("task '" + task.name + "' has no program to schedule; make it with program::make_task");
}

TUNEWRIGHT_INLINE const std::vector<schedule::Schedule>& Cache::of(const Task& task, SchedulesOf generate) {
  const std::pair key{task.workload_hash, stable_hash(task.target)};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = by_workload_.find(key); known != by_workload_.end()) return known->second;
  }
  // Other tasks need not wait for this one. Threads that come for the same one at once derive the same.
  require_program(task);
  std::vector<schedule::Schedule> generated = generate(task);
  if (generated.empty())
    throw std::invalid_argument("the search space of task '" + task.name + "' is empty: no sketch could be derived");
  const std::lock_guard lock(mutex_);
  return by_workload_.try_emplace(key, std::move(generated)).first->second;
}

/// `utilisation` of a schedule. `summary` may be null.
[[nodiscard]] TUNEWRIGHT_INLINE double utilisation_of(const schedule::Schedule& candidate, const Target& target,
                                                      const loops::NestSummary* summary) {
  return summary != nullptr ? utilisation(*summary, target) : utilisation(loops::lower(candidate), target);
}

TUNEWRIGHT_INLINE void check(const Drawing& drawing) {
  require(drawing.max_tries >= 1, "SketchSpace", "max_tries", drawing.max_tries, "at least 1");
  require(drawing.min_utilisation >= 0 && drawing.min_utilisation <= 1, "SketchSpace", "min_utilisation",
          drawing.min_utilisation, "a share, 0 to 1");
}

/// Whether a schedule reaches a utilisation of the machine and exceeds no limit. `summary` may be null.
[[nodiscard]] TUNEWRIGHT_INLINE bool is_acceptable(const schedule::Schedule& candidate, const Target& target,
                                                   double least_utilisation, const loops::NestSummary* summary) {
  const auto is_used = [&](const auto& program) {
    return least_utilisation == 0 || utilisation(program, target) >= least_utilisation;
  };
  if (summary != nullptr) {
    if (!is_used(*summary)) return false;
    if (const auto exceeded = loops::exceeded_limit(*summary, target)) return exceeded->empty();
  }
  const loops::LoopNest nest = loops::lower(candidate);
  return is_used(nest) && loops::exceeded_limit(nest, target).empty();
}

TUNEWRIGHT_INLINE std::optional<schedule::Schedule> draw(const std::vector<schedule::Schedule>& sketches,
                                                         const Task& task, const Drawing& drawing,
                                                         loops::ScheduleSummarizers& summarizers, Rng& rng) {
  check(drawing);
  auto summarize = summarizers.lease();
  for (unsigned attempt = 0; attempt < drawing.max_tries; ++attempt) {
    schedule::Schedule drawn = sketches[static_cast<std::size_t>(rng.below(sketches.size()))];
    decisions::draw_all(drawn.steps, task.target, rng, program::widest_element(*drawn.graph));
    try {
      // Hardly any candidate makes up for threads that wait for each other; the last tries accept any utilisation.
      const double least = attempt + 4 < drawing.max_tries ? drawing.min_utilisation : 0;
      const loops::NestSummary* summary = summarize(drawn);
      if (!is_acceptable(drawn, task.target, least, summary)) continue;
      if (summary != nullptr) decisions::lower_unroll_limits(drawn.steps, *summary, task.target);
      return drawn;
    } catch (const schedule::ScheduleError&) {  // contradictory decisions; draws others
    }
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::optional<schedule::Schedule> mutate(const schedule::Schedule& candidate, const Target& target,
                                                           const Drawing& drawing,
                                                           loops::ScheduleSummarizers& summarizers, Rng& rng) {
  check(drawing);
  schedule::Schedule changed = candidate;
  if (!decisions::mutate_one(changed.steps, target, rng, program::widest_element(*changed.graph))) return std::nullopt;
  try {
    auto summarize = summarizers.lease();
    const loops::NestSummary* summary = summarize(changed);
    const double used = utilisation_of(changed, target, summary);
    if (summary != nullptr) decisions::lower_unroll_limits(changed.steps, *summary, target);
    if (changed.steps == candidate.steps) return std::nullopt;  // but for a limit that unrolls the same loops
    if (used >= drawing.min_utilisation) return changed;
    if (used >= utilisation_of(candidate, target, summarize(candidate))) return changed;
  } catch (const schedule::ScheduleError&) {  // contradictory decisions
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::uint64_t key(const schedule::Schedule& candidate, loops::ScheduleSummarizers& summarizers) {
  auto summarize = summarizers.lease();
  const loops::NestSummary* summary = summarize(candidate);
  return summary != nullptr ? loops::program_hash(*summary) : schedule::stable_hash(candidate.steps);
}

TUNEWRIGHT_INLINE std::string_view why_infeasible(const schedule::Schedule& candidate, const Target& target,
                                                  loops::ScheduleSummarizers& summarizers) {
  try {
    auto summarize = summarizers.lease();
    if (const auto* summary = summarize(candidate))
      if (const auto exceeded = loops::exceeded_limit(*summary, target)) return *exceeded;
    return loops::exceeded_limit(loops::lower(candidate), target);
  } catch (const schedule::ScheduleError& error) {
    return schedule::name(error.fault());
  }
}

TUNEWRIGHT_INLINE std::string_view why_infeasible(const loops::LoopNest& program, const Target& target) {
  return loops::exceeded_limit(program, target);
}

TUNEWRIGHT_INLINE std::optional<std::string_view> why_infeasible(const loops::NestSummary& summary,
                                                                 const Target& target) {
  return loops::exceeded_limit(summary, target);
}

TUNEWRIGHT_INLINE std::optional<schedule::Schedule> decode(const Task& task, std::string_view text) {
  try {
    require_program(task);
    schedule::Schedule decoded{task.graph, schedule::steps_from_json(text)};
    (void)loops::lower(decoded);
    return decoded;
  } catch (const schedule::ScheduleError&) {
    return std::nullopt;
  }
}

TUNEWRIGHT_INLINE std::string encode(const schedule::Schedule& candidate) { return schedule::to_json(candidate.steps); }

}  // namespace tunewright::spaces::sketching

#endif
