// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/networks/onnx/convert.hpp"
#include "tunewright/networks/values.hpp"

/// ONNX models written as plain data.
namespace tunewright::test {

using networks::onnx::Model;

inline networks::onnx::SharedArray onnx_floats(std::string name, std::vector<std::int64_t> shape,
                                               const std::vector<float>& elements) {
  reference::Array array(program::ScalarType::Float32, std::move(shape));
  for (std::size_t i = 0; i < elements.size(); ++i) array.set(i, elements[i]);
  return std::make_shared<const networks::onnx::NamedArray>(
      networks::onnx::NamedArray{std::move(name), std::move(array)});
}

inline networks::onnx::SharedArray onnx_ints(std::string name, const std::vector<std::int64_t>& elements) {
  return networks::onnx::known_ints(std::move(name), elements).known;
}

/// A model with the input "x" and the output "y".
inline Model onnx_model(const std::vector<std::int64_t>& x, std::vector<networks::onnx::Node> nodes) {
  Model model;
  model.name = "small";
  model.opset = 17;
  model.nodes = std::move(nodes);
  networks::onnx::ModelInput input;
  input.name = "x";
  for (const std::int64_t extent : x) input.shape.push_back({extent});
  model.inputs.push_back(input);
  model.outputs = {"y"};
  return model;
}

inline networks::onnx::Node onnx_node(std::string op, std::vector<std::string> inputs, std::string output,
                                      std::map<std::string, networks::onnx::AttributeValue> attributes = {}) {
  return {"the " + op, std::move(op), "", std::move(inputs), {std::move(output)}, std::move(attributes)};
}

/// What the model makes of an input.
inline std::vector<float> onnx_result(const Model& model, const std::vector<float>& x) {
  networks::ImportedNetwork imported = networks::onnx::convert(model);
  reference::Array& input = imported.values.at(networks::inputs(imported.network).at(0));
  for (std::size_t i = 0; i < x.size(); ++i) input.set(i, x[i]);
  const reference::Tensors tensors = networks::evaluate(imported.network, imported.values);
  const reference::Array& y = tensors[imported.network.outputs.at(0)];
  std::vector<float> result;
  for (std::size_t i = 0; i < y.size(); ++i) result.push_back(static_cast<float>(y.get(i)));
  return result;
}

}  // namespace tunewright::test
