// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/parallel.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/features/extract_in_parts.hpp"
#include "tunewright/measurers/measure_batch.hpp"
#include "tunewright/recipe.hpp"
#include "tunewright/session/candidate_ranking.hpp"
#include "tunewright/session/described_rows.hpp"
#include "tunewright/session/session_state.hpp"
#include "tunewright/session/told_batch.hpp"
#include "tunewright/spaces/decode_records.hpp"
#include "tunewright/spaces/draw.hpp"
#include "tunewright/spaces/given_only.hpp"

namespace tunewright {

/// The search of one task, round by round: `ask` for candidates, measure them here or elsewhere, `tell` the outcomes.
///
///   pool  = explorer.explore(space, task, rank, seeds)   // [P]    rank: the draft, or else the model
///   pool  = filter.keep(pool)                            //        static limits, learned validity
///   x     = featurizer.extract(pool)                     // (R, D) in P programs
///   score = model.predict(x)                             // [P]    larger is better
///   batch = sampler.select(model, x, score, n)           // [B <= n]
///   runs  = measurer.measure(space.lower(batch))         // [B]    Timing or Failure
///   history.append; filter.learn; adaptation.update(model)
///
/// Until the model has learned from a valid measurement, batches are random samples of the space, unless there is a
/// draft. A model with a member `trained() -> bool` decides itself whether it has learned, so a pretrained model is
/// used at once. With a `TaskBoundAdaptation`, a model that was trained on other tasks alone has not learned.
/// `Parts::starts` come first.
///
/// If the space has summaries (`SummarizingSpace`), a candidate is lowered only once, by `measure`. It is featurized
/// once: `tell` adds the rows that `ask` computed for the model, or `measure` from the lowered program, to the training
/// data. Candidates that were not asked from this session, or that come from a journal, are featurized by `measure` or
/// `tell`.
///
/// A session refers to `parts`, which must outlive it; sessions over the same parts share model and training data.
///
/// Determinism: (seed, task, history) determine the next batch; `ask` without `tell` repeats itself unless the explorer
///              keeps state.
template <class Recipe>
class Session {
  static_assert(check_recipe<Recipe>());

 public:
  using Space = typename Recipe::space;
  using Config = config_t<Space>;
  using Batch = std::vector<Candidate<Config>>;

  /// Throws `std::invalid_argument` for options of policies out of range that `check_options` finds.
  Session(Parts<Recipe>& parts, const Task& task) : parts_(parts), state_(task), explorer_(parts.explorer) {
    check_options(parts_);
    if constexpr (IdentifiedMeasurer<typename Recipe::measurer>) state_.compiler = parts_.measurer.identity();
    parts_.training.forget(state_.task_hash);
    if (parts_.starts) starts_ = keep(parts_.starts(parts_.space, state_.task));
  }

  [[nodiscard]] const Task& task() const noexcept { return state_.task; }
  [[nodiscard]] const History<Config>& history() const& noexcept { return history_; }
  [[nodiscard]] History<Config> history() && noexcept { return std::move(history_); }
  [[nodiscard]] unsigned round() const noexcept { return state_.round; }
  [[nodiscard]] const ReasonCounts& rejected() const noexcept { return state_.rejected; }
  /// Candidates that the sampler was given with a score of NaN though they could be described: they came last, in no
  /// order that a model found. Repeated ones count again.
  [[nodiscard]] std::size_t unscored() const noexcept { return state_.unscored; }

  /// Returns at most `n` new candidates; none if the space has no more. Throws `std::invalid_argument` if the space
  /// never had any, for an `n` of 0 or above `most_asked`, for options of a `BoundedExplorer` out of range, and if it
  /// leaves the sampler no choice; `std::logic_error` for a policy that breaks its contract: an explorer that proposes
  /// what is measured, or the same twice, a featurizer that leaves programs out, a sampler that chooses none.
  [[nodiscard]] Batch ask(std::size_t n) {
    Batch batch = try_ask(n);
    constexpr bool only_given = requires(const Space& space) { []<class S>(const spaces::GivenOnly<S>&) {}(space); };
    if (batch.empty() && history_.size() == 0) refuse_empty_space(state_.task, state_.rejected, only_given);
    return batch;
  }

  /// The same, but returns none of a space that never had any.
  [[nodiscard]] Batch try_ask(std::size_t n) {
    check_asked(n);
    if constexpr (BoundedExplorer<typename Recipe::explorer> && !IndifferentSampler<typename Recipe::sampler>)
      explorers::check_choice(explorer_.pool_bound(n), n);
    const Rng rng = Rng(parts_.seed).split(state_.task_hash).split(state_.round);
    state_.ranked.clear();
    state_.asked.clear();
    Batch batch = unmeasured_starts(n);
    if (batch.size() == n) return batch;
    const KeySet excluded = joined(history_.keys(), keys_of(batch));
    n -= batch.size();
    // A model without data would only dress up random choice.
    const bool guided = has_draft || model_has_learned();
    std::vector<Config> pool;  // [P]
    if (guided) pool = explore(n, excluded, rng.split(explore_stream), rng.split(select_stream));
    if (pool.size() < n) draw_into(pool, n, excluded, rng.split(draw_stream));
    if (pool.empty() && batch.empty()) return batch;
    const std::vector<std::uint64_t> keys = keys_of(pool);                  // [P]
    std::vector<std::size_t> chosen = positions(std::min(n, pool.size()));  // [B]
    std::vector<float> score(pool.size());                                  // [P]
    if (guided) {
      check_new(keys, excluded);
      const FeatureBatch x = rows_of(pool, keys, state_.ranked);  // (R, D) in P programs
      if (model_has_learned())
        parts_.model.predict(x, score);
      else
        rank(pool, score);
      state_.unscored += count_unscored(x, score);
      chosen = select(x, score, n, rng.split(select_stream));
      samplers::check_selection(chosen, pool.size(), n);
    }
    const std::size_t starts = batch.size();
    for (const std::size_t index : chosen) {
      batch.push_back({std::move(pool[index]), keys[index], state_.round, static_cast<unsigned>(batch.size())});
      if (model_has_learned()) batch.back().predicted = score[index];
    }
    if (guided) {
      const std::vector<std::uint64_t> chosen_keys = keys_of(std::span<const Candidate<Config>>(batch).subspan(starts));
      state_.asked.add(chosen_keys, state_.ranked.gather(chosen_keys));
    }
    state_.ranked.clear();
    return batch;
  }

  /// Lowers and measures a batch, or some of it, with the measurer of the recipe; `sink` receives each outcome as soon
  /// as it is known. Throws as the measurer does and, before anything is measured, as `features::prepare_for` does.
  [[nodiscard]] std::vector<Outcome> measure(std::span<const Candidate<Config>> batch, const OutcomeSink& sink = {}) {
    if constexpr (BestAwareMeasurer<typename Recipe::measurer>) {
      // Also without a best, because the measurer may remember that of another search.
      const auto* best = history_.best();
      parts_.measurer.note_best(state_.task,
                                best != nullptr ? best_with(state_.untold_best, best->outcome) : state_.untold_best);
    }
    std::vector<Outcome> outcomes = lower_and_measure(batch, sink);
    for (const Outcome& outcome : outcomes) state_.untold_best = best_with(state_.untold_best, outcome);
    return outcomes;
  }

  /// Measurements that the adaptation waits for before it trains the model.
  [[nodiscard]] std::size_t warmup() const {
    const std::size_t unused = warmup_candidates_of(parts_.adaptation), known = parts_.training.size();
    return unused > 0 && unused >= known ? unused + 1 - known : 0;
  }

  /// Takes the outcomes of `batch`, one per candidate, in the same order. Throws `std::invalid_argument`, before
  /// learning anything, for another number of outcomes, for latencies that are not positive and finite, and for
  /// candidates that were told before.
  void tell(std::span<const Candidate<Config>> batch, std::span<const Outcome> outcomes) {
    take(batch, outcomes, false);
    update_model();
    for (const Candidate<Config>& candidate : batch) state_.end_round(candidate.round);
  }

  /// Takes over measurements from a journal. Returns the number of rejected records by reason. The search continues
  /// after the last recorded round, as if these trials had been measured now. Throws `std::invalid_argument`, before
  /// learning anything, for candidates that were told or recalled before.
  ReasonCounts recall(std::span<const Record> records) {
    const std::size_t before = history_.size();
    ReasonCounts unusable = take_over(records);
    if (history_.size() > before) update_model();
    return unusable;
  }

  /// Like `recall`, but leaves the model unchanged: with several sessions over the same parts, the last one updates it
  /// for all.
  ReasonCounts take_over(std::span<const Record> records) {
    auto found = spaces::decode_records(parts_.space, state_.task, records, state_.compiler);
    if (!found.batch.empty()) {
      const unsigned last_round = found.batch.back().round;
      take(found.batch, found.outcomes, true);
      state_.end_round(last_round);
    }
    return std::move(found.unusable);
  }

  /// Trains the model on the data of all sessions over the same parts.
  void update_model() {
    const TrainingSet::Data data = parts_.training.assemble();
    parts_.adaptation.update(parts_.model, data.x, std::span<const float>(data.y),
                             std::span<const std::uint32_t>(data.group));
  }

  [[nodiscard]] Record record(const Candidate<Config>& candidate, const Outcome& outcome) const {
    Record record = record_of_session(state_.task, state_.task_hash, state_.compiler, parts_.seed);
    record.key = candidate.key;
    record.config = parts_.space.encode(candidate.config);
    record.outcome = outcome;
    record.round = candidate.round;
    record.slot = candidate.slot;
    if (std::isfinite(candidate.predicted)) record.predicted = candidate.predicted;
    return record;
  }

 private:
  [[nodiscard]] std::vector<Outcome> lower_and_measure(std::span<const Candidate<Config>> batch,
                                                       const OutcomeSink& sink) {
    if constexpr (features::NestFeaturizerFor<typename Recipe::featurizer, Space>) {
      auto describer = parts_.featurizer.describer();
      features::prepare_for(describer, state_.task);
      FeatureBatch x(width_of(parts_.featurizer.schema()));
      const auto describe = [&](std::size_t slot, const program_t<Space>* program) {
        if (state_.asked.contains(batch[slot].key)) return;
        x.clear();
        if (program != nullptr)
          features::describe_or_leave_out(describer, *program, state_.task, x);
        else
          x.close_program();
        state_.asked.add(std::span(&batch[slot].key, 1), x);
      };
      return measurers::measure_batch(parts_.space, state_.task, parts_.measurer, batch, sink, describe);
    } else {
      return measurers::measure_batch(parts_.space, state_.task, parts_.measurer, batch, sink);
    }
  }

  enum Stream : std::uint64_t { explore_stream, draw_stream, select_stream };  // generators of a round
  static constexpr bool has_draft = CandidateRanking<Recipe>::has_draft;
  static constexpr std::size_t max_seeds = 512;  // of an explorer; the recipes' start from at most 410

  [[nodiscard]] std::vector<std::uint64_t> keys_of(const std::vector<Config>& configs) const {
    std::vector<std::uint64_t> keys;
    for (const Config& config : configs) keys.push_back(parts_.space.key(config));
    return keys;
  }
  [[nodiscard]] static std::vector<std::uint64_t> keys_of(std::span<const Candidate<Config>> candidates) {
    std::vector<std::uint64_t> keys;
    for (const Candidate<Config>& candidate : candidates) keys.push_back(candidate.key);
    return keys;
  }

  // Whether the model ranks candidates of this task.
  [[nodiscard]] bool model_has_learned() const {
    const bool updated = warmup() == 0 && parts_.training.size() > 0;
    if (TaskBoundAdaptation<typename Recipe::adaptation> && updated && history_.size() == 0) return false;
    if constexpr (requires {
                    { parts_.model.trained() } -> std::convertible_to<bool>;
                  })
      return parts_.model.trained();
    else
      return history_.valid() > 0 && updated;
  }

  /// At most `n` of the given start configurations.
  [[nodiscard]] Batch unmeasured_starts(std::size_t n) {
    Batch batch;
    if (starts_.empty()) return batch;
    KeySet known = history_.keys();
    for (const Config& config : starts_) {
      if (batch.size() == n) break;
      const std::uint64_t key = parts_.space.key(config);
      if (known.insert(key).second) batch.push_back({config, key, state_.round, static_cast<unsigned>(batch.size())});
    }
    return batch;
  }

  // What the explorer finds, as the sampler wants it to, and the filter keeps.
  [[nodiscard]] std::vector<Config> explore(std::size_t n, const KeySet& excluded, Rng rng,
                                            [[maybe_unused]] Rng select_rng) {
    if constexpr (!has_draft && GuidingSamplerFor<typename Recipe::sampler, typename Recipe::model>) {
      return with_labelled(1, [&](const samplers::Labelled& labelled) {
        return explore_by(parts_.sampler.guide(std::as_const(parts_.model), labelled, select_rng), n, excluded, rng);
      });
    } else {
      return explore_by({}, n, excluded, rng);
    }
  }

  // The same by `guide`, or by the score where it is an empty function.
  [[nodiscard]] std::vector<Config> explore_by(const samplers::Guide& guide, std::size_t n, const KeySet& excluded,
                                               Rng& rng) {
    const auto rank_for_explorer = [&](std::span<const Config> configs, std::span<float> score) {
      rank(configs, score, guide);
    };
    const std::vector<Config> seeds = history_.fastest(max_seeds);
    return keep(explorer_.explore(
        parts_.space, state_.task,
        Guidance<Config>{
            .rank = rank_for_explorer, .seeds = seeds, .measured = excluded, .wanted = n, .threads = parts_.threads},
        rng));
  }

  // Ahead of measuring: `tell` would find a candidate that comes again only after its whole batch has run.
  static void check_new(std::span<const std::uint64_t> keys, const KeySet& excluded) {
    KeySet seen;
    for (const std::uint64_t key : keys) {
      const bool measured = excluded.count(key) != 0;
      if (!measured && seen.insert(key).second) continue;
      throw std::logic_error("the explorer proposed candidate " + to_hex(key) +
                             (measured ? ", which is measured already; leave out keys that guidance.measured has"
                                       : " twice; return configurations with distinct keys"));
    }
  }

  // Scores `configs` by the draft, or else by `guide` or the model, and counts what the filter rejects.
  void rank(std::span<const Config> configs, std::span<float> score, const samplers::Guide& guide = {}) {
    const CandidateRanking<Recipe> ranking(parts_, state_.task, state_.ranked, guide);
    add_counts(state_.rejected, ranking.rank(configs, score));
  }

  // Calls use(labelled) with what was measured so far, beside a pool of `candidates`.
  template <class Use>
  [[nodiscard]] auto with_labelled(std::size_t candidates, const Use& use) const {
    const TrainingSet::Data known = parts_.training.assemble();
    const std::vector<std::uint32_t> pool_task(candidates, parts_.training.group_of(state_.task_hash));
    return use(samplers::Labelled{.x = known.x,
                                  .y = known.y,
                                  .task = known.group,
                                  .round = known.round,
                                  .predicted = known.predicted,
                                  .pool_task = pool_task});
  }

  [[nodiscard]] std::vector<std::size_t> select(const FeatureBatch& x, std::span<const float> score, std::size_t n,
                                                Rng rng) {
    const auto& model = std::as_const(parts_.model);
    if constexpr (LabelAwareSamplerFor<typename Recipe::sampler, typename Recipe::model>) {
      return with_labelled(score.size(), [&](const samplers::Labelled& labelled) {
        return parts_.sampler.select(model, x, score, n, rng, labelled);
      });
    } else {
      return parts_.sampler.select(model, x, score, n, rng);
    }
  }

  /// The rows of `configs`, whose keys are `keys`; rows missing in `known` are computed and added to it.
  [[nodiscard]] FeatureBatch rows_of(std::span<const Config> configs, std::span<const std::uint64_t> keys,
                                     DescribedRows& known) const {
    std::vector<std::uint64_t> missing;
    std::vector<Config> lacking;
    for (const std::size_t i : undescribed(known, keys)) {
      missing.push_back(keys[i]);
      lacking.push_back(configs[i]);
    }
    if (!missing.empty()) {
      known.add(missing, features::extract_in_parts(parts_.featurizer, parts_.space, state_.task,
                                                    std::span<const Config>(lacking), parts_.threads));
    }
    return known.gather(keys);  // (R, D)
  }

  [[nodiscard]] std::vector<Config> keep(std::vector<Config> pool) {
    // The filter has already judged the configurations that ranking featurized.
    const auto is_known = [&](const Config& config) { return state_.ranked.contains(parts_.space.key(config)); };
    if (std::all_of(pool.begin(), pool.end(), is_known)) return pool;
    std::vector<char> is_kept(pool.size());
    SharedReasonCounts counts(state_.rejected);
    parallel_parts(parts_.threads, pool.size(), [&](std::size_t begin, std::size_t end) {
      const Kept kept =
          parts_.filter.keep(parts_.space, state_.task, std::span<const Config>(pool).subspan(begin, end - begin));
      check_kept(kept, end - begin);
      for (const std::size_t index : kept.indices) is_kept[begin + index] = true;
      counts.add(kept.rejected);
    });
    std::vector<Config> left;
    for (std::size_t i = 0; i < pool.size(); ++i)
      if (is_kept[i]) left.push_back(std::move(pool[i]));
    return left;
  }

  // Fills `pool` up to `n` with random configurations that are new and pass the filter. Fewer if eight consecutive
  // passes give none.
  void draw_into(std::vector<Config>& pool, std::size_t n, const KeySet& excluded, const Rng& rng) {
    constexpr unsigned max_barren = 8;
    constexpr std::size_t few = 64, many = 4096;
    KeySet known = joined(excluded, keys_of(pool));
    // The first pass draws no more than is wanted, because most spaces give little that the filter rejects. The others
    // draw more, and twice as many after each barren one: the share that is new and that the filter keeps may be far
    // below 1 / n.
    std::size_t least = 0;
    unsigned barren = 0;
    for (std::uint64_t pass = 0; barren < max_barren && pool.size() < n; ++pass) {
      auto drawn = spaces::draw(parts_.space, state_.task, std::max(n - pool.size(), least), known, parts_.threads,
                                rng.split(pass));
      for (const Config& config : drawn) known.insert(parts_.space.key(config));
      const std::size_t before = pool.size();
      for (Config& config : keep(std::move(drawn)))
        if (pool.size() < n) pool.push_back(std::move(config));
      barren = pool.size() > before ? 0 : barren + 1;
      least = std::clamp(barren > 0 ? 2 * least : least, few, many);
    }
  }

  void take(std::span<const Candidate<Config>> batch, std::span<const Outcome> outcomes, bool recalled) {
    const ToldBatch told(batch, outcomes);
    told.check(history_.keys());
    state_.untold_best = Seconds(0);
    std::vector<Config> configs;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      history_.append({batch[i], outcomes[i], recalled});
      configs.push_back(batch[i].config);
    }
    const std::span<const Config> seen = configs;
    told.add_to(parts_.training, state_.task_hash, rows_of(seen, told.keys, state_.asked));
    state_.asked.forget(told.keys);
    if constexpr (LearningFilterFor<typename Recipe::filter, Space>)
      parts_.filter.learn(parts_.space, state_.task, seen, outcomes);
  }

  Parts<Recipe>& parts_;
  SessionState state_;
  typename Recipe::explorer explorer_;
  History<Config> history_;
  std::vector<Config> starts_;
};

}  // namespace tunewright
