// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/adaptations/alignment/kinds.hpp"
#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/growth.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::adaptations {

/// Trains on measurements of this device and, after aligning their features, of another device.
///
///   model.fit( map(source) + own )     map fitted from the rows of the source to the own rows, without labels
///
/// Source programs have separate groups: ranking objectives of trees, and ranking losses of networks with
/// `training.across_tasks = false`, compare only within a device. By default networks compare all labels of a
/// mini-batch, those of both devices like those of several tasks.
///
/// One map moves rows of all kinds. For a model that reads several kinds, column 0 keeps the kind of each row.
///
/// `Coral` (adaptations/coral.hpp) and `FeatureMap` (adaptations/feature_map.hpp) are the two existing maps.
///
/// Models:      AdaptationFor<M> for every CostModel M.
/// Shapes:      `source` and own data have the same columns.
/// Cost:        one fit of the map and one of the model, on both sets.
/// Determinism: that of the model.
/// Errors:      `std::invalid_argument` for an empty or inconsistent `source`, and for options out of range; errors of
///              the model.
///
/// Without own data the model is unchanged: train it on the source, or load it, before the search.
template <class Map>
struct Aligned {
  LabelledPrograms source{};       ///< features, labels and groups measured on the other device
  Map map{};                       ///< refitted at every update
  double most_source_per_own = 0;  ///< maximum number of source programs per own one; 0: all of them
  double min_growth = 0;           ///< share of new programs that makes a fit worth it, at least 0

  std::size_t fitted_candidates = 0;  ///< run-time state: own programs of the last fit

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(most_source_per_own >= 0, "Aligned", "most_source_per_own", most_source_per_own,
            "a number of programs, 0 for all");
    require(min_growth >= 0, "Aligned", "min_growth", min_growth, "a share, 0 to fit after every batch");
  }

  template <CostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    source.check("adaptations::Aligned");
    models::check_fit_sizes("adaptations::Aligned", x, y.size(), group.size());
    if (y.empty()) return;
    if (!has_grown(y.size(), fitted_candidates, min_growth)) return;
    std::size_t kept = source.size();
    if (const double most = std::max(1.0, most_source_per_own * static_cast<double>(y.size()));
        most_source_per_own > 0 && most < static_cast<double>(kept))
      kept = static_cast<std::size_t>(most);
    LabelledPrograms both{x, {y.begin(), y.end()}, {group.begin(), group.end()}};
    map.fit(source.x, x);
    const LabelledPrograms part = source.subset(fixed_share(source.size(), kept));
    both.append_apart(alignment::mapped_for<M>(map, part.x), part.y, part.group);
    model.fit(both.x, both.y, both.group);
    fitted_candidates = y.size();
  }
};

}  // namespace tunewright::adaptations
