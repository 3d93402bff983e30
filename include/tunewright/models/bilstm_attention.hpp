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
#include "tunewright/nn/bilstm_network.hpp"
#include "tunewright/nn/network_state.hpp"

namespace tunewright::models {

/// A bidirectional LSTM over the rows of a program, followed by several attention steps over its outputs.
///
///   e = rows W + b;  f, b = bidirectional LSTM layers of e;  s = f + b + e
///   z = mean of s;  h = c = 0;  `steps` times: q = h + z, r = attention of q over s, h, c = cell(z, q + r, c)
///   score(p) = w . (h + z) + b
///
/// Layers, for freezing: "encoder.input", "encoder.lstm.<layer>", "attention", "output". To fine-tune only the
/// attention head, freeze "encoder".
///
/// Paper:       Verma et al., Transfer learning across heterogeneous features for efficient tensor program generation,
///              arXiv 2304.05430; the read-out: Vinyals et al., Matching networks, NeurIPS 2016.
/// Models:      CostModel, FineTunableCostModel, EmbeddingCostModel (`width` numbers: the inputs of the output layer),
///              PersistentCostModel.
/// Shapes:      P programs, R rows, D columns, d = width. Units: y is throughput / best of task, in [0, 1].
/// Cost:        48 d^2 FLOP per row for the first layer and 72 d^2 for each other; three times that per epoch for fit.
/// Determinism: bit-identical for equal options and data at any number of threads, with one binary on one kind of
///              processor.
/// Errors:      `std::invalid_argument` as every CostModel, for labels not from 0 to `most_label`, and for options
///              out of range.
/// Deviates:    the paper specifies only three bidirectional layers, two heads and two steps, and its tuner was not
///              released; the rest follows its terminology. The model attends to the program's own rows, not to a
///              memory of measured programs, so that a score does not depend on other measurements. The paper trains
///              200 epochs in batches of 16 with the root mean squared error; here the training is that of the other
///              networks with MeanSquared and batches of 128.
struct BiLstmAttention {
  std::size_t width = 128;          ///< width of rows, cells and attention, a multiple of `attention_heads`
  std::size_t layers = 3;           ///< bidirectional layers, at least 1
  std::size_t attention_heads = 2;  ///< at least 1
  std::size_t steps = 2;            ///< attention steps, 1 to 1024
  float dropout = 0;                ///< dropout rate of the last units in training, in [0, 1)
  nn::Training training{.loss = nn::Loss::MeanSquared, .batch_programs = 128, .learning_rate = 1e-3F};
  unsigned threads = 0;  ///< 0: all hardware threads
  std::uint64_t seed = 43;

  using Network = nn::BiLstmNetwork<float>;
  nn::NetworkState<Network> learned{};  ///< empty before the first fit

  /// Our own settings, which train in a fraction of the time: one bidirectional layer of half the width with a pairwise
  /// loss (`Loss::Pairwise`), mini-batches of 32 programs at 2e-3, 200 of them or ten epochs, whichever is more.
  /// docs/concepts/networks.md compares its accuracy with the defaults.
  [[nodiscard]] static BiLstmAttention quick() {
    return {.width = 64,
            .layers = 1,
            .training = {.loss = nn::Loss::Pairwise,
                         .epochs = 10,
                         .least_steps = 200,
                         .batch_programs = 32,
                         .learning_rate = 2e-3F}};
  }

  void predict(const FeatureBatch& x, std::span<float> score) const;
  /// Scores with dropout rate `share` of the last units; `pass` selects the mask.
  void predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass, std::span<float> score) const;
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const { return learned.embed(name, x, threads); }

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);
  /// See FineTunableCostModel.
  void train_from_current(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group,
                          const nn::Training& how, const nn::Continuation& from = {});

  [[nodiscard]] bool trained() const noexcept { return learned.trained(); }
  [[nodiscard]] std::span<float> parameters() noexcept { return learned.parameters(); }
  [[nodiscard]] std::span<const nn::ParameterBlock> blocks() const noexcept { return learned.blocks(); }

  /// See PersistentCostModel.
  void save(std::ostream& out, std::uint64_t feature_schema) const;
  void load(std::istream& in, std::uint64_t feature_schema);

 private:
  static constexpr const char* name = "models::BiLstmAttention";

  void check(const nn::Training& how, const FeatureBatch& x, std::span<const float> y,
             std::span<const std::uint32_t> group) const;
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(networks)

#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/models/labels.hpp"
#include "tunewright/models/network_persistence.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void BiLstmAttention::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  learned.predict(name, x, 0, nn::Pass{}, threads, score);
}

TUNEWRIGHT_INLINE void BiLstmAttention::predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass,
                                                             std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  learned.predict(name, x, 0, nn::Pass{false, share, Rng(seed).split(pass)}, threads, score);
}

TUNEWRIGHT_INLINE void BiLstmAttention::fit(const FeatureBatch& x, std::span<const float> y,
                                            std::span<const std::uint32_t> group) {
  check(training, x, y, group);
  if (x.rows() == 0)
    learned = {};
  else
    learned.fit({name, training, dropout, seed, threads},
                Network(x.columns(), {width, layers, attention_heads, steps}, 1), x, y, group);
}

TUNEWRIGHT_INLINE void BiLstmAttention::train_from_current(const FeatureBatch& x, std::span<const float> y,
                                                           std::span<const std::uint32_t> group,
                                                           const nn::Training& how, const nn::Continuation& from) {
  if (!learned.trained()) return fit(x, y, group);
  check(how, x, y, group);
  learned.continue_fit({name, how, dropout, seed, threads}, x, first_of(y, learned.network()->heads()), group, from);
}

TUNEWRIGHT_INLINE void BiLstmAttention::save(std::ostream& out, std::uint64_t feature_schema) const {
  save_network(name, out, feature_schema, learned);
}

TUNEWRIGHT_INLINE void BiLstmAttention::load(std::istream& in, std::uint64_t feature_schema) {
  learned = load_network<Network>(name, in, feature_schema);
}

TUNEWRIGHT_INLINE void BiLstmAttention::check(const nn::Training& how, const FeatureBatch& x, std::span<const float> y,
                                              std::span<const std::uint32_t> group) const {
  how.check(name);
  require(attention_heads > 0, name, "attention_heads", static_cast<double>(attention_heads), "at least 1");
  require(width > 0 && width % attention_heads == 0, name, "width", static_cast<double>(width),
          "a positive multiple of attention_heads");
  require(layers > 0, name, "layers", static_cast<double>(layers), "at least 1");
  require(steps > 0 && steps <= Network::most_steps, name, "steps", static_cast<double>(steps), "1 to 1024");
  require(dropout >= 0 && dropout < 1, name, "dropout", static_cast<double>(dropout), "a value in [0, 1)");
  check_lesson(name, x, y, 1, group);
}

}  // namespace tunewright::models

#endif
