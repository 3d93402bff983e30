// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/data/xgboost/ensemble.hpp"
#include "tunewright/models/gbdt/ensemble.hpp"

namespace tunewright::models::gbdt {

/// XGBoost's trees as an `Ensemble`, for `Gbdt::ensemble`: each row scores its margin, a program the sum over its rows,
/// as TenSet's models of statements do.
///
/// Deviates: the base margin moves into the leaves of the first tree, so scores differ from XGBoost's by rounding; NaN
///           always goes left, as in our own trees.
///
/// Throws `std::invalid_argument` for trees deeper than 15, more than 65,535 columns, and no trees.
[[nodiscard]] inline Ensemble from_xgboost(const data::XgboostEnsemble& model) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("models::gbdt::from_xgboost: " + what);
  };
  if (model.columns >= Ensemble::most_columns)
    refuse(std::to_string(model.columns) + " columns; at most 65534 are supported");
  if (model.trees.empty()) refuse("the model has no trees");
  Ensemble out;
  out.columns = model.columns;
  std::vector<bool> used(model.columns, false);
  for (const auto& tree : model.trees) {
    for (const auto& node : tree) {
      if (!node.leaf()) used[node.feature] = true;
    }
  }
  std::vector<std::uint16_t> place(model.columns, 0);
  for (std::size_t c = 0; c < used.size(); ++c) {
    if (!used[c]) continue;
    place[c] = static_cast<std::uint16_t>(out.used_columns.size());
    out.used_columns.push_back(static_cast<std::uint32_t>(c));
  }
  const auto leaf = static_cast<std::uint16_t>(out.used_columns.size());
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const auto& tree = model.trees[t];
    std::vector<std::uint32_t> level(tree.size(), 0);
    std::uint32_t depth = 0;
    const auto first = static_cast<std::uint32_t>(out.nodes.size());
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const auto& node = tree[i];
      depth = std::max(depth, level[i]);
      if (depth > Ensemble::most_depth) refuse("tree " + std::to_string(t) + " is deeper than 15");
      if (node.leaf()) {
        out.nodes.push_back(
            {t == 0 ? node.threshold + model.base_margin : node.threshold, leaf, static_cast<std::uint16_t>(i)});
        continue;
      }
      level[node.left] = level[node.right] = level[i] + 1;
      // Our trees send x right if it is above the threshold, XGBoost's if it is not below.
      out.nodes.push_back({std::nextafter(node.threshold, -std::numeric_limits<float>::infinity()), place[node.feature],
                           static_cast<std::uint16_t>(node.left)});
    }
    out.trees.push_back({first, depth});
  }
  return out;
}

}  // namespace tunewright::models::gbdt
