// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright {

struct FeatureColumn {
  std::string name;
  std::string unit;     ///< of the value stored, e.g. "log2(bytes + 1)", "one-hot", "count"
  std::string meaning;  ///< one sentence
  bool operator==(const FeatureColumn&) const = default;
};

/// What the columns of a `FeatureBatch` are. Weights are stored with the name and version and refuse to load
/// for others.
struct FeatureSchema {
  std::string name;
  unsigned version = 1;  ///< grows with every change of meaning or order
  std::vector<FeatureColumn> columns;
  bool operator==(const FeatureSchema&) const = default;
};

/// Describes configurations by numbers.
///
/// `extract(space, task, configs)` gives one program a configuration, in order: N programs of any number of
/// rows, each as wide as `schema().columns`. A configuration that cannot be described gives a program without
/// rows; it then ranks last.
///
/// Semantics the compiler cannot see: every value is finite; the rows of one configuration do not depend on
/// the others of the call; equal configurations give equal rows; `extract` may be called from several threads
/// at once.
template <class F, class S>
concept FeaturizerFor = SearchSpace<S> &&
    requires(const F& featurizer, const S& space, const Task& task, std::span<const config_t<S>> configs) {
  { featurizer.extract(space, task, configs) } -> std::same_as<FeatureBatch>;  // (R, D) in N programs
  { featurizer.schema() } -> std::convertible_to<FeatureSchema>;               // D columns
};

}  // namespace tunewright
