// SPDX-License-Identifier: Apache-2.0
//
// Imports an ONNX file, runs the network, and compares what it computes with outputs that somebody else computed.
// onnx_beside_onnxruntime.py writes both files.
//
// The network is run by `CompiledNetwork` with default schedules on all processors, or by the reference. One line:
// nodes of the file, parameters, tasks, outputs, seconds to import, compile and run, and the largest relative error of
// any output, which is the largest difference over the largest magnitude. Exits with 1 when that is 1e-4 or more, and
// with 2 for a file that cannot be imported.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/onnx.hpp"
#include "usage.hpp"

namespace {

using namespace tunewright;

constexpr const char* usage = R"(usage: bench_onnx MODEL.onnx VALUES.onnx [--evaluator]

Imports a network, runs it, and compares what it computes with what is expected.

  VALUES.onnx  has inputs and expected outputs as constants, by name
  --evaluator  the reference runs the network, not compiled kernels
)";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Largest difference over the largest magnitude; infinite where sizes differ or something is no number.
double relative_error(const reference::Array& actual, const reference::Array& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected.get(i)));
    const double here = std::abs(actual.get(i) - expected.get(i));
    if (!(here <= difference)) difference = std::isnan(here) ? INFINITY : here;
  }
  return difference == 0 ? 0 : difference / largest;
}

int compare(const std::string& model, const std::string& values, bool by_evaluator) {
  const networks::onnx::Model given = networks::onnx::read_model(values);
  const auto start = std::chrono::steady_clock::now();
  networks::onnx::Model file = networks::onnx::read_model(model);
  const std::size_t nodes = file.nodes.size();
  networks::OnnxOptions options;
  for (const networks::onnx::ModelInput& input : file.inputs)
    options.shapes[input.name] = given.constants.at(input.name)->array.shape();
  networks::ImportedNetwork imported = networks::onnx::convert(std::move(file), options);
  const double import_seconds = seconds_since(start);
  const networks::Network& network = imported.network;
  for (const networks::TensorId input : networks::inputs(network)) {
    const reference::Array& from = given.constants.at(network.graph->op(input).name)->array;
    for (std::size_t i = 0; i < from.size(); ++i) imported.values[input].set(i, from.get(i));
  }
  const networks::Partition partition = networks::partition(network, host_target());
  const auto compiling = std::chrono::steady_clock::now();
  double compile_seconds = 0;
  double run_seconds = 0;
  std::vector<reference::Array> outputs;
  if (by_evaluator) {
    const reference::Tensors tensors = networks::evaluate(network, imported.values, {.threads = host_target().threads});
    for (const networks::TensorId output : network.outputs) outputs.push_back(tensors[output]);
    run_seconds = seconds_since(compiling);
  } else {
    networks::CompiledNetwork compiled(network, partition, networks::default_schedules(partition.tasks),
                                       imported.values, {.compile_threads = host_target().threads});
    compile_seconds = seconds_since(compiling);
    outputs = compiled.run(imported.values);
    const auto running = std::chrono::steady_clock::now();
    outputs = compiled.run(imported.values);
    run_seconds = seconds_since(running);
  }
  double error = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    error = std::max(error, relative_error(outputs[o], given.constants.at(imported.outputs[o])->array));
  std::printf("nodes=%zu parameters=%lld tasks=%zu outputs=%zu import_s=%.2f compile_s=%.2f run_s=%.4f error=%.2e\n",
              nodes, static_cast<long long>(network.parameters), partition.tasks.size(), outputs.size(), import_seconds,
              compile_seconds, run_seconds, error);
  return error < 1e-4 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (bench::printed_usage(argc, argv, usage)) return 0;
  std::vector<std::string> files;
  bool by_evaluator = false;
  for (int a = 1; a < argc; ++a) {
    const std::string word = argv[a];
    if (word == "--evaluator")
      by_evaluator = true;
    else if (word.starts_with("--"))
      return std::fprintf(stderr, "bench_onnx: unknown option '%s'; see --help\n", argv[a]), 2;
    else
      files.push_back(word);
  }
  if (files.size() != 2) {
    std::fprintf(stderr, "give an ONNX file, and one with its inputs and expected outputs\n");
    return 2;
  }
  try {
    return compare(files[0], files[1], by_evaluator);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
