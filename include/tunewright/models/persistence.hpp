// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>

#include "tunewright/data/safetensors.hpp"

namespace tunewright::models {

/// Stores the tensors of a model of type `who` ("models::Gbdt") with the metadata of PersistentCostModel: "model" and
/// "feature_schema".
inline void save_tensors(const char* who, std::ostream& out, std::uint64_t feature_schema,
                         std::span<const data::Tensor> tensors, std::map<std::string, std::string> metadata = {}) {
  metadata["model"] = who;
  metadata["feature_schema"] = std::to_string(feature_schema);
  data::write_safetensors(out, tensors, metadata);
}

/// Reads tensors written by `save_tensors` and passes them to `read`, which builds the model. Every error (another type
/// of model, another feature schema, a malformed file, any exception of `read`) becomes a `std::runtime_error` with
/// `who` and the reason.
template <class Read>
auto load_tensors(const char* who, std::istream& in, std::uint64_t feature_schema, Read&& read) {
  try {
    const data::TensorFile file = data::read_safetensors(in);
    const auto text = [&](const char* key) {
      const auto found = file.metadata.find(key);
      if (found == file.metadata.end()) throw std::runtime_error(std::string("the metadata lack '") + key + "'");
      return found->second;
    };
    if (text("model") != who) throw std::runtime_error("the file holds a '" + text("model") + "'");
    if (text("feature_schema") != std::to_string(feature_schema)) {
      throw std::runtime_error("the model was trained on feature schema " + text("feature_schema") +
                               ", but this featurizer has " + std::to_string(feature_schema));
    }
    return read(file);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(who) + "::load: " + error.what() +
                             "; train the model again or give the file that save wrote");
  }
}

}  // namespace tunewright::models
