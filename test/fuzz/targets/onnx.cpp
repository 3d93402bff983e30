// SPDX-License-Identifier: Apache-2.0
// An ONNX file, with limits that keep networks small. A network that is taken has values for its constants, and its
// graph is written as JSON and reads with the same hash.
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "tunewright/networks/import_onnx.hpp"
#include "tunewright/program/graph_json.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // A file in a folder of its own, since weights may lie in files beside it.
  static const fuzz::Folder folder;
  const std::filesystem::path file = folder.path / "model.onnx";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  networks::OnnxOptions limits{
      .most_file_bytes = 0x1p20, .most_tensor_bytes = 0x1p20, .most_folded_operations = 0x1p18, .most_nodes = 200};
  (void)fuzz::accepts<std::invalid_argument>([&] {
    networks::onnx::Model model = networks::onnx::read_model(file, limits.most_file_bytes);
    for (const networks::onnx::ModelInput& input : model.inputs)
      for (const networks::onnx::Dimension& dimension : input.shape)
        if (!dimension.symbol.empty()) limits.dimensions[dimension.symbol] = 2;
    const networks::ImportedNetwork imported = networks::onnx::convert(std::move(model), limits);
    const program::ComputeGraph& graph = *imported.network.graph;
    const program::ComputeGraph again = program::graph_from_json(program::to_json(graph));
    fuzz::require(stable_hash(again) == stable_hash(graph), "a graph keeps its hash");
    fuzz::require(imported.outputs.size() == imported.network.outputs.size(), "each output has its name");
  });
  return 0;
}
