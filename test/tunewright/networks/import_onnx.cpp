// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/import_onnx.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/data_file.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/program/graph.hpp"

using namespace tunewright;

namespace {

std::string model_file(const std::string& name) { return support::data_file("onnx/" + name + ".onnx"); }

/// A model of test/data/onnx with its inputs set, and what onnxruntime computes.
struct Example {
  explicit Example(const std::string& name, const networks::OnnxOptions& options = {})
      : imported(networks::import_onnx(model_file(name), options)),
        expected(networks::onnx::read_model(model_file(name + ".values"))) {
    for (const networks::TensorId input : networks::inputs(imported.network)) {
      const reference::Array& given = expected.constants.at(imported.network.graph->op(input).name)->array;
      REQUIRE(given.size() == imported.values[input].size());
      for (std::size_t i = 0; i < given.size(); ++i) imported.values[input].set(i, given.get(i));
    }
  }

  void check(std::size_t output, const reference::Array& actual) const {
    const reference::Array& wanted = expected.constants.at(imported.outputs.at(output))->array;
    REQUIRE(actual.shape() == wanted.shape());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(std::abs(actual.get(i) - wanted.get(i)) <= 1e-5 * std::max(1.0, std::abs(wanted.get(i))));
  }

  networks::ImportedNetwork imported;
  networks::onnx::Model expected;
};

}  // namespace

TEST_CASE("imported networks compute what onnxruntime does") {
  for (const std::string name : {"images_13", "images_18", "transformer", "transformer_written_out", "elementwise"}) {
    CAPTURE(name);
    networks::OnnxOptions options;
    if (name.starts_with("transformer")) options.dimensions = {{"batch", 1}, {"tokens", 5}};
    const Example example(name, options);
    const reference::Tensors tensors = networks::evaluate(example.imported.network, example.imported.values);
    for (std::size_t o = 0; o < example.imported.outputs.size(); ++o)
      example.check(o, tensors[example.imported.network.outputs[o]]);
  }
}

TEST_CASE("imported networks are cut into tasks, compiled and run") {
  // [snippet-begin import]
  const networks::OnnxOptions options{.shapes = {{"ids", {1, 5}}, {"mask", {1, 5}}}};
  networks::ImportedNetwork imported = networks::import_onnx(model_file("transformer"), options);
  const networks::Network& network = imported.network;
  for (const networks::TensorId input : networks::inputs(network))  // "ids" and "mask", by name
    if (network.graph->op(input).name == "ids") imported.values[input].set(0, 3);

  const networks::Partition partition = networks::partition(network, host_target().with_threads(1));
  networks::CompiledNetwork compiled(network, partition, networks::default_schedules(partition.tasks), imported.values);
  const std::vector<reference::Array> outputs = compiled.run(imported.values);
  // [snippet-end import]
  CHECK(outputs.size() == imported.outputs.size());
  CHECK(network.output_names == imported.outputs);
  Example example("transformer", options);
  const std::vector<reference::Array> results = compiled.run(example.imported.values);
  for (std::size_t o = 0; o < results.size(); ++o) example.check(o, results[o]);
}

TEST_CASE("words are looked up in a table that the last product shares") {
  const Example example("transformer", {.dimensions = {{"batch", 1}, {"tokens", 5}}});
  const networks::Network& network = example.imported.network;
  REQUIRE(network.lookups.size() == 1);
  const networks::Lookup& lookup = network.lookups[0];
  CHECK(network.graph->op(lookup.ids).name == "ids");
  CHECK(network.graph->op(lookup.ids).type == program::ScalarType::Int32);
  CHECK(network.graph->op(lookup.table).shape() == std::vector<std::int64_t>{11, 8});
  CHECK(network.graph->is_read(lookup.table));
  CHECK(networks::inputs(network).size() == 2);
}

TEST_CASE("what the file leaves open must be given") {
  const std::string file = model_file("transformer");
  CHECK(test::refusal([&] { (void)networks::import_onnx(file); }) ==
        "model 'transformer': extents are left open:\n"
        "  input 'ids', dimension 0 ('batch')\n  input 'ids', dimension 1 ('tokens')\n"
        "  input 'mask', dimension 0 ('batch')\n  input 'mask', dimension 1 ('tokens')\n"
        "give them in options.shapes by input, or in options.dimensions by the name of the extent");
  CHECK(test::refusal([&] { (void)networks::import_onnx(file, {.shapes = {{"id", {1, 5}}}}); }) ==
        "model 'transformer': options.shapes names 'id', which is no input of the file");
  CHECK(test::refusal([&] { (void)networks::import_onnx(file, {.dimensions = {{"bacth", 1}, {"tokens", 5}}}); }) ==
        "model 'transformer': extents are left open:\n"
        "  input 'ids', dimension 0 ('batch')\n  input 'mask', dimension 0 ('batch')\n"
        "  and options.dimensions names 'bacth', which no input has; is it misspelt?\n"
        "give them in options.shapes by input, or in options.dimensions by the name of the extent");
  CHECK(test::refusal([&] {
          (void)networks::import_onnx(model_file("images_13"), {.shapes = {{"image", {2, 3, 9, 10}}}});
        }).find("[2, 3, 9, 10] for input 'image', which does not fit") != std::string::npos);
  CHECK(test::refusal(
            [&] { (void)networks::import_onnx(file, {.dimensions = {{"batch", 1}, {"token", 5}, {"tokens", 5}}}); }) ==
        "model 'transformer': options.dimensions names 'token', which no input has; give the extents of 'batch', "
        "'tokens'");
  CHECK(test::refusal([&] {
          (void)networks::import_onnx(model_file("images_13"), {.dimensions = {{"batch", 1}}});
        }).find("names 'batch', which no input has; no extent of an input has a name, so leave it out") !=
        std::string::npos);
  // Eight tokens are more than there are positions.
  CHECK(test::refusal([&] {
          (void)networks::import_onnx(file, {.dimensions = {{"batch", 1}, {"tokens", 8}}});
        }).find("index 7 is beyond the 7 elements of dimension 0") != std::string::npos);
}
