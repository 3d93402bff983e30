// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/knob.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"

namespace tunewright {

template <class S>
using config_t = typename S::config_type;
template <class S>
using program_t = typename S::program_type;

/// What may be tried for a task: a set of configurations that can be drawn, changed, checked, named and
/// lowered.
///
/// - `config_type`: a copyable value holding every decision.
/// - `program_type`: what a measurer takes.
/// - `sample(task, rng)`: a random configuration, or nothing if this draw led nowhere. Throws only when the
///   space has no configuration at all.
/// - `mutate(task, config, rng)`: a neighbour of `config`, or nothing if the change was not legal.
/// - `feasible(task, config)`: static limits only, no compiler, no device.
/// - `key(config)`: canonical: equal for configurations that mean the same program, the same in every run and
///   on every platform. `StableHash` gives such keys.
/// - `encode(config)`: one line of text from which `decode` restores an equal configuration.
/// - `decode(task, text)`: the configuration, or nothing if `text` does not belong to this task.
/// - `lower(task, config)`: the program. An exception is recorded as `Fault::InvalidSchedule`.
///
/// Semantics the compiler cannot see: `sample` and `mutate` depend on nothing but their arguments, so equal
/// generators give equal configurations; const members may be called from several threads at once;
/// `decode(task, encode(c))` has the key of `c`; `mutate` of a feasible configuration is feasible with useful
/// probability.
///
/// Optional hook, found by detection: `why_infeasible(task, config) -> std::string_view`, a short reason for
/// a configuration that is not feasible and nothing for one that is; `filters::StaticLimits` counts by it. A space that
/// also has `why_infeasible(task, program)`, the same of a configuration's program, is lowered once for filter and
/// ranking.
template <class S>
concept SearchSpace =
    std::copyable<config_t<S>> &&
    requires(const S& space, const Task& task, const config_t<S>& config, std::string_view text, Rng& rng) {
      typename S::program_type;
      { space.sample(task, rng) } -> std::same_as<std::optional<config_t<S>>>;
      { space.mutate(task, config, rng) } -> std::same_as<std::optional<config_t<S>>>;
      { space.feasible(task, config) } -> std::same_as<bool>;
      { space.key(config) } -> std::same_as<std::uint64_t>;
      { space.encode(config) } -> std::same_as<std::string>;
      { space.decode(task, text) } -> std::same_as<std::optional<config_t<S>>>;
      { space.lower(task, config) } -> std::same_as<program_t<S>>;
    };

/// A space that tells what filters, drafts and featurizers read of a program without making the program, at a fraction
/// of the cost.
///
/// - `summary_type`: what is read. Policies that read programs may read these, too.
/// - `summarizer()`: something that is called with one configuration after the other and gives a pointer to its
///   summary, or null where it takes `lower` to tell. A summary is valid until the next call and as long as what was
///   called. That may keep memory to work in, so each thread asks for its own. `prefetch(config)`, if there is one,
///   announces a configuration.
///
/// Semantics the compiler cannot see: a policy that reads the summary gives what it gives for the program, bit for bit;
/// `lower` does not throw where there is a summary.
///
/// Optional hook: `why_infeasible(task, summary) -> std::optional<std::string_view>`, as of the program; nothing where
/// it takes the program to tell.
template <class S>
concept SummarizingSpace =
    SearchSpace<S> && requires(decltype(std::declval<const S&>().summarizer())& summarize, const config_t<S>& config) {
      typename S::summary_type;
      { summarize(config) } -> std::same_as<const typename S::summary_type*>;
    };

/// Gives policies what they read of configurations, one after the other: the summary where there is one, else the
/// lowered program. Keeps memory to work in; refers to space and task, which must outlive it.
template <SearchSpace S>
class ProgramReader {
  struct NoSummaries {};
  static auto summarizer_of(const S& space) {
    if constexpr (SummarizingSpace<S>)
      return space.summarizer();
    else
      return NoSummaries{};
  }

 public:
  ProgramReader(const S& space, const Task& task) : space_(space), task_(task), summarizer_(summarizer_of(space)) {}

  /// The summary of a configuration, valid until the next call; null where it has to be lowered.
  [[nodiscard]] auto summary(const config_t<S>& config) {
    if constexpr (SummarizingSpace<S>)
      return summarizer_(config);
    else
      return static_cast<const NoSummaries*>(nullptr);
  }
  /// Calls `f(summary)`, if it can be called and there is one, else `f(program)`. Throws what `lower` throws.
  template <class F>
  void read(const config_t<S>& config, const F& f) {
    if constexpr (std::invocable<const F&, decltype(*summary(config))>) {
      if (const auto* found = summary(config)) return static_cast<void>(f(*found));
    }
    f(space_.lower(task_, config));
  }
  /// A configuration that is read soon.
  void prefetch(const config_t<S>& config) {
    if constexpr (requires { summarizer_.prefetch(config); }) summarizer_.prefetch(config);
  }

 private:
  const S& space_;
  const Task& task_;
  decltype(summarizer_of(std::declval<const S&>())) summarizer_;
};

/// A space whose configurations are vectors of numbers, as those of template tuners are.
///
/// - `knobs()`: what the numbers are; a split into several factors is several knobs. Names are distinct.
/// - `knob_values(config)`: one number a knob, in that order; of a category its number.
template <class S>
concept KnobSpace = SearchSpace<S> && requires(const S& space, const config_t<S>& config) {
  { space.knobs() } -> std::convertible_to<std::vector<Knob>>;
  { space.knob_values(config) } -> std::convertible_to<std::vector<double>>;
};

/// A space that finds the configuration of given numbers.
///
/// - `at_knobs(task, values)`: the configuration whose `knob_values` these are, or nothing where there is none.
template <class S>
concept SettableKnobSpace =
    KnobSpace<S> && requires(const S& space, const Task& task, const std::vector<double>& values) {
      { space.at_knobs(task, values) } -> std::same_as<std::optional<config_t<S>>>;
    };

}  // namespace tunewright
