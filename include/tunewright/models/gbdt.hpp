// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/gbdt/ensemble.hpp"
#include "tunewright/models/gbdt/objective.hpp"

namespace tunewright::models {

namespace gbdt {
struct BoostingRules;
}

/// Gradient-boosted regression trees on the rows of a program; its score is the sum over its rows.
///
///   score(p) = sum over rows r of p, trees t of leaf_t(r)
///   each round grows one tree on  g = dL/ds(p), h = d2L/ds(p)^2,  both shared by all rows of p
///   scores start at 0
///
/// Paper:       Ansor, OSDI 2020, 5.2 (model and loss); XGBoost, KDD 2016 (gain, leaf values); LightGBM, NIPS
///              2017 (histograms).
/// Models:      CostModel, EmbeddingCostModel (leaves reached, see gbdt/embedding.hpp), PersistentCostModel.
/// Shapes:      P programs, R rows, D columns, E = embedding_columns. Units: y is throughput / best of task, in [0, 1];
///              scores are in units of y under SummedOverStatements, Squared and Quantile, of log2 y under
///              SummedLogarithms, log-odds under Logistic, without unit under ranking objectives.
/// Cost:        fit O(R D) to bin and O(rounds * max_depth * distinct listed bins) to grow; predict O(rows * trees *
///              depth), about one nanosecond per step.
/// Determinism: bit-identical for equal options and data at any number of threads; the seed draws the pairs of ranking
///              objectives and the shares of programs and columns.
/// Errors:      `std::invalid_argument` as every CostModel, for labels not from 0 to `most_label`, and for options
///              out of range.
/// Deviates:    from Ansor: histograms instead of exact splits, and 100 rounds instead of up to 10,000 with early
///              stopping on the training error, so that training on a thousand programs from scratch after each round
///              of measuring takes some 50 ms. The depth is TenSet's 6 (Ansor 10), gamma 1e-4 (1e-3), the learning rate
///              0.1 (0.2): every row of a program takes the whole step, so a program of five rows moves five times as
///              far, and 0.2 overshoots; for programs with so many rows that 0.1 would overshoot, the step is bounded
///              (see `bound_steps`). min_child_weight, gamma and lambda are those of XGBoost.
///
/// A program with y = 0 has weight 0 under SummedOverStatements and SummedLogarithms, and counts only in the other
/// objectives. Labels without a gradient, such as those of a batch that failed, teach nothing: after a fit on them the
/// model is untrained. In predict, NaN counts as below every threshold.
struct Gbdt {
  unsigned rounds = 100;       ///< maximum number of trees, at least 1
  unsigned max_depth = 6;      ///< maximum depth of a tree, 1 to 15
  float learning_rate = 0.1F;  ///< shrinkage of each tree's step, in (0, 1]
  float min_child_weight = 0;  ///< minimum sum of hessians of a leaf, at least 0
  float gamma = 1e-4F;         ///< minimum gain of a split, at least 0; gains up to 1e-6 are never enough
  float lambda = 1;            ///< L2 penalty on leaf values, at least 0, finite
  unsigned max_bins = 256;     ///< maximum number of bins per column, 2 to 256
  gbdt::Objective objective = gbdt::Objective::SummedOverStatements;
  unsigned pairs_per_program = 8;      ///< of other labels, drawn by ranking objectives each round, at least 1
  float quantile = 0.5F;               ///< of the Quantile objective, in (0, 1)
  float positive_weight = 1;           ///< weight of programs with y > 1/2 under Logistic, above 0, finite
  float program_share = 1;             ///< random share of the programs for each tree, in (0, 1]
  float column_share = 1;              ///< random share of the columns for each tree, in (0, 1]
  unsigned early_stopping_rounds = 0;  ///< stops after this many rounds without a lower training loss; 0: never
  unsigned embedding_columns = 256;    ///< E, at least 1
  unsigned threads = 0;                ///< 0: all hardware threads
  std::uint64_t seed = 43;

  gbdt::Ensemble ensemble{};  ///< the trained trees; empty before the first fit

  [[nodiscard]] bool trained() const noexcept { return !ensemble.trees.empty(); }

  /// Throws `std::invalid_argument` for a wrong size of `score` and a width other than the trained one.
  void predict(const FeatureBatch& x, std::span<float> score) const;

  /// Throws `std::invalid_argument` for options out of range, sizes that do not match, labels not from 0
  /// to `most_label`, and features that are NaN.
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    fit_from({}, x, y, group);
  }

  /// The same with scores before the first tree, which the trees correct and `predict` leaves out: start [P], or empty
  /// for zeros (XGBoost's base margin). Throws `std::invalid_argument` also for scores that are not finite.
  void fit_from(std::span<const float> start, const FeatureBatch& x, std::span<const float> y,
                std::span<const std::uint32_t> group);

  /// [P, E], see EmbeddingCostModel. Throws `std::invalid_argument` for a width other than the trained one.
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const;

  /// See PersistentCostModel.
  void save(std::ostream& out, std::uint64_t feature_schema) const;
  void load(std::istream& in, std::uint64_t feature_schema);

 private:
  template <class Value>
  [[noreturn]] static void refuse(const char* what, Value value, const char* range) {
    throw std::invalid_argument(std::string("models::Gbdt: ") + what + " = " + number_text(static_cast<double>(value)) +
                                "; choose " + range);
  }
  void check_options() const;
  void check_width(const char* where, const FeatureBatch& x) const;
  [[nodiscard]] gbdt::BoostingRules boosting_rules() const;
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/core/rng.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/models/gbdt/binned_rows.hpp"
#include "tunewright/models/gbdt/boosting.hpp"
#include "tunewright/models/gbdt/embedding.hpp"
#include "tunewright/models/gbdt/persistence.hpp"
#include "tunewright/models/labels.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void Gbdt::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes("models::Gbdt", x, score.size());
  if (ensemble.trees.empty()) {
    for (std::size_t p = 0; p < x.programs(); ++p) {
      score[p] = x.offsets()[p] == x.offsets()[p + 1] ? -std::numeric_limits<float>::infinity() : 0.0F;
    }
    return;
  }
  check_width("predict", x);
  // Starting a thread is worth about a millisecond of work.
  const std::size_t parts_worth = x.rows() * ensemble.trees.size() / 65536 + 1;
  const std::size_t wanted = threads == 0 ? hardware_threads() : threads;
  const std::size_t parts = std::min(parts_worth, wanted);
  parallel_for(parts, static_cast<unsigned>(parts), [&](std::size_t part) {
    const std::size_t first = part * x.programs() / parts, last = (part + 1) * x.programs() / parts;
    ensemble.predict(x, first, last, score.subspan(first, last - first));
  });
}

TUNEWRIGHT_INLINE void Gbdt::fit_from(std::span<const float> start, const FeatureBatch& x, std::span<const float> y,
                                      std::span<const std::uint32_t> group) {
  check_options();
  check_fit_sizes("models::Gbdt", x, y.size(), group.size());
  if (!start.empty() && start.size() != y.size()) {
    throw std::invalid_argument("models::Gbdt::fit_from: " + std::to_string(start.size()) + " first scores for " +
                                std::to_string(y.size()) + " programs; give one a program, or none");
  }
  const float most = objective == gbdt::Objective::Logistic ? 1.0F : most_label;
  for (std::size_t p = 0; p < y.size(); ++p) check_label("models::Gbdt", y[p], p, most);
  for (std::size_t p = 0; p < start.size(); ++p) {
    if (std::isfinite(start[p])) continue;
    throw std::invalid_argument("models::Gbdt::fit_from: the first score of program " + std::to_string(p) + " is " +
                                number_text(static_cast<double>(start[p])) + "; give finite ones, 0 if unknown");
  }
  if (x.columns() > gbdt::Ensemble::most_columns) {
    throw std::invalid_argument("models::Gbdt::fit: " + std::to_string(x.columns()) +
                                " columns; at most 65535 are supported");
  }
  if (x.rows() == 0) {  // a batch without rows may also lack columns, which must not count as a width
    ensemble = {};
    return;
  }
  ThreadTeam team(threads);
  const gbdt::BinnedRows data = gbdt::bin_rows(x, max_bins, team);
  ensemble = gbdt::boost(data, x.offsets(), x.columns(), y, group, start, boosting_rules(), Rng(seed), team);
}

TUNEWRIGHT_INLINE FeatureBatch Gbdt::embed(const FeatureBatch& x) const {
  if (embedding_columns == 0) refuse("embedding_columns", embedding_columns, "at least 1");
  if (!ensemble.trees.empty()) check_width("embed", x);
  return gbdt::embed_leaves(ensemble, x, embedding_columns, threads);
}

TUNEWRIGHT_INLINE void Gbdt::save(std::ostream& out, std::uint64_t feature_schema) const {
  gbdt::save("models::Gbdt", ensemble, out, feature_schema);
}

TUNEWRIGHT_INLINE void Gbdt::load(std::istream& in, std::uint64_t feature_schema) {
  ensemble = gbdt::load("models::Gbdt", in, feature_schema);
}

TUNEWRIGHT_INLINE void Gbdt::check_options() const {
  const auto share = [](const char* what, float value) {
    if (!(value > 0 && value <= 1)) refuse(what, value, "a value in (0, 1]");
  };
  if (rounds == 0) refuse("rounds", rounds, "at least 1");
  if (max_depth == 0 || max_depth > gbdt::Ensemble::most_depth) refuse("max_depth", max_depth, "1 to 15");
  share("learning_rate", learning_rate);
  if (!(min_child_weight >= 0)) refuse("min_child_weight", min_child_weight, "at least 0");
  if (!(gamma >= 0)) refuse("gamma", gamma, "at least 0");
  if (!(lambda >= 0 && std::isfinite(lambda))) refuse("lambda", lambda, "a finite penalty of at least 0");
  if (max_bins < 2 || max_bins > gbdt::ColumnBinner::most_bins) refuse("max_bins", max_bins, "2 to 256");
  if (pairs_per_program == 0) refuse("pairs_per_program", pairs_per_program, "at least 1");
  if (!(quantile > 0 && quantile < 1)) refuse("quantile", quantile, "a value in (0, 1)");
  if (!(positive_weight > 0 && std::isfinite(positive_weight)))
    refuse("positive_weight", positive_weight, "a finite value above 0");
  share("program_share", program_share);
  share("column_share", column_share);
  if (early_stopping_rounds != 0 && gbdt::is_ranking(objective))
    refuse("early_stopping_rounds", early_stopping_rounds, "0 for ranking objectives");
}

TUNEWRIGHT_INLINE void Gbdt::check_width(const char* where, const FeatureBatch& x) const {
  if (x.rows() == 0 || x.columns() == ensemble.columns) return;
  throw std::invalid_argument(std::string("models::Gbdt::") + where + ": rows of " + std::to_string(x.columns()) +
                              " features, but the model was trained on " + std::to_string(ensemble.columns) +
                              "; use the featurizer it was trained with");
}

TUNEWRIGHT_INLINE gbdt::BoostingRules Gbdt::boosting_rules() const {
  return {.rounds = rounds,
          .early_stopping_rounds = early_stopping_rounds,
          .program_share = program_share,
          .column_share = column_share,
          .objective = {.objective = objective,
                        .pairs_per_program = pairs_per_program,
                        .quantile = quantile,
                        .positive_weight = positive_weight},
          .growth = {.max_depth = max_depth,
                     .learning_rate = learning_rate,
                     .split = {.lambda = lambda, .gamma = gamma, .min_child_weight = min_child_weight}}};
}

}  // namespace tunewright::models

#endif
