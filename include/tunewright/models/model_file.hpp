// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/data/replaced_file.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::models {

/// A featurizer, of any space, with a schema of its rows.
template <class F>
concept DescribedFeaturizer = requires(const F& featurizer) {
  { featurizer.schema() } -> std::convertible_to<FeatureSchema>;
};

/// Stores a model in a file, with the schema of its featurizer:
///
///   models::save_model("matmuls.safetensors", model, featurizer);
///   const auto model = models::load_model<models::Mlp>("matmuls.safetensors", featurizer);
///
/// A file that is there is replaced once the new one is complete. Throws `std::runtime_error` if the file cannot be
/// written.
template <PersistentCostModel Model, DescribedFeaturizer Featurizer>
void save_model(const std::string& path, const Model& model, const Featurizer& featurizer) {
  data::ReplacedFile file(path);
  model.save(file.stream(), stable_hash(FeatureSchema(featurizer.schema())));
  file.replace();
}

/// Loads a model written by `save_model`, with the options of `model`. Throws `std::runtime_error` if the file cannot
/// be read, has a model of another type, or a featurizer of another schema.
template <PersistentCostModel Model, DescribedFeaturizer Featurizer>
[[nodiscard]] Model load_model(const std::string& path, const Featurizer& featurizer, Model model = {}) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read model '" + path + "'; name a file that save_model wrote");
  try {
    model.load(in, stable_hash(FeatureSchema(featurizer.schema())));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("'" + path + "': " + error.what());
  }
  return model;
}

}  // namespace tunewright::models
