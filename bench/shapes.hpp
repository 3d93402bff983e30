// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"

/// The shapes that are compared, on CPUs and on GPUs, and their programs.
namespace tunewright::bench {

/// C[b, m, n] = A[b, m, k] * B[b, k, n], all row-major; either operand may be stored transposed. Both operands are
/// inputs: nothing is packed ahead of time.
struct Product {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool transpose_a = false;  ///< A is stored [b, k, m]
  bool transpose_b = false;  ///< B is stored [b, n, k]
  bool operator==(const Product&) const = default;
};

inline std::shared_ptr<const program::ComputeGraph> product_graph(const Product& p) {
  namespace ops = program::operators;
  if (p.batch > 1) {
    return ops::batch_matmul_graph(
        {.batch = p.batch, .m = p.m, .n = p.n, .k = p.k, .transpose_a = p.transpose_a, .transpose_b = p.transpose_b});
  }
  return ops::matmul_graph({.m = p.m, .n = p.n, .k = p.k, .transpose_a = p.transpose_a, .transpose_b = p.transpose_b});
}

/// Element types that tensor units multiply: bytes without sign by bytes with one, summed in int32, or bfloat16, summed
/// in float32.
enum class NarrowType : std::uint8_t { Bytes, BFloat16 };

inline std::shared_ptr<const program::ComputeGraph> narrow_product_graph(const Product& p, NarrowType type) {
  program::operators::MatmulShape shape{.m = p.m, .n = p.n, .k = p.k};
  shape.type = type == NarrowType::Bytes ? program::ScalarType::UInt8 : program::ScalarType::BFloat16;
  if (type == NarrowType::Bytes) shape.type_b = program::ScalarType::Int8;
  return program::operators::matmul_graph(shape);
}

/// NHWC, batch 1; the kernel is a constant, which may be reordered ahead of time.
struct ConvolutionShape {
  std::int64_t height, width, in_channels, out_channels, kernel, stride, padding;
  bool operator==(const ConvolutionShape&) const = default;
};

inline program::operators::Conv2dShape conv2d_shape(const ConvolutionShape& s) {
  return {.height = s.height,
          .width = s.width,
          .in_channels = s.in_channels,
          .out_channels = s.out_channels,
          .kernel = s.kernel,
          .stride = s.stride,
          .padding = s.padding};
}
inline std::shared_ptr<const program::ComputeGraph> convolution_graph(const ConvolutionShape& s) {
  return program::operators::conv2d_graph(conv2d_shape(s));
}
inline std::shared_ptr<const program::ComputeGraph> narrow_convolution_graph(const ConvolutionShape& s,
                                                                             NarrowType type) {
  program::operators::Conv2dShape shape = conv2d_shape(s);
  shape.type = type == NarrowType::Bytes ? program::ScalarType::UInt8 : program::ScalarType::BFloat16;
  if (type == NarrowType::Bytes) shape.weight_type = program::ScalarType::Int8;
  return program::operators::conv2d_graph(shape);
}

/// Extents without an operator, such as "56x56x64_256_k1_s1".
inline std::string extents_of(const ConvolutionShape& s) {
  return std::to_string(s.height) + "x" + std::to_string(s.width) + "x" + std::to_string(s.in_channels) + "_" +
         std::to_string(s.out_channels) + "_k" + std::to_string(s.kernel) + "_s" + std::to_string(s.stride);
}
inline std::string name_of(const ConvolutionShape& s) { return "conv2d/" + extents_of(s); }

/// Every distinct convolution of ResNet-50 for one 224 x 224 image: height, width, channels in and out, kernel, stride,
/// padding.
inline std::vector<ConvolutionShape> resnet50_convolutions() {
  return {{224, 224, 3, 64, 7, 2, 3},   {56, 56, 64, 64, 1, 1, 0},     {56, 56, 64, 64, 3, 1, 1},
          {56, 56, 64, 256, 1, 1, 0},   {56, 56, 256, 64, 1, 1, 0},    {56, 56, 256, 128, 1, 1, 0},
          {56, 56, 128, 128, 3, 2, 1},  {56, 56, 256, 512, 1, 2, 0},   {28, 28, 128, 512, 1, 1, 0},
          {28, 28, 512, 128, 1, 1, 0},  {28, 28, 128, 128, 3, 1, 1},   {28, 28, 512, 256, 1, 1, 0},
          {28, 28, 256, 256, 3, 2, 1},  {28, 28, 512, 1024, 1, 2, 0},  {14, 14, 256, 1024, 1, 1, 0},
          {14, 14, 1024, 256, 1, 1, 0}, {14, 14, 256, 256, 3, 1, 1},   {14, 14, 1024, 512, 1, 1, 0},
          {14, 14, 512, 512, 3, 2, 1},  {14, 14, 1024, 2048, 1, 2, 0}, {7, 7, 512, 2048, 1, 1, 0},
          {7, 7, 2048, 512, 1, 1, 0},   {7, 7, 512, 512, 3, 1, 1}};
}

}  // namespace tunewright::bench
