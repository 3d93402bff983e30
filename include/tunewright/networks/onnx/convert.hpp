// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/onnx/call.hpp"
#include "tunewright/networks/onnx/model.hpp"
#include "tunewright/reference/evaluate.hpp"

namespace tunewright::networks {

struct OnnxOptions {
  std::map<std::string, std::vector<std::int64_t>> shapes{};  ///< of inputs, by name; required if the file has none
  std::map<std::string, std::int64_t> dimensions{};  ///< of inputs that the file leaves open, by the name there
  std::string name{};                                ///< of the network; by default that of the file's graph

  // Limits on time and memory for hostile files.
  double most_file_bytes = 0x1p31;    ///< of the file, of each file that weights are in, and of all weights in it
  double most_tensor_bytes = 0x1p33;  ///< of any tensor, of all inputs, and of all that is computed while importing
  double most_folded_operations = 0x1p30;  ///< maximum operations of constant folding
  std::size_t most_nodes = 200'000;
};

/// An imported network with its weights.
struct ImportedNetwork {
  /// Its `parameters` are the elements of all floating-point initializers that its outputs depend on, before batch
  /// normalisations are folded and without running statistics. An initializer may also hold what nobody trained.
  Network network;
  reference::Tensors values;         ///< by tensor: constants as in the file, inputs zero; what `CompiledNetwork` takes
  std::vector<std::string> outputs;  ///< names of `network.outputs`
};

/// All nodes that are not supported, each with a remedy.
struct UnsupportedModel : std::invalid_argument {
  UnsupportedModel(const std::string& message, std::vector<onnx::Unsupported> found)
      : std::invalid_argument(message), nodes(std::move(found)) {}
  std::vector<onnx::Unsupported> nodes;
};

namespace onnx {

/// All operators, by name.
[[nodiscard]] const Operators& supported_operators();

/// Converts a model to a compute graph. Constants are folded, batch normalisations are folded into the preceding
/// convolutions, images are stored channels last, and nodes that no output needs are omitted.
///
/// Errors: `UnsupportedModel`; `std::invalid_argument` for inputs of unknown shape, for inconsistent shapes, for
///         options that name no input or extent of the file, for nodes that read what no earlier one computes, for two
///         values of one name, and for models beyond the limits.
/// Determinism: a function of the arguments.
[[nodiscard]] ImportedNetwork convert(Model model, const OnnxOptions& options = {});

}  // namespace onnx
}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "tunewright/core/number_text.hpp"
#include "tunewright/networks/onnx/fold_batch_norms.hpp"
#include "tunewright/networks/onnx/needed_nodes.hpp"
#include "tunewright/networks/onnx/operators/elementwise.hpp"
#include "tunewright/networks/onnx/operators/images.hpp"
#include "tunewright/networks/onnx/operators/matrices.hpp"
#include "tunewright/networks/onnx/operators/movement.hpp"
#include "tunewright/program/analysis.hpp"

namespace tunewright::networks::onnx::detail {

/// Converts one model, node by node.
class Converter {
 public:
  Converter(Model& model, const OnnxOptions& options)
      : model_(model),
        options_(options),
        graph_(std::make_shared<ComputeGraph>()),
        bytes_("most_tensor_bytes", options.most_tensor_bytes),
        operations_("most_folded_operations", options.most_folded_operations),
        emitter_(graph_, bytes_) {}

  ImportedNetwork run();

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument("model '" + model_.name + "': " + what);
  }
  void take_constant_nodes();
  void add_inputs();
  void convert(const Node& node);
  [[nodiscard]] std::vector<Value> compute(const Operator& op, const Call& call);
  /// Values of a graph without inputs.
  void evaluate(Emitter& emitter, std::vector<Value>& values);
  void check_new_tensors(const ComputeGraph& graph, TensorId first, const std::string& who) const;
  /// `check_dimensions` with an error that names what has the shape.
  void check_dimensions_of(const std::string& who, const Shape& shape) const;
  void report_unsupported() const;
  /// The place in `values_` of a tensor, also of a constant that was not read before; the end for others.
  [[nodiscard]] std::map<std::string, std::optional<Value>>::const_iterator find(const std::string& name);
  [[nodiscard]] TensorId output(const std::string& name);
  [[nodiscard]] ImportedNetwork finish();

  Model& model_;
  const OnnxOptions& options_;
  std::shared_ptr<ComputeGraph> graph_;
  FoldingBudget bytes_;
  FoldingBudget operations_;
  Emitter emitter_;
  std::map<std::string, std::optional<Value>> values_;  // nothing behind a node that is not supported
  std::vector<Unsupported> unsupported_;
  std::set<std::string> left_out_;  // outputs of nodes that their operators do not compute
  std::vector<TensorId> inputs_;
  std::int64_t parameters_ = 0;
};

TUNEWRIGHT_INLINE void Converter::take_constant_nodes() {
  for (const Node& node : model_.nodes) {
    if (node.op != "Constant" || !node.domain.empty() || node.outputs.size() != 1) continue;
    const std::string& name = node.outputs[0];
    if (model_.constants.contains(name)) {
      refuse("node '" + node.name + "' (Constant) computes '" + name + "', which is there already");
    }
    for (const auto& [kind, value] : node.attributes) {
      const auto add = [&](ScalarType type, const std::vector<double>& numbers, bool scalar) {
        reference::Array array(type, scalar ? Shape{} : Shape{static_cast<std::int64_t>(numbers.size())});
        for (std::size_t i = 0; i < numbers.size(); ++i) array.set(i, numbers[i]);
        model_.constants[name] = std::make_shared<const NamedArray>(NamedArray{name, std::move(array)});
      };
      const auto add_integers = [&](const std::vector<std::int64_t>& integers, bool scalar) {
        std::vector<double> numbers;
        for (const std::int64_t integer : integers) numbers.push_back(static_cast<double>(kept_integer(integer)));
        add(ScalarType::Int64, numbers, scalar);
      };
      if (const auto* array = std::get_if<SharedArray>(&value)) model_.constants[name] = *array;
      if (const auto* integer = std::get_if<std::int64_t>(&value)) add_integers({*integer}, true);
      if (const auto* number = std::get_if<double>(&value)) add(ScalarType::Float32, {*number}, true);
      if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) add_integers(*integers, false);
      if (const auto* numbers = std::get_if<std::vector<double>>(&value)) add(ScalarType::Float32, *numbers, false);
    }
  }
  std::erase_if(model_.nodes, [&](const Node& node) {
    return node.op == "Constant" && node.domain.empty() && node.outputs.size() == 1 &&
           model_.constants.contains(node.outputs[0]);
  });
}

TUNEWRIGHT_INLINE void Converter::add_inputs() {
  for (const auto& [name, shape] : options_.shapes) {
    const bool found = std::any_of(model_.inputs.begin(), model_.inputs.end(),
                                   [&](const ModelInput& input) { return input.name == name; });
    if (!found) refuse("options.shapes names '" + name + "', which is no input of the file");
  }
  std::string unknown;
  std::set<std::string> unused, named;
  for (const auto& [name, extent] : options_.dimensions) unused.insert(name);
  for (const ModelInput& input : model_.inputs) {
    Shape shape;
    const auto given = options_.shapes.find(input.name);
    for (std::size_t d = 0; d < input.shape.size(); ++d) {
      const Dimension& dimension = input.shape[d];
      const auto extent = options_.dimensions.find(dimension.symbol);
      unused.erase(dimension.symbol);
      if (!dimension.symbol.empty()) named.insert(dimension.symbol);
      if (dimension.extent) {
        shape.push_back(*dimension.extent);
      } else if (given == options_.shapes.end() && extent == options_.dimensions.end()) {
        unknown += "\n  input '" + input.name + "', dimension " + std::to_string(d) +
                   (dimension.symbol.empty() ? "" : " ('" + dimension.symbol + "')");
        shape.push_back(1);
      } else {
        shape.push_back(extent == options_.dimensions.end() ? 0 : extent->second);
      }
    }
    if (given == options_.shapes.end() && !input.has_shape)
      unknown += "\n  input '" + input.name + "', which has no shape: give all of it in options.shapes";
    if (given != options_.shapes.end()) {
      bool fits = given->second.size() == shape.size() || !input.has_shape;
      for (std::size_t d = 0; fits && d < input.shape.size(); ++d)
        fits = !input.shape[d].extent || *input.shape[d].extent == given->second[d];
      if (!fits) {
        refuse("options.shapes has " + program::operators::detail::shape_text(given->second) + " for input '" +
               input.name +
               "', which does not fit the shape that the file has for it; change only extents that the "
               "file leaves open");
      }
      shape = given->second;
    }
    if (values_.contains(input.name) || model_.constants.contains(input.name))
      refuse("another value is called '" + input.name + "', as an input is; check it with onnx.checker");
    check_dimensions_of("input '" + input.name + "'", shape);
    const ScalarType type = input.type == ScalarType::Int64 ? ScalarType::Int32 : input.type;
    const Tensor tensor = graph_->input(input.name, shape, type);
    inputs_.push_back(tensor.id);
    check_new_tensors(*graph_, tensor.id, "input '" + input.name + "'");
    values_[input.name] = Value{shape, type, natural_order(shape.size()), nullptr, tensor};
  }
  if (!unknown.empty()) {
    for (const std::string& name : unused)
      unknown += "\n  and options.dimensions names '" + name + "', which no input has; is it misspelt?";
    refuse("extents are left open:" + unknown +
           "\ngive them in options.shapes by input, or in options.dimensions by the name of the extent");
  }
  if (!unused.empty()) {
    std::string names;
    for (const std::string& name : named) names += (names.empty() ? "'" : ", '") + name + "'";
    refuse("options.dimensions names '" + *unused.begin() + "', which no input has; " +
           (names.empty() ? "no extent of an input has a name, so leave it out" : "give the extents of " + names));
  }
}

TUNEWRIGHT_INLINE void Converter::check_new_tensors(const ComputeGraph& graph, TensorId first,
                                                    const std::string& who) const {
  for (TensorId id = first; id < graph.size(); ++id) {
    const double bytes = program::bytes(graph.op(id));
    if (bytes > options_.most_tensor_bytes) {
      refuse(who + ": a tensor of " + number_text(bytes) + " bytes is beyond options.most_tensor_bytes, " +
             number_text(options_.most_tensor_bytes) + "; raise it if this is meant");
    }
  }
}

TUNEWRIGHT_INLINE void Converter::check_dimensions_of(const std::string& who, const Shape& shape) const {
  try {
    check_dimensions(shape);
  } catch (const std::invalid_argument& error) {
    refuse(who + ": " + error.what());
  }
}

TUNEWRIGHT_INLINE void Converter::evaluate(Emitter& emitter, std::vector<Value>& values) {
  const ComputeGraph& graph = emitter.graph();
  reference::Tensors tensors(graph.size());
  double operations = 0;
  for (TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    operations += op.role == program::Role::Computed ? program::spatial_points(op) * program::reduction_points(op) : 0;
    if (op.role == program::Role::Constant) tensors[id] = emitter.constants().at(id)->array;
  }
  operations_.charge(operations);
  tensors = reference::evaluate(graph, std::move(tensors));
  for (Value& value : values) {
    if (value.known) continue;
    value.known = std::make_shared<const NamedArray>(
        NamedArray{graph.op(value.tensor.id).name, std::move(tensors[value.tensor.id])});
    value.tensor = {};
  }
}

TUNEWRIGHT_INLINE std::vector<Value> Converter::compute(const Operator& op, const Call& call) {
  const bool all_known = std::all_of(call.inputs.begin(), call.inputs.end(),
                                     [](const Value* input) { return input == nullptr || input->known; });
  if (!all_known) {
    const auto first = static_cast<TensorId>(graph_->size());
    std::vector<Value> outputs = op(emitter_, call);
    check_new_tensors(*graph_, first, "node '" + call.node.name + "' (" + call.node.op + ")");
    return outputs;
  }
  Emitter scratch(std::make_shared<ComputeGraph>(), bytes_);
  std::vector<Value> outputs = op(scratch, call);
  check_new_tensors(scratch.graph(), 0, "node '" + call.node.name + "' (" + call.node.op + ")");
  const bool open = std::any_of(outputs.begin(), outputs.end(), [](const Value& v) { return !v.known; });
  if (open) evaluate(scratch, outputs);
  for (const Value& output : outputs) {
    const bool passed_on = std::any_of(call.inputs.begin(), call.inputs.end(), [&](const Value* input) {
      return input != nullptr && input->known == output.known;
    });
    if (!passed_on) bytes_.charge(static_cast<double>(output.known->array.size_in_bytes()));
  }
  return outputs;
}

TUNEWRIGHT_INLINE std::map<std::string, std::optional<Value>>::const_iterator Converter::find(const std::string& name) {
  const auto constant = model_.constants.find(name);
  if (constant != model_.constants.end() && !values_.contains(name)) values_[name] = known_value(constant->second);
  return values_.find(name);
}

TUNEWRIGHT_INLINE void Converter::convert(const Node& node) {
  const std::string who = "node '" + node.name + "' (" + node.op + ")";
  for (const std::string& output : node.outputs) {
    const bool known = values_.contains(output) || model_.constants.contains(output);
    if (!output.empty() && known) refuse(who + " computes '" + output + "', which is there already");
  }
  std::vector<const Value*> read;
  bool behind_unsupported = false;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      read.push_back(nullptr);
      continue;
    }
    const auto place = find(name);
    if (place == values_.end()) {
      refuse(who + " reads '" + name +
             "', which nothing before it computes: the graph has a cycle, its nodes are out " +
             "of order, or the file is damaged; check it with onnx.checker");
    }
    if (left_out_.contains(name)) {
      unsupported_.push_back({node.name, node.op, "",
                              "it reads '" + name + "', an output that no operator here computes",
                              "leave that output out of the model"});
    }
    behind_unsupported = behind_unsupported || !place->second;
    read.push_back(place->second ? &*place->second : nullptr);
  }
  for (const std::string& output : node.outputs)
    if (!output.empty()) values_[output] = std::nullopt;
  const auto op = node.domain.empty() ? supported_operators().find(node.op) : supported_operators().end();
  if (op == supported_operators().end()) {
    const bool flow = node.op == "If" || node.op == "Loop" || node.op == "Scan";
    unsupported_.push_back(
        {node.name, node.op, "",
         node.domain.empty() ? "there is no operator of this name here" : "it is of the domain '" + node.domain + "'",
         flow ? "export with fixed shapes and without control flow that depends on data"
              : "replace it by supported operators in the model, or add it to networks/onnx/operators/"});
    return;
  }
  if (behind_unsupported) return;
  std::vector<Value> outputs;
  try {
    outputs = compute(op->second, {node, model_.opset, read});
    for (const Value& output : outputs) check_dimensions(output.shape);
  } catch (const UnsupportedError& error) {
    unsupported_.push_back(error.what_is);
    return;
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    if (text.starts_with("model '")) throw;
    refuse(text.starts_with("node '") ? text : who + ": " + text);
  }
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o].empty()) continue;
    if (o < outputs.size())
      values_[node.outputs[o]] = std::move(outputs[o]);
    else
      left_out_.insert(node.outputs[o]);  // as long as nothing reads it, nothing is missing
  }
}

TUNEWRIGHT_INLINE void Converter::report_unsupported() const {
  if (unsupported_.empty()) return;
  std::string text = "model '" + model_.name + "' has " + std::to_string(unsupported_.size()) +
                     (unsupported_.size() == 1 ? " node" : " nodes") + " that cannot be imported:";
  for (const Unsupported& found : unsupported_) {
    text += "\n  node '" + found.node + "' (" + found.op + ")" +
            (found.attribute.empty() ? "" : ", '" + found.attribute + "'") + ": " + found.reason + "; " + found.remedy;
  }
  throw UnsupportedModel(text, unsupported_);
}

TUNEWRIGHT_INLINE TensorId Converter::output(const std::string& name) {
  const auto place = find(name);
  if (place == values_.end()) refuse("nothing computes the output '" + name + "'");
  if (!place->second) refuse("no operator here computes the output '" + name + "'; leave it out of the model");
  const Value& value = *place->second;
  if (value.known) refuse("the output '" + name + "' does not depend on any input; leave it out of the model");
  const Tensor tensor = emitter_.natural(value);
  if (graph_->op(tensor.id).role == program::Role::Computed) return tensor.id;
  return graph_
      ->compute("copy", program::operators::detail::axes_over(tensor.shape),
                [&](auto i) { return tensor.at({i.begin(), i.end()}); })
      .id;
}

TUNEWRIGHT_INLINE ImportedNetwork Converter::finish() {
  std::vector<TensorId> outputs;
  for (const std::string& name : model_.outputs) outputs.push_back(output(name));
  check_new_tensors(*graph_, 0, "an output");
  // Omits what nothing needs: weights before transposition or folding, and views of views.
  std::vector<bool> wanted(graph_->size(), false);
  for (const TensorId id : inputs_) wanted[id] = true;
  for (const TensorId id : outputs) wanted[id] = true;
  std::map<TensorId, TensorId> table_of;
  for (const Lookup& lookup : emitter_.lookups()) table_of[lookup.rows] = lookup.table;
  for (TensorId id = static_cast<TensorId>(graph_->size()); id-- > 0;) {
    if (wanted[id] && table_of.contains(id)) wanted[table_of[id]] = true;
    if (wanted[id])
      for (const TensorId read : graph_->producers(id)) wanted[read] = true;
  }
  double input_bytes = 0;
  for (TensorId id = 0; id < graph_->size(); ++id)
    if (wanted[id] && graph_->op(id).role == program::Role::Input) input_bytes += program::bytes(graph_->op(id));
  if (input_bytes > options_.most_tensor_bytes) {
    refuse("its inputs, with the rows that they look up, take " + number_text(input_bytes) +
           " bytes, more than options.most_tensor_bytes, " + number_text(options_.most_tensor_bytes) +
           "; raise it if this is meant");
  }
  auto graph = std::make_shared<ComputeGraph>();
  ImportedNetwork result;
  std::vector<TensorId> number(graph_->size(), 0);
  for (TensorId id = 0; id < graph_->size(); ++id) {
    if (!wanted[id]) continue;
    program::Operator op = graph_->op(id);
    if (op.body) {
      op.body = program::rewrite(op.body, [&](const Expr& node) -> Expr {
        if (node->op != program::Op::Load) return {};
        return program::load(number[node->tensor], node->type, node->indices);
      });
    }
    number[id] = graph->add(std::move(op)).id;
    result.values.emplace_back();
    const program::Operator& added = graph->op(number[id]);
    if (added.role == program::Role::Input) result.values.back() = reference::Array(added.type, added.shape());
    if (added.role == program::Role::Constant) {
      result.values.back() = emitter_.constants().at(id)->array;
    }
  }
  for (const Lookup& lookup : emitter_.lookups()) {
    if (wanted[lookup.rows])
      result.network.lookups.push_back({number[lookup.rows], number[lookup.table], number[lookup.ids]});
  }
  for (const TensorId id : outputs) result.network.outputs.push_back(number[id]);
  result.network.name = options_.name.empty() ? model_.name : options_.name;
  result.network.graph = std::move(graph);
  result.network.parameters = parameters_;
  result.network.output_names = model_.outputs;
  result.outputs = model_.outputs;
  return result;
}

TUNEWRIGHT_INLINE ImportedNetwork Converter::run() {
  if (model_.nodes.size() > options_.most_nodes) {
    refuse("it has " + std::to_string(model_.nodes.size()) + " nodes, more than options.most_nodes, " +
           std::to_string(options_.most_nodes) + "; raise it if this is meant");
  }
  if (model_.outputs.empty()) refuse("it has no outputs");
  parameters_ = count_parameters(model_);
  take_constant_nodes();
  for (const auto& [name, constant] : model_.constants)
    check_dimensions_of("constant '" + name + "'", constant->array.shape());
  fold_batch_norms(model_);
  add_inputs();
  const std::vector<bool> wanted = needed_nodes(model_);
  for (std::size_t n = 0; n < model_.nodes.size(); ++n)
    if (wanted[n]) convert(model_.nodes[n]);
  report_unsupported();
  return finish();
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE const Operators& supported_operators() {
  static const Operators all = [] {
    Operators operators;
    add_elementwise(operators);
    add_images(operators);
    add_matrices(operators);
    add_movement(operators);
    return operators;
  }();
  return all;
}

TUNEWRIGHT_INLINE ImportedNetwork convert(Model model, const OnnxOptions& options) {
  return detail::Converter(model, options).run();
}

}  // namespace tunewright::networks::onnx

#endif
