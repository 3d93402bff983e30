// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/network.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/networks/bert.hpp"
#include "tunewright/networks/densenet.hpp"
#include "tunewright/networks/gpt2.hpp"
#include "tunewright/networks/inception_v3.hpp"
#include "tunewright/networks/mobilenet_v2.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/networks/squeezenet.hpp"
#include "tunewright/networks/vgg.hpp"
#include "tunewright/networks/vision_transformer.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using networks::Network;

namespace {

/// A published model. Sources:
///   torchvision  num_params and GFLOPS of the weights' metadata, docs.pytorch.org/vision/stable/models.html; its GFLOPS
///                are multiply-accumulates, with two decimals
///   BERT         google-research/bert (base) and google/bert_uncased_L-2_H-128_A-2 (tiny), with pooler
///   GPT-2        huggingface.co/openai-community/gpt2
struct Published {
  Network network;
  std::int64_t parameters;
  double giga_macs = 0;  ///< 0: not published
};

std::int64_t elements_of_constants(const Network& network) {
  std::int64_t count = 0;
  for (networks::TensorId id = 0; id < network.graph->size(); ++id) {
    if (network.graph->op(id).role == program::Role::Constant) count += network.graph->op(id).elements();
  }
  return count;
}

}  // namespace

TEST_CASE("parameters and multiply-accumulates are those published") {
  const std::vector<Published> models{{networks::resnet18(), 11'689'512, 1.81},
                                      {networks::resnet50(), 25'557'032, 4.09},
                                      {networks::wide_resnet50_2(), 68'883'240, 11.40},
                                      {networks::mobilenet_v2(), 3'504'872, 0.30},
                                      {networks::vgg16(), 138'357'544, 15.47},
                                      {networks::squeezenet1_1(), 1'235'496, 0.35},
                                      {networks::densenet121(), 7'978'856, 2.83},
                                      {networks::inception_v3(), 27'161'264, 5.71},
                                      {networks::vision_transformer(), 86'567'656, 17.56},
                                      {networks::bert_tiny(), 4'385'920},
                                      {networks::bert_base(), 109'482'240},
                                      {networks::gpt2_prefill(), 124'439'808},
                                      {networks::gpt2_decode(), 124'439'808}};
  for (const Published& model : models) {
    CAPTURE(model.network.name);
    CHECK(model.network.parameters == model.parameters);
    if (model.giga_macs > 0)
      CHECK(std::abs(networks::multiply_accumulates(*model.network.graph) / 1e9 - model.giga_macs) <= 0.0051);
  }
}

TEST_CASE("operations of text models are those of the papers") {
  // Jiao et al., TinyBERT, arXiv 1909.10351, table 1: 22.5 billion, with normalisation and softmax.
  CHECK(std::abs(2 * networks::multiply_accumulates(*networks::bert_base(1, 128).graph) / 22.5e9 - 1) < 0.01);
  // Kaplan et al., arXiv 2001.08361, table 1: 2 d_model n_layer (2 d_attn + d_ff) = 84,934,656 for all layers and a
  // token. To it come scores and values of 129 tokens, and the head, which the paper counts apart.
  const double layers = 2.0 * 768 * 12 * (2 * 768 + 3072);
  CHECK(layers == 84'934'656);
  CHECK(networks::multiply_accumulates(*networks::gpt2_decode(1, 128).graph) ==
        layers + 12 * 2 * 129 * 768 + 768.0 * 50257);
}

TEST_CASE("folded normalisations leave a weight and a bias") {
  // torchvision's ResNet-18 has 20 normalisations of 4800 channels together, whose scales went into the weights.
  const Network network = networks::resnet18();
  CHECK(network.parameters - elements_of_constants(network) == 4800);
  // Without normalisation nothing is folded.
  CHECK(elements_of_constants(networks::vgg16()) == 138'357'544);
}

TEST_CASE("inputs of a network are those that no lookup fills in") {
  const Network network = networks::bert_tiny(2, 16);
  std::vector<std::string> names;
  for (const networks::TensorId id : networks::inputs(network)) names.push_back(network.graph->op(id).name);
  CHECK(names == std::vector<std::string>{"input_ids", "token_type_ids"});
  CHECK(network.lookups.size() == 2);
  CHECK(network.graph->op(network.lookups[0].table).shape() == std::vector<std::int64_t>{30522, 128});
  CHECK(network.graph->op(network.outputs.at(0)).shape() == std::vector<std::int64_t>{32, 128});
  CHECK(network.graph->op(network.outputs.at(1)).shape() == std::vector<std::int64_t>{2, 128});
}

TEST_CASE("lookups of tensors that are no table, no numbers or not there are refused") {
  const Network network = networks::bert_tiny(2, 16);
  const auto refused = [&](const auto& change) {
    Network changed = network;
    change(changed.lookups[1]);
    return test::refusal([&] { (void)networks::inputs(changed); });
  };
  CHECK_NOTHROW((void)networks::inputs(network));
  CHECK(refused([](networks::Lookup& l) { l.ids = 999'999; }).find("by numbers 999999 of a graph of") !=
        std::string::npos);
  CHECK(refused([](networks::Lookup& l) { l.table = l.ids; }).find("a constant of two dimensions") !=
        std::string::npos);
  CHECK(refused([&](networks::Lookup& l) { l.rows = network.outputs[0]; }).find("LayerBuilder::embedding") !=
        std::string::npos);
}

TEST_CASE("numbers that another lookup fills in are refused") {
  auto graph = std::make_shared<program::ComputeGraph>();
  using enum program::ScalarType;
  const auto ids = graph->input("ids", {4}, Int32), filled = graph->input("filled", {4, 1}, Int32);
  const auto rows = graph->input("rows", {4, 3}), others = graph->input("others", {4, 3});
  const auto numbers = graph->constant("numbers", {8, 1}, Int32), table = graph->constant("table", {8, 3});
  Network network;
  network.graph = graph;
  network.lookups = {{filled.id, numbers.id, ids.id}, {rows.id, table.id, ids.id}};
  CHECK(networks::inputs(network) == std::vector<networks::TensorId>{ids.id, others.id});
  network.lookups.push_back({others.id, table.id, filled.id});
  CHECK_REFUSES("that no lookup fills", (void)networks::inputs(network));
}

TEST_CASE("multiply-accumulates are products of two tensors that are summed") {
  program::ComputeGraph graph;
  const program::Tensor a = graph.input("a", {2, 3});
  const program::Tensor b = graph.input("b", {3, 5});
  const program::Tensor c = graph.reduce("c", {{"i", 2}, {"j", 5}}, {{"k", 3}}, program::Combiner::Sum,
                                         [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  CHECK(networks::multiply_accumulates(graph) == 30);
  graph.reduce("rows", {{"i", 2}}, {{"k", 5}}, program::Combiner::Sum, [&](auto i, auto r) { return c(i[0], r[0]); });
  CHECK(networks::multiply_accumulates(graph) == 30);
}

TEST_CASE("multiply-accumulates are the same in all number types, whose products may be of casts") {
  using enum program::ScalarType;
  for (const program::ScalarType type : {Float32, Float64, Float16, BFloat16, Int8, UInt8}) {
    const std::string type_name(program::name(type));
    CAPTURE(type_name);
    CHECK(networks::multiply_accumulates(*program::operators::matmul_graph({.m = 2, .n = 5, .k = 3, .type = type})) ==
          30);
  }
  // The second factor is a sum or a number: no element.
  program::ComputeGraph graph;
  const program::Tensor a = graph.input("a", {2, 3}, Float16);
  for (const bool shifts : {true, false}) {
    graph.reduce("sum", {{"i", 2}}, {{"k", 3}}, program::Combiner::Sum, [&](auto i, auto r) {
      const program::Expr x = program::widened(a(i[0], r[0]));
      return x * (shifts ? x + 1.0 : program::cast(program::index_value(r[0]), Float32));
    });
  }
  CHECK(networks::multiply_accumulates(graph) == 0);
}
