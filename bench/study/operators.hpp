// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../random_shapes.hpp"
#include "../suite.hpp"
#include "tunewright/core/budget.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/transposed_conv2d.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/options.hpp"
#include "tunewright/study/problem.hpp"

/// Operators that studies search schedules of, in sets without a member in common.
namespace tunewright::bench {

using Operators = std::vector<std::pair<std::string, std::shared_ptr<const program::ComputeGraph>>>;

/// A convolution of a square image that keeps its size, but for the stride.
inline std::shared_ptr<const program::ComputeGraph> square_conv(std::int64_t size, std::int64_t in, std::int64_t out,
                                                                std::int64_t kernel, std::int64_t stride = 1) {
  return program::operators::conv2d_graph({.height = size,
                                           .width = size,
                                           .in_channels = in,
                                           .out_channels = out,
                                           .kernel = kernel,
                                           .stride = stride,
                                           .padding = kernel / 2});
}

/// One that doubles an image of 16x16 and halves its 256 channels.
inline std::shared_ptr<const program::ComputeGraph> transposed_conv() {
  auto graph = std::make_shared<program::ComputeGraph>();
  const program::Tensor image = graph->input("data", {1, 16, 16, 256});
  const program::Tensor weight = graph->constant("weight", {4, 4, 256, 128});
  program::operators::transposed_conv2d(*graph, image, weight, {.stride = 2, .padding = 1});
  return graph;
}

/// Those that drafts and defaults of the library were developed on.
inline Operators known_operators() {
  namespace ops = program::operators;
  return {{"conv3x3_28", square_conv(28, 128, 128, 3)},
          {"matmul_512", ops::matmul_graph({.m = 512, .n = 512, .k = 512})},
          {"conv1x1_56", square_conv(56, 64, 256, 1)},
          {"matmul_128x768x3072", ops::matmul_graph({.m = 128, .n = 768, .k = 3072})},
          {"conv7x7_224", square_conv(224, 3, 64, 7, 2)},
          {"matmul_1024", ops::matmul_graph({.m = 1024, .n = 1024, .k = 1024})},
          {"conv3x3_14", square_conv(14, 256, 256, 3)},
          {"matmul_53x61x1024", ops::matmul_graph({.m = 53, .n = 61, .k = 1024})}};
}

/// Those that played no part in developing anything: what recipes are judged on. From Inception-V3, ResNet-18,
/// ViT-B/16, EfficientNet, DCGAN and one step of decoding text.
inline Operators unseen_operators() {
  namespace ops = program::operators;
  return {
      {"conv1x7_17",
       ops::conv2d_graph(
           {.height = 17, .width = 17, .in_channels = 160, .out_channels = 192, .kernel = {1, 7}, .padding = {0, 3}})},
      {"matmul_197x768x768", ops::matmul_graph({.m = 197, .n = 768, .k = 768})},
      {"conv5x5_35", square_conv(35, 48, 64, 5)},
      {"depthwise5x5_28",
       ops::depthwise_conv2d_graph({.height = 28, .width = 28, .channels = 240, .kernel = 5, .padding = 2})},
      {"conv3x3_56_stride2", square_conv(56, 64, 128, 3, 2)},
      {"batch_matmul_12x197x197x64",
       ops::batch_matmul_graph({.batch = 12, .m = 197, .n = 197, .k = 64, .transpose_b = true})},
      {"matmul_8x2048x2048", ops::matmul_graph({.m = 8, .n = 2048, .k = 2048})},
      {"transposed_conv4x4_16", transposed_conv()}};
}

/// Those that `bench_cpu_kernels --random_shapes=SEED` draws, at most 48: nobody chose them, the seed does.
inline Operators random_operators(std::uint64_t seed) {
  Operators operators;
  for (const SuiteEntry& entry : random_shapes(seed, suite())) {
    std::string name = name_of(entry.shape);
    std::replace(name.begin(), name.end(), '/', '_');
    operators.emplace_back(std::move(name), program_of(entry.shape));
  }
  return operators;
}

/// The set that `--operators` names: "known", "unseen", or "random", which `--random_shapes` draws. Throws
/// `std::invalid_argument` for another name.
inline Operators chosen_operators(const study::Options& options) {
  const std::string set = options.text("operators");
  if (set == "unseen") return unseen_operators();
  if (set == "known") return known_operators();
  if (set == "random") return random_operators(options.number("random_shapes"));
  throw std::invalid_argument("--operators=" + set + ": give unseen, known or random");
}

/// Those that models are pretrained on, of neither set.
inline Operators pretraining_operators() {
  namespace ops = program::operators;
  return {{"matmul_256x384x640", ops::matmul_graph({.m = 256, .n = 384, .k = 640})},
          {"conv3x3_7", square_conv(7, 512, 512, 3)},
          {"conv1x1_14", square_conv(14, 256, 1024, 1)},
          {"depthwise3x3_28",
           ops::depthwise_conv2d_graph({.height = 28, .width = 28, .channels = 192, .kernel = 3, .padding = 1})},
          {"batch_matmul_8x128x128x96", ops::batch_matmul_graph({.batch = 8, .m = 128, .n = 128, .k = 96})},
          {"conv3x3_112_stride2", square_conv(112, 32, 64, 3, 2)}};
}

/// A task to search schedules of; every search has a measurer like `measurer`, whose own clock, if any, starts anew.
template <class Measurer>
study::Problem<spaces::MultiLevelTiling, Measurer> problem(std::string name, const Task& task,
                                                           const Measurer& measurer) {
  return {.name = std::move(name), .task = task, .measurer = [measurer] {
            Measurer fresh = measurer;
            if constexpr (study::HasOwnClock<Measurer>) fresh.clock = {};
            return fresh;
          }};
}

/// Tasks of the first `options.tasks` of `operators`, or of all.
template <class Measurer>
std::vector<study::Problem<spaces::MultiLevelTiling, Measurer>> problems(const Operators& operators,
                                                                         const study::Options& options,
                                                                         const Target& target,
                                                                         const Measurer& measurer) {
  std::vector<study::Problem<spaces::MultiLevelTiling, Measurer>> all;
  for (const auto& [name, graph] : operators) {
    if (options.tasks != 0 && all.size() == options.tasks) break;
    all.push_back(problem(name, program::make_task(name, graph, target), measurer));
  }
  return all;
}

/// `--trials` in batches of `--batch`.
inline Budget budget(const study::Options& options) {
  return {.trials = options.number("trials"), .batch = options.number("batch")};
}

}  // namespace tunewright::bench
