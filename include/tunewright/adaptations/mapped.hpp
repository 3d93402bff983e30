// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tunewright/adaptations/alignment/kinds.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::adaptations {

/// Maps programs of a new device to the device on which a model was trained.
///
///   Mapped<models::Gbdt, alignment::Columns> model{.model = trained_on_a4000};
///   model.map.fit(programs_of_the_new_device, programs_of_the_a4000);
///
/// For models whose training data are lost; if the data exist, `FeatureMap` and `Coral` train on them. For a model that
/// reads several kinds of rows, column 0 keeps the kind of each row.
///
/// Models:      CostModel; ParametricCostModel where M is one.
/// Cost:        that of M, and of the map.
/// Determinism: that of both.
template <CostModel M, class Map>
struct Mapped {
  template <class Featurizer>
  static constexpr bool reads_rows_of = ReadsRowsOf<M, Featurizer>;

  M model{};
  Map map{};  ///< from the new device to the old one; the identity until it is fitted

  void predict(const FeatureBatch& x, std::span<float> score) const {
    model.predict(alignment::mapped_for<M>(map, x), score);
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    model.fit(alignment::mapped_for<M>(map, x), y, group);
  }

  [[nodiscard]] std::span<float> parameters()
    requires ParametricCostModel<M>
  {
    return model.parameters();
  }
  /// That of the model, or true: the given model is assumed to be trained.
  [[nodiscard]] bool trained() const {
    if constexpr (requires { model.trained(); })
      return model.trained();
    else
      return true;
  }
};

}  // namespace tunewright::adaptations
