// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"

namespace tunewright::features {

/// A bit that is set if a text contains one of `words`.
struct Tag {
  std::string name;
  std::vector<std::string> words;  ///< literal and case-sensitive
  bool operator==(const Tag&) const = default;
};

/// TenSet's nine tags for its printed computations.
[[nodiscard]] std::vector<Tag> tenset_tags();

/// Kinds of operators by the names that importers and `program/operators/` give to tasks. Several may apply.
[[nodiscard]] std::vector<Tag> operator_tags();

/// Networks of a task, by name.
[[nodiscard]] std::vector<Tag> network_tags(std::span<const std::string> networks);

/// Describes the task in one row: its computation, operation count and occurrences. It is the same for all
/// configurations of a task, so only a model of many tasks can use it.
///
///   bit of each tag, log2(flops + 1), log2(weight + 1)
///
/// Paper:       Zheng et al., TenSet, NeurIPS Datasets 2021 (bits from the printed computation); Verma et al., arXiv
///              2304.05430 (operation counts and occurrence in a network).
/// Models:      FeaturizerFor<S> for every SearchSpace S, OneRowFeaturizer.
/// Shapes:      one row per configuration; tags + 2 columns.
/// Cost:        one search per tag and call.
/// Determinism: that of `text`.
/// Errors:      `std::invalid_argument` for an empty `text`.
/// Deviates:    TenSet searches its printed computation; here `text` is by default the name of the task, because
///              recorded tasks have no computation.
struct Tags {
  static constexpr bool one_row = true;

  std::vector<Tag> tags = operator_tags();
  std::function<std::string(const Task&)> text = [](const Task& task) { return task.name; };

  template <SearchSpace S>
  [[nodiscard]] FeatureBatch extract(const S&, const Task& task, std::span<const config_t<S>> configs) const {
    if (!text) throw std::invalid_argument("features::Tags: text is empty; give a function of the task, or none");
    const std::vector<float> row = numbers(text(task), task.flops, task.weight);
    FeatureBatch batch(row.size());
    for (std::size_t i = 0; i < configs.size(); ++i) batch.append_program(row);
    return batch;  // (N, tags + 2)
  }

  /// The row of a task, for records without a space. Negative or non-finite counts are unknown.
  [[nodiscard]] std::vector<float> numbers(std::string_view text_of_task, double flops, double weight = 1) const;

  [[nodiscard]] FeatureSchema schema() const;
};

}  // namespace tunewright::features

#if TUNEWRIGHT_DEFINES(features)

namespace tunewright::features {

TUNEWRIGHT_INLINE std::vector<Tag> tenset_tags() {
  std::vector<Tag> tags;
  for (const char* word : {"max", "min", "add", "Conv2dOutput", "conv2d_winograd", "DepthwiseConv2d", "dense",
                           "softmax", "compute(b, i, j)"})
    tags.push_back({word, {word}});
  return tags;
}

TUNEWRIGHT_INLINE std::vector<Tag> operator_tags() {
  return {{"matmul", {"matmul", "dense", "gemm"}},
          {"convolution", {"conv"}},
          {"depthwise", {"depthwise"}},
          {"winograd", {"winograd"}},
          {"pooling", {"pool"}},
          {"reduction", {"reduc", "sum", "mean"}},
          {"softmax", {"softmax"}},
          {"normalization", {"norm"}},
          {"elementwise", {"elementwise", "add", "relu", "scale", "tanh"}}};
}

TUNEWRIGHT_INLINE std::vector<Tag> network_tags(std::span<const std::string> networks) {
  std::vector<Tag> tags;
  for (const std::string& network : networks) tags.push_back({network, {network}});
  return tags;
}

TUNEWRIGHT_INLINE std::vector<float> Tags::numbers(std::string_view text_of_task, double flops, double weight) const {
  std::vector<float> row;
  for (const Tag& tag : tags) {
    const bool found = std::any_of(tag.words.begin(), tag.words.end(), [&](const std::string& word) {
      return text_of_task.find(word) != std::string_view::npos;
    });
    row.push_back(found ? 1.0F : 0.0F);
  }
  for (const double count : {flops, weight})
    row.push_back(std::isfinite(count) && count > 0 ? static_cast<float>(std::log2(count + 1)) : 0.0F);
  return row;
}

TUNEWRIGHT_INLINE FeatureSchema Tags::schema() const {
  FeatureSchema schema{"tags", 1, {}};
  for (const Tag& tag : tags)
    schema.columns.push_back({tag.name, "flag", "The text of the task contains a word of this tag."});
  schema.columns.push_back({"flops", "log2(operations + 1)", "Floating-point operations of one run."});
  schema.columns.push_back({"weight", "log2(count + 1)", "Occurrences in the network."});
  return schema;
}

}  // namespace tunewright::features

#endif
