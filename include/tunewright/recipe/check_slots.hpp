// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/drafts/concept.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/filters/concept.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/recipe/near_misses.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/schedulers/concept.hpp"
#include "tunewright/spaces/concept.hpp"

/// One function per slot: reports what a class lacks to model the slot's contract, with one static_assert for each way
/// to miss it. Each is called only for classes that do not model it, and at least one of its assertions fails.
namespace tunewright::check_slots {

using near_misses::AnyResult;
using near_misses::const_fit;
using near_misses::Fit;
using near_misses::fit;

template <class S>
consteval void space() {
  constexpr bool has_types = requires {
    typename S::config_type;
    typename S::program_type;
  };
  static_assert(has_types,
                "recipe: slot 'space' does not model SearchSpace: it does not name its config_type and program_type "
                "(docs/concepts/spaces.md)");
  if constexpr (has_types) {
    using Config = config_t<S>;
    static_assert(std::copyable<Config>,
                  "recipe: slot 'space' does not model SearchSpace: its config_type cannot be copied and assigned "
                  "(docs/concepts/spaces.md)");
    constexpr Fit sample = const_fit<S, std::optional<Config>, const Task&, Rng&>(
        [](auto& s, auto&&... a) -> decltype(s.sample(a...)) { return s.sample(a...); });
    static_assert(sample != Fit::NotConst,
                  "recipe: slot 'space' does not model SearchSpace: sample is not const (docs/concepts/spaces.md)");
    static_assert(sample != Fit::OtherResult,
                  "recipe: slot 'space' does not model SearchSpace: sample must return std::optional<config_type>, "
                  "because a draw may lead nowhere (docs/concepts/spaces.md)");
    static_assert(sample != Fit::Missing,
                  "recipe: slot 'space' does not model SearchSpace: it has no sample(const Task&, Rng&) const "
                  "(docs/concepts/spaces.md)");
    constexpr Fit mutate = const_fit<S, std::optional<Config>, const Task&, const Config&, Rng&>(
        [](auto& s, auto&&... a) -> decltype(s.mutate(a...)) { return s.mutate(a...); });
    static_assert(mutate != Fit::NotConst,
                  "recipe: slot 'space' does not model SearchSpace: mutate is not const (docs/concepts/spaces.md)");
    static_assert(mutate != Fit::OtherResult,
                  "recipe: slot 'space' does not model SearchSpace: mutate must return std::optional<config_type>, "
                  "because a change may not be legal (docs/concepts/spaces.md)");
    static_assert(mutate != Fit::Missing,
                  "recipe: slot 'space' does not model SearchSpace: it has no mutate(const Task&, const config_type&, "
                  "Rng&) const (docs/concepts/spaces.md)");
    constexpr Fit feasible = const_fit<S, bool, const Task&, const Config&>(
        [](auto& s, auto&&... a) -> decltype(s.feasible(a...)) { return s.feasible(a...); });
    static_assert(feasible == Fit::Good,
                  "recipe: slot 'space' does not model SearchSpace: it has no bool feasible(const Task&, const "
                  "config_type&) const (docs/concepts/spaces.md)");
    constexpr Fit key = const_fit<S, std::uint64_t, const Config&>(
        [](auto& s, auto&&... a) -> decltype(s.key(a...)) { return s.key(a...); });
    static_assert(key == Fit::Good,
                  "recipe: slot 'space' does not model SearchSpace: it has no std::uint64_t key(const config_type&) "
                  "const (docs/concepts/spaces.md)");
    constexpr Fit encode = const_fit<S, std::string, const Config&>(
        [](auto& s, auto&&... a) -> decltype(s.encode(a...)) { return s.encode(a...); });
    static_assert(encode == Fit::Good,
                  "recipe: slot 'space' does not model SearchSpace: it has no std::string encode(const config_type&) "
                  "const (docs/concepts/spaces.md)");
    constexpr Fit decode = const_fit<S, std::optional<Config>, const Task&, std::string_view&>(
        [](auto& s, auto&&... a) -> decltype(s.decode(a...)) { return s.decode(a...); });
    static_assert(decode == Fit::Good,
                  "recipe: slot 'space' does not model SearchSpace: it has no std::optional<config_type> decode(const "
                  "Task&, std::string_view) const (docs/concepts/spaces.md)");
    constexpr Fit lower = const_fit<S, program_t<S>, const Task&, const Config&>(
        [](auto& s, auto&&... a) -> decltype(s.lower(a...)) { return s.lower(a...); });
    static_assert(lower == Fit::Good,
                  "recipe: slot 'space' does not model SearchSpace: it has no program_type lower(const Task&, const "
                  "config_type&) const (docs/concepts/spaces.md)");
    static_assert(!(std::copyable<Config> && sample == Fit::Good && mutate == Fit::Good && feasible == Fit::Good &&
                    key == Fit::Good && encode == Fit::Good && decode == Fit::Good && lower == Fit::Good),
                  "recipe: slot 'space' does not model SearchSpace (docs/concepts/spaces.md)");
  }
}

template <class M>
consteval void model() {
  static_assert(std::copyable<M>,
                "recipe: slot 'model' does not model CostModel: it cannot be copied and assigned; hold what it has "
                "learned by value (docs/concepts/models.md)");
  constexpr Fit predict = const_fit<M, void, const FeatureBatch&, std::span<float>&>(
      [](auto& m, auto&&... a) -> decltype(m.predict(a...)) { return m.predict(a...); });
  static_assert(predict != Fit::NotConst,
                "recipe: slot 'model' does not model CostModel: predict is not const; several threads predict at once "
                "(docs/concepts/models.md)");
  static_assert(predict != Fit::OtherResult,
                "recipe: slot 'model' does not model CostModel: predict must return void and write its scores to the "
                "span (docs/concepts/models.md)");
  static_assert(predict != Fit::Missing,
                "recipe: slot 'model' does not model CostModel: it has no void predict(const FeatureBatch& x, "
                "std::span<float> score) const (docs/concepts/models.md)");
  using Labels = std::span<const float>&;
  using Groups = std::span<const std::uint32_t>&;
  constexpr auto call_fit = [](auto& m, auto&&... a) -> decltype(m.fit(a...)) { return m.fit(a...); };
  constexpr Fit learn = fit<M, void, const FeatureBatch&, Labels, Groups>(call_fit);
  constexpr bool without_groups =
      learn == Fit::Missing && fit<M, AnyResult, const FeatureBatch&, Labels>(call_fit) == Fit::Good;
  static_assert(!without_groups,
                "recipe: slot 'model' does not model CostModel: fit takes no groups; it is void fit(const "
                "FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group), where programs of "
                "one task have equal groups (docs/concepts/models.md)");
  static_assert(learn != Fit::OtherResult,
                "recipe: slot 'model' does not model CostModel: fit must return void (docs/concepts/models.md)");
  static_assert(without_groups || learn != Fit::Missing,
                "recipe: slot 'model' does not model CostModel: it has no void fit(const FeatureBatch& x, "
                "std::span<const float> y, std::span<const std::uint32_t> group) (docs/concepts/models.md)");
  static_assert(!std::copyable<M> || predict != Fit::Good || learn != Fit::Good || CostModel<M>,
                "recipe: slot 'model' does not model CostModel (docs/concepts/models.md)");
}

template <class F, class S>
consteval void featurizer() {
  using Pool = std::span<const config_t<S>>&;
  constexpr auto call = [](auto& f, auto&&... a) -> decltype(f.extract(a...)) { return f.extract(a...); };
  constexpr Fit extract = const_fit<F, FeatureBatch, const S&, const Task&, Pool>(call);
  static_assert(extract != Fit::NotConst,
                "recipe: slot 'featurizer' does not model FeaturizerFor<space>: extract is not const; several threads "
                "describe at once (docs/concepts/features.md)");
  static_assert(extract != Fit::OtherResult,
                "recipe: slot 'featurizer' does not model FeaturizerFor<space>: extract must return a FeatureBatch "
                "(docs/concepts/features.md)");
  constexpr bool needs_knobs =
      extract == Fit::Missing &&
      const_fit<F, FeatureBatch, const near_misses::with_knobs_t<S>&, const Task&, Pool>(call) == Fit::Good;
  static_assert(!needs_knobs,
                "recipe: slot 'featurizer' does not model FeaturizerFor<space>: it needs a KnobSpace, and the space "
                "has no knobs() and knob_values(config) (docs/concepts/features.md)");
  static_assert(needs_knobs || extract != Fit::Missing,
                "recipe: slot 'featurizer' does not model FeaturizerFor<space>: it has no extract(const Space&, const "
                "Task&, std::span<const config_type>) const for the configurations of this space; it may describe "
                "those of another (docs/concepts/features.md)");
  constexpr bool has_schema = requires(const F& f) {
    { f.schema() } -> std::convertible_to<FeatureSchema>;
  };
  static_assert(has_schema || extract != Fit::Good,
                "recipe: slot 'featurizer' does not model FeaturizerFor<space>: it has no FeatureSchema schema() "
                "const, which names its columns (docs/concepts/features.md)");
  static_assert(extract != Fit::Good || !has_schema || FeaturizerFor<F, S>,
                "recipe: slot 'featurizer' does not model FeaturizerFor<space> (docs/concepts/features.md)");
}

template <class D, class S>
consteval void draft() {
  constexpr Fit score =
      const_fit<D, AnyResult, const S&, const Task&, std::span<const config_t<S>>&, std::span<float>&>(
          [](auto& d, auto&&... a) -> decltype(d.score(a...)) { return d.score(a...); });
  static_assert(score != Fit::NotConst,
                "recipe: slot 'draft' does not model DraftModelFor<space>: score is not const; several threads score "
                "at once (docs/concepts/drafts.md)");
  static_assert(score != Fit::Missing,
                "recipe: slot 'draft' does not model DraftModelFor<space>: it has no score(const Space&, const Task&, "
                "std::span<const config_type>, std::span<float>) const for the configurations of this space; "
                "drafts::None takes the stage out (docs/concepts/drafts.md)");
  static_assert(score != Fit::Good || DraftModelFor<D, S>,
                "recipe: slot 'draft' does not model DraftModelFor<space> (docs/concepts/drafts.md)");
}

template <class E, class S>
consteval void explorer() {
  static_assert(std::copyable<E>,
                "recipe: slot 'explorer' does not model ExplorerFor<space>: it cannot be copied and assigned; each "
                "session works on a copy (docs/concepts/explorers.md)");
  using Config = config_t<S>;
  constexpr auto call = [](auto& e, auto&&... a) -> decltype(e.explore(a...)) { return e.explore(a...); };
  constexpr Fit explore = fit<E, std::vector<Config>, const S&, const Task&, const Guidance<Config>&, Rng&>(call);
  constexpr bool is_sampler = explore == Fit::Missing && SamplerFor<E, near_misses::ModelWithAll>;
  constexpr bool changes_guidance =
      explore == Fit::Missing && fit<E, AnyResult, const S&, const Task&, Guidance<Config>&, Rng&>(call) == Fit::Good;
  static_assert(!is_sampler,
                "recipe: slot 'explorer' does not model ExplorerFor<space>: it is a sampler; explorers decide which "
                "candidates are considered, samplers which of them are measured (docs/concepts/explorers.md)");
  static_assert(!changes_guidance,
                "recipe: slot 'explorer' does not model ExplorerFor<space>: explore takes Guidance&; take const "
                "Guidance<config_type>& (docs/concepts/explorers.md)");
  static_assert(explore != Fit::OtherResult,
                "recipe: slot 'explorer' does not model ExplorerFor<space>: explore must return "
                "std::vector<config_type> (docs/concepts/explorers.md)");
  static_assert(is_sampler || changes_guidance || explore != Fit::Missing,
                "recipe: slot 'explorer' does not model ExplorerFor<space>: it has no explore(const Space&, const "
                "Task&, const Guidance<config_type>&, Rng&) for this space (docs/concepts/explorers.md)");
  static_assert(!std::copyable<E> || explore != Fit::Good || ExplorerFor<E, S>,
                "recipe: slot 'explorer' does not model ExplorerFor<space> (docs/concepts/explorers.md)");
}

template <class F, class S>
consteval void filter() {
  constexpr Fit keep = const_fit<F, Kept, const S&, const Task&, std::span<const config_t<S>>&>(
      [](auto& f, auto&&... a) -> decltype(f.keep(a...)) { return f.keep(a...); });
  static_assert(keep != Fit::NotConst,
                "recipe: slot 'filter' does not model FilterFor<space>: keep is not const; several threads ask at "
                "once (docs/concepts/filters.md)");
  static_assert(keep != Fit::OtherResult,
                "recipe: slot 'filter' does not model FilterFor<space>: keep must return Kept, the positions kept and "
                "counts of why the others went (docs/concepts/filters.md)");
  static_assert(keep != Fit::Missing,
                "recipe: slot 'filter' does not model FilterFor<space>: it has no keep(const Space&, const Task&, "
                "std::span<const config_type>) const for the configurations of this space; filters::None takes the "
                "stage out (docs/concepts/filters.md)");
  static_assert(keep != Fit::Good || FilterFor<F, S>,
                "recipe: slot 'filter' does not model FilterFor<space> (docs/concepts/filters.md)");
}

template <class M, class P>
consteval void measurer() {
  constexpr auto call = [](auto& m, auto&&... a) -> decltype(m.measure(a...)) { return m.measure(a...); };
  using Programs = std::span<const P>&;
  constexpr Fit measure = fit<M, std::vector<Outcome>, const Task&, Programs>(call);
  constexpr bool only_streams =
      measure == Fit::Missing && fit<M, AnyResult, const Task&, Programs, const OutcomeSink&>(call) == Fit::Good;
  static_assert(!only_streams,
                "recipe: slot 'measurer' does not model MeasurerFor<program of the space>: measure must also work "
                "without a sink; give its last parameter a default, const OutcomeSink& sink = {} "
                "(docs/concepts/measurers.md)");
  static_assert(measure != Fit::OtherResult,
                "recipe: slot 'measurer' does not model MeasurerFor<program of the space>: measure must return "
                "std::vector<Outcome>, one a program (docs/concepts/measurers.md)");
  static_assert(only_streams || measure != Fit::Missing,
                "recipe: slot 'measurer' does not model MeasurerFor<program of the space>: it has no measure(const "
                "Task&, std::span<const program_type>) for what this space lowers to; it may run another kind of "
                "program (docs/concepts/measurers.md)");
  static_assert(
      measure != Fit::Good || MeasurerFor<M, P>,
      "recipe: slot 'measurer' does not model MeasurerFor<program of the space> (docs/concepts/measurers.md)");
}

template <class X, class M>
consteval void sampler() {
  using near_misses::ModelWith;
  constexpr auto call = [](auto& x, auto&&... a) -> decltype(x.select(a...)) { return x.select(a...); };
  using Score = std::span<const float>&;
  constexpr Fit select =
      fit<X, std::vector<std::size_t>, const M&, const FeatureBatch&, Score, std::size_t&, Rng&>(call);
  constexpr bool uncertain = SamplerFor<X, ModelWith<near_misses::WithDeviation>>;
  constexpr bool embedding = SamplerFor<X, ModelWith<near_misses::WithEmbedding>>;
  constexpr bool any_capability = SamplerFor<X, near_misses::ModelWithAll>;
  constexpr bool needs_more = select == Fit::Missing && any_capability;
  constexpr bool without_default =
      select == Fit::Missing && fit<X, AnyResult, const near_misses::ModelWithAll&, const FeatureBatch&, Score,
                                    std::size_t&, Rng&, const samplers::Labelled&>(call) == Fit::Good;
  static_assert(!(needs_more && uncertain),
                "recipe: slot 'sampler' does not model SamplerFor<model>: it needs an UncertainCostModel, and the "
                "model has no predict_with_deviation; models::Committee, models::WithDropout and "
                "models::GaussianProcess have (docs/concepts/samplers.md)");
  static_assert(!(needs_more && embedding),
                "recipe: slot 'sampler' does not model SamplerFor<model>: it needs an EmbeddingCostModel, and the "
                "model has no embed, as trees and networks have (docs/concepts/samplers.md)");
  static_assert(!(needs_more && !uncertain && !embedding),
                "recipe: slot 'sampler' does not model SamplerFor<model>: it needs more of the model than a CostModel "
                "gives; see what its select asks of it (docs/concepts/samplers.md)");
  static_assert(needs_more || !without_default,
                "recipe: slot 'sampler' does not model SamplerFor<model>: the last parameter of select has no "
                "default; write const samplers::Labelled& labelled = {} (docs/concepts/samplers.md)");
  static_assert(select != Fit::OtherResult,
                "recipe: slot 'sampler' does not model SamplerFor<model>: select must return "
                "std::vector<std::size_t>, positions in the pool (docs/concepts/samplers.md)");
  static_assert(needs_more || without_default || select != Fit::Missing,
                "recipe: slot 'sampler' does not model SamplerFor<model>: it has no select(const Model&, const "
                "FeatureBatch& x, std::span<const float> score, std::size_t n, Rng&); it may be an explorer "
                "(docs/concepts/samplers.md)");
  static_assert(select != Fit::Good || SamplerFor<X, M>,
                "recipe: slot 'sampler' does not model SamplerFor<model> (docs/concepts/samplers.md)");
}

/// Checks what the separate contracts do not: that model and sampler can read the featurizer's rows.
template <class F, class M, class X>
consteval void rows() {
  static_assert(ReadsRowsOf<M, F>,
                "recipe: slot 'model' cannot read the rows of slot 'featurizer'; see the model's reads_rows_of. "
                "models::PatternAware reads rows of two kinds, as features::Joined<features::PerStatement, "
                "features::Dataflow> gives, models::GbdtOnDraft rows that end with a features::DraftScore "
                "(docs/concepts/models.md)");
  static_assert(ReadsRowsOf<X, F>,
                "recipe: slot 'sampler' cannot read the rows of slot 'featurizer'; see the sampler's reads_rows_of. "
                "samplers::UncertaintyPingPong reads one row a configuration, as features::Knobs gives "
                "(docs/concepts/samplers.md)");
}

template <class A, class M>
consteval void adaptation() {
  using near_misses::ModelWith;
  using Labels = std::span<const float>&;
  using Groups = std::span<const std::uint32_t>&;
  constexpr auto call = [](auto& a, auto&&... b) -> decltype(a.update(b...)) { return a.update(b...); };
  constexpr Fit update = fit<A, AnyResult, M&, const FeatureBatch&, Labels, Groups>(call);
  constexpr bool weights = AdaptationFor<A, ModelWith<near_misses::WithParameters>>;
  constexpr bool training = !weights && AdaptationFor<A, ModelWith<near_misses::WithTrainingFromCurrent>>;
  constexpr bool heads = AdaptationFor<A, ModelWith<near_misses::WithHeads>>;
  constexpr bool needs_more = update == Fit::Missing && AdaptationFor<A, near_misses::ModelWithAll>;
  constexpr bool without_groups =
      update == Fit::Missing && fit<A, AnyResult, M&, const FeatureBatch&, Labels>(call) == Fit::Good;
  static_assert(!(needs_more && weights),
                "recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs a ParametricCostModel, and "
                "the model has no parameters(), as networks have; adaptations::Refit trains any model "
                "(docs/concepts/adaptations.md)");
  static_assert(!(needs_more && training),
                "recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs a FineTunableCostModel, and "
                "the model has no train_from_current, as networks have; adaptations::Refit trains any model "
                "(docs/concepts/adaptations.md)");
  static_assert(!(needs_more && heads),
                "recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs a MultiHeadCostModel, and "
                "the model has no fit_heads and predict_head; adaptations::Refit trains any model "
                "(docs/concepts/adaptations.md)");
  static_assert(!(needs_more && !weights && !training && !heads),
                "recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs more of the model than a "
                "CostModel gives; see what its update asks of it (docs/concepts/adaptations.md)");
  static_assert(!without_groups,
                "recipe: slot 'adaptation' does not model AdaptationFor<model>: update takes no groups; its last "
                "parameter is std::span<const std::uint32_t> group (docs/concepts/adaptations.md)");
  static_assert(needs_more || without_groups || update != Fit::Missing,
                "recipe: slot 'adaptation' does not model AdaptationFor<model>: it has no update(Model&, const "
                "FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) for this model; it "
                "may need one that is wrapped, such as in adaptations::Transferred (docs/concepts/adaptations.md)");
  static_assert(update != Fit::Good || AdaptationFor<A, M>,
                "recipe: slot 'adaptation' does not model AdaptationFor<model> (docs/concepts/adaptations.md)");
}

template <class S>
consteval void scheduler() {
  using Tasks = std::span<const schedulers::TaskState>&;
  constexpr auto call = [](auto& s, auto&&... a) -> decltype(s.next(a...)) { return s.next(a...); };
  constexpr Fit next = fit<S, std::size_t, Tasks, Rng&>(call);
  constexpr bool without_generator = next == Fit::Missing && fit<S, AnyResult, Tasks>(call) == Fit::Good;
  static_assert(
      !without_generator,
      "scheduler: it does not model TaskScheduler: next takes no generator; its last parameter is Rng&, which "
      "may go unnamed (docs/concepts/schedulers.md)");
  static_assert(next != Fit::OtherResult,
                "scheduler: it does not model TaskScheduler: next must return std::size_t, the position of a task "
                "(docs/concepts/schedulers.md)");
  static_assert(without_generator || next != Fit::Missing,
                "scheduler: it does not model TaskScheduler: it has no std::size_t next(std::span<const "
                "schedulers::TaskState> tasks, Rng&); schedulers::Gradient and schedulers::RoundRobin have "
                "(docs/concepts/schedulers.md)");
  static_assert(next != Fit::Good || TaskScheduler<S>,
                "scheduler: it does not model TaskScheduler (docs/concepts/schedulers.md)");
}

}  // namespace tunewright::check_slots
