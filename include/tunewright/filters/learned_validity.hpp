// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/filters/concept.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::filters {

/// Rejects candidates that a model predicts to fail. The model of whether a configuration gives a latency is trained
/// after every batch.
///
///   label        1 for a candidate with a latency, 0 for a failed one
///   kept         score of the model >= threshold, or one of the `explored_share` kept for exploration
///   class weight the rarer class is repeated until both weigh about the same, in whole repetitions, if `balanced`
///
/// With `most_lost` the threshold is learned: with m labels 1, each scored by a model of the other folds, it is the
/// k-th lowest of these scores, k = floor(most_lost (m + 1)); for k = 0 everything is kept. If candidates resemble the
/// measured ones, about a share `most_lost` of the valid ones is then rejected.
///
/// Everything is kept until there are `least_labels` labels, `least_failures` failures and a success, of configurations
/// with rows: the model learns nothing from others.
///
///   filters::LearnedValidity<models::Gbdt, features::Knobs> filter{
///       .model = {.objective = models::gbdt::Objective::Logistic}, .log_odds = true};
///
/// Paper:       Zeng et al., ALT, ICCD 2020 (the filter); Vovk, "Cross-conformal predictors", 2015 (the learned
///              threshold).
/// Models:      LearningFilterFor<S> for every space S that the featurizer F describes. M is any CostModel whose score,
///              trained on 0 and 1, estimates the probability of 1 (squared losses) or its log-odds (logistic losses).
/// Shapes:      N = configurations seen, of all tasks; x (R, D) in N programs.
/// Cost:        keep: features and prediction of the pool. learn: one fit on at most 2 N programs, and `folds` more
///              with `most_lost`.
/// Determinism: the exploration depends on the configuration's key and the number of labels: a candidate gets one
///              verdict between two batches, and may get another afterwards. Folds depend on task and key, or on the
///              position of what was taught: a resumed search learns the threshold of one that was not stopped.
/// Errors:      `std::invalid_argument` for options out of range, for labels that are neither 0 nor 1, and for other
///              than one outcome a configuration.
/// Deviates:    ALT's model, features and threshold are not public; this is a reconstruction. A configuration without
///              rows is kept: the sampler puts it last.
template <CostModel M, class F>
struct LearnedValidity {
  static_assert(ReadsRowsOf<M, F>,
                "filters::LearnedValidity: the model cannot read the rows of the featurizer; see its "
                "reads_rows_of (docs/concepts/models.md)");

  M model{};
  F featurizer{};
  double threshold = 0.5;          ///< minimum probability of a latency, between 0 and 1
  bool log_odds = false;           ///< the model scores log(p / (1 - p)) instead of p
  std::size_t least_labels = 64;   ///< at least 2
  std::size_t least_failures = 8;  ///< at least 1
  double explored_share = 0.05;    ///< kept share of the rejected ones, in [0, 1]
  bool balanced = true;
  double most_lost = 0;  ///< share of the valid ones to lose, sets the threshold; in [0, 1), 0: `threshold`
  unsigned folds = 4;    ///< at least 2

  FeatureBatch x{};                       ///< run-time state: what was measured, [N]
  std::vector<float> valid{};             ///< 1 or 0, [N]
  std::vector<std::uint64_t> identity{};  ///< of each, by task and key; its position if it was taught, [N]
  float least_score = 0;                  ///< the learned threshold, as a score

  template <SearchSpace S>
    requires FeaturizerFor<F, S>
  [[nodiscard]] Kept keep(const S& space, const Task& task, std::span<const config_t<S>> pool) const {
    Kept kept;
    std::vector<float> score(active() ? pool.size() : 0);
    if (!score.empty()) model.predict(featurizer.extract(space, task, pool), score);
    for (std::size_t i = 0; i < pool.size(); ++i) {
      const bool rejects = !score.empty() && std::isfinite(score[i]) && !believed(score[i]);
      if (!rejects || explored(space.key(pool[i])))
        kept.indices.push_back(i);
      else
        ++kept.rejected["believed to fail"];
    }
    return kept;
  }

  /// Adds configurations that are not known yet, and fits. If it throws, what was not added may be learned again; what
  /// was added, because only a fit has thrown, is part of the next one.
  template <SearchSpace S>
    requires FeaturizerFor<F, S>
  void learn(const S& space, const Task& task, std::span<const config_t<S>> configs,
             std::span<const Outcome> outcomes) {
    if (configs.size() != outcomes.size()) {
      throw std::invalid_argument("filters::LearnedValidity: " + std::to_string(outcomes.size()) + " outcomes for " +
                                  std::to_string(configs.size()) + " configurations; give one each");
    }
    std::vector<config_t<S>> fresh;
    std::vector<float> label;
    std::vector<std::uint64_t> fresh_keys;
    std::unordered_set<std::uint64_t> known(identity.begin(), identity.end());
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::uint64_t key = StableHash{}.add(stable_hash(task)).add(space.key(configs[i])).value();
      if (!known.insert(key).second) continue;
      fresh.push_back(configs[i]);
      fresh_keys.push_back(key);
      label.push_back(outcomes[i].valid() ? 1.0F : 0.0F);
    }
    add(featurizer.extract(space, task, std::span<const config_t<S>>(fresh)), label, fresh_keys);
    fit_to_all();
  }

  /// Adds programs with label 1 for a latency and 0 for a failure, and fits the model once there are enough.
  void teach(const FeatureBatch& more, std::span<const float> label) {
    std::vector<std::uint64_t> places;
    for (std::size_t p = 0; p < label.size(); ++p) places.push_back(valid.size() + p);
    add(more, label, places);
    fit_to_all();
  }

  /// Whether there are enough labels to reject candidates.
  [[nodiscard]] bool active() const {
    std::size_t described = 0, failed = 0;
    for (std::size_t p = 0; p < valid.size(); ++p) {
      if (x.program(p).empty()) continue;
      ++described;
      failed += valid[p] == 0 ? 1U : 0U;
    }
    return described >= least_labels && failed >= least_failures && failed < described;
  }

  /// Whether a score of the model predicts a latency.
  [[nodiscard]] bool believed(float score) const {
    if (most_lost > 0) return score >= least_score;
    return double{score} >= (log_odds ? std::log(threshold / (1 - threshold)) : threshold);
  }

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    constexpr const char* policy = "LearnedValidity";
    require(threshold > 0 && threshold < 1, policy, "threshold", threshold, "a probability between 0 and 1");
    require(least_labels >= 2, policy, "least_labels", static_cast<double>(least_labels), "at least 2");
    require(least_failures >= 1, policy, "least_failures", static_cast<double>(least_failures), "at least 1");
    require(explored_share >= 0 && explored_share <= 1, policy, "explored_share", explored_share, "a share, 0 to 1");
    require(most_lost >= 0 && most_lost < 1, policy, "most_lost", most_lost, "a share, 0 to below 1");
    require(folds >= 2, policy, "folds", folds, "at least 2");
  }

 private:
  void add(const FeatureBatch& more, std::span<const float> label, std::span<const std::uint64_t> identities) {
    check_options();
    models::check_fit_sizes("filters::LearnedValidity", more, label.size(), 0);
    for (std::size_t p = 0; p < label.size(); ++p) {
      if (label[p] == 0 || label[p] == 1) continue;
      throw std::invalid_argument("filters::LearnedValidity: label " + number_text(static_cast<double>(label[p])) +
                                  " of program " + std::to_string(p) + "; give 1 for a latency and 0 for a failure");
    }
    x.append(more);
    valid.insert(valid.end(), label.begin(), label.end());
    identity.insert(identity.end(), identities.begin(), identities.end());
  }
  void fit_to_all() {
    if (!active()) return;
    if (most_lost > 0) learn_threshold();
    fit(model, positions(valid.size()));
  }
  void fit(M& taught, std::vector<std::size_t> programs) const {
    std::erase_if(programs, [this](std::size_t p) { return x.program(p).empty(); });
    std::size_t successes = 0;
    for (const std::size_t p : programs) successes += valid[p] > 0 ? 1U : 0U;
    FeatureBatch rows(x.columns());
    std::vector<float> y;
    for (const std::size_t p : programs) {
      const std::size_t own = valid[p] > 0 ? successes : programs.size() - successes;
      const std::size_t other = programs.size() - own;
      const std::size_t copies = balanced ? std::max<std::size_t>(1, (2 * other + own) / (2 * own)) : 1;
      for (std::size_t copy = 0; copy < copies; ++copy) {
        rows.append_program(x.program(p));
        y.push_back(valid[p]);
      }
    }
    taught.fit(rows, y, {});
  }

  void learn_threshold() {
    std::vector<float> unseen;  // scores of valid programs by models that do not know them
    for (unsigned fold = 0; fold < folds; ++fold) {
      std::vector<std::size_t> others;
      FeatureBatch held_out(x.columns());
      for (std::size_t p = 0; p < valid.size(); ++p) {
        if (mix64(identity[p] + 1) % folds != fold)
          others.push_back(p);
        else if (valid[p] > 0)
          held_out.append_program(x.program(p));
      }
      if (held_out.programs() == 0) continue;  // nothing to score: more folds than programs
      M taught = model;
      fit(taught, others);
      std::vector<float> score(held_out.programs());
      taught.predict(held_out, score);
      unseen.insert(unseen.end(), score.begin(), score.end());
    }
    std::erase_if(unseen, [](float score) { return !std::isfinite(score); });
    const auto k = static_cast<std::size_t>(most_lost * static_cast<double>(unseen.size() + 1));
    least_score = -std::numeric_limits<float>::infinity();
    if (k == 0) return;
    std::nth_element(unseen.begin(), unseen.begin() + static_cast<std::ptrdiff_t>(k - 1), unseen.end());
    least_score = unseen[k - 1];
  }

  [[nodiscard]] bool explored(std::uint64_t key) const {
    const std::uint64_t draw = mix64(key ^ mix64(valid.size() + 0x9e3779b97f4a7c15ULL));
    return static_cast<double>(draw >> 11) * 0x1.0p-53 < explored_share;
  }
};

}  // namespace tunewright::filters
