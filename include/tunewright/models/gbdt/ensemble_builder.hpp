// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/models/gbdt/binned_rows.hpp"
#include "tunewright/models/gbdt/ensemble.hpp"
#include "tunewright/models/gbdt/tree_grower.hpp"

namespace tunewright::models::gbdt {

/// Collects grown trees. Thresholds come from the bins; nodes are numbered level by level.
class EnsembleBuilder {
 public:
  explicit EnsembleBuilder(const BinnedRows& data, std::size_t columns);

  void add(const std::vector<GrownNode>& grown);

  /// Returns the first `trees` trees.
  Ensemble finish(std::size_t trees) &&;

 private:
  static constexpr std::uint16_t leaf = 0xffff;
  const BinnedRows* data_;
  std::vector<std::uint32_t> column_of_;
  Ensemble ensemble_;
};

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

namespace tunewright::models::gbdt {

TUNEWRIGHT_INLINE EnsembleBuilder::EnsembleBuilder(const BinnedRows& data, std::size_t columns)
    : data_(&data), column_of_(data.bins) {
  for (std::size_t f = 0; f < data.columns.size(); ++f) {
    std::fill_n(column_of_.begin() + data.columns[f].first_bin, data.columns[f].bins, static_cast<std::uint32_t>(f));
  }
  ensemble_.columns = columns;
}

TUNEWRIGHT_INLINE void EnsembleBuilder::add(const std::vector<GrownNode>& grown) {
  std::vector<std::uint32_t> order{0};  // grown node by new number
  Ensemble::Tree tree{static_cast<std::uint32_t>(ensemble_.nodes.size()), 0};
  std::size_t level_end = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == level_end) {
      level_end = order.size();
      ++tree.depth;
    }
    const GrownNode& node = grown[order[i]];
    if (node.left == 0) {
      ensemble_.nodes.push_back({node.value, leaf, static_cast<std::uint16_t>(i)});
      continue;
    }
    const Column& column = data_->columns[column_of_[node.id]];
    ensemble_.nodes.push_back({column.thresholds[node.id - column.first_bin],
                               static_cast<std::uint16_t>(column_of_[node.id]),
                               static_cast<std::uint16_t>(order.size())});
    order.push_back(node.left);
    order.push_back(node.left + 1);
  }
  ensemble_.trees.push_back(tree);
}

TUNEWRIGHT_INLINE Ensemble EnsembleBuilder::finish(std::size_t trees) && {
  if (trees < ensemble_.trees.size()) {
    ensemble_.nodes.resize(ensemble_.trees[trees].first);
    ensemble_.trees.resize(trees);
  }
  std::vector<std::uint16_t> place(data_->columns.size(), leaf);  // of a binned column among the used ones
  for (const Ensemble::Node& node : ensemble_.nodes) {
    if (node.feature != leaf) place[node.feature] = 0;
  }
  for (std::size_t f = 0; f < place.size(); ++f) {
    if (place[f] == leaf) continue;
    place[f] = static_cast<std::uint16_t>(ensemble_.used_columns.size());
    ensemble_.used_columns.push_back(data_->columns[f].source);
  }
  const auto none = static_cast<std::uint16_t>(ensemble_.used_columns.size());
  for (Ensemble::Node& node : ensemble_.nodes) node.feature = node.feature == leaf ? none : place[node.feature];
  return std::move(ensemble_);
}

}  // namespace tunewright::models::gbdt

#endif
