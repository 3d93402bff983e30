// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/model.hpp"

namespace tunewright::networks::onnx {

/// Folds batch normalisations into the weight and bias of the preceding convolution, if its result has no other reader,
/// its weight is not shared, and all parameters are constants:
///
///   factor = gamma / sqrt(variance + epsilon);  weight'[co, ..] = weight[co, ..] * factor[co]
///   bias'[co] = (bias[co] - mean[co]) * factor[co] + beta[co]
///
/// Inconsistent parameters are left for the operators to report. Cost: a pass over these weights.
void fold_batch_norms(Model& model);

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>

namespace tunewright::networks::onnx::detail {

/// The constant of an input of a node; empty if it is not constant.
TUNEWRIGHT_INLINE SharedArray constant_input(const Model& model, const Node& node, std::size_t i) {
  if (i >= node.inputs.size()) return nullptr;
  const auto place = model.constants.find(node.inputs[i]);
  return place == model.constants.end() ? nullptr : place->second;
}

/// Adds the folded parameters under new names; false if they are inconsistent.
TUNEWRIGHT_INLINE bool fold_into(Model& model, Node& conv, const Node& norm) {
  const SharedArray weight = constant_input(model, conv, 1);
  const bool has_bias = conv.inputs.size() > 2 && !conv.inputs[2].empty();
  const SharedArray bias = has_bias ? constant_input(model, conv, 2) : nullptr;
  if (!weight || weight->array.shape().empty() || (has_bias && !bias) || !is_float(weight->array.type())) return false;
  const std::int64_t channels = weight->array.shape()[0];
  std::array<SharedArray, 4> parameters;  // gamma, beta, mean, variance
  for (std::size_t p = 0; p < 4; ++p) parameters[p] = constant_input(model, norm, p + 1);
  const std::vector<std::int64_t> expected{channels};
  const auto fits = [&](const SharedArray& array) { return array && array->array.shape() == expected; };
  if (channels < 1 || !std::all_of(parameters.begin(), parameters.end(), fits) || (bias && !fits(bias))) return false;
  const auto epsilon = norm.attributes.find("epsilon");
  const double* given = epsilon == norm.attributes.end() ? nullptr : std::get_if<double>(&epsilon->second);
  reference::Array folded = weight->array;
  reference::Array shift(folded.type(), expected);
  const std::size_t each = folded.size() / static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < shift.size(); ++c) {
    const double factor =
        parameters[0]->array.get(c) / std::sqrt(parameters[3]->array.get(c) + (given != nullptr ? *given : 1e-5));
    for (std::size_t e = c * each; e < (c + 1) * each; ++e) folded.set(e, folded.get(e) * factor);
    const double before = bias ? bias->array.get(c) : 0;
    shift.set(c, (before - parameters[2]->array.get(c)) * factor + parameters[1]->array.get(c));
  }
  const std::string stem = norm.outputs[0] + "/folded";  // names of tensors are unique, and so is this one's
  const std::array<std::string, 2> names{stem + ".weight", stem + ".bias"};
  if (model.constants.contains(names[0]) || model.constants.contains(names[1])) return false;
  model.constants[names[0]] = std::make_shared<const NamedArray>(NamedArray{weight->name, std::move(folded)});
  model.constants[names[1]] =
      std::make_shared<const NamedArray>(NamedArray{bias ? bias->name : weight->name + ".bias", std::move(shift)});
  conv.inputs = {conv.inputs[0], names[0], names[1]};
  conv.outputs = {norm.outputs[0]};
  return true;
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE void fold_batch_norms(Model& model) {
  std::map<std::string, std::size_t> convolution;  // by what it computes
  std::map<std::string, int> readers;
  for (const std::string& output : model.outputs) ++readers[output];
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const Node& node = model.nodes[n];
    for (const std::string& input : node.inputs) ++readers[input];
    if (node.op == "Conv" && node.domain.empty() && node.outputs.size() == 1 && node.inputs.size() > 1)
      convolution[node.outputs[0]] = n;
  }
  std::set<std::size_t> folded;
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const Node& norm = model.nodes[n];
    if (norm.op != "BatchNormalization" || !norm.domain.empty() || norm.inputs.size() < 5 || norm.outputs.empty())
      continue;
    const auto training = norm.attributes.find("training_mode");
    const std::int64_t* mode =
        training == norm.attributes.end() ? nullptr : std::get_if<std::int64_t>(&training->second);
    const bool trains = mode != nullptr && *mode != 0;
    const auto place = convolution.find(norm.inputs[0]);
    if (trains || place == convolution.end() || place->second > n || readers[norm.inputs[0]] != 1) continue;
    if (readers[model.nodes[place->second].inputs[1]] != 1) continue;  // each would have a copy of its own
    if (detail::fold_into(model, model.nodes[place->second], norm)) folded.insert(n);
  }
  std::vector<Node> kept;
  for (std::size_t n = 0; n < model.nodes.size(); ++n)
    if (!folded.contains(n)) kept.push_back(std::move(model.nodes[n]));
  model.nodes = std::move(kept);
}

}  // namespace tunewright::networks::onnx

#endif
