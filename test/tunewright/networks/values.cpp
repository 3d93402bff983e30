// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/values.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "support/evaluated.hpp"
#include "tunewright/networks/bert.hpp"
#include "tunewright/networks/layers.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;

TEST_CASE("a lookup copies the rows that its numbers pick") {
  networks::LayerBuilder layers;
  const auto words = layers.embedding("words", "ids", 3, 4, 2);
  const networks::Network network = layers.finish("one", {program::operators::relu(layers.graph(), words.rows)});
  reference::Tensors values = networks::random_values(network, Rng(1));
  const networks::Lookup lookup = network.lookups.at(0);
  for (std::size_t i = 0; i < 8; ++i) values[lookup.table].set(i, static_cast<double>(i));
  values[lookup.ids].set(0, 3);
  values[lookup.ids].set(1, 0);
  values[lookup.ids].set(2, 3);
  const reference::Array rows = networks::evaluate(network, values)[network.outputs[0]];
  for (const auto& [place, value] : {std::pair{0, 6}, {1, 7}, {2, 0}, {3, 1}, {4, 6}, {5, 7}})
    CHECK(rows.get(static_cast<std::size_t>(place)) == value);

  values[lookup.ids].set(1, 4);
  CHECK_REFUSES("element 1 of input 'ids' is 4; give numbers from 0 to 3", (void)networks::evaluate(network, values));
  values[lookup.ids].set(1, -1);
  CHECK_REFUSES("is -1", (void)networks::evaluate(network, values));
}

TEST_CASE("arrays that are missing or of another shape are refused") {
  networks::LayerBuilder layers;
  const auto words = layers.embedding("words", "ids", 3, 4, 2);
  const networks::Network network = layers.finish("one", {program::operators::relu(layers.graph(), words.rows)});
  CHECK_REFUSES("for tensor 1 ('words.weight')", (void)networks::evaluate(network, {}));
  reference::Tensors values = networks::random_values(network, Rng(1));
  values[network.lookups[0].ids] = reference::Array(program::ScalarType::Int32, {2});
  CHECK_REFUSES("for tensor 0 ('ids')", (void)networks::evaluate(network, values));
  CHECK_REFUSES("network 'none' has no graph", (void)networks::random_values({"none", nullptr, {}, {}, 0}, Rng(1)));
  CHECK_REFUSES("network 'none' has no graph", (void)networks::inputs({"none", nullptr, {}, {}, 0}));
  CHECK_REFUSES("network 'none' has no graph", (void)networks::evaluate({"none", nullptr, {}, {}, 0}, {}));
}

TEST_CASE("random weights keep the size of activations") {
  networks::LayerBuilder layers;
  networks::Tensor x = layers.graph().input("x", {4, 64});
  for (int l = 0; l < 12; ++l) x = layers.dense(x, "layer" + std::to_string(l), 64, networks::Activation::Relu);
  const networks::Network network = layers.finish("deep", {x});
  const reference::Tensors values = networks::evaluate(network, networks::random_values(network, Rng(2)));
  double squares = 0;
  for (std::size_t i = 0; i < 256; ++i) squares += values[x.id].get(i) * values[x.id].get(i) / 256;
  CHECK(squares > 0.1);
  CHECK(squares < 100);
}

TEST_CASE("random weights of 16 bits are scaled as those of float32") {
  using enum program::ScalarType;
  for (const program::ScalarType type : {Float32, Float16, BFloat16}) {
    const std::string type_name(program::name(type));
    CAPTURE(type_name);
    auto graph = std::make_shared<program::ComputeGraph>();
    program::Tensor x = graph->input("x", {4, 96}, type);
    for (int l = 0; l < 6; ++l) {
      const auto w = graph->constant("w" + std::to_string(l), {96, 96}, type);
      x = program::operators::relu(*graph,
                                   program::operators::cast(*graph, program::operators::matmul(*graph, x, w), type));
    }
    const networks::Network network{"narrow", graph, {x.id}, {}, 0};
    const reference::Tensors values = networks::evaluate(network, networks::random_values(network, Rng(2)));
    double largest = 0, squares = 0;
    for (std::size_t i = 0; i < values[1].size(); ++i) largest = std::max(largest, std::abs(values[1].get(i)));
    for (std::size_t i = 0; i < values[x.id].size(); ++i) squares += values[x.id].get(i) * values[x.id].get(i) / 384;
    CHECK(largest <= 0.25);  // sqrt(6 / 96)
    CHECK(largest > 0.24);
    CHECK(squares > 0.1);
    CHECK(squares < 100);
  }
}

TEST_CASE("the same generator gives the same values, lookups included") {
  const networks::Network network = networks::bert({.tokens = 3,
                                                    .shape = {.layers = 1, .hidden = 8, .heads = 2, .feed_forward = 8},
                                                    .vocabulary = 5,
                                                    .positions = 4});
  const reference::Tensors a = networks::random_values(network, Rng(1));
  const reference::Tensors b = networks::random_values(network, Rng(1));
  const reference::Tensors c = networks::random_values(network, Rng(2));
  CHECK(a == b);
  CHECK(a != c);
  CHECK(a[network.lookups[0].rows].shape() == std::vector<std::int64_t>{3, 8});
}

TEST_CASE("integers and Booleans are drawn, also those that factors of sums are") {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("x", {8, 64}, program::ScalarType::Int8);
  const auto w = graph->constant("w", {64, 8}, program::ScalarType::Int8);
  const auto numbers = graph->input("numbers", {8, 8}, program::ScalarType::Int32);
  const auto mask = graph->input("mask", {8, 8}, program::ScalarType::Bool);
  const auto sum = program::operators::add(*graph, program::operators::matmul(*graph, x, w), numbers);
  const auto masked = graph->compute("masked", {{"i", 8}, {"j", 8}}, [&](auto i) {
    return program::select(mask(i[0], i[1]), sum(i[0], i[1]), numbers(i[0], i[1]));
  });
  const reference::Tensors values = networks::random_values({"integers", graph, {masked.id}, {}, 0}, Rng(1));
  const auto range_of = [&](program::TensorId id) {
    std::pair<double, double> range{values[id].get(0), values[id].get(0)};
    for (std::size_t i = 0; i < values[id].size(); ++i)
      range = {std::min(range.first, values[id].get(i)), std::max(range.second, values[id].get(i))};
    return range;
  };
  // The least of 512 numbers is below -100 and the largest above 100, but for one in 10^20 draws.
  for (const program::TensorId id : {x.id, w.id}) {
    CHECK(range_of(id).first < -100);
    CHECK(range_of(id).second > 100);
  }
  CHECK(range_of(numbers.id) == std::pair{0.0, 7.0});
  CHECK(range_of(mask.id) == std::pair{0.0, 1.0});
}

TEST_CASE("random numbers that pick from two tables pick what both have") {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto ids = graph->input("ids", {64}, program::ScalarType::Int32);
  const auto few = graph->constant("few", {2, 3});
  const auto many = graph->constant("many", {1000, 3});
  const auto first = graph->input("few.rows", {64, 3});
  const auto second = graph->input("many.rows", {64, 3});
  const auto sum = program::operators::add(*graph, first, second);
  for (const bool in_order : {true, false}) {
    networks::Network network{"two tables", graph, {sum.id}, {}, 0};
    network.lookups = {{first.id, few.id, ids.id}, {second.id, many.id, ids.id}};
    if (!in_order) std::swap(network.lookups[0], network.lookups[1]);
    const reference::Tensors values = networks::random_values(network, Rng(1));
    for (std::size_t i = 0; i < 64; ++i) CHECK(values[ids.id].get(i) < 2);
  }
}
