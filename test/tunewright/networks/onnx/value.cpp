// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/onnx/value.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/program/operators/layout.hpp"

using namespace tunewright;
using networks::onnx::Emitter;
using networks::onnx::Shape;
using networks::onnx::Value;
using Order = std::vector<int>;

namespace {

/// An image of shape [1, 8, 4, 6] that is stored channels last.
struct Image {
  std::shared_ptr<program::ComputeGraph> graph = std::make_shared<program::ComputeGraph>();
  networks::onnx::FoldingBudget budget{"most_tensor_bytes", 0x1p20};
  Emitter emitter{graph, budget};
  program::Tensor tensor = graph->input("image", {1, 4, 6, 8});
  Value value{{1, 8, 4, 6}, program::ScalarType::Float32, {0, 2, 3, 1}, nullptr, tensor};
};

}  // namespace

TEST_CASE("dimensions of extent 1 come and go without an operator") {
  Image image;
  const Value reshaped = image.emitter.reshape(image.value, {8, 4, 1, 6});
  CHECK(reshaped.tensor.id == image.tensor.id);
  CHECK(reshaped.order == Order{Value::none, 1, 3, 0});
  CHECK(image.graph->size() == 1);
}

TEST_CASE("neighbours merge where they are stored") {
  Image image;
  const Value merged = image.emitter.reshape(image.value, {1, 8, 24});
  CHECK(merged.order == Order{2, 1});
  CHECK(merged.tensor.shape == Shape{24, 8});
  CHECK(program::operators::is_reshape(*image.graph, merged.tensor.id));
  // Channels and heights are no neighbours in memory, so this is a copy first.
  const Value mixed = image.emitter.reshape(image.value, {32, 6});
  CHECK(mixed.order == Order{0, 1});
  CHECK_FALSE(program::operators::is_reshape(*image.graph, image.graph->producers(mixed.tensor.id)[0]));
  CHECK(test::refusal([&] { (void)image.emitter.reshape(image.value, {32, 7}); }).find("differ in their number") !=
        std::string::npos);
}

TEST_CASE("a copy in another order is made once") {
  Image image;
  const program::Tensor copy = image.emitter.natural(image.value);
  CHECK(copy.shape == Shape{1, 8, 4, 6});
  CHECK(image.emitter.natural(image.value).id == copy.id);
  CHECK(image.emitter.stored(image.value, {0, 2, 3, 1}).id == image.tensor.id);
}

TEST_CASE("known values are read in the order of their shape") {
  Value value = networks::onnx::known_ints("numbers", {1, 2, 3});
  CHECK(networks::onnx::known_elements(value) == std::vector<double>{1, 2, 3});
  value.shape = {2, 3};  // repeated along the first dimension
  value.order = {1};
  CHECK(networks::onnx::known_elements(value) == std::vector<double>{1, 2, 3, 1, 2, 3});
  networks::onnx::FoldingBudget budget("most_tensor_bytes", 60);  // bytes: one copy of six int64 numbers, no second one
  networks::onnx::Emitter emitter(std::make_shared<program::ComputeGraph>(), budget);
  CHECK(emitter.in_natural_order(value)->array.shape() == Shape{2, 3});
  CHECK(test::refusal([&] {
          (void)emitter.in_natural_order(value);
        }).find("what depends on no input takes more than options.most_tensor_bytes, 60") != std::string::npos);
  const Value as_stored = networks::onnx::known_ints("numbers", {1, 2, 3});
  CHECK(emitter.in_natural_order(as_stored) == as_stored.known);  // takes nothing
  CHECK(test::refusal([&] { (void)networks::onnx::known_elements(value, 5); }).find("'numbers' has 6 elements") !=
        std::string::npos);
}
