// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/nn/network_state.hpp"
#include "tunewright/nn/primitive_network.hpp"

namespace tunewright::models {

/// TLP: self-attention over the schedule primitives of a program; its score is the sum of their scores. With several
/// heads, one per platform, all platforms train the encoder (MTL-TLP).
///
///   a = encode(rows) + attention(encode(rows));  score_h(p) = sum over rows r of p of head_h(trunk(a)_r)
///
/// `fit` and `predict` use head 0, the target platform. `fit_heads` trains the others.
///
/// Layers, for freezing: "encoder.<layer>", "attention", "trunk.<block>", "head.<head>.<layer>".
///
/// Paper:       Zhai et al., TLP, ASPLOS 2023, doi:10.1145/3575693.3575737.
/// Models:      CostModel, MultiHeadCostModel, FineTunableCostModel, EmbeddingCostModel (width / 4 numbers: the inputs
///              of the last layer of head 0), PersistentCostModel.
/// Shapes:      P programs, R rows, D columns, H heads. 610,369 parameters at D = 22 and one head. Units: y is
///              throughput / best of task, in [0, 1].
/// Cost:        some 3.6 MFLOP per row and epoch; predict a third.
/// Determinism: bit-identical for equal options and data at any number of threads, with one binary on one kind of
///              processor.
/// Errors:      `std::invalid_argument` as every CostModel, for labels not from 0 to `most_label`, and for options
///              out of range.
/// Deviates:    inputs are divided by their largest magnitude, in TLP they are not scaled. Programs are not padded; TLP
///              pads to 25 (CPU) or 40 (GPU) rows with zeros, which take part in attention and score. TLP takes the
///              weights of the epoch with the least loss on a tenth of the records, which it holds out; here all are
///              trained on, in at least `training.least_steps` mini-batches, and the last weights are taken.
struct PrimitiveAttention {
  std::size_t width = 256;          ///< width of the encoder's output, a multiple of 4 and of `attention_heads`
  std::size_t attention_heads = 8;  ///< at least 1
  std::size_t heads = 1;            ///< platforms, 1 to 1024
  float dropout = 0;                ///< dropout rate of trunk units in training, in [0, 1)
  nn::Training training{.batch_programs = 1024};
  unsigned threads = 0;  ///< 0: all hardware threads
  std::uint64_t seed = 43;

  using Network = nn::PrimitiveNetwork<float>;
  nn::NetworkState<Network> learned{};  ///< empty before the first fit

  /// Settings that train in seconds: a quarter of the width, 200 mini-batches of 64 programs or twenty epochs,
  /// whichever is more.
  [[nodiscard]] static PrimitiveAttention quick() {
    return {.width = 64, .training = {.epochs = 20, .least_steps = 200, .batch_programs = 64, .learning_rate = 1e-3F}};
  }

  void predict(const FeatureBatch& x, std::span<float> score) const;
  /// Scores with dropout rate `share` of the trunk units; `pass` selects the mask.
  void predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass, std::span<float> score) const;
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const { return learned.embed(name, x, threads); }

  /// Scores of one head. Throws `std::invalid_argument` for an unknown head.
  void predict_head(const FeatureBatch& x, std::size_t head, std::span<float> score) const;

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);
  /// Trains on labels (P, H), NaN if unknown.
  void fit_heads(const FeatureBatch& x, std::span<const float> labels, std::span<const std::uint32_t> group);
  /// See FineTunableCostModel; trains head 0.
  void train_from_current(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group,
                          const nn::Training& how, const nn::Continuation& from = {});

  [[nodiscard]] bool trained() const noexcept { return learned.trained(); }
  [[nodiscard]] std::span<float> parameters() noexcept { return learned.parameters(); }
  [[nodiscard]] std::span<const nn::ParameterBlock> blocks() const noexcept { return learned.blocks(); }

  /// See PersistentCostModel.
  void save(std::ostream& out, std::uint64_t feature_schema) const;
  void load(std::istream& in, std::uint64_t feature_schema);

 private:
  static constexpr const char* name = "models::PrimitiveAttention";

  void learn(const FeatureBatch& x, std::span<const float> labels, std::span<const std::uint32_t> group);

  void check(const nn::Training& how, const FeatureBatch& x, std::span<const float> y, std::size_t labels,
             std::span<const std::uint32_t> group) const;
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(networks)

#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/models/labels.hpp"
#include "tunewright/models/network_persistence.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void PrimitiveAttention::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  learned.predict(name, x, 0, nn::Pass{}, threads, score);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass,
                                                                std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  learned.predict(name, x, 0, nn::Pass{false, share, Rng(seed).split(pass)}, threads, score);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::predict_head(const FeatureBatch& x, std::size_t head,
                                                        std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  check_head(name, head, learned.trained() ? learned.network()->heads() : heads);
  learned.predict(name, x, head, nn::Pass{}, threads, score);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::fit(const FeatureBatch& x, std::span<const float> y,
                                               std::span<const std::uint32_t> group) {
  check(training, x, y, 1, group);
  learn(x, first_of(y, heads), group);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::fit_heads(const FeatureBatch& x, std::span<const float> labels,
                                                     std::span<const std::uint32_t> group) {
  check(training, x, labels, heads, group);
  learn(x, labels, group);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::train_from_current(const FeatureBatch& x, std::span<const float> y,
                                                              std::span<const std::uint32_t> group,
                                                              const nn::Training& how, const nn::Continuation& from) {
  if (!learned.trained()) return fit(x, y, group);
  check(how, x, y, 1, group);
  learned.continue_fit({name, how, dropout, seed, threads}, x, first_of(y, learned.network()->heads()), group, from);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::save(std::ostream& out, std::uint64_t feature_schema) const {
  save_network(name, out, feature_schema, learned);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::load(std::istream& in, std::uint64_t feature_schema) {
  learned = load_network<Network>(name, in, feature_schema);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::learn(const FeatureBatch& x, std::span<const float> labels,
                                                 std::span<const std::uint32_t> group) {
  if (x.rows() == 0)
    learned = {};
  else
    learned.fit({name, training, dropout, seed, threads}, Network(x.columns(), width, attention_heads, heads), x,
                labels, group);
}

TUNEWRIGHT_INLINE void PrimitiveAttention::check(const nn::Training& how, const FeatureBatch& x,
                                                 std::span<const float> y, std::size_t labels,
                                                 std::span<const std::uint32_t> group) const {
  how.check(name);
  require(attention_heads > 0, name, "attention_heads", static_cast<double>(attention_heads), "at least 1");
  require(width > 0 && width % 4 == 0 && width % attention_heads == 0, name, "width", static_cast<double>(width),
          "a positive multiple of 4 and of attention_heads");
  require(heads > 0 && heads <= 1024, name, "heads", static_cast<double>(heads), "1 to 1024");
  require(dropout >= 0 && dropout < 1, name, "dropout", static_cast<double>(dropout), "a value in [0, 1)");
  check_lesson(name, x, y, labels, group);
}

}  // namespace tunewright::models

#endif
