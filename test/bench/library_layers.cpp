// SPDX-License-Identifier: Apache-2.0
#include "../../bench/library_layers.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <variant>

#include "tunewright/networks/mobilenet_v2.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/program/operators/conv.hpp"

using namespace tunewright;

namespace {

bool is_layer(const bench::Shape& shape) {
  return std::holds_alternative<bench::Product>(shape) || std::holds_alternative<bench::ConvolutionShape>(shape) ||
         std::holds_alternative<bench::DepthwiseShape>(shape);
}

/// Calls of a network that are a convolution or a product, and their share of its operations.
struct Covered {
  double calls = 0, share = 0;
};
Covered covered(const networks::Network& network) {
  double layers = 0, all = 0;
  Covered result;
  for (const WeightedTask& weighted : networks::partition(network, Target{}).tasks) {
    all += weighted.weight * weighted.task.flops;
    const auto layer = bench::layer_of(*weighted.task.graph);
    if (!layer) continue;
    result.calls += weighted.weight;
    layers += weighted.weight * program::flops(*bench::program_of(layer->shape));
  }
  result.share = layers / all;
  return result;
}

}  // namespace

TEST_CASE("the convolution or product of a program is found by its form") {
  for (const bench::SuiteEntry& entry : bench::suite()) {
    CAPTURE(entry.name);
    const auto layer = bench::layer_of(*bench::program_of(entry.shape));
    REQUIRE(layer.has_value() == is_layer(entry.shape));
    if (!layer) continue;
    CHECK(layer->shape == entry.shape);
    CHECK(layer->constant_operand != std::holds_alternative<bench::Product>(entry.shape));
  }
  const auto grouped = program::operators::conv2d_graph(
      {.height = 8, .width = 8, .in_channels = 8, .out_channels = 8, .kernel = 3, .padding = 1, .groups = 2});
  CHECK_FALSE(bench::layer_of(*grouped));
  const auto wide = program::operators::conv2d_graph(
      {.height = 8, .width = 8, .in_channels = 4, .out_channels = 4, .kernel = {{1, 7}}, .padding = {{0, 3}}});
  CHECK_FALSE(bench::layer_of(*wide));
}

TEST_CASE("all convolutions of a network and its classifier are layers") {
  // He et al., CVPR 2016: 49 convolutions, 4 more on shortcuts, and a product. Sandler et al., CVPR 2018: 52 and one.
  const Covered resnet = covered(networks::resnet50());
  CHECK(resnet.calls == 54);
  CHECK(resnet.share > 0.99);
  const Covered mobilenet = covered(networks::mobilenet_v2());
  CHECK(mobilenet.calls == 53);
  CHECK(mobilenet.share > 0.95);
}
