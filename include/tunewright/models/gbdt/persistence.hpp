// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "tunewright/models/gbdt/ensemble.hpp"

namespace tunewright::models::gbdt {

/// Text format of an ensemble: words separated by white space, floats in the shortest form that reads back as
/// the same bits.
///
///   tunewright-gbdt 1
///   feature_schema S columns D used U trees T nodes N
///   U column numbers
///   T times: first-node depth
///   N times: threshold feature left
///   end
inline void save(const Ensemble& ensemble, std::ostream& out, std::uint64_t feature_schema) {
  std::string text =
      "tunewright-gbdt 1\nfeature_schema " + std::to_string(feature_schema) + " columns " +
      std::to_string(ensemble.columns) + " used " + std::to_string(ensemble.used_columns.size()) + " trees " +
      std::to_string(ensemble.trees.size()) + " nodes " + std::to_string(ensemble.nodes.size()) + '\n';
  for (const std::uint32_t column : ensemble.used_columns) text += std::to_string(column) + ' ';
  text += '\n';
  for (const Ensemble::Tree& tree : ensemble.trees)
    text += std::to_string(tree.first) + ' ' + std::to_string(tree.depth) + '\n';
  for (const Ensemble::Node& node : ensemble.nodes) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, node.threshold).ptr);
    text += ' ' + std::to_string(node.feature) + ' ' + std::to_string(node.left) + '\n';
  }
  text += "end\n";
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  if (!out)
    throw std::runtime_error(
        "models::Gbdt::save: the stream refused the data; is the disk full or the file not writable?");
}

namespace persistence_detail {

[[noreturn]] inline void refuse(const std::string& why) {
  throw std::runtime_error("models::Gbdt::load: " + why +
                           "; train the model again or give the file that save wrote");
}

template <class T>
T read(std::istream& in, const char* what) {
  std::string word;
  T value{};
  if (!(in >> word)) refuse(std::string("the data ends where ") + what + " should be");
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) refuse("'" + word + "' is no " + what);
  return value;
}

inline void expect(std::istream& in, std::string_view wanted) {
  std::string word;
  if (!(in >> word) || word != wanted)
    refuse("'" + word + "' stands where '" + std::string(wanted) + "' should be");
}

// Every walk must end in a leaf within `depth` steps, whatever the file says: predict does not look.
inline void check(const Ensemble& ensemble) {
  const auto leaf = static_cast<std::uint16_t>(ensemble.used_columns.size());
  for (const std::uint32_t column : ensemble.used_columns) {
    if (column >= ensemble.columns) refuse("column " + std::to_string(column) + " is beyond the last");
  }
  for (std::size_t t = 0; t < ensemble.trees.size(); ++t) {
    const std::size_t first = ensemble.trees[t].first;
    const std::size_t end =
        t + 1 < ensemble.trees.size() ? ensemble.trees[t + 1].first : ensemble.nodes.size();
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
      if (node.feature < leaf) level[node.left] = level[node.left + 1U] = level[i] + 1;
    }
  }
  if (ensemble.trees.empty() && !ensemble.nodes.empty()) refuse("there are nodes but no trees");
}

}  // namespace persistence_detail

/// Reads what `save` wrote. Throws `std::runtime_error` for another feature schema and for anything
/// malformed.
[[nodiscard]] inline Ensemble load(std::istream& in, std::uint64_t feature_schema) {
  using namespace persistence_detail;
  expect(in, "tunewright-gbdt");
  if (const auto version = read<unsigned>(in, "format version"); version != 1) {
    refuse("format version " + std::to_string(version) + " is not 1, the one this library reads");
  }
  expect(in, "feature_schema");
  if (const auto stored = read<std::uint64_t>(in, "feature schema"); stored != feature_schema) {
    refuse("the model was trained on feature schema " + std::to_string(stored) +
           ", but this featurizer has " + std::to_string(feature_schema));
  }
  Ensemble ensemble;
  expect(in, "columns");
  ensemble.columns = read<std::size_t>(in, "number of columns");
  expect(in, "used");
  const auto used = read<std::uint16_t>(in, "number of used columns");
  expect(in, "trees");
  const auto trees = read<std::uint32_t>(in, "number of trees");
  expect(in, "nodes");
  const auto nodes = read<std::uint32_t>(in, "number of nodes");
  // No reservation: a wrong count must end with the data, not with the memory.
  for (std::size_t i = 0; i < used; ++i) ensemble.used_columns.push_back(read<std::uint32_t>(in, "column"));
  for (std::size_t i = 0; i < trees; ++i) {
    const auto first = read<std::uint32_t>(in, "first node");
    ensemble.trees.push_back({first, read<std::uint32_t>(in, "depth")});
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto threshold = read<float>(in, "threshold");
    const auto feature = read<std::uint16_t>(in, "feature");
    ensemble.nodes.push_back({threshold, feature, read<std::uint16_t>(in, "child")});
  }
  expect(in, "end");
  check(ensemble);
  return ensemble;
}

}  // namespace tunewright::models::gbdt
