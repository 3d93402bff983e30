// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/models/gbdt/ensemble.hpp"
#include "tunewright/models/persistence.hpp"

namespace tunewright::models::gbdt {

/// An ensemble of `model` as tensors: columns [1], used_columns [U], tree_first and tree_depth [T]; threshold, feature
/// and left [N].
inline void save(const char* model, const Ensemble& ensemble, std::ostream& out, std::uint64_t feature_schema) {
  std::vector<std::uint32_t> first, depth;
  for (const Ensemble::Tree& tree : ensemble.trees) {
    first.push_back(tree.first);
    depth.push_back(tree.depth);
  }
  std::vector<float> threshold;
  std::vector<std::uint16_t> feature, left;
  for (const Ensemble::Node& node : ensemble.nodes) {
    threshold.push_back(node.threshold);
    feature.push_back(node.feature);
    left.push_back(node.left);
  }
  const std::vector<data::Tensor> tensors{data::Tensor::of("columns", std::vector<std::uint64_t>{ensemble.columns}),
                                          data::Tensor::of("used_columns", ensemble.used_columns),
                                          data::Tensor::of("tree_first", first),
                                          data::Tensor::of("tree_depth", depth),
                                          data::Tensor::of("threshold", threshold),
                                          data::Tensor::of("feature", feature),
                                          data::Tensor::of("left", left)};
  save_tensors(model, out, feature_schema, tensors);
}

namespace persistence_detail {

[[noreturn]] inline void refuse(const std::string& why) { throw std::runtime_error(why); }

// Checks that every walk ends in a leaf within `depth` steps, whatever the file contains, because predict does not. The
// level of a node is that below its parent, so it may have only one.
inline void check(const Ensemble& ensemble) {
  if (ensemble.used_columns.size() >= Ensemble::most_columns) refuse("there are more than 65534 used columns");
  const auto leaf = static_cast<std::uint16_t>(ensemble.used_columns.size());
  for (const std::uint32_t column : ensemble.used_columns) {
    if (column >= ensemble.columns) refuse("column " + std::to_string(column) + " is beyond the last");
  }
  for (std::size_t t = 0; t < ensemble.trees.size(); ++t) {
    const std::size_t first = ensemble.trees[t].first;
    const std::size_t end = t + 1 < ensemble.trees.size() ? ensemble.trees[t + 1].first : ensemble.nodes.size();
    if ((t == 0 && first != 0) || end <= first || end > ensemble.nodes.size() ||
        ensemble.trees[t].depth > Ensemble::most_depth) {
      refuse("tree " + std::to_string(t) + " has no sound extent");
    }
    std::vector<std::uint32_t> level(end - first, 0);
    for (std::size_t i = 0; i < level.size(); ++i) {
      const Ensemble::Node& node = ensemble.nodes[first + i];
      const bool sound = node.feature < leaf
                             ? node.left > i && node.left + 1U < level.size() && !std::isnan(node.threshold)
                             : node.feature == leaf && node.left == i && std::isfinite(node.threshold);
      if (!sound || level[i] > ensemble.trees[t].depth)
        refuse("node " + std::to_string(i) + " of tree " + std::to_string(t) + " is not sound");
      if (node.feature == leaf) continue;
      for (const std::size_t child : {std::size_t{node.left}, std::size_t{node.left} + 1}) {
        if (level[child] > 0)
          refuse("node " + std::to_string(child) + " of tree " + std::to_string(t) + " has two parents");
        level[child] = level[i] + 1;
      }
    }
  }
  if (ensemble.trees.empty() && !ensemble.nodes.empty()) refuse("there are nodes but no trees");
}

inline Ensemble ensemble_of(const data::TensorFile& file) {
  Ensemble ensemble;
  const auto columns = file.at("columns").values<std::uint64_t>();
  if (columns.size() != 1) refuse("'columns' is not one number");
  ensemble.columns = static_cast<std::size_t>(columns[0]);
  ensemble.used_columns = file.at("used_columns").values<std::uint32_t>();
  const auto first = file.at("tree_first").values<std::uint32_t>();
  const auto depth = file.at("tree_depth").values<std::uint32_t>();
  const auto threshold = file.at("threshold").values<float>();
  const auto feature = file.at("feature").values<std::uint16_t>();
  const auto left = file.at("left").values<std::uint16_t>();
  if (first.size() != depth.size() || threshold.size() != feature.size() || feature.size() != left.size())
    refuse("the tensors of trees or nodes are not equally long");
  for (std::size_t t = 0; t < first.size(); ++t) ensemble.trees.push_back({first[t], depth[t]});
  for (std::size_t i = 0; i < left.size(); ++i) ensemble.nodes.push_back({threshold[i], feature[i], left[i]});
  check(ensemble);
  return ensemble;
}

}  // namespace persistence_detail

/// Reads an ensemble written by `save`. Throws `std::runtime_error` for another model or feature schema and for
/// malformed files.
[[nodiscard]] inline Ensemble load(const char* model, std::istream& in, std::uint64_t feature_schema) {
  return load_tensors(model, in, feature_schema, persistence_detail::ensemble_of);
}

}  // namespace tunewright::models::gbdt
