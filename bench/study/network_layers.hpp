// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/task.hpp"

/// Layers of networks for one image of 224 x 224 or one sequence, each with its occurrences: what tuning a network is
/// made of, without the elementwise layers that follow them.
namespace tunewright::study {

/// Distinct layers of a network, in their order.
class NetworkLayers {
 public:
  NetworkLayers(std::string name, Target target) : name_(std::move(name)), target_(std::move(target)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<WeightedTask>& tasks() const noexcept { return tasks_; }

  /// A square convolution of a square image, padded by half its kernel.
  NetworkLayers& conv(double times, std::int64_t size, std::int64_t in, std::int64_t out, std::int64_t kernel,
                      std::int64_t stride = 1) {
    const program::operators::Conv2dShape shape{.height = size,
                                                .width = size,
                                                .in_channels = in,
                                                .out_channels = out,
                                                .kernel = kernel,
                                                .stride = stride,
                                                .padding = kernel / 2};
    return add(times, "conv" + text({kernel, size, in, out, stride}), program::operators::conv2d_graph(shape));
  }
  /// A depthwise convolution of 3 x 3, padded by 1.
  NetworkLayers& depthwise(double times, std::int64_t size, std::int64_t channels, std::int64_t stride = 1) {
    const program::operators::DepthwiseConv2dShape shape{
        .height = size, .width = size, .channels = channels, .stride = stride, .padding = 1};
    return add(times, "depthwise" + text({size, channels, stride}), program::operators::depthwise_conv2d_graph(shape));
  }
  NetworkLayers& dense(double times, std::int64_t rows, std::int64_t in, std::int64_t out) {
    return add(times, "dense" + text({rows, in, out}),
               program::operators::dense_graph({.batch = rows, .in = in, .out = out}));
  }
  /// Scores, their softmax and the sum they weigh.
  NetworkLayers& attention(double times, std::int64_t heads, std::int64_t length, std::int64_t width) {
    namespace ops = program::operators;
    add(times, "scores" + text({heads, length, width}),
        ops::batch_matmul_graph({.batch = heads, .m = length, .n = length, .k = width, .transpose_b = true}));
    add(times, "softmax" + text({heads, length}), ops::softmax_graph({.rows = heads * length, .columns = length}));
    return add(times, "weighted" + text({heads, length, width}),
               ops::batch_matmul_graph({.batch = heads, .m = length, .n = width, .k = length}));
  }

 private:
  static std::string text(const std::vector<std::int64_t>& numbers) {
    std::string joined;
    for (const std::int64_t number : numbers) joined += "_" + std::to_string(number);
    return joined;
  }
  NetworkLayers& add(double times, const std::string& layer, std::shared_ptr<const program::ComputeGraph> graph) {
    tasks_.push_back({program::make_task(layer, std::move(graph), target_, times), times});
    return *this;
  }

  std::string name_;
  Target target_;
  std::vector<WeightedTask> tasks_;
};

inline std::vector<NetworkLayers> networks(const Target& target) {
  std::vector<NetworkLayers> all;
  const auto network = [&](const char* name) -> NetworkLayers& { return all.emplace_back(name, target); };
  network("resnet18")
      .conv(1, 224, 3, 64, 7, 2)
      .conv(4, 56, 64, 64, 3)
      .conv(1, 56, 64, 128, 3, 2)
      .conv(1, 56, 64, 128, 1, 2)
      .conv(3, 28, 128, 128, 3)
      .conv(1, 28, 128, 256, 3, 2)
      .conv(1, 28, 128, 256, 1, 2)
      .conv(3, 14, 256, 256, 3)
      .conv(1, 14, 256, 512, 3, 2)
      .conv(1, 14, 256, 512, 1, 2)
      .conv(3, 7, 512, 512, 3)
      .dense(1, 1, 512, 1000);
  NetworkLayers& resnet50 = network("resnet50").conv(1, 224, 3, 64, 7, 2).conv(1, 56, 64, 64, 1);
  std::int64_t size = 56, width = 64;
  for (const double blocks : {3.0, 4.0, 6.0, 3.0}) {
    const bool is_first = width == 64;
    if (!is_first) {
      // The first block of a stage comes from twice the size; its 3 x 3 convolution has the stride.
      resnet50.conv(1, 2 * size, 2 * width, width, 1).conv(1, 2 * size, width, width, 3, 2);
      resnet50.conv(1, 2 * size, 2 * width, 4 * width, 1, 2);
    }
    resnet50.conv(is_first ? blocks : blocks - 1, size, width, width, 3);
    resnet50.conv(is_first ? blocks + 1 : blocks, size, width, 4 * width, 1);  // with the projection of the first block
    resnet50.conv(blocks - 1, size, 4 * width, width, 1);
    size /= 2;
    width *= 2;
  }
  resnet50.dense(1, 1, 2048, 1000);
  network("mobilenet_v1")
      .conv(1, 224, 3, 32, 3, 2)
      .depthwise(1, 112, 32)
      .conv(1, 112, 32, 64, 1)
      .depthwise(1, 112, 64, 2)
      .conv(1, 56, 64, 128, 1)
      .depthwise(1, 56, 128)
      .conv(1, 56, 128, 128, 1)
      .depthwise(1, 56, 128, 2)
      .conv(1, 28, 128, 256, 1)
      .depthwise(1, 28, 256)
      .conv(1, 28, 256, 256, 1)
      .depthwise(1, 28, 256, 2)
      .conv(1, 14, 256, 512, 1)
      .depthwise(5, 14, 512)
      .conv(5, 14, 512, 512, 1)
      .depthwise(1, 14, 512, 2)
      .conv(1, 7, 512, 1024, 1)
      .depthwise(1, 7, 1024)
      .conv(1, 7, 1024, 1024, 1)
      .dense(1, 1, 1024, 1000);
  network("mobilenet_v2")
      .conv(1, 224, 3, 32, 3, 2)
      .depthwise(1, 112, 32)
      .conv(1, 112, 32, 16, 1)
      .conv(1, 112, 16, 96, 1)
      .depthwise(1, 112, 96, 2)
      .conv(1, 56, 96, 24, 1)
      .conv(2, 56, 24, 144, 1)
      .depthwise(1, 56, 144)
      .conv(1, 56, 144, 24, 1)
      .depthwise(1, 56, 144, 2)
      .conv(1, 28, 144, 32, 1)
      .conv(3, 28, 32, 192, 1)
      .depthwise(2, 28, 192)
      .conv(2, 28, 192, 32, 1)
      .depthwise(1, 28, 192, 2)
      .conv(1, 14, 192, 64, 1)
      .conv(4, 14, 64, 384, 1)
      .depthwise(4, 14, 384)
      .conv(3, 14, 384, 64, 1)
      .conv(1, 14, 384, 96, 1)
      .conv(3, 14, 96, 576, 1)
      .depthwise(2, 14, 576)
      .conv(2, 14, 576, 96, 1)
      .depthwise(1, 14, 576, 2)
      .conv(1, 7, 576, 160, 1)
      .conv(3, 7, 160, 960, 1)
      .depthwise(3, 7, 960)
      .conv(2, 7, 960, 160, 1)
      .conv(1, 7, 960, 320, 1)
      .conv(1, 7, 320, 1280, 1)
      .dense(1, 1, 1280, 1000);
  network("vgg16")
      .conv(1, 224, 3, 64, 3)
      .conv(1, 224, 64, 64, 3)
      .conv(1, 112, 64, 128, 3)
      .conv(1, 112, 128, 128, 3)
      .conv(1, 56, 128, 256, 3)
      .conv(2, 56, 256, 256, 3)
      .conv(1, 28, 256, 512, 3)
      .conv(2, 28, 512, 512, 3)
      .conv(3, 14, 512, 512, 3)
      .dense(1, 1, 25088, 4096)
      .dense(1, 1, 4096, 4096)
      .dense(1, 1, 4096, 1000);
  // Queries, keys, values and results of attention are 4 products a layer.
  network("bert_base")
      .dense(48, 128, 768, 768)
      .attention(12, 12, 128, 64)
      .dense(12, 128, 768, 3072)
      .dense(12, 128, 3072, 768);
  network("vit_b16")
      .dense(1, 196, 768, 768)
      .dense(48, 197, 768, 768)
      .attention(12, 12, 197, 64)
      .dense(12, 197, 768, 3072)
      .dense(12, 197, 3072, 768)
      .dense(1, 1, 768, 1000);
  return all;
}

}  // namespace tunewright::study
