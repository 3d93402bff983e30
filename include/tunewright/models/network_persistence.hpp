// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/models/persistence.hpp"
#include "tunewright/nn/network_state.hpp"

namespace tunewright::models {

/// Writes a network as safetensors: one tensor per matrix, with its name in the network ((in, out), row-major),
/// "input_scale", "statistics" if there are any, and the sizes of the network as metadata "shape.<name>". An untrained
/// model is a file without tensors.
template <class Network>
void save_network(const char* who, std::ostream& out, std::uint64_t feature_schema,
                  const nn::NetworkState<Network>& state) {
  std::vector<data::Tensor> tensors;
  std::map<std::string, std::string> metadata;
  if (const Network* network = state.network()) {
    const std::span<const float> all(state.weights().parameters);
    for (const nn::ParameterBlock& block : network->layout().blocks())
      tensors.push_back(
          data::Tensor::of(block.name, {block.rows, block.columns}, all.subspan(block.first, block.size())));
    tensors.push_back(data::Tensor::of("input_scale", state.scale().magnitude));
    if (network->statistics() > 0)
      tensors.push_back(
          data::Tensor::of("statistics", {network->statistics()}, std::span<const float>(state.weights().statistics)));
    for (const auto& [name, value] : network->shape()) metadata["shape." + name] = std::to_string(value);
  }
  save_tensors(who, out, feature_schema, tensors, std::move(metadata));
}

namespace network_persistence_detail {

std::size_t shape_of(const data::TensorFile& file, const std::string& name);

std::vector<float> numbers_of(const data::Tensor& tensor, std::size_t rows, std::size_t columns);

}  // namespace network_persistence_detail

/// Reads a network written by `save_network`; see PersistentCostModel.
template <class Network>
[[nodiscard]] nn::NetworkState<Network> load_network(const char* who, std::istream& in, std::uint64_t feature_schema) {
  using namespace network_persistence_detail;
  return load_tensors(who, in, feature_schema, [](const data::TensorFile& file) {
    nn::NetworkState<Network> state;
    if (file.tensors.empty()) return state;
    Network network = Network::of_shape([&](const std::string& name) { return shape_of(file, name); });
    nn::Weights<float> weights;
    for (const nn::ParameterBlock& block : network.layout().blocks()) {
      const auto values = numbers_of(file.at(block.name), block.rows, block.columns);
      weights.parameters.insert(weights.parameters.end(), values.begin(), values.end());
    }
    if (const std::size_t count = network.statistics(); count > 0) {
      const auto values = numbers_of(file.at("statistics"), 1, count);
      weights.statistics.assign(values.begin(), values.end());
    }
    nn::InputScale scale{numbers_of(file.at("input_scale"), 1, network.columns())};
    for (const float size : scale.magnitude) {
      if (!(size > 0)) throw std::runtime_error("'input_scale' holds a number that is not positive");
    }
    state.restore(std::move(network), std::move(scale), std::move(weights));
    return state;
  });
}

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(networks)

#include "tunewright/data/safetensors.hpp"

namespace tunewright::models::network_persistence_detail {

TUNEWRIGHT_INLINE std::size_t shape_of(const data::TensorFile& file, const std::string& name) {
  // A size beyond the file's count of numbers is that of no weights in it; layers would take memory before they are
  // missed. Every file may have small sizes, which are not all those of weights.
  std::size_t numbers = 0;
  for (const data::Tensor& tensor : file.tensors) numbers += tensor.bytes.size() / sizeof(float);
  const std::size_t most = std::clamp<std::size_t>(numbers, 1U << 10, 1U << 20);
  const auto found = file.metadata.find("shape." + name);
  if (found == file.metadata.end()) throw std::runtime_error("the metadata lack 'shape." + name + "'");
  const std::string& text = found->second;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > most)
    throw std::runtime_error("'" + text + "' is no " + name + " of a network");
  return value;
}

TUNEWRIGHT_INLINE std::vector<float> numbers_of(const data::Tensor& tensor, std::size_t rows, std::size_t columns) {
  std::size_t wanted = rows * columns, stored = 1;
  for (const std::size_t extent : tensor.shape) stored *= extent;
  if (stored != wanted)
    throw std::runtime_error("tensor '" + tensor.name + "' has " + std::to_string(stored) + " elements, not " +
                             std::to_string(wanted));
  std::vector<float> values = tensor.values<float>();
  for (const float value : values) {
    if (!std::isfinite(value)) throw std::runtime_error("tensor '" + tensor.name + "' is not finite");
  }
  return values;
}

}  // namespace tunewright::models::network_persistence_detail

#endif
