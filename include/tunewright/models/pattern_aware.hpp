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
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/nn/network_state.hpp"
#include "tunewright/nn/pattern_network.hpp"

namespace tunewright::models {

/// Pruner's pattern-aware cost model: statements are encoded and summed as in `Mlp`; in parallel, self-attention
/// encodes the data movement between memory levels, a short sequence of rows.
///
///   score(p) = output(trunk(norm(fuse([sum encode(statements), sum t + attention(t)]))))
///
/// Column 0 of a row is 0 for a statement and 1 for a data movement; the last `dataflow_columns` columns describe
/// movements, those in between statements. The columns of the other kind are ignored. For programs without movements
/// the sum is 0.
///
/// Layers, for freezing: "statements", "dataflow", "fuse", "norm", "trunk", "output"; `blocks` lists them.
///
/// Paper:       Qiao et al., Pruner, ASPLOS 2025, doi:10.1145/3676641.3716269.
/// Models:      CostModel, FineTunableCostModel, EmbeddingCostModel (`hidden` numbers: the inputs of the output layer),
///              PersistentCostModel.
/// Shapes:      P programs, R rows, D = 1 + S + 23 columns. 417,409 parameters at S = 174. Units: y is throughput /
///              best of task, in [0, 1].
/// Cost:        some 8 MFLOP per program and epoch with 4 statements and 8 movements; predict a third.
/// Determinism: bit-identical for equal options and data at any number of threads, with one binary on one kind of
///              processor.
/// Errors:      `std::invalid_argument` as every CostModel, for labels not from 0 to `most_label`, for options out
///              of range, for rows without columns of both kinds, and for rows of another kind than 0 and 1.
/// Deviates:    prediction normalises by running statistics; the released code never leaves training mode, so its
///              scores depend on the other programs of a batch. The paper's figure has one more layer in each branch
///              than its code; this follows the code. Running statistics are stored but are not parameters, so
///              averaging parameters ignores them, as in the released code. The released code stops early after a
///              third of its 50 epochs (16) without a lower moving average of the loss; here `training.patience_epochs`
///              is 0, so all epochs are trained, and at least `training.least_steps` mini-batches. `recipes::Pruner`
///              trains as the code does.
struct PatternAware {
  /// Rows of two kinds, such as those of `features::Joined<features::PerStatement, features::Dataflow>`.
  template <class Featurizer>
  static constexpr bool reads_rows_of = row_kinds<Featurizer> == 2;

  std::size_t hidden = 256;           ///< width of the trunk, a multiple of 8; movements have hidden / 2
  std::size_t dataflow_columns = 23;  ///< columns that describe a data movement, at least 1
  float dropout = 0;                  ///< dropout rate of trunk units in training, in [0, 1)
  nn::Training training{};
  unsigned threads = 0;  ///< 0: all hardware threads
  std::uint64_t seed = 43;

  using Network = nn::PatternNetwork<float>;
  nn::NetworkState<Network> learned{};  ///< empty before the first fit

  /// Our own settings, which train on some hundred programs in a tenth of a second: half the width, mini-batches of 16
  /// programs at 1e-3, 60 of them or four epochs, whichever is more; the defaults take at least 300 mini-batches of up
  /// to 512 at 7e-4.
  [[nodiscard]] static PatternAware quick() {
    return {.hidden = 128, .training = {.epochs = 4, .least_steps = 60, .batch_programs = 16, .learning_rate = 1e-3F}};
  }

  void predict(const FeatureBatch& x, std::span<float> score) const;
  /// Scores with dropout rate `share` of the trunk units; `pass` selects the mask.
  void predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass, std::span<float> score) const;
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const;

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);
  /// See FineTunableCostModel.
  void train_from_current(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group,
                          const nn::Training& how, const nn::Continuation& from = {});

  [[nodiscard]] bool trained() const noexcept { return learned.trained(); }
  [[nodiscard]] std::span<float> parameters() noexcept { return learned.parameters(); }
  /// Running means, then running variances, of the layer "norm".
  [[nodiscard]] std::span<float> statistics() noexcept { return learned.statistics(); }
  [[nodiscard]] std::span<const nn::ParameterBlock> blocks() const noexcept { return learned.blocks(); }

  /// See PersistentCostModel.
  void save(std::ostream& out, std::uint64_t feature_schema) const;
  void load(std::istream& in, std::uint64_t feature_schema);

 private:
  static constexpr const char* name = "models::PatternAware";

  void check(const nn::Training& how, const FeatureBatch& x, std::span<const float> y,
             std::span<const std::uint32_t> group) const;
  static void check_kinds(const char* where, const FeatureBatch& x);
  void check_rows(const char* where, const FeatureBatch& x) const {
    learned.check_width(name, where, x);  // first, because column 0 of another featurizer is no kind
    check_kinds(where, x);
  }
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(networks)

#include "tunewright/core/number_text.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/models/labels.hpp"
#include "tunewright/models/network_persistence.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void PatternAware::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  check_rows("predict", x);
  learned.predict(name, x, 0, nn::Pass{}, threads, score);
}

TUNEWRIGHT_INLINE void PatternAware::predict_with_dropout(const FeatureBatch& x, float share, std::uint64_t pass,
                                                          std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  check_rows("predict_with_dropout", x);
  learned.predict(name, x, 0, nn::Pass{false, share, Rng(seed).split(pass)}, threads, score);
}

TUNEWRIGHT_INLINE FeatureBatch PatternAware::embed(const FeatureBatch& x) const {
  check_rows("embed", x);
  return learned.embed(name, x, threads);
}

TUNEWRIGHT_INLINE void PatternAware::fit(const FeatureBatch& x, std::span<const float> y,
                                         std::span<const std::uint32_t> group) {
  check(training, x, y, group);
  if (x.rows() > 0 && (x.columns() < 2 || x.columns() - 2 < dataflow_columns)) {
    throw std::invalid_argument(std::string(name) + "::fit: rows of " + std::to_string(x.columns()) +
                                " features have no room for a part number, statements and " +
                                std::to_string(dataflow_columns) +
                                " columns of data movements; join both featurizers, statements first");
  }
  check_kinds("fit", x);
  if (x.rows() == 0)
    learned = {};
  else
    learned.fit({name, training, dropout, seed, threads}, Network(x.columns(), dataflow_columns, hidden, 1), x, y,
                group);
}

TUNEWRIGHT_INLINE void PatternAware::train_from_current(const FeatureBatch& x, std::span<const float> y,
                                                        std::span<const std::uint32_t> group, const nn::Training& how,
                                                        const nn::Continuation& from) {
  if (!learned.trained()) return fit(x, y, group);
  check(how, x, y, group);
  check_rows("train_from_current", x);
  learned.continue_fit({name, how, dropout, seed, threads}, x, first_of(y, learned.network()->heads()), group, from);
}

TUNEWRIGHT_INLINE void PatternAware::save(std::ostream& out, std::uint64_t feature_schema) const {
  save_network(name, out, feature_schema, learned);
}

TUNEWRIGHT_INLINE void PatternAware::load(std::istream& in, std::uint64_t feature_schema) {
  learned = load_network<Network>(name, in, feature_schema);
}

TUNEWRIGHT_INLINE void PatternAware::check(const nn::Training& how, const FeatureBatch& x, std::span<const float> y,
                                           std::span<const std::uint32_t> group) const {
  how.check(name);
  require(hidden > 0 && hidden % 8 == 0, name, "hidden", static_cast<double>(hidden),
          "a multiple of 8, for four heads over half of it");
  require(dropout >= 0 && dropout < 1, name, "dropout", static_cast<double>(dropout), "a value in [0, 1)");
  require(dataflow_columns > 0, name, "dataflow_columns", static_cast<double>(dataflow_columns), "at least 1");
  check_lesson(name, x, y, 1, group);
}

TUNEWRIGHT_INLINE void PatternAware::check_kinds(const char* where, const FeatureBatch& x) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const float kind = x.row(r)[0];
    if (kind == 0 || kind == 1) continue;
    throw std::invalid_argument(std::string(name) + "::" + where + ": column 0 of row " + std::to_string(r) +
                                ", its kind, is " + number_text(static_cast<double>(kind)) +
                                "; give 0 for a statement and 1 for a data movement: join both featurizers, "
                                "statements first, and let no map of features change column 0");
  }
}

}  // namespace tunewright::models

#endif
