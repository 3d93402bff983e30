// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/gbdt.hpp"

namespace tunewright::models {

/// Trees that correct a draft instead of learning from nothing: a dozen measurements then suffice to rank better than
/// the draft, where trees alone still rank worse.
///
///   score(p) = e(p) + sum over rows r of p, trees t of leaf_t(r)
///   e(p)     = the last column, log2 of an estimated throughput, as features::DraftScore gives it
///   training minimises  sum of y (score(p) + c_task - log2 y)^2,  where c_task makes the sum least without trees
///
/// Scores are logarithms, so an estimate's unit, which may differ between tasks, changes no ranking.
///
/// Source:      ours; boosting from another model's score is XGBoost's base margin. The weight y is Ansor's, OSDI 2020,
///              5.2.
/// Models:      CostModel, EmbeddingCostModel, PersistentCostModel. Reads rows that end with an estimate.
/// Shapes:      P programs, R rows, D columns. Units: y is throughput / best of task, in [0, 1]; score in log2 of the
///              estimate's unit.
/// Cost:        that of `Gbdt`.
/// Determinism: that of `Gbdt`.
/// Errors:      those of `Gbdt`. An estimate beyond 2^128 or below 2^-128 counts as these.
struct GbdtOnDraft {
  template <class Featurizer>
  static constexpr bool reads_rows_of = EndsWithEstimate<Featurizer>;

  Gbdt trees{.objective = gbdt::Objective::SummedLogarithms};

  [[nodiscard]] bool trained() const noexcept { return trees.trained(); }

  /// Before the first fit, every score is 0.
  void predict(const FeatureBatch& x, std::span<float> score) const;
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);

  /// That of the trees, see EmbeddingCostModel.
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const { return trees.embed(x); }

  /// See PersistentCostModel.
  void save(std::ostream& out, std::uint64_t feature_schema) const;
  void load(std::istream& in, std::uint64_t feature_schema);

 private:
  static constexpr const char* name = "models::GbdtOnDraft";
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

#include <algorithm>
#include <cmath>
#include <vector>

#include "tunewright/models/gbdt/persistence.hpp"
#include "tunewright/models/labels.hpp"

namespace tunewright::models {

namespace gbdt_on_draft {

/// The estimate of a program with rows.
[[nodiscard]] TUNEWRIGHT_INLINE float estimate(const FeatureBatch& x, std::size_t p) {
  constexpr float most = 128;
  const float value = x.program(p)[x.columns() - 1];
  return value > -most ? std::min(value, most) : -most;
}

/// The estimates of all programs, in units in which they equal log2 of the labels of their task on average, weighted by
/// the labels: [P], 0 for a program without rows.
[[nodiscard]] TUNEWRIGHT_INLINE std::vector<float> calibrated(const FeatureBatch& x, std::span<const float> y,
                                                              std::span<const std::uint32_t> group) {
  const std::size_t programs = y.size();
  const std::vector<std::uint32_t> task =
      group.empty() ? std::vector<std::uint32_t>(programs, 0) : numbered_by_appearance(group);
  std::vector<double> weight(programs, 0.0), offset(programs, 0.0);  // by task
  for (std::size_t p = 0; p < programs; ++p) {
    if (x.program(p).empty() || !(y[p] > 0)) continue;
    weight[task[p]] += static_cast<double>(y[p]);
    offset[task[p]] += static_cast<double>(y[p]) * static_cast<double>(std::log2(y[p]) - estimate(x, p));
  }
  std::vector<float> start(programs, 0.0F);
  for (std::size_t p = 0; p < programs; ++p) {
    if (x.program(p).empty()) continue;
    const double constant = weight[task[p]] > 0 ? offset[task[p]] / weight[task[p]] : 0.0;
    start[p] = static_cast<float>(static_cast<double>(estimate(x, p)) + constant);
  }
  return start;
}

}  // namespace gbdt_on_draft

TUNEWRIGHT_INLINE void GbdtOnDraft::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes(name, x, score.size());
  trees.predict(x, score);
  if (!trained()) return;
  for (std::size_t p = 0; p < x.programs(); ++p)
    if (!x.program(p).empty()) score[p] += gbdt_on_draft::estimate(x, p);
}

TUNEWRIGHT_INLINE void GbdtOnDraft::fit(const FeatureBatch& x, std::span<const float> y,
                                        std::span<const std::uint32_t> group) {
  check_fit_sizes(name, x, y.size(), group.size());
  trees.fit_from(gbdt_on_draft::calibrated(x, y, group), x, y, group);
}

TUNEWRIGHT_INLINE void GbdtOnDraft::save(std::ostream& out, std::uint64_t feature_schema) const {
  gbdt::save(name, trees.ensemble, out, feature_schema);
}

TUNEWRIGHT_INLINE void GbdtOnDraft::load(std::istream& in, std::uint64_t feature_schema) {
  trees.ensemble = gbdt::load(name, in, feature_schema);
}

}  // namespace tunewright::models

#endif
