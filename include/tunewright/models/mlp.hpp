// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <span>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/nn/mlp_network.hpp"
#include "tunewright/nn/network_state.hpp"

namespace tunewright::models {

/// TenSet's multilayer perceptron: rows are encoded, summed by program, and scored by two residual blocks and a linear
/// layer. Columns are divided by their largest magnitude in the training set.
///
///   score(p) = w . trunk(sum over rows r of p of encode(r)) + b
///   encode: D -> hidden -> hidden, ReLU after both;   trunk: h <- h + ReLU(W h + b), twice
///
/// Layers, for freezing: "encoder.0", "encoder.1", "trunk.0", "trunk.1", "output".
///
/// Paper:       Zheng et al., TenSet, NeurIPS 2021 datasets and benchmarks.
/// Models:      CostModel, MultiHeadCostModel, FineTunableCostModel, EmbeddingCostModel (`hidden` numbers: the inputs
///              of the output layer), PersistentCostModel.
/// Shapes:      P programs, R rows, D columns. 242,433 parameters at D = 174. Units: y is throughput / best of task, in
///              [0, 1].
/// Cost:        fit 6 (D + hidden) hidden FLOP per row and 12 hidden^2 per program in each epoch; predict a third.
/// Determinism: bit-identical for equal options and data at any number of threads, with one binary on one kind of
///              processor.
/// Errors:      `std::invalid_argument` as every CostModel, for labels not from 0 to `most_label`, and for options
///              out of range.
/// Deviates:    trains at least `training.least_steps` steps, because epochs alone are too few for a few hundred
///              programs. TenSet stops early after a sixth of its 50 epochs (8) without a lower moving average of the
///              loss; here `training.patience_epochs` is 0, so all epochs are trained. Inputs are clipped at four times
///              the largest training value.
struct Mlp {
  std::size_t hidden = 256;  ///< width of all hidden layers, at least 1
  std::size_t heads = 1;     ///< platforms, 1 to 1024, with one output layer each
  float dropout = 0;         ///< dropout rate of trunk units in training, in [0, 1)
  nn::Training training{};
  unsigned threads = 0;  ///< 0: all hardware threads
  std::uint64_t seed = 43;

  using Network = nn::MlpNetwork<float>;
  nn::NetworkState<Network> learned{};  ///< empty before the first fit

  /// Our own settings, which train in a tenth of the time: half the width, mini-batches of 64 programs at 1e-3, 200 of
  /// them or twenty epochs, whichever is more; the defaults take at least 300 of up to 512 at 7e-4.
  /// docs/concepts/networks.md compares its accuracy with the defaults.
  [[nodiscard]] static Mlp quick() {
    return {.hidden = 128,
            .training = {.epochs = 20, .least_steps = 200, .batch_programs = 64, .learning_rate = 1e-3F}};
  }

  void predict(const FeatureBatch& x, std::span<float> score) const;
  /// Scores with dropout rate `share` of the trunk units; `pass` selects the mask.
  void predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass, std::span<float> score) const;
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const { return learned.embed(name, x, threads); }

  /// Scores of one head. Throws `std::invalid_argument` for an unknown head.
  void predict_head(const FeatureBatch& x, std::size_t head, std::span<float> score) const;

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);
  /// See MultiHeadCostModel.
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
  static constexpr const char* name = "models::Mlp";

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

TUNEWRIGHT_INLINE void Mlp::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  learned.predict(name, x, 0, nn::Pass{}, threads, score);
}

TUNEWRIGHT_INLINE void Mlp::predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass,
                                                 std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  learned.predict(name, x, 0, nn::Pass{false, share, Rng(seed).split(pass)}, threads, score);
}

TUNEWRIGHT_INLINE void Mlp::predict_head(const FeatureBatch& x, std::size_t head, std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  check_head(name, head, learned.trained() ? learned.network()->heads() : heads);
  learned.predict(name, x, head, nn::Pass{}, threads, score);
}

TUNEWRIGHT_INLINE void Mlp::fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
  check(training, x, y, 1, group);
  learn(x, first_of(y, heads), group);
}

TUNEWRIGHT_INLINE void Mlp::fit_heads(const FeatureBatch& x, std::span<const float> labels,
                                      std::span<const std::uint32_t> group) {
  check(training, x, labels, heads, group);
  learn(x, labels, group);
}

TUNEWRIGHT_INLINE void Mlp::train_from_current(const FeatureBatch& x, std::span<const float> y,
                                               std::span<const std::uint32_t> group, const nn::Training& how,
                                               const nn::Continuation& from) {
  if (!learned.trained()) return fit(x, y, group);
  check(how, x, y, 1, group);
  learned.continue_fit({name, how, dropout, seed, threads}, x, first_of(y, learned.network()->heads()), group, from);
}

TUNEWRIGHT_INLINE void Mlp::save(std::ostream& out, std::uint64_t feature_schema) const {
  save_network(name, out, feature_schema, learned);
}

TUNEWRIGHT_INLINE void Mlp::load(std::istream& in, std::uint64_t feature_schema) {
  learned = load_network<Network>(name, in, feature_schema);
}

TUNEWRIGHT_INLINE void Mlp::learn(const FeatureBatch& x, std::span<const float> labels,
                                  std::span<const std::uint32_t> group) {
  if (x.rows() == 0)
    learned = {};
  else
    learned.fit({name, training, dropout, seed, threads}, Network(x.columns(), hidden, heads), x, labels, group);
}

TUNEWRIGHT_INLINE void Mlp::check(const nn::Training& how, const FeatureBatch& x, std::span<const float> y,
                                  std::size_t labels, std::span<const std::uint32_t> group) const {
  how.check(name);
  require(hidden > 0, name, "hidden", static_cast<double>(hidden), "at least 1");
  require(heads > 0 && heads <= 1024, name, "heads", static_cast<double>(heads), "1 to 1024");
  require(dropout >= 0 && dropout < 1, name, "dropout", static_cast<double>(dropout), "a value in [0, 1)");
  check_lesson(name, x, y, labels, group);
}

}  // namespace tunewright::models

#endif
