// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <fstream>
#include <istream>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/data/replaced_file.hpp"
#include "tunewright/data/safetensors.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::models {

/// A featurizer, of any space, with a schema of its rows.
template <class F>
concept DescribedFeaturizer = requires(const F& featurizer) {
  { featurizer.schema() } -> std::convertible_to<FeatureSchema>;
};

namespace model_file_detail {

// The featurizer as metadata beside those of `save_tensors`: "featurizer", its name, and "columns", its version and
// the name and the unit of each column: [2,["threads","count"],["bytes","log2(bytes + 1)"]]

/// Writes what a model has saved, and the schema with it if that is a file of tensors.
inline void write_with_schema(std::ostream& out, const std::string& saved, const FeatureSchema& schema) {
  data::TensorFile file;
  try {
    std::istringstream in(saved);
    file = data::read_safetensors(in);
  } catch (const std::runtime_error&) {  // a model may have a format of its own
    out << saved;
    return;
  }
  file.metadata["featurizer"] = schema.name;
  std::string& columns = file.metadata["columns"];
  columns = "[" + std::to_string(schema.version);
  for (const FeatureColumn& column : schema.columns) {
    json::write(columns += ",[", column.name);
    json::write(columns += ',', column.unit);
    columns += ']';
  }
  columns += ']';
  data::write_safetensors(out, file.tensors, file.metadata);
}

/// The schema that a file of tensors has, if it has one.
inline std::optional<FeatureSchema> stored_schema(std::istream& in) {
  try {
    const data::TensorFile file = data::read_safetensors(in);
    const auto name = file.metadata.find("featurizer"), columns = file.metadata.find("columns");
    if (name == file.metadata.end() || columns == file.metadata.end()) return std::nullopt;
    FeatureSchema schema{.name = name->second, .columns = {}};
    json::Scanner text(columns->second);
    text.expect('[');
    schema.version = text.integer<unsigned>();
    while (text.accept(',')) {
      FeatureColumn& column = schema.columns.emplace_back();
      text.expect('[');
      text.string(column.name);
      text.expect(',');
      text.string(column.unit);
      text.expect(']');
    }
    text.expect(']');
    return schema;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

/// What differs first between two schemas of which the keys differ.
inline std::string first_difference(const FeatureSchema& trained, const FeatureSchema& given) {
  const auto called = [](const FeatureSchema& schema) {
    return "'" + schema.name + "' version " + std::to_string(schema.version);
  };
  if (called(trained) != called(given)) return called(trained) + ", and this one is " + called(given);
  const auto column = [](const FeatureSchema& schema, std::size_t c) {
    if (c >= schema.columns.size()) return std::string("missing");
    return "'" + schema.columns[c].name + "' in '" + schema.columns[c].unit + "'";
  };
  std::size_t c = 0;
  while (c < trained.columns.size() && column(trained, c) == column(given, c)) ++c;
  return called(trained) + " with other columns: column " + std::to_string(c) + " was " + column(trained, c) +
         ", and is " + column(given, c);
}

}  // namespace model_file_detail

/// Stores a model in a file, with the schema of its featurizer:
///
///   models::save_model("matmuls.safetensors", model, featurizer);
///   const auto model = models::load_model<models::Mlp>("matmuls.safetensors", featurizer);
///
/// A file that is there is replaced once the new one is complete. Throws `std::runtime_error` if the file cannot be
/// written. Cost: the model in memory twice, for its bytes and for those with the schema.
template <PersistentCostModel Model, DescribedFeaturizer Featurizer>
void save_model(const std::string& path, const Model& model, const Featurizer& featurizer) {
  const FeatureSchema schema(featurizer.schema());
  std::ostringstream saved;
  model.save(saved, stable_hash(schema));
  data::ReplacedFile file(path);
  model_file_detail::write_with_schema(file.stream(), saved.str(), schema);
  file.replace();
}

/// Loads a model written by `save_model`, with the options of `model`. Throws `std::runtime_error` if the file cannot
/// be read, has a model of another type, or a featurizer of another schema; it says which, and the first column that
/// differs.
template <PersistentCostModel Model, DescribedFeaturizer Featurizer>
[[nodiscard]] Model load_model(const std::string& path, const Featurizer& featurizer, Model model = {}) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read model '" + path + "'; name a file that save_model wrote");
  const FeatureSchema schema(featurizer.schema());
  try {
    model.load(in, stable_hash(schema));
  } catch (const std::runtime_error& error) {
    std::ifstream again(path, std::ios::binary);
    const std::optional<FeatureSchema> trained = model_file_detail::stored_schema(again);
    if (!trained || stable_hash(*trained) == stable_hash(schema))
      throw std::runtime_error("'" + path + "': " + error.what());
    throw std::runtime_error("'" + path + "': the model was trained on featurizer " +
                             model_file_detail::first_difference(*trained, schema) +
                             "; load it with that featurizer, or train it again");
  }
  return model;
}

}  // namespace tunewright::models
