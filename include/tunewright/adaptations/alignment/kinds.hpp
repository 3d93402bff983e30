// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"

namespace tunewright::adaptations::alignment {

/// Stands for the featurizers with rows of so many kinds: `ReadsRowsOf` tells whether a model reads them.
template <std::size_t kinds>
struct RowsOfKinds {
  static constexpr bool one_row = kinds == 1;
  static constexpr std::size_t row_kinds = kinds;
  static constexpr bool ends_with_estimate = true;
};

/// A model that needs rows of two kinds, such as models::PatternAware. It tells them apart by column 0.
template <class M>
concept ReadsRowKinds = ReadsRowsOf<M, RowsOfKinds<2>> && !ReadsRowsOf<M, RowsOfKinds<1>>;

/// `map.apply(x)` for the model M. If M needs rows of two kinds, each row keeps its own: a map would move column 0 to
/// values that are no kind.
template <class M, class Map>
[[nodiscard]] FeatureBatch mapped_for(const Map& map, const FeatureBatch& x) {
  FeatureBatch moved = map.apply(x);
  if constexpr (ReadsRowKinds<M>) {
    FeatureBatch kept(moved.columns());
    kept.reserve_rows(moved.rows());
    for (std::size_t p = 0; p < moved.programs(); ++p) {
      for (std::uint32_t r = moved.offsets()[p]; r < moved.offsets()[p + 1]; ++r) {
        const std::span<float> row = kept.append_row();
        std::ranges::copy(moved.row(r), row.begin());
        row[0] = x.row(r)[0];
      }
      kept.close_program();
    }
    return kept;
  } else {
    return moved;
  }
}

}  // namespace tunewright::adaptations::alignment
