// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::adaptations {

/// The weighted sum of a pretrained model and a model that learns in the search.
///
///   score = offset + of_source * source score + of_own * own score
///
///   Transferred<models::Gbdt> model{.source = trained_on_a4000};
///
/// Scores like the source until `WarmStart` (or another adaptation) trains it. `fit` ignores the source: afterwards
/// only the own model scores.
///
/// Models:      CostModel for every two CostModels.
/// Determinism: that of both.
/// Cost:        that of both models.
template <CostModel Source, CostModel Own = Source>
struct Transferred {
  template <class Featurizer>
  static constexpr bool reads_rows_of = ReadsRowsOf<Source, Featurizer> && ReadsRowsOf<Own, Featurizer>;

  Source source{};  ///< trained, and never trained again
  Own own{};

  double offset = 0, of_source = 1, of_own = 0;  ///< run-time state: set by `WarmStart`

  void predict(const FeatureBatch& x, std::span<float> score) const {
    models::check_predict_sizes("adaptations::Transferred", x, score.size());
    std::vector<double> sum(score.size(), offset);
    add(source, of_source, x, score, sum);
    add(own, of_own, x, score, sum);
    for (std::size_t p = 0; p < score.size(); ++p) {
      score[p] = x.program(p).empty() ? -std::numeric_limits<float>::infinity() : static_cast<float>(sum[p]);
    }
  }

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    own.fit(x, y, group);
    offset = 0;
    of_source = 0;
    of_own = 1;
  }

  /// Whether the model in use is trained, as far as it can tell: the source's until the own one has a weight. A given
  /// model is assumed to be.
  [[nodiscard]] bool trained() const { return of_own == 0 ? trained(source) : trained(own); }

 private:
  template <class M>
  static void add(const M& model, double factor, const FeatureBatch& x, std::span<float> score,
                  std::vector<double>& sum) {
    if (factor == 0) return;  // its scores may be infinite
    model.predict(x, score);
    for (std::size_t p = 0; p < score.size(); ++p) sum[p] += factor * static_cast<double>(score[p]);
  }
  template <class M>
  static bool trained(const M& model) {
    if constexpr (requires {
                    { model.trained() } -> std::convertible_to<bool>;
                  })
      return model.trained();
    else
      return true;
  }
};

}  // namespace tunewright::adaptations
