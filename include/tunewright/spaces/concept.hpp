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

/// The set of configurations to try for a task. A space samples, mutates, checks, encodes and lowers them.
///
/// - `config_type`: a copyable value with every decision.
/// - `program_type`: what a measurer takes.
/// - `sample(task, rng)`: a random configuration, or `nullopt` if this draw failed. Throws only if the
///   space has no configuration at all.
/// - `mutate(task, config, rng)`: a neighbour of `config`, or `nullopt` if the change was illegal or the space has no
///   use for it.
/// - `feasible(task, config)`: checks static limits, without compiler or device.
/// - `key(config)`: a hash: equal for configurations of the same program, the same in every run and
///   on every platform. `StableHash` gives such keys.
/// - `encode(config)`: one line of text from which `decode` restores an equal configuration.
/// - `decode(task, text)`: the configuration, or `nullopt` if `text` does not belong to this task.
/// - `lower(task, config)`: the program. An exception is recorded as `Fault::InvalidSchedule`.
///
/// Semantics the compiler cannot see: `sample` and `mutate` depend only on their arguments, so equal generators give
/// equal configurations; const members may be called from several threads at once; `decode(task, encode(c))` has the
/// same key as `c`; `mutate` of a feasible configuration is often feasible.
///
/// Optional hook, detected: `why_infeasible(task, config) -> std::string_view`, a short reason, empty for a feasible
/// configuration; `filters::StaticLimits` counts by reason. If `why_infeasible(task, program)` also exists, filter and
/// ranking share one lowering of each candidate.
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

/// A space that computes a summary of a program, which filters, drafts and featurizers read, at a fraction of the cost
/// of lowering.
///
/// - `summary_type`: the summary. Policies that read programs may also read summaries.
/// - `summarizer()`: a callable that takes one configuration after the other and returns a pointer to its
///   summary, or null if only `lower` can tell. A summary is valid until the next call and while the summarizer
///   lives. A summarizer owns working memory, so each thread creates its own. Its optional `prefetch(config)`
///   announces a configuration.
///
/// Semantics the compiler cannot see: a policy gives the same result for summary and program, bit for bit; `lower` does
/// not throw if there is a summary.
///
/// Optional hook: `why_infeasible(task, summary) -> std::optional<std::string_view>`, as for the program; `nullopt` if
/// only the program can tell.
template <class S>
concept SummarizingSpace =
    SearchSpace<S> && requires(decltype(std::declval<const S&>().summarizer())& summarize, const config_t<S>& config) {
      typename S::summary_type;
      { summarize(config) } -> std::same_as<const typename S::summary_type*>;
    };

/// Passes configurations to policies, one after the other: the summary if there is one, else the lowered program. Owns
/// working memory; refers to space and task, which must outlive it.
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

  /// The summary of a configuration, valid until the next call; null if it must be lowered.
  [[nodiscard]] auto summary(const config_t<S>& config) {
    if constexpr (SummarizingSpace<S>)
      return summarizer_(config);
    else
      return static_cast<const NoSummaries*>(nullptr);
  }
  /// Calls `f(summary)`, if `f` accepts summaries and there is one, else `f(program)`. Throws what `lower` throws.
  template <class F>
  void read(const config_t<S>& config, const F& f) {
    if constexpr (std::invocable<const F&, decltype(*summary(config))>) {
      if (const auto* found = summary(config)) return static_cast<void>(f(*found));
    }
    f(space_.lower(task_, config));
  }
  /// Announces a configuration that will be read soon.
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
/// - `knobs()`: describes the numbers; a split into several factors is several knobs. Names are distinct.
/// - `knob_values(config)`: one number per knob, in that order; a category gives its index.
template <class S>
concept KnobSpace = SearchSpace<S> && requires(const S& space, const config_t<S>& config) {
  { space.knobs() } -> std::convertible_to<std::vector<Knob>>;
  { space.knob_values(config) } -> std::convertible_to<std::vector<double>>;
};

/// A space that finds the configuration for given knob values.
///
/// - `at_knobs(task, values)`: the configuration with these `knob_values`, or `nullopt` if there is none.
template <class S>
concept SettableKnobSpace =
    KnobSpace<S> && requires(const S& space, const Task& task, const std::vector<double>& values) {
      { space.at_knobs(task, values) } -> std::same_as<std::optional<config_t<S>>>;
    };

}  // namespace tunewright
