// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright {

/// Ranks programs without running them.
///
///   m.predict(x, score)    x: ragged rows of P programs, score [P]; fills every element of `score`
///   m.fit(x, y, group)     y [P], group [P] or empty
///
/// Semantics the compiler cannot check:
/// - Larger is better; scores are comparable within one task only and have no unit.
/// - y is throughput / best throughput of the task, in [0, 1]; a failed candidate is 0, never omitted.
/// - group[p] numbers the task of program p (any numbers; only equality counts). Ranking objectives compare
///   programs of one group only, unless an option says otherwise. Empty means that all belong to one task.
/// - A program's score depends only on its own rows: reordering, splitting or joining batches reorders,
///   splits or joins the scores.
/// - A program without rows (it could not be described) scores minus infinity and is ignored in training.
/// - predict before the first fit is allowed; a trainable model then gives all described programs the same
///   score.
/// - fit trains from scratch on the given data and replaces what was learned before; with no programs it resets the
///   model, as do labels from which nothing can be learned. A fit that throws leaves the model unchanged.
/// - The same options, data and seed give bit-identical scores at any number of threads.
/// - predict is const and may be called from several threads at once; fit may not run beside any other call.
/// - Both throw std::invalid_argument for sizes that do not match and for a width other than the learned one;
///   fit also for NaN features and for labels that are negative, not finite or above `models::most_label`. Infinite
///   features are allowed.
/// Complexity: both linear in the rows; predict should take at most some microseconds per program, because a search
///             calls it most.
template <class M>
concept CostModel = std::copyable<M> && requires(const M model, M& own, const FeatureBatch& x, std::span<float> score,
                                                 std::span<const float> y, std::span<const std::uint32_t> group) {
  { model.predict(x, score) } -> std::same_as<void>;
  { own.fit(x, y, group) } -> std::same_as<void>;
};

/// A model whose weights are one vector, so that adaptations can average, change or freeze them. The span stays valid
/// and keeps its size until the next fit; writing through it takes effect on the next predict.
template <class M>
concept ParametricCostModel = CostModel<M> && requires(M& own) {
  { own.parameters() } -> std::same_as<std::span<float>>;
};

/// A model that can continue training: `train_from_current` is `fit`, but starts at the current weights, keeps the
/// layers frozen in `from` bit for bit, and trains by `how` instead of the model's own `training`. It keeps the scale
/// of the inputs unless `from` says otherwise. On an untrained model it is `fit`; with no programs, or labels without a
/// gradient (`nn::has_gradient`), it changes nothing. `blocks` lists the layers and their positions in `parameters`.
/// A model that collects numbers besides its weights while it trains returns them by `statistics()`.
template <class M>
concept FineTunableCostModel =
    ParametricCostModel<M> &&
    requires(const M model, M& own, const FeatureBatch& x, std::span<const float> y,
             std::span<const std::uint32_t> group, const nn::Training& how, const nn::Continuation& from) {
      { own.train_from_current(x, y, group, how, from) } -> std::same_as<void>;
      { model.training } -> std::convertible_to<nn::Training>;
      { model.blocks() } -> std::convertible_to<std::span<const nn::ParameterBlock>>;
    };

/// A model that scores programs for several platforms from one description, with one head each. `fit_heads` learns
/// labels (P, heads), row-major, NaN where a program was not measured; `predict` is `predict_head` of head 0, and `fit`
/// trains only that head.
template <class M>
concept MultiHeadCostModel =
    CostModel<M> && requires(const M model, M& own, const FeatureBatch& x, std::span<const float> labels,
                             std::span<const std::uint32_t> group, std::size_t head, std::span<float> score) {
      { model.heads } -> std::convertible_to<std::size_t>;
      { own.fit_heads(x, labels, group) } -> std::same_as<void>;
      { model.predict_head(x, head, score) } -> std::same_as<void>;
    };

/// A model that estimates its uncertainty: `deviation` [P] is one standard deviation in the unit of `score`, never
/// negative, and infinite where the score is. `score` equals the result of `predict`.
template <class M>
concept UncertainCostModel =
    CostModel<M> && requires(const M model, const FeatureBatch& x, std::span<float> score, std::span<float> deviation) {
      { model.predict_with_deviation(x, score, deviation) } -> std::same_as<void>;
    };

/// A model that embeds programs in a vector space where distance means dissimilarity, for diversity samplers: `embed`
/// [P, E] gives exactly one row per program (zeros for a program without rows), which depends only on the rows of that
/// program. Networks give their last hidden layer, trees the leaves they reach.
template <class M>
concept EmbeddingCostModel = CostModel<M> && requires(const M model, const FeatureBatch& x) {
  { model.embed(x) } -> std::same_as<FeatureBatch>;
};

/// A model that can be stored. `feature_schema` is the key of the featurizer's schema. `save` writes it, and `load`
/// throws std::runtime_error if the stored one differs, because otherwise columns with a changed meaning would be read
/// silently. A `load` that throws leaves the model unchanged. A saved and loaded model predicts the same bits. Options
/// that matter only in training (seed, threads, ...) are not stored.
template <class M>
concept PersistentCostModel =
    CostModel<M> && requires(const M model, M& own, std::ostream& out, std::istream& in, std::uint64_t feature_schema) {
      { model.save(out, feature_schema) } -> std::same_as<void>;
      { own.load(in, feature_schema) } -> std::same_as<void>;
    };

namespace models {

/// The largest label that models learn. Labels are at most 1, but samplers::UncertaintyPingPong teaches how far off
/// scores are, in any unit. Losses grow with powers of a label, and gains of ranking with 2^y: with the maximum of a
/// float every score would be NaN, with 64 all sums are finite.
inline constexpr float most_label = 64;

/// What a model collects besides its weights while it trains, such as the running averages of batch normalisation:
/// `model.statistics()`, or nothing.
template <class M>
[[nodiscard]] std::span<float> statistics_of(M& model) {
  if constexpr (requires {
                  { model.statistics() } -> std::same_as<std::span<float>>;
                })
    return model.statistics();
  else
    return {};
}

/// Checks the sizes of a `predict` call. Throws std::invalid_argument.
void check_predict_sizes(const char* who, const FeatureBatch& x, std::size_t scores);

/// Checks the sizes of a `fit` call. Throws std::invalid_argument.
void check_fit_sizes(const char* who, const FeatureBatch& x, std::size_t labels, std::size_t groups);

}  // namespace models
}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(models)

namespace tunewright::models {

TUNEWRIGHT_INLINE void check_predict_sizes(const char* who, const FeatureBatch& x, std::size_t scores) {
  if (scores != x.programs()) {
    throw std::invalid_argument(std::string(who) + "::predict: room for " + std::to_string(scores) +
                                " scores, but the batch has " + std::to_string(x.programs()) +
                                " programs; pass one float a program");
  }
}

TUNEWRIGHT_INLINE void check_fit_sizes(const char* who, const FeatureBatch& x, std::size_t labels, std::size_t groups) {
  if (labels != x.programs()) {
    throw std::invalid_argument(std::string(who) + "::fit: " + std::to_string(labels) + " labels for " +
                                std::to_string(x.programs()) + " programs; pass one y a program, 0 for a failed one");
  }
  if (groups != 0 && groups != x.programs()) {
    throw std::invalid_argument(std::string(who) + "::fit: " + std::to_string(groups) + " group numbers for " +
                                std::to_string(x.programs()) +
                                " programs; pass one a program, or none for a single task");
  }
}

}  // namespace tunewright::models

#endif
