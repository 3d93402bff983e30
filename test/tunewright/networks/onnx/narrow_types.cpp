// SPDX-License-Identifier: Apache-2.0
// Models of 16-bit numbers: results have the type of the file, and sums do not lose what 16 bits cannot add.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/onnx_models.hpp"
#include "tunewright/networks/onnx/convert.hpp"

using namespace tunewright;
using networks::onnx::Model;
using networks::onnx::Node;
using program::ScalarType;
using test::onnx_ints;
using test::onnx_model;
using test::onnx_node;
using test::onnx_result;

namespace {

using Ints = std::vector<std::int64_t>;
constexpr std::int64_t terms = 64 * 64;  // ones, which are 2048 if summed in float16 and 256 in bfloat16

networks::onnx::SharedArray ones(const std::string& name, ScalarType type, const Ints& shape) {
  reference::Array array(type, shape);
  for (std::size_t i = 0; i < array.size(); ++i) array.set(i, 1);
  return std::make_shared<const networks::onnx::NamedArray>(networks::onnx::NamedArray{name, std::move(array)});
}

/// The input "x" and the constant "w" have elements of `type`; those of "w" are ones.
Model typed_model(ScalarType type, const Ints& x, std::vector<Node> nodes, const Ints& w = {1}) {
  Model model = onnx_model(x, std::move(nodes));
  model.inputs[0].type = type;
  model.constants = {{"w", ones("w", type, w)}, {"axes", onnx_ints("axes", {1})}};
  return model;
}

/// The reference sums in double, so only the types tell what kernels do: they round to 16 bits after each addition.
void check_types(const networks::Network& network, ScalarType type) {
  const program::ComputeGraph& graph = *network.graph;
  CHECK(graph.op(network.outputs.at(0)).type == type);
  for (program::TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    CAPTURE(op.name);
    if (op.combiner == program::Combiner::Sum) CHECK(op.type == ScalarType::Float32);
    if (type == ScalarType::Float32) CHECK(op.name != "cast");
  }
}

void check(const Model& model, const std::vector<float>& x, float each) {
  const std::string node = model.nodes.back().name;
  CAPTURE(node);
  check_types(networks::onnx::convert(model).network, model.inputs[0].type);
  for (const float y : onnx_result(model, x)) CHECK(std::abs(y) == doctest::Approx(each).epsilon(1e-6));
}

}  // namespace

TEST_CASE("sums, products and means of 16-bit numbers are exact as far as their results are") {
  const Ints row{1, terms}, image{1, 1, 64, 64}, windows{64, 64};
  const std::vector<float> x(terms, 1);
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Float32}) {
    const std::string type_name(program::name(type));
    CAPTURE(type_name);
    check(typed_model(type, row, {onnx_node("MatMul", {"x", "w"}, "y")}, {terms, 1}), x, terms);
    check(typed_model(type, row, {onnx_node("MatMul", {"x", "w"}, "y")}, {terms}), x, terms);
    check(typed_model(type, row, {onnx_node("Gemm", {"x", "w"}, "y", {{"alpha", 0.5}})}, {terms, 1}), x, terms / 2);
    check(typed_model(type, row, {onnx_node("ReduceSum", {"x", "axes"}, "y")}), x, terms);
    check(typed_model(type, row, {onnx_node("ReduceMean", {"x", "axes"}, "y")}), x, 1);
    check(typed_model(type, row, {onnx_node("ReduceMax", {"x", "axes"}, "y")}), x, 1);
    check(typed_model(type, row, {onnx_node("Softmax", {"x"}, "y")}), x, 1.0F / terms);
    check(typed_model(type, image, {onnx_node("GlobalAveragePool", {"x"}, "y")}), x, 1);
    check(typed_model(type, image, {onnx_node("AveragePool", {"x"}, "y", {{"kernel_shape", windows}})}), x, 1);
    check(typed_model(type, image,
                      {onnx_node("AveragePool", {"x"}, "y", {{"kernel_shape", windows}, {"pads", Ints{0, 0, 1, 0}}})}),
          x, 1);
    check(typed_model(type, image, {onnx_node("Conv", {"x", "w"}, "y")}, image), x, terms);
  }
}

TEST_CASE("depthwise convolutions and layer norms of 16-bit numbers sum in 32 bits") {
  const std::vector<float> x(2 * terms, 1);
  std::vector<float> signs(terms, 1);
  for (std::size_t i = 0; i < signs.size(); i += 2) signs[i] = -1;
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Float32}) {
    const std::string type_name(program::name(type));
    CAPTURE(type_name);
    check(typed_model(type, {1, 2, 64, 64}, {onnx_node("Conv", {"x", "w"}, "y", {{"group", std::int64_t{2}}})},
                      {2, 1, 64, 64}),
          x, terms);
    check(typed_model(type, {1, terms}, {onnx_node("LayerNormalization", {"x"}, "y", {{"epsilon", 0.0}})}), signs, 1);
  }
}

TEST_CASE("a convolution of 16-bit numbers is read by the next") {
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16}) {
    Model model = typed_model(
        type, {1, 1, 2, 2},
        {onnx_node("Conv", {"x", "w", "b"}, "c"), onnx_node("Relu", {"c"}, "r"), onnx_node("Conv", {"r", "w"}, "d"),
         onnx_node("MaxPool", {"d"}, "y", {{"kernel_shape", Ints{2, 2}}})},
        {1, 1, 1, 1});
    model.constants["b"] = ones("b", type, {1});
    check(model, {0, 1, 2, 3}, 4);
  }
}

TEST_CASE("a normalisation of 16-bit numbers is rounded once, however many channels there are") {
  // 1 * 0.3 and 4 * 0.3, where 1001 * 0.3 is 300.25 in float16 and 1004 * 0.3 is 302 in bfloat16.
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Float32}) {
    const std::string type_name(program::name(type));
    CAPTURE(type_name);
    const float x = type == ScalarType::BFloat16 ? 1004 : 1001;  // bfloat16 has 1000 and 1004, and nothing between
    for (const std::int64_t channels : {1, 2}) {
      CAPTURE(channels);
      Model model = typed_model(
          type, {1, channels, 1, 1},
          {onnx_node("BatchNormalization", {"x", "scale", "zero", "mean", "one"}, "y", {{"epsilon", 0.0}})});
      const auto each = [&](const std::string& name, float number) {
        const std::vector<float> numbers(static_cast<std::size_t>(channels), number);
        model.constants[name] = test::onnx_floats(name, {channels}, numbers);
      };
      each("scale", 0.3F), each("zero", 0), each("mean", 1000), each("one", 1);
      check_types(networks::onnx::convert(model).network, type);
      for (const float y : onnx_result(model, std::vector<float>(static_cast<std::size_t>(channels), x)))
        CHECK(y == doctest::Approx((x - 1000) * 0.3F).epsilon(type == ScalarType::BFloat16 ? 4e-3 : 5e-4));
    }
  }
}
