// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/onnx/read_model.hpp"

#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/data_file.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/networks/import_onnx.hpp"

using namespace tunewright;

namespace {

/// A folder with one for the model in it.
struct Folder {
  Folder() { std::filesystem::create_directories(path / "model"); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }

  support::TemporaryFolder temporary;
  std::filesystem::path path = temporary.path();
};

/// y = x + w, for a weight of two elements.
onnx::ModelProto sum_model() {
  onnx::ModelProto model;
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("sum");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Add");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  onnx::TensorProto& weight = *graph.add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(2);
  weight.add_float_data(1);
  weight.add_float_data(2);
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name("x");
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_value(2);
  graph.add_output()->set_name("y");
  return model;
}

std::string refusal(const onnx::ModelProto& model) {
  const Folder folder;
  const auto file = folder.write("model/it.onnx", model.SerializeAsString());
  return test::refusal([&] { (void)networks::onnx::read_model(file); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string bytes_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("nodes, weights, inputs and outputs are read") {
  const Folder folder;
  const auto file = folder.write("model/it.onnx", sum_model().SerializeAsString());
  const networks::onnx::Model model = networks::onnx::read_model(file);
  CHECK(model.name == "sum");
  CHECK(model.opset == 17);
  REQUIRE(model.nodes.size() == 1);
  CHECK(model.nodes[0].name == "#0");
  CHECK(model.inputs.at(0).shape.at(0).extent == std::optional<std::int64_t>(2));
  CHECK(model.constants.at("w")->array.get(1) == 2);
  CHECK(model.outputs == std::vector<std::string>{"y"});
}

TEST_CASE("extents of 0 and -1 are open ones") {
  const Folder folder;
  for (const int extent : {0, -1}) {
    onnx::ModelProto model = sum_model();
    onnx::TypeProto& type = *model.mutable_graph()->mutable_input(0)->mutable_type();
    type.mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(extent);
    const auto read = networks::onnx::read_model(folder.write("model/it.onnx", model.SerializeAsString()));
    REQUIRE(read.inputs.at(0).shape.size() == 1);
    CHECK(!read.inputs[0].shape[0].extent);
  }
}

TEST_CASE("weights may lie in a file of the same folder, and nowhere else") {
  onnx::ModelProto model = sum_model();
  onnx::TensorProto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_float_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& location = *weight.add_external_data();
  location.set_key("location");
  auto& offset = *weight.add_external_data();
  offset.set_key("offset");
  offset.set_value("4");
  const Folder folder;
  const float numbers[] = {7, 8, 9};
  const std::string bytes(reinterpret_cast<const char*>(numbers), sizeof numbers);  // NOLINT: as bytes
  folder.write("model/weights", bytes);
  folder.write("outside", bytes);
  const auto read = [&](const std::string& place) {
    location.set_value(place);
    return networks::onnx::read_model(folder.write("model/it.onnx", model.SerializeAsString()));
  };
  const networks::onnx::Model good = read("weights");
  CHECK(good.constants.at("w")->array.get(0) == 8);
  CHECK(good.constants.at("w")->array.get(1) == 9);
  std::filesystem::create_symlink(folder.path / "outside", folder.path / "model/link");
  for (const std::string& place : {std::string("../outside"), (folder.path / "outside").string(), std::string("link"),
                                   std::string("a/../../outside"), std::string()}) {
    CAPTURE(place);
    CHECK(contains(test::refusal([&] { (void)read(place); }), "leads out of the folder of the model"));
  }
  CHECK(contains(test::refusal([&] { (void)read("missing"); }), "is no file that can be read"));
  offset.set_value("8");
  CHECK(contains(test::refusal([&] { (void)read("weights"); }), "has 12 bytes, and those from 8 to 16 are asked for"));
  offset.set_value("-4");
  CHECK(contains(test::refusal([&] { (void)read("weights"); }), "offset is '-4', which is no number of bytes"));
}

TEST_CASE("a file of weights is not read again and again without end") {
  onnx::ModelProto model = sum_model();
  for (int t = 0; t < 3; ++t) {
    onnx::TensorProto& weight =
        t == 0 ? *model.mutable_graph()->mutable_initializer(0) : *model.mutable_graph()->add_initializer();
    weight.set_name("w" + std::to_string(t));
    weight.set_data_type(onnx::TensorProto::FLOAT);
    weight.clear_float_data();
    weight.clear_dims();
    weight.add_dims(500);
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& location = *weight.add_external_data();
    location.set_key("location");
    location.set_value("weights");
  }
  const Folder folder;
  folder.write("model/weights", std::string(2000, '\0'));
  const auto file = folder.write("model/it.onnx", model.SerializeAsString());
  CHECK(networks::onnx::read_model(file, 6000).constants.size() == 3);  // they may share what they read
  CHECK(contains(test::refusal([&] { (void)networks::onnx::read_model(file, 5999); }),
                 "tensor 'w2' lies in another file: with this one, tensors of 6000 bytes are read from "
                 "'weights', more than options.most_file_bytes"));
}

TEST_CASE("an input of unknown shape is told from a single number") {
  onnx::ModelProto model = sum_model();
  const Folder folder;
  auto& type = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->clear_dim();
  CHECK(networks::onnx::read_model(folder.write("it.onnx", model.SerializeAsString())).inputs.at(0).has_shape);
  type.clear_shape();
  CHECK_FALSE(networks::onnx::read_model(folder.write("it.onnx", model.SerializeAsString())).inputs.at(0).has_shape);
}

TEST_CASE("weights that do not fit their shape, or are no numbers, are refused") {
  onnx::ModelProto model = sum_model();
  onnx::TensorProto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.add_float_data(3);
  CHECK(contains(refusal(model), "tensor 'w' has 3 elements where its shape has 2"));
  weight.clear_float_data();
  weight.set_raw_data(std::string(7, '\0'));
  CHECK(contains(refusal(model), "of shape [2] takes 8"));
  weight.clear_raw_data();
  weight.add_float_data(1);
  weight.add_float_data(NAN);
  CHECK(contains(refusal(model), "element 1 of tensor 'w' is not a number (NaN)"));
  weight.set_dims(0, std::int64_t{1} << 50);
  CHECK(contains(refusal(model), "takes 4.5035996e+15 bytes and the file has no more than 16 for it"));
  weight.set_dims(0, -2);
  CHECK(contains(refusal(model), "tensor 'w' of shape [-2] has a negative extent"));
  // No elements, and products of the first extents that 64 bits do not hold.
  weight.set_dims(0, std::int64_t{1} << 40);
  weight.add_dims(std::int64_t{1} << 40);
  weight.add_dims(0);
  CHECK(contains(refusal(model), "tensor 'w' of shape [1099511627776, 1099511627776, 0] has more than 2^53 elements"));
  weight.clear_dims();
  weight.add_dims(2);
  weight.set_data_type(onnx::TensorProto::STRING);
  CHECK(contains(refusal(model), "tensor 'w' has elements of type number 8, which tensor programs do not have"));
}

TEST_CASE("two weights of one name are refused") {
  onnx::ModelProto model = sum_model();
  *model.mutable_graph()->add_initializer() = model.graph().initializer(0);
  CHECK(contains(refusal(model), "it has two weights called 'w'; check it with onnx.checker"));
}

TEST_CASE("files that are none are refused") {
  const Folder folder;
  const auto read = [&](const std::string& bytes) {
    const auto file = folder.write("model/it.onnx", bytes);
    return test::refusal([&] { (void)networks::onnx::read_model(file); });
  };
  CHECK(contains(read(""), "it holds no graph"));
  CHECK(contains(read("a text of some kind\n"), "it is no ONNX file, is truncated, or is nested too deeply"));
  CHECK(contains(test::refusal([&] { (void)networks::onnx::read_model(folder.path / "model/nothing"); }),
                 "is no file that can be read"));
  CHECK(contains(test::refusal([&] { (void)networks::onnx::read_model(folder.path); }), "is no file that can be read"));
  onnx::ModelProto old = sum_model();
  old.mutable_opset_import(0)->set_version(6);
  CHECK(contains(refusal(old), "it is of opset 6; versions from 7 on are read"));
  const auto file = folder.write("model/it.onnx", sum_model().SerializeAsString());
  CHECK(contains(test::refusal([&] { (void)networks::onnx::read_model(file, 10); }),
                 "more than options.most_file_bytes"));
}

TEST_CASE("deep nesting and messages that take many times their bytes are refused") {
  onnx::ModelProto nested = sum_model();
  onnx::GraphProto* graph = nested.mutable_graph();
  for (int level = 0; level < 200; ++level) {
    onnx::AttributeProto& attribute = *graph->add_node()->add_attribute();
    attribute.set_type(onnx::AttributeProto::GRAPH);
    graph = attribute.mutable_g();
  }
  CHECK(contains(refusal(nested), "nested too deeply"));

  // A node takes two bytes of the file and a hundred times as much of memory: field 1 of the graph, of length 0.
  std::string nodes;
  for (int n = 0; n < 2'000'000; ++n) nodes += std::string("\x0a\x00", 2);
  std::string length;
  for (std::size_t rest = nodes.size(); rest != 0 || length.empty(); rest >>= 7U)
    length += static_cast<char>((rest & 0x7fU) | (rest >> 7U != 0 ? 0x80U : 0U));
  const Folder folder;
  const auto file = folder.write("model/it.onnx", "\x3a" + length + nodes);
  CHECK(
      contains(test::refusal([&] { (void)networks::onnx::read_model(file); }), "takes many times its size of memory"));
}

TEST_CASE("a damaged file is refused or read, and nothing else happens") {
  const Folder folder;
  Rng rng(11);
  for (const std::string name : {"onnx/images_13.onnx", "onnx/transformer_written_out.onnx"}) {
    const std::string whole = bytes_of(support::data_file(name));
    REQUIRE(whole.size() > 1000);
    networks::OnnxOptions options;
    if (name.starts_with("onnx/transformer")) options.dimensions = {{"batch", 1}, {"tokens", 5}};
    int refused = 0;
    const auto import = [&](const std::string& bytes) {
      const auto file = folder.write("model/it.onnx", bytes);
      try {
        (void)networks::import_onnx(file, options);
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    };
    for (int cut = 0; cut < 100; ++cut) import(whole.substr(0, rng.below(whole.size())));
    CHECK(refused == 100);
    for (int flip = 0; flip < 200; ++flip) {
      std::string bytes = whole;
      for (int b = 0; b < 1 + flip % 3; ++b) bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
      import(bytes);
    }
    CHECK(refused > 120);
  }
}
