// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/layers.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "support/evaluated.hpp"
#include "tunewright/networks/densenet.hpp"
#include "tunewright/networks/inception_v3.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/networks/vgg.hpp"

using namespace tunewright;
using networks::Activation;
using networks::After;

TEST_CASE("a convolution layer is its products, a bias and an activation") {
  networks::LayerBuilder layers;
  const networks::Tensor x = layers.graph().input("x", {1, 1, 2, 2});
  const networks::Tensor y = layers.conv(x, "c", {.channels = 1});
  const networks::Network network = layers.finish("one", {y});
  // Weights 2 and -1, bias 1: relu(2*1 - 3 + 1) = 0, relu(2*2 - 1*1 + 1) = 4.
  CHECK(test::evaluated(*network.graph, {{1, 3, 2, 1}, {2, -1}, {1}}) == std::vector<float>{0, 4});
  CHECK(network.parameters == 4);  // two weights, scale and shift of the folded normalisation
  CHECK(network.graph->op(1).name == "c.weight");
  // The builder begins another network.
  CHECK(layers.graph().size() == 0);
  CHECK(layers.finish("none", {}).parameters == 0);
}

TEST_CASE("layers count what training learns") {
  const auto parameters_of = [](After after) {
    networks::LayerBuilder layers;
    const networks::Tensor x = layers.graph().input("x", {1, 4, 4, 3});
    const networks::Tensor y = layers.conv(x, "c", {.channels = 5, .kernel = 3, .after = after});
    return layers.finish("one", {y}).parameters;
  };
  CHECK(parameters_of(After::Nothing) == 135);
  CHECK(parameters_of(After::Bias) == 140);
  CHECK(parameters_of(After::BatchNorm) == 145);
}

TEST_CASE("activations") {
  const auto activated = [](Activation activation) {
    networks::LayerBuilder layers;
    const networks::Tensor x = layers.graph().input("x", {3});
    const networks::Tensor y = layers.activate(x, activation);
    return test::evaluated(*layers.finish("one", {y}).graph, {{-1, 0.5F, 7}});
  };
  CHECK(activated(Activation::Relu) == std::vector<float>{0, 0.5F, 7});
  CHECK(activated(Activation::Relu6) == std::vector<float>{0, 0.5F, 6});
  // x Phi(x) with Phi(-1) = 0.158655, Phi(0.5) = 0.691462; the tanh form differs from it by less than 5e-4.
  for (const Activation gelu : {Activation::Gelu, Activation::GeluTanh}) {
    const std::vector<float> y = activated(gelu);
    CHECK(y[0] == doctest::Approx(-0.158655).epsilon(0.002));
    CHECK(y[1] == doctest::Approx(0.345731).epsilon(0.002));
    CHECK(y[2] == doctest::Approx(7));
  }
  CHECK(activated(Activation::Gelu)[0] != activated(Activation::GeluTanh)[0]);
}

TEST_CASE("options that make no classifier are refused") {
  CHECK_REFUSES("batch is 0", (void)networks::resnet18({.batch = 0}));
  CHECK_REFUSES("classes is -1", (void)networks::resnet50({.classes = -1}));
  CHECK_REFUSES("width is 0", (void)networks::densenet121({.width = 0}));
  CHECK_REFUSES("width is inf", (void)networks::vgg16({.width = std::numeric_limits<double>::infinity()}));
  CHECK_REFUSES("width is 1e+30", (void)networks::resnet18({.width = 1e30}));
  CHECK_REFUSES("image_size is 31", (void)networks::resnet18({.image_size = 31}));
  CHECK_REFUSES("image_size is 74", (void)networks::inception_v3({.image_size = 74}));
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  CHECK_REFUSES("batch is 4611686018427387904; give 1 to 2147483647", (void)networks::vgg16({.batch = huge}));
  CHECK_REFUSES("classes is 4611686018427387904", (void)networks::inception_v3({.classes = huge}));
  CHECK_REFUSES("image_size is 4611686018427387904", (void)networks::resnet18({.image_size = huge}));
}

TEST_CASE("images are as large as published unless asked for") {
  const networks::Network inception = networks::inception_v3({.batch = 2, .width = 0.1});
  CHECK(inception.graph->op(0).shape() == std::vector<std::int64_t>{2, 299, 299, 3});
  CHECK(networks::resnet18({.batch = 2}).graph->op(0).shape() == std::vector<std::int64_t>{2, 224, 224, 3});
  CHECK(networks::resnet18({.image_size = 64}).graph->op(0).shape() == std::vector<std::int64_t>{1, 64, 64, 3});
}

TEST_CASE("widths scale channels and leave at least one") {
  const networks::ImageClassifier eighth{.width = 0.125};
  CHECK(eighth.scaled(64) == 8);
  CHECK(eighth.scaled(3) == 1);
  CHECK(networks::ImageClassifier{}.scaled(48) == 48);
}
