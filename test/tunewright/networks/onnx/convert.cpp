// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/onnx/convert.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/onnx_models.hpp"
#include "support/refusal.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/partition.hpp"

using namespace tunewright;
using networks::onnx::convert;
using networks::onnx::Model;
using test::onnx_floats;
using test::onnx_ints;
using test::onnx_model;
using test::onnx_node;
using test::onnx_result;

namespace {

using Ints = std::vector<std::int64_t>;

std::string refusal(const Model& model, const networks::OnnxOptions& options = {}) {
  return test::refusal([&] { (void)convert(model, options); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a normalisation behind a convolution becomes its weight and bias") {
  // One pixel, one channel: 3 x + 1, then (. - 2) / sqrt(3 + 1) * 4 + 5 = 6 x + 3.
  Model model = onnx_model({1, 1, 1, 1}, {onnx_node("Conv", {"x", "w", "b"}, "c"),
                                          onnx_node("BatchNormalization", {"c", "gamma", "beta", "mean", "variance"},
                                                    "y", {{"epsilon", 1.0}})});
  model.constants = {{"w", onnx_floats("w", {1, 1, 1, 1}, {3})}, {"b", onnx_floats("b", {1}, {1})},
                     {"gamma", onnx_floats("gamma", {1}, {4})},  {"beta", onnx_floats("beta", {1}, {5})},
                     {"mean", onnx_floats("mean", {1}, {2})},    {"variance", onnx_floats("variance", {1}, {3})}};
  CHECK(onnx_result(model, {10}) == std::vector<float>{63});
  const auto scales = [](const networks::ImportedNetwork& imported) {
    const program::ComputeGraph& graph = *imported.network.graph;
    int found = 0;
    for (program::TensorId id = 0; id < graph.size(); ++id) found += graph.op(id).name == "scale" ? 1 : 0;
    return found;
  };
  CHECK(scales(convert(model)) == 0);
  // Somebody else reads what the convolution computes, so it stays as it is.
  model.nodes.push_back(onnx_node("Add", {"y", "c"}, "z"));
  model.outputs = {"z"};
  CHECK(onnx_result(model, {10}) == std::vector<float>{63 + 31});
  CHECK(scales(convert(model)) == 1);
}

TEST_CASE("what follows a convolution or a product joins its task") {
  Model model = onnx_model({1, 2, 4, 4}, {onnx_node("Conv", {"x", "w", "b"}, "c"), onnx_node("Relu", {"c"}, "r"),
                                          onnx_node("Flatten", {"r"}, "f"), onnx_node("Gemm", {"f", "m", "n"}, "g"),
                                          onnx_node("Sigmoid", {"g"}, "y")});
  model.constants = {{"w", onnx_floats("w", {3, 2, 3, 3}, {})},
                     {"b", onnx_floats("b", {3}, {})},
                     {"m", onnx_floats("m", {12, 5}, {})},
                     {"n", onnx_floats("n", {5}, {})}};
  const networks::Partition partition = networks::partition(convert(model).network, Target{});
  const auto has = [&](const std::string& operators) {
    return std::any_of(partition.tasks.begin(), partition.tasks.end(),
                       [&](const WeightedTask& task) { return task.task.name.starts_with(operators + " "); });
  };
  CHECK(has("conv2d+bias_add+relu"));
  CHECK(has("matmul+bias_add+sigmoid"));
}

TEST_CASE("what depends on no input is computed while importing") {
  // y = x reshaped to [shape(x)[1] * 1, -1], and a sum with 2 * 3.
  Model model = onnx_model({2, 3}, {onnx_node("Shape", {"x"}, "s"), onnx_node("Gather", {"s", "second"}, "e"),
                                    onnx_node("Slice", {"open", "zero", "zero"}, "none"),
                                    onnx_node("Concat", {"none", "e", "open"}, "t", {{"axis", std::int64_t{0}}}),
                                    onnx_node("Reshape", {"x", "t"}, "r"), onnx_node("Mul", {"two", "three"}, "six"),
                                    onnx_node("Add", {"r", "six"}, "y"), onnx_node("Nobody", {"x"}, "knows")});
  model.constants = {{"second", onnx_ints("second", {1})},
                     {"open", onnx_ints("open", {-1})},
                     {"zero", onnx_ints("zero", {0})},
                     {"two", onnx_floats("two", {1}, {2})},
                     {"three", onnx_floats("three", {1}, {3})}};
  CHECK(onnx_result(model, {0, 1, 2, 3, 4, 5}) == std::vector<float>{6, 7, 8, 9, 10, 11});
  const networks::ImportedNetwork imported = convert(model);
  CHECK(imported.network.graph->op(imported.network.outputs[0]).shape() == Ints{3, 2});
  CHECK(imported.network.graph->size() == 3);  // x, its view, and the sum
}

TEST_CASE("transpositions are how others read") {
  // x is 2x3 and y = transpose(x) times x, a 3x3 matrix; there is no copy of x.
  const Model model = onnx_model(
      {2, 3}, {onnx_node("Transpose", {"x"}, "t", {{"perm", Ints{1, 0}}}), onnx_node("MatMul", {"t", "x"}, "y")});
  CHECK(onnx_result(model, {1, 2, 3, 4, 5, 6}) == std::vector<float>{17, 22, 27, 22, 29, 36, 27, 36, 45});
  CHECK(convert(model).network.graph->size() == 2);
  // An output has the shape of the file, so that one is a copy.
  Model copied = onnx_model({2, 3}, {onnx_node("Transpose", {"x"}, "y")});
  CHECK(onnx_result(copied, {1, 2, 3, 4, 5, 6}) == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("all that is not supported is told at once") {
  Model model = onnx_model({1, 1, 4, 4}, {onnx_node("Conv", {"x", "w"}, "a", {{"auto_pad", std::string("ODD")}}),
                                          onnx_node("Relu", {"a"}, "b"), onnx_node("NonMaxSuppression", {"b"}, "c"),
                                          onnx_node("If", {"c"}, "y")});
  model.constants = {{"w", onnx_floats("w", {1, 1, 3, 3}, {})}};
  model.nodes[3].domain = "ai.custom";
  try {
    (void)convert(model);
    FAIL("nothing was thrown");
  } catch (const networks::UnsupportedModel& error) {
    REQUIRE(error.nodes.size() == 3);
    CHECK(error.nodes[0].attribute == "auto_pad");
    CHECK(error.nodes[1].op == "NonMaxSuppression");
    const std::string text = error.what();
    CHECK(contains(text, "model 'small' has 3 nodes that cannot be imported:\n"));
    CHECK(contains(text, "node 'the Conv' (Conv), 'auto_pad': 'ODD' is no way of padding; use NOTSET with pads"));
    CHECK(contains(text, "node 'the If' (If): it is of the domain 'ai.custom'; export with fixed shapes"));
  }
}

TEST_CASE("indices and exponents that depend on inputs name the node and what to do") {
  Model model = onnx_model({3}, {onnx_node("Pow", {"x", "x"}, "y")});
  CHECK(contains(refusal(model), "'Y': depends on what the network is given; make it a constant in the model"));
  // The error names all such nodes at once, whatever is wrong with their exponents.
  model = onnx_model({3}, {onnx_node("Pow", {"x", "three"}, "a"), onnx_node("Pow", {"a", "none"}, "b"),
                           onnx_node("Pow", {"x", "odd"}, "c"), onnx_node("Add", {"b", "c"}, "y")});
  model.constants = {{"three", onnx_floats("three", {3}, {1, 2, 3})},
                     {"none", onnx_floats("none", {0}, {})},
                     {"odd", onnx_floats("odd", {1}, {0.1F})}};
  CHECK(refusal(model) ==
        "model 'small' has 2 nodes that cannot be imported:\n"
        "  node 'the Pow' (Pow), 'Y': it has 3 elements; use one exponent for all of X, or write it with Exp and Log\n"
        "  node 'the Pow' (Pow), 'Y': the exponent is 0.1; use a whole number from -8 to 8, 0.5 or -0.5, or write it "
        "with Exp and Log");
  model.nodes[0].inputs[1] = "none";
  CHECK(contains(refusal(model), "'Y': it has 0 elements"));
  model = onnx_model({3}, {onnx_node("Gather", {"x", "x"}, "y")});
  CHECK(contains(refusal(model), "only rows of a constant table can be picked, by an input itself"));
  model = onnx_model({3}, {onnx_node("Gather", {"x", "i"}, "y")});
  model.constants = {{"i", onnx_ints("i", {0, 2, 1})}};
  CHECK(contains(refusal(model), "they are not evenly spaced and ascending; use Slice or Split"));
}

TEST_CASE("indices are counted from either end, whole and inside") {
  const auto picking = [](const networks::onnx::SharedArray& indices, const char* op, bool known) {
    Model model = onnx_model({3}, {onnx_node(op, {known ? "w" : "x", "i"}, known ? "p" : "y")});
    if (known) model.nodes.push_back(onnx_node("Add", {"p", "x"}, "y"));
    model.constants = {{"i", indices}, {"w", onnx_floats("w", {3}, {4, 5, 6})}};
    return model;
  };
  const std::vector<float> x{1, 2, 3};
  CHECK(onnx_result(picking(onnx_ints("i", {-2, 2}), "Gather", false), x) == std::vector<float>{2, 3});
  CHECK(onnx_result(picking(onnx_ints("i", {-1, 1, -3}), "Gather", true), x) == std::vector<float>{7, 7, 7});
  CHECK(onnx_result(picking(onnx_ints("i", {-1, 1, -3}), "GatherElements", true), x) == std::vector<float>{7, 7, 7});
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [op, known] : {std::pair{"Gather", false}, {"Gather", true}, {"GatherElements", true}}) {
    CHECK(contains(refusal(picking(onnx_ints("i", {3}), op, known)), "index 3 is beyond the 3 elements"));
    CHECK(contains(refusal(picking(onnx_ints("i", {-4}), op, known)), "index -4 is beyond the 3 elements"));
    for (const float index : {0.5F, infinity, -1e30F}) {
      CHECK(contains(refusal(picking(onnx_floats("i", {1}, {index}), op, known)),
                     "indices has the element " + number_text(double{index}) + "; give whole numbers of at most 2^53"));
    }
  }
  CHECK(contains(refusal(picking(onnx_ints("i", {}), "Gather", false)), "there are none; tensors have at least one"));
}

TEST_CASE("picking nothing takes no time, whatever else there is") {
  // No elements, in 2^50 rows.
  Model model = onnx_model({1}, {onnx_node("Gather", {"w", "zero"}, "a", {{"axis", std::int64_t{1}}}),
                                 onnx_node("Size", {"a"}, "s"), onnx_node("Expand", {"x", "s"}, "y")});
  model.constants = {{"w", onnx_floats("w", {std::int64_t{1} << 50, 1, 0}, {})}, {"zero", onnx_ints("zero", {0})}};
  CHECK(contains(refusal(model), "the shape has an extent of 0; give at least 1"));
}

TEST_CASE("weights of another shape are told with the node that reads them") {
  Model model = onnx_model({1, 3, 8, 8}, {onnx_node("Conv", {"x", "w"}, "y")});
  model.constants = {{"w", onnx_floats("w", {4, 2, 3, 3}, {})}};
  CHECK(refusal(model) ==
        "model 'small': node 'the Conv' (Conv): a weight of shape [4, 2, 3, 3] with group 1 does not fit an image of 3 "
        "channels; is it the weight of another layer?");
  model = onnx_model({2, 3}, {onnx_node("MatMul", {"x", "w"}, "y")});
  model.constants = {{"w", onnx_floats("w", {4, 2}, {})}};
  CHECK(contains(refusal(model), "do not multiply: the second has 4 rows where the first has 3 columns"));
  model = onnx_model({2, 3}, {onnx_node("Add", {"x", "w"}, "y")});
  CHECK(contains(refusal(model), "node 'the Add' (Add): add: shape [4, 2] does not broadcast") == false);
  model.constants = {{"w", onnx_floats("w", {4, 2}, {})}};
  CHECK(contains(refusal(model), "node 'the Add' (Add): add: shape [4, 2] does not broadcast"));
}

TEST_CASE("graphs with cycles, missing tensors or two of one name are refused") {
  Model model = onnx_model(
      {3}, {onnx_node("Add", {"x", "b"}, "a"), onnx_node("Relu", {"a"}, "b"), onnx_node("Relu", {"b"}, "y")});
  CHECK(contains(refusal(model),
                 "node 'the Add' (Add) reads 'b', which nothing before it computes: the graph has a cycle"));
  model = onnx_model({3}, {onnx_node("Relu", {"x"}, "y"), onnx_node("Abs", {"x"}, "y")});
  CHECK(contains(refusal(model), "node 'the Abs' (Abs) computes 'y', which is there already"));
  // What is read would be replaced while it is read.
  model = onnx_model({3}, {onnx_node("Relu", {"w"}, "w"), onnx_node("Add", {"w", "x"}, "y")});
  model.constants = {{"w", onnx_floats("w", {3}, {1, 2, 3})}};
  CHECK(contains(refusal(model), "node 'the Relu' (Relu) computes 'w', which is there already"));
  model = onnx_model({3}, {onnx_node("Relu", {"x"}, "z")});
  CHECK(refusal(model) == "model 'small': nothing computes the output 'y'");
  model.constants = {{"y", onnx_floats("y", {1}, {1})}};
  CHECK(contains(refusal(model), "the output 'y' does not depend on any input; leave it out of the model"));
  model.outputs.clear();
  CHECK(refusal(model) == "model 'small': it has no outputs");
}

TEST_CASE("models that would take memory or time without end are refused") {
  Model model = onnx_model({1, 1}, {onnx_node("Expand", {"x", "s"}, "e"), onnx_node("Relu", {"e"}, "y")});
  model.constants = {{"s", onnx_ints("s", {1 << 20, 1 << 20})}};
  CHECK(contains(refusal(model), "is beyond options.most_tensor_bytes"));
  model.constants = {{"s", onnx_ints("s", {std::int64_t{1} << 40, std::int64_t{1} << 40})}};
  CHECK(contains(refusal(model), "has more than 2^53 elements"));
  model = onnx_model({1 << 20, 1 << 20, 1 << 20}, {onnx_node("Relu", {"x"}, "y")});
  CHECK(contains(refusal(model), "2^53"));
  // Repeats of one number cost nothing until somebody wants them one after the other.
  model = onnx_model({1}, {onnx_node("ConstantOfShape", {"s"}, "a"), onnx_node("Reshape", {"a", "t"}, "b"),
                           onnx_node("Add", {"b", "x"}, "y")});
  model.constants = {{"s", onnx_ints("s", {1 << 20, 1 << 20})}, {"t", onnx_ints("t", {-1, 4})}};
  CHECK(contains(refusal(model),
                 "node 'the Reshape' (Reshape): what depends on no input takes more than "
                 "options.most_tensor_bytes"));
  // Neither what is picked from, 4 MiB of repeats, nor what is picked, 4 KiB a place, may exceed the limit.
  model = onnx_model({1}, {onnx_node("ConstantOfShape", {"s"}, "a"), onnx_node("Gather", {"a", "t"}, "b"),
                           onnx_node("ReduceMax", {"b"}, "c"), onnx_node("Add", {"c", "x"}, "y")});
  model.constants = {{"s", onnx_ints("s", {1 << 10, 1 << 10})}, {"t", onnx_ints("t", {0})}};
  const std::string too_much = "node 'the Gather' (Gather): what depends on no input takes more than";
  CHECK(contains(refusal(model, {.most_tensor_bytes = 0x1p21}), too_much));
  CHECK(refusal(model, {.most_tensor_bytes = 0x1p23}) == "nothing was thrown");
  model.constants["t"] = onnx_ints("t", std::vector<std::int64_t>(1 << 11, 0));
  CHECK(contains(refusal(model, {.most_tensor_bytes = 0x1p23}), too_much));
  // Known values alone: 2^15 x 2^15 x 2^15 operations to fold.
  model = onnx_model({1}, {onnx_node("ConstantOfShape", {"s"}, "a"), onnx_node("MatMul", {"a", "a"}, "b"),
                           onnx_node("Add", {"b", "x"}, "y")});
  model.constants = {{"s", onnx_ints("s", {1 << 15, 1 << 15})}};
  CHECK(contains(refusal(model), "more than options.most_folded_operations, 1073741824; raise it"));
  CHECK(contains(refusal(model, {.most_nodes = 2}), "3 nodes, more than options.most_nodes, 2"));
  model = onnx_model({3}, {onnx_node("Range", {"a", "b", "c"}, "r"), onnx_node("Add", {"r", "x"}, "y")});
  for (const auto& [name, number] :
       {std::pair{"a", std::int64_t{0}}, {"b", std::int64_t{1} << 40}, {"c", std::int64_t{1}}})
    model.constants[name] = onnx_ints(name, {number});
  CHECK(contains(refusal(model), "from 1 to 2^24 are possible"));
}

TEST_CASE("parameters that operators write out are counted before they are") {
  const std::string too_much = "what depends on no input takes more than options.most_tensor_bytes";
  Model model = onnx_model({1, 1}, {onnx_node("Expand", {"x", "s"}, "e"), onnx_node("LayerNormalization", {"e"}, "y")});
  model.constants = {{"s", onnx_ints("s", {1, 1 << 20})}};
  CHECK(contains(refusal(model, {.most_tensor_bytes = 0x1p21}),
                 "node 'the LayerNormalization' (LayerNormalization): " + too_much));
  model = onnx_model(
      {1, 1, 1, 1}, {onnx_node("Expand", {"x", "s"}, "e"),
                     onnx_node("AveragePool", {"e"}, "y", {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{0, 0, 1, 0}}})});
  model.constants = {{"s", onnx_ints("s", {1, 1, 1 << 10, 1 << 10})}};
  CHECK(contains(refusal(model, {.most_tensor_bytes = 0x1p21}), "node 'the AveragePool' (AveragePool): " + too_much));
}

TEST_CASE("tensors of more dimensions than make sense are refused") {
  Model model = onnx_model({1}, {onnx_node("ConstantOfShape", {"many"}, "s", {{"value", onnx_ints("one", {1})}}),
                                 onnx_node("Reshape", {"x", "s"}, "y")});
  model.constants = {{"many", onnx_ints("many", {65})}};
  CHECK(contains(refusal(model), "node 'the Reshape' (Reshape): a tensor has 65 dimensions, and at most 64 are"));
  model.constants = {{"many", onnx_ints("many", {64})}};
  CHECK(onnx_result(model, {7}) == std::vector<float>{7});
  model = onnx_model(Ints(65, 1), {onnx_node("Relu", {"x"}, "y")});
  CHECK(contains(refusal(model), "input 'x': a tensor has 65 dimensions"));
  model = onnx_model({1}, {onnx_node("Add", {"x", "w"}, "y")});
  model.constants = {{"w", onnx_floats("w", Ints(65, 1), {1})}};
  CHECK(contains(refusal(model), "constant 'w': a tensor has 65 dimensions, and at most 64 are possible"));
  model.constants.clear();
  model.nodes.insert(model.nodes.begin(),
                     onnx_node("Constant", {}, "w", {{"value", onnx_floats("value", Ints(65, 1), {1})}}));
  CHECK(contains(refusal(model), "constant 'w': a tensor has 65 dimensions"));
}

TEST_CASE("words are looked up by an input itself, in its order") {
  const auto looked_up = [](std::vector<networks::onnx::Node> nodes) {
    nodes.push_back(onnx_node("Gather", {"words", "ids"}, "y"));
    Model model = onnx_model({2, 1, 3}, std::move(nodes));
    model.inputs[0].type = program::ScalarType::Int64;
    reference::Array numbers(program::ScalarType::Int32, {6, 1});
    for (std::size_t i = 0; i < 6; ++i) numbers.set(i, static_cast<double>(5 - i));
    model.constants = {{"words", onnx_floats("words", {6, 1}, {0, 10, 20, 30, 40, 50})},
                       {"numbers", networks::onnx::known_value("numbers", std::move(numbers)).known},
                       {"second", onnx_ints("second", {1})}};
    return model;
  };
  CHECK(onnx_result(looked_up({onnx_node("Squeeze", {"x", "second"}, "ids")}), {0, 1, 2, 3, 4, 5}) ==
        std::vector<float>{0, 10, 20, 30, 40, 50});
  const std::string by_input = "only rows of a constant table can be picked, by an input itself";
  // Transposed, with a dimension of one number in between that is left out.
  CHECK(contains(refusal(looked_up({onnx_node("Transpose", {"x"}, "t", {{"perm", Ints{2, 1, 0}}}),
                                    onnx_node("Squeeze", {"t", "second"}, "ids")})),
                 by_input));
  // Rows of a table of numbers.
  CHECK(contains(refusal(looked_up({onnx_node("Gather", {"numbers", "x"}, "ids")})), by_input));
}

TEST_CASE("a power has the dimensions of its exponent, too") {
  Model model = onnx_model({3}, {onnx_node("Pow", {"x", "two"}, "y")});
  model.constants = {{"two", onnx_floats("two", {1, 1, 1}, {2})}};
  const networks::Network network = convert(model).network;
  CHECK(network.graph->op(network.outputs[0]).shape() == Ints{1, 1, 3});
  CHECK(onnx_result(model, {1, -2, 3}) == std::vector<float>{1, 4, 9});
}

TEST_CASE("parameters of a normalisation are told by their names") {
  Model model = onnx_model({1, 1}, {onnx_node("BatchNormalization", {"x", "one", "one", "x", "one"}, "y")});
  model.constants = {{"one", onnx_floats("one", {1}, {1})}, {"two", onnx_floats("two", {2}, {1, 2})}};
  CHECK(contains(refusal(model), "'input_mean': depends on what the network is given; make it a constant"));
  model.nodes[0].inputs = {"x", "one", "two", "one", "one"};
  CHECK(contains(refusal(model), "B has 2 elements where the input has 1 channels"));
}

TEST_CASE("repeats of repeats that 64 bits do not count are refused") {
  // 2^64 elements, which wrap around to none: an array of them would be read behind its end.
  Model model = onnx_model({1}, {onnx_node("Expand", {"one", "s"}, "a"), onnx_node("Expand", {"a", "t"}, "b"),
                                 onnx_node("Gather", {"b", "zero"}, "c"), onnx_node("Add", {"c", "x"}, "y")});
  model.constants = {{"one", onnx_floats("one", {1, 1}, {1})},
                     {"s", onnx_ints("s", {std::int64_t{1} << 40, 1})},
                     {"t", onnx_ints("t", {1, std::int64_t{1} << 24})},
                     {"zero", onnx_ints("zero", {0})}};
  CHECK(contains(refusal(model),
                 "node 'the Expand' (Expand): expand: a result of shape [1099511627776, 16777216] has "
                 "more than 2^53 elements; give smaller extents"));
  model = onnx_model({1}, {onnx_node("ConstantOfShape", {"s"}, "a"), onnx_node("Add", {"a", "x"}, "y")});
  model.constants = {{"s", onnx_ints("s", {std::int64_t{1} << 40, std::int64_t{1} << 24})}};
  CHECK(contains(refusal(model), "has more than 2^53 elements"));
}

TEST_CASE("an output that no operator computes is refused where something reads it") {
  Model model = onnx_model({2}, {onnx_node("Relu", {"x"}, "y")});
  model.nodes[0].outputs.push_back("more");
  CHECK(onnx_result(model, {-1, 4}) == std::vector<float>{0, 4});
  model.outputs.push_back("more");
  CHECK(contains(refusal(model), "no operator here computes the output 'more'; leave it out of the model"));
  model.nodes.push_back(onnx_node("Abs", {"more"}, "z"));
  model.outputs = {"z"};
  CHECK(contains(refusal(model), "node 'the Abs' (Abs): it reads 'more', an output that no operator here computes"));
}

TEST_CASE("masks, places and deviations that nothing reads are left out") {
  Model model = onnx_model(
      {1, 1, 1, 2}, {onnx_node("Dropout", {"x"}, "d"), onnx_node("MaxPool", {"d"}, "p", {{"kernel_shape", Ints{1, 1}}}),
                     onnx_node("LayerNormalization", {"p", "one"}, "y", {{"epsilon", 0.0}})});
  model.constants = {{"one", onnx_floats("one", {2}, {1, 1})}};
  model.nodes[0].outputs.push_back("mask");
  model.nodes[1].outputs.push_back("places");
  for (const char* name : {"mean", "deviation"}) model.nodes[2].outputs.emplace_back(name);
  CHECK(onnx_result(model, {1, 3}) == std::vector<float>{-1, 1});
  for (const std::string name : {"mask", "places", "mean", "deviation"}) {
    Model read = model;
    read.outputs.push_back(name);
    CHECK(contains(refusal(read), "no operator here computes the output '" + name + "'; leave it out of the model"));
  }
}

TEST_CASE("the largest integer of a constant node means as far as there is") {
  using networks::onnx::AttributeValue;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  const std::vector<float> x{1, 2, 3, 4};
  const auto sliced = [&](std::int64_t from, std::int64_t to) {
    const Model model =
        onnx_model({4}, {onnx_node("Constant", {}, "from", {{"value_ints", AttributeValue(Ints{from})}}),
                         onnx_node("Constant", {}, "to", {{"value_ints", AttributeValue(Ints{to})}}),
                         onnx_node("Slice", {"x", "from", "to"}, "y")});
    return onnx_result(model, x);
  };
  CHECK(sliced(1, most) == std::vector<float>{2, 3, 4});
  CHECK(sliced(least, 2) == std::vector<float>{1, 2});
  // One number alone, of which a minimum makes the extent.
  const Model model = onnx_model(
      {4}, {onnx_node("Constant", {}, "far", {{"value_int", AttributeValue(most)}}), onnx_node("Shape", {"x"}, "s"),
            onnx_node("Min", {"far", "s"}, "e"), onnx_node("Reshape", {"x", "e"}, "y")});
  CHECK(onnx_result(model, x) == x);
}

TEST_CASE("diagonals beyond the corners keep all or nothing, however far they are") {
  const std::vector<float> x{1, 2, 3, 4, 5, 6}, nothing(6);
  for (const std::int64_t k : {std::int64_t{3}, std::int64_t{1} << 53}) {
    Model model = onnx_model({2, 3}, {onnx_node("Trilu", {"x", "k"}, "y", {{"upper", std::int64_t{1}}})});
    model.constants = {{"k", onnx_ints("k", {k})}};
    CHECK(onnx_result(model, x) == nothing);
    model.constants = {{"k", onnx_ints("k", {-k})}};
    CHECK(onnx_result(model, x) == x);
    model.nodes[0].attributes["upper"] = std::int64_t{0};
    CHECK(onnx_result(model, x) == nothing);
  }
}

TEST_CASE("shapes of numbers that are not whole are refused") {
  for (const float extent : {2.5F, 1e30F, -1e30F}) {
    Model model = onnx_model({2, 3}, {onnx_node("Reshape", {"x", "s"}, "y")});
    model.constants = {{"s", onnx_floats("s", {1}, {extent})}};
    CHECK(contains(refusal(model), "give whole numbers of at most 2^53"));
  }
}

TEST_CASE("a chain of many nodes is converted without nesting") {
  std::vector<networks::onnx::Node> nodes;
  for (int n = 0; n < 3000; ++n)
    nodes.push_back(onnx_node("Neg", {n == 0 ? "x" : std::to_string(n - 1)}, n == 2999 ? "y" : std::to_string(n)));
  CHECK(onnx_result(onnx_model({2}, nodes), {1, -2}) == std::vector<float>{1, -2});
}

TEST_CASE("means of integers are divided, not multiplied by a share that is no integer") {
  // (1 + 2 + 6) / 3 = 3, and towards zero (1 + 2 - 8) / 3 = -1.
  for (const auto& [last, mean] : {std::pair{6, 3}, {-8, -1}}) {
    Model model =
        onnx_model({1}, {onnx_node("ReduceMean", {"n", "axes"}, "m", {{"keepdims", std::int64_t{0}}}),
                         onnx_node("Cast", {"m"}, "f", {{"to", std::int64_t{1}}}), onnx_node("Add", {"f", "x"}, "y")});
    model.constants = {{"n", onnx_ints("n", {1, 2, last})}, {"axes", onnx_ints("axes", {0})}};
    CHECK(onnx_result(model, {0.5F}) == std::vector<float>{static_cast<float>(mean) + 0.5F});
  }
}

TEST_CASE("a shape without extents is that of one number") {
  Model model =
      onnx_model({2}, {onnx_node("ConstantOfShape", {"none"}, "zero"), onnx_node("Unsqueeze", {"zero", "axes"}, "z"),
                       onnx_node("Concat", {"x", "z"}, "y", {{"axis", std::int64_t{0}}})});
  model.constants = {{"none", onnx_ints("none", {})}, {"axes", onnx_ints("axes", {0})}};
  CHECK(onnx_result(model, {3, 4}) == std::vector<float>{3, 4, 0});
}

TEST_CASE("nothing is left of an empty list, in whatever direction it is cut") {
  Model model = onnx_model({2}, {onnx_node("Slice", {"none", "start", "end", "axes", "step"}, "reversed"),
                                 onnx_node("Concat", {"reversed", "two"}, "s", {{"axis", std::int64_t{0}}}),
                                 onnx_node("Expand", {"x", "s"}, "y")});
  model.constants = {{"none", onnx_ints("none", {})},   {"start", onnx_ints("start", {-1})},
                     {"end", onnx_ints("end", {-100})}, {"axes", onnx_ints("axes", {0})},
                     {"step", onnx_ints("step", {-1})}, {"two", onnx_ints("two", {2})}};
  CHECK(onnx_result(model, {3, 4}) == std::vector<float>{3, 4});
}

TEST_CASE("integers of the file that 32 bits do not hold keep their size beside inputs") {
  // The input is int64 in the file, and int32 here.
  Model model =
      onnx_model({2}, {onnx_node("Min", {"x", "far"}, "m"), onnx_node("Cast", {"m"}, "y", {{"to", std::int64_t{1}}})});
  model.inputs[0].type = program::ScalarType::Int64;
  model.constants = {{"far", onnx_ints("far", {std::int64_t{1} << 40})}};
  CHECK(onnx_result(model, {7, -9}) == std::vector<float>{7, -9});
  model.nodes[0] = onnx_node("Less", {"x", "far"}, "m");
  CHECK(onnx_result(model, {7, -9}) == std::vector<float>{1, 1});
}

TEST_CASE("windows that would hold none of the image are refused") {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    const Model model = onnx_model(
        {1, 1, 4, 4}, {onnx_node(op, {"x"}, "y", {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{0, 0, 3, 0}}})});
    CHECK(contains(refusal(model), std::string("node 'the ") + op + "' (" + op +
                                       "): attribute 'pads' adds 3 elements on a side where the window has 2"));
  }
}

TEST_CASE("an output that only reshapes an input has memory of its own") {
  Model model = onnx_model({2, 3}, {onnx_node("Reshape", {"x", "shape"}, "y")});
  model.constants = {{"shape", onnx_ints("shape", {6})}};
  CHECK(onnx_result(model, {1, 2, 3, 4, 5, 6}) == std::vector<float>{1, 2, 3, 4, 5, 6});
  for (const char* op : {"Reshape", "Identity"}) {
    model.nodes[0].op = op;
    const networks::Network network = convert(model).network;
    const networks::Partition partition = networks::partition(network, Target{});
    REQUIRE(partition.calls.size() == 1);
    CHECK(partition.calls[0].output == network.outputs[0]);
    CHECK(partition.storage[network.outputs[0]] == network.outputs[0]);
  }
}

TEST_CASE("an input whose number of dimensions the file leaves open needs a shape") {
  Model model = onnx_model({}, {onnx_node("Relu", {"x"}, "y")});
  model.inputs[0].has_shape = false;
  CHECK(contains(refusal(model), "input 'x', which has no shape: give all of it in options.shapes"));
  const networks::Network network = convert(model, {.shapes = {{"x", {2, 3}}}}).network;
  CHECK(network.graph->op(network.outputs[0]).shape() == Ints{2, 3});
  // A single number has a shape, which is not open.
  model.inputs[0].has_shape = true;
  CHECK(convert(model).network.graph->op(0).shape().empty());
  CHECK(contains(refusal(model, {.shapes = {{"x", {2, 3}}}}), "does not fit the shape that the file has for it"));
}

TEST_CASE("inputs that take more memory together than is allowed are refused") {
  Model model = onnx_model({1 << 10}, {onnx_node("Add", {"x", "z"}, "y")});
  model.inputs.push_back(model.inputs[0]);
  model.inputs[1].name = "z";
  CHECK(refusal(model, {.most_tensor_bytes = 0x1p13}) == "nothing was thrown");
  CHECK(contains(refusal(model, {.most_tensor_bytes = 0x1p12}),
                 "take 8192 bytes, more than options.most_tensor_bytes, 4096;"));
}

TEST_CASE("sums that double again and again can be scheduled") {
  // 2^40 x: inlined into one another they would be 2^40 terms.
  std::vector<networks::onnx::Node> nodes;
  for (int n = 0; n < 40; ++n) {
    const std::string read = n == 0 ? "x" : std::to_string(n - 1);
    nodes.push_back(onnx_node("Add", {read, read}, n == 39 ? "y" : std::to_string(n)));
  }
  const networks::Partition partition = networks::partition(convert(onnx_model({2}, nodes)).network, Target{});
  CHECK(partition.calls.size() > 1);
  for (const schedule::Schedule& schedule : networks::default_schedules(partition.tasks, {.candidates = 1}))
    CHECK_NOTHROW((void)loops::lower(schedule));
}

TEST_CASE("what a window has behind the padding of the file does not count as padding") {
  // 0 | 1 2 3 4 and a last window of which only the 4 is there: (0 + 1) / 2, (2 + 3) / 2, 4 / 1.
  Model model = onnx_model({1, 1, 1, 4}, {onnx_node("AveragePool", {"x"}, "y",
                                                    {{"kernel_shape", Ints{1, 2}},
                                                     {"strides", Ints{1, 2}},
                                                     {"pads", Ints{0, 1, 0, 0}},
                                                     {"ceil_mode", std::int64_t{1}},
                                                     {"count_include_pad", std::int64_t{1}}})});
  CHECK(onnx_result(model, {1, 2, 3, 4}) == std::vector<float>{0.5F, 2.5F, 4});
  model.nodes[0].attributes["pads"] = Ints{0, 1, 0, 1};
  CHECK(onnx_result(model, {1, 2, 3, 4}) == std::vector<float>{0.5F, 2.5F, 2});
}

TEST_CASE("integers of an input are concatenated with those of the file") {
  Model model = onnx_model({2}, {onnx_node("Concat", {"x", "more", "x"}, "y", {{"axis", std::int64_t{0}}})});
  model.inputs[0].type = program::ScalarType::Int64;
  model.constants = {{"more", onnx_ints("more", {9, std::int64_t{1} << 40})}};
  CHECK(onnx_result(model, {7, -8}) == std::vector<float>{7, -8, 9, 0x1p40F, 7, -8});
  model.inputs[0].type = program::ScalarType::Float32;
  CHECK(contains(refusal(model), "operands have types float32 and int64"));
}

TEST_CASE("what is no number stays none behind activations and bounds") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto check = [](const networks::onnx::Node& node, float least, float most) {
    CAPTURE(node.op);
    Model model = onnx_model({3}, {node});
    model.constants = {{"zero", onnx_floats("zero", {1}, {0})}, {"six", onnx_floats("six", {1}, {6})}};
    const std::vector<float> y = onnx_result(model, {std::numeric_limits<float>::quiet_NaN(), -infinity, infinity});
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == least);
    CHECK(y[2] == most);
  };
  check(onnx_node("Relu", {"x"}, "y"), 0, infinity);
  check(onnx_node("Clip", {"x", "zero", "six"}, "y"), 0, 6);
  check(onnx_node("Clip", {"x", "", "six"}, "y"), -infinity, 6);
  check(onnx_node("HardSigmoid", {"x"}, "y"), 0, 1);
  for (const bool is_first : {true, false}) {
    check(
        onnx_node("Max", is_first ? std::vector<std::string>{"x", "zero"} : std::vector<std::string>{"zero", "x"}, "y"),
        0, infinity);
    check(onnx_node("Min", is_first ? std::vector<std::string>{"x", "six"} : std::vector<std::string>{"six", "x"}, "y"),
          -infinity, 6);
  }
  // 3 * relu6(3 + 3) / 6 = 3
  const std::vector<float> swish = onnx_result(onnx_model({3}, {onnx_node("HardSwish", {"x"}, "y")}),
                                               {std::numeric_limits<float>::quiet_NaN(), 3, infinity});
  CHECK(std::isnan(swish[0]));
  CHECK(swish[1] == 3);
  CHECK(swish[2] == infinity);
}

TEST_CASE("empty lists are concatenated, as long as they agree") {
  // y is x of the shape [] + [] + [-1].
  Model model = onnx_model({2, 3}, {onnx_node("Slice", {"k", "zero", "zero"}, "e"),
                                    onnx_node("Concat", {"e", "e"}, "w", {{"axis", std::int64_t{0}}}),
                                    onnx_node("Concat", {"w", "open"}, "s", {{"axis", std::int64_t{0}}}),
                                    onnx_node("Reshape", {"x", "s"}, "y")});
  model.constants = {
      {"k", onnx_ints("k", {5, 6})}, {"zero", onnx_ints("zero", {0})}, {"open", onnx_ints("open", {-1})}};
  CHECK(onnx_result(model, {1, 2, 3, 4, 5, 6}) == std::vector<float>{1, 2, 3, 4, 5, 6});
  // The extents of two times [2, 0] are those of [4, 0].
  model = onnx_model({4},
                     {onnx_node("Concat", {"e", "e"}, "w", {{"axis", std::int64_t{0}}}), onnx_node("Shape", {"w"}, "s"),
                      onnx_node("Gather", {"s", "zero"}, "four"), onnx_node("Reshape", {"x", "four"}, "y")});
  model.constants = {{"e", onnx_floats("e", {2, 0}, {})}, {"zero", onnx_ints("zero", {0})}};
  CHECK(onnx_result(model, {1, 2, 3, 4}) == std::vector<float>{1, 2, 3, 4});
  model.nodes[0].inputs[1] = "f";
  model.constants["f"] = onnx_floats("f", {0, 3}, {});
  CHECK(contains(refusal(model), "input 1 has shape [0, 3], the first one [2, 0]"));
  model.nodes[0].inputs.clear();
  CHECK(contains(refusal(model), "node 'the Concat' (Concat): it has no inputs"));
}

TEST_CASE("nothing makes nothing point by point, and its sums and products are those of no terms") {
  // x has as many elements as the product of no extents, which is what tools compute for a scalar.
  Model model = onnx_model({1}, {onnx_node("ReduceProd", {"none"}, "p"), onnx_node("Expand", {"x", "p"}, "y")});
  model.constants = {{"none", onnx_ints("none", {})}};
  CHECK(onnx_result(model, {7}) == std::vector<float>{7});
  // [] + [1] is [], and so is its negative; its sum is 0.
  model = onnx_model({2}, {onnx_node("Add", {"none", "one"}, "a"), onnx_node("Neg", {"a"}, "n"),
                           onnx_node("ReduceSum", {"n"}, "s"), onnx_node("Add", {"x", "s"}, "y")});
  model.constants = {{"none", onnx_floats("none", {0}, {})}, {"one", onnx_floats("one", {1}, {1})}};
  CHECK(onnx_result(model, {3, 4}) == std::vector<float>{3, 4});
  // Two rows without elements have two sums; one row of none has no sum at all.
  model.nodes = {onnx_node("ReduceSum", {"rows", "axes"}, "s", {{"keepdims", std::int64_t{0}}}),
                 onnx_node("Add", {"x", "s"}, "y")};
  model.constants = {{"rows", onnx_floats("rows", {2, 0}, {})}, {"axes", onnx_ints("axes", {1})}};
  CHECK(onnx_result(model, {3, 4}) == std::vector<float>{3, 4});
  model.nodes[1] = onnx_node("Concat", {"x", "s"}, "y", {{"axis", std::int64_t{0}}});
  model.constants["axes"] = onnx_ints("axes", {0});
  CHECK(onnx_result(model, {3, 4}) == std::vector<float>{3, 4});
  // A number for each of 2^40 rows takes no memory before it is asked for.
  model.nodes = {onnx_node("ReduceProd", {"rows", "axes"}, "p"), onnx_node("Gather", {"p", "axes"}, "g"),
                 onnx_node("Mul", {"x", "g"}, "y")};
  model.constants["rows"] = onnx_floats("rows", {std::int64_t{1} << 40, 0}, {});
  model.constants["axes"] = onnx_ints("axes", {1});
  CHECK(contains(refusal(model), "more than options.most_tensor_bytes"));
}

TEST_CASE("what needs an element is told of an empty list with its node") {
  Model model = onnx_model({2}, {onnx_node("ReduceMax", {"none"}, "m"), onnx_node("Add", {"x", "m"}, "y")});
  model.constants = {{"none", onnx_floats("none", {0}, {})}};
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceMean"}) {
    model.nodes[0].op = op;
    CHECK(contains(refusal(model), std::string("(") + op + "), 'data': it is empty; give it at least one element"));
  }
  model.nodes[0] = onnx_node("Softmax", {"none"}, "m");
  CHECK(contains(refusal(model), "node 'the Softmax' (Softmax): 'none' is empty, and the operator needs at least one"));
}

TEST_CASE("scales and biases of a normalisation broadcast to what is normalised") {
  // Rows of 0 and 2 have mean 1 and deviation 1: -1 and 1, times the scale and plus the bias.
  const auto node = [](std::int64_t axis) {
    return onnx_node("LayerNormalization", {"x", "scale", "bias"}, "y", {{"axis", axis}, {"epsilon", 0.0}});
  };
  Model model = onnx_model({1, 2, 2}, {node(-1)});
  const auto result = [&](const Ints& scale, const std::vector<float>& scales, const Ints& bias,
                          const std::vector<float>& biases) {
    model.constants = {{"scale", onnx_floats("scale", scale, scales)}, {"bias", onnx_floats("bias", bias, biases)}};
    return onnx_result(model, {0, 2, 2, 0});
  };
  CHECK(result({1}, {3}, {2}, {10, 20}) == std::vector<float>{7, 23, 13, 17});
  CHECK(result({}, {3}, {1, 1, 2}, {10, 20}) == std::vector<float>{7, 23, 13, 17});
  // Both rows together: what has one dimension is that of each of them.
  model.nodes[0] = node(1);
  CHECK(result({2}, {3, 4}, {2, 1}, {10, 20}) == std::vector<float>{7, 14, 23, 16});
  // Given to the network, too.
  model.inputs.push_back(model.inputs[0]);
  model.inputs[1].name = "scale";
  model.inputs[1].shape = {{1}};
  model.constants = {{"bias", onnx_floats("bias", {2, 2}, {0, 1, 2, 3})}};
  networks::ImportedNetwork imported = convert(model);
  const std::vector<networks::TensorId> inputs = networks::inputs(imported.network);
  REQUIRE(inputs.size() == 2);
  const std::vector<float> x{0, 2, 2, 0};
  for (std::size_t i = 0; i < x.size(); ++i) imported.values[inputs[0]].set(i, x[i]);
  imported.values[inputs[1]].set(0, 5);
  const reference::Tensors tensors = networks::evaluate(imported.network, imported.values);
  const std::vector<double> expected{-5, 6, 7, -2};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(tensors[imported.network.outputs.at(0)].get(i) == expected[i]);
}

TEST_CASE("scales and biases of as many elements but another shape are refused") {
  Model model = onnx_model({2, 3, 4}, {onnx_node("LayerNormalization", {"x", "w"}, "y", {{"axis", std::int64_t{1}}})});
  for (const Ints& shape : {Ints{4, 3}, Ints{12}, Ints{3}, Ints{2, 3, 4}}) {
    model.constants = {{"w", onnx_floats("w", shape, {})}};
    CHECK(contains(refusal(model), "node 'the LayerNormalization' (LayerNormalization): scale or bias has shape " +
                                       program::operators::detail::shape_text(shape) +
                                       ", which does not broadcast to [3, 4], the dimensions that are normalised"));
  }
  for (const Ints& shape : {Ints{4}, Ints{3, 1}, Ints{1, 3, 4}}) {
    model.constants = {{"w", onnx_floats("w", shape, {})}};
    CHECK(refusal(model) == "nothing was thrown");
  }
}

TEST_CASE("matrices of integers are multiplied by whole numbers only") {
  Model model = onnx_model({1, 1}, {onnx_node("Gemm", {"x", "w", "c"}, "y", {{"alpha", 2.0}, {"beta", 3.0}})});
  model.inputs[0].type = program::ScalarType::Int32;
  reference::Array number(program::ScalarType::Int32, {1, 1});
  number.set(0, 5);
  model.constants = {{"w", networks::onnx::known_value("w", number).known},
                     {"c", networks::onnx::known_value("c", number).known}};
  CHECK(onnx_result(model, {7}) == std::vector<float>{2 * 7 * 5 + 3 * 5});
  for (const char* factor : {"alpha", "beta"}) {
    Model halved = model;
    halved.nodes[0].attributes[factor] = 0.5;
    CHECK(contains(refusal(halved), std::string("(Gemm), '") + factor +
                                        "': it is 0.5, and the matrices hold integers; use a whole number"));
  }
  // Nothing is multiplied by beta.
  model.nodes[0].inputs.pop_back();
  model.nodes[0].attributes["beta"] = 0.5;
  CHECK(onnx_result(model, {7}) == std::vector<float>{2 * 7 * 5});
}

TEST_CASE("what Gemm adds broadcasts to the product, which it does not make larger") {
  Model model = onnx_model({1, 2}, {onnx_node("Gemm", {"x", "w", "c"}, "y")});
  const auto add = [&](const Ints& shape, std::size_t elements) {
    model.constants = {{"w", onnx_floats("w", {2, 3}, {1, 0, 1, 0, 1, 1})},
                       {"c", onnx_floats("c", shape, std::vector<float>(elements, 10))}};
  };
  for (const auto& [shape, elements] :
       {std::pair{Ints{}, 1U}, {Ints{1}, 1U}, {Ints{3}, 3U}, {Ints{1, 1}, 1U}, {Ints{1, 3}, 3U}}) {
    add(shape, elements);
    CHECK(onnx_result(model, {2, 3}) == std::vector<float>{12, 13, 15});
  }
  for (const auto& [shape, elements] :
       {std::pair{Ints{4, 3}, 12U}, {Ints{4, 1}, 4U}, {Ints{1, 1, 3}, 3U}, {Ints{2}, 2U}}) {
    add(shape, elements);
    CHECK(refusal(model) == "model 'small': node 'the Gemm' (Gemm): C has shape " +
                                program::operators::detail::shape_text(shape) +
                                ", which does not broadcast to [1, 3], the shape of the product; is it the bias of "
                                "another layer?");
  }
}

TEST_CASE("an empty list can be reshaped to shapes without elements") {
  // y is x and the extents of what the list was reshaped to.
  Model model = onnx_model({2}, {onnx_node("Reshape", {"none", "shape"}, "r"), onnx_node("Shape", {"r"}, "s"),
                                 onnx_node("Cast", {"s"}, "f", {{"to", std::int64_t{1}}}),
                                 onnx_node("Concat", {"x", "f"}, "y", {{"axis", std::int64_t{0}}})});
  const auto reshape = [&](const Ints& from, const Ints& shape, std::int64_t zeros_are_extents) {
    model.constants = {{"none", onnx_floats("none", from, {})}, {"shape", onnx_ints("shape", shape)}};
    model.nodes[0].attributes["allowzero"] = zeros_are_extents;
  };
  struct Case {
    Ints from, shape;
    std::int64_t zeros_are_extents;
    std::vector<float> extents;
  };
  for (const Case& c :
       {Case{{0}, {-1, 1}, 0, {0, 1}}, Case{{0}, {-1, 1}, 1, {0, 1}}, Case{{0}, {0, 1}, 1, {0, 1}},
        Case{{0}, {0, 1}, 0, {0, 1}}, Case{{2, 0}, {3, -1, 2}, 0, {3, 0, 2}}, Case{{2, 0}, {0, 0}, 0, {2, 0}},
        Case{{2, 0}, {5, 0, 7}, 1, {5, 0, 7}}, Case{{0, 3}, {0}, 1, {0}}}) {
    reshape(c.from, c.shape, c.zeros_are_extents);
    std::vector<float> expected{7, 8};
    expected.insert(expected.end(), c.extents.begin(), c.extents.end());
    CHECK(onnx_result(model, {7, 8}) == expected);
  }
  const std::string node = "node 'the Reshape' (Reshape): ";
  reshape({0}, {1, 3}, 0);
  CHECK(contains(refusal(model), node + "reshape: [0] and [1, 3] differ in their number of elements"));
  reshape({0}, {}, 0);
  CHECK(contains(refusal(model), node + "reshape: [0] and [] differ in their number of elements"));
  reshape({0}, {0, -1}, 1);
  CHECK(contains(refusal(model), node + "a shape of [0, -1] leaves an extent open beside one of 0, so that any number "
                                        "fits; give it as a number"));
  reshape({0}, {-1, -1}, 0);
  CHECK(contains(refusal(model), node + "a shape of [-1, -1] does not hold the 0 elements"));
  reshape({0}, {1, 0}, 0);
  CHECK(contains(refusal(model), node + "dimension 1 is to be kept, which does not exist"));
  reshape({0}, {std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, 1);
  CHECK(contains(refusal(model), "has more than 2^53 elements"));
  // Elements do not become none.
  model.constants["none"] = onnx_floats("some", {2}, {1, 2});
  for (const Ints& shape : {Ints{0, 1}, Ints{2, 0}, Ints{0, -1}}) {
    model.constants["shape"] = onnx_ints("shape", shape);
    CHECK(contains(refusal(model), node + "a shape of " + program::operators::detail::shape_text(shape) +
                                       " does not hold the 2 elements of its input"));
  }
}

TEST_CASE("constants and inputs with the name of another value are refused") {
  Model model =
      onnx_model({2}, {onnx_node("Constant", {}, "w", {{"value_float", 1.0}}),
                       onnx_node("Constant", {}, "w", {{"value_float", 2.0}}), onnx_node("Add", {"x", "w"}, "y")});
  model.nodes[1].name = "the other";
  CHECK(refusal(model) == "model 'small': node 'the other' (Constant) computes 'w', which is there already");
  model.nodes.erase(model.nodes.begin() + 1);
  CHECK(onnx_result(model, {3, 4}) == std::vector<float>{4, 5});
  model.constants = {{"w", onnx_floats("w", {1}, {2})}};
  CHECK(refusal(model) == "model 'small': node 'the Constant' (Constant) computes 'w', which is there already");
  model.constants.clear();
  model.nodes[0].outputs = {"x"};
  model.nodes[1].inputs = {"x", "x"};
  CHECK(refusal(model) == "model 'small': another value is called 'x', as an input is; check it with onnx.checker");
  model.nodes.erase(model.nodes.begin());
  CHECK(onnx_result(model, {3, 4}) == std::vector<float>{6, 8});
  model.inputs.push_back(model.inputs[0]);
  CHECK(contains(refusal(model), "another value is called 'x', as an input is"));
}

TEST_CASE("parameters are those of the file, before anything is folded or left out") {
  Model model =
      onnx_model({1, 1, 1, 1},
                 {onnx_node("Conv", {"x", "w", "b"}, "c"),
                  onnx_node("BatchNormalization", {"c", "gamma", "beta", "mean", "variance"}, "n", {{"epsilon", 1.0}}),
                  onnx_node("Constant", {}, "two", {{"value_float", 2.0}}), onnx_node("Mul", {"n", "two"}, "m"),
                  onnx_node("Reshape", {"m", "shape"}, "r"), onnx_node("MatMul", {"r", "square"}, "p"),
                  onnx_node("MatMul", {"p", "square"}, "y"), onnx_node("Add", {"y", "unread"}, "z")});
  model.constants = {
      {"w", onnx_floats("w", {2, 1, 1, 1}, {3, 4})}, {"b", onnx_floats("b", {2}, {1, 2})},
      {"gamma", onnx_floats("gamma", {2}, {4, 5})},  {"beta", onnx_floats("beta", {2}, {5, 6})},
      {"mean", onnx_floats("mean", {2}, {2, 3})},    {"variance", onnx_floats("variance", {2}, {3, 3})},
      {"shape", onnx_ints("shape", {1, 2})},         {"square", onnx_floats("square", {2, 2}, {1, 0, 0, 1})},
      {"unread", onnx_floats("unread", {2}, {1, 1})}};
  CHECK(convert(model).network.parameters == 4 * 2 + 4);
  model.outputs = {"z"};
  CHECK(convert(model).network.parameters == 4 * 2 + 4 + 2);
  // A running statistic that something else reads, too, is a weight.
  model.nodes.back().inputs[1] = "mean";
  CHECK(convert(model).network.parameters == 4 * 2 + 4 + 2);
}

TEST_CASE("an empty list of dimensions to remove means all of extent 1") {
  Model model = onnx_model({1, 2, 1}, {onnx_node("Squeeze", {"x", "none"}, "y")});
  model.constants = {{"none", onnx_ints("none", {})}};
  const auto shape = [&] {
    const networks::Network network = convert(model).network;
    return network.graph->op(network.outputs[0]).shape();
  };
  CHECK(shape() == Ints{2});
  model.nodes[0] = onnx_node("Squeeze", {"x"}, "y", {{"axes", Ints{}}});
  CHECK(shape() == Ints{2});
  model.nodes[0].attributes["axes"] = Ints{2};
  CHECK(shape() == Ints{1, 2});
}
