// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "library_kernels.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/softmax.hpp"

/// The kernels that are tuned and compared: a program, and every library that has the operator.
namespace tunewright::bench {

struct KernelCase {
  std::string name;
  std::shared_ptr<const program::ComputeGraph> graph;
  std::vector<LibraryKernel> libraries;
};

/// Both operands are inputs: nothing is packed ahead of time.
inline KernelCase product_case(std::string name, Product p) {
  namespace ops = program::operators;
  KernelCase c{std::move(name),
               p.batch > 1 ? ops::batch_matmul_graph({.batch = p.batch, .m = p.m, .n = p.n, .k = p.k})
                           : ops::matmul_graph({.m = p.m, .n = p.n, .k = p.k}),
               {}};
  c.libraries.push_back(library_kernel("Eigen", c.graph, eigen_product(p)));
#ifdef TUNEWRIGHT_BENCH_HAS_OPENBLAS
  c.libraries.push_back(library_kernel("OpenBLAS", c.graph, openblas_product(p)));
#endif
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel("oneDNN", c.graph, dnnl_product(p)));
#endif
  return c;
}

struct ConvolutionShape {
  std::int64_t height, width, in_channels, out_channels, kernel, stride, padding;
};

/// NHWC, batch 1; the kernel is a constant, which both sides may reorder ahead of time.
inline KernelCase convolution_case(std::string name, const ConvolutionShape& s) {
  KernelCase c{std::move(name),
               program::operators::conv2d_graph({.height = s.height, .width = s.width, .in_channels = s.in_channels,
                                                 .out_channels = s.out_channels, .kernel = s.kernel, .stride = s.stride,
                                                 .padding = s.padding}),
               {}};
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel("oneDNN", c.graph, dnnl_convolution({1, s.height, s.width, s.in_channels, s.out_channels,
                                                                            s.kernel, s.stride, s.padding, false})));
#endif
  return c;
}

inline KernelCase depthwise_case(std::string name, std::int64_t size, std::int64_t channels, std::int64_t stride) {
  KernelCase c{std::move(name),
               program::operators::depthwise_conv2d_graph({.height = size, .width = size, .channels = channels, .kernel = 3,
                                                           .stride = stride, .padding = 1}),
               {}};
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel("oneDNN", c.graph, dnnl_convolution({1, size, size, channels, channels, 3, stride, 1, true})));
#endif
  return c;
}

inline KernelCase softmax_case(std::string name, std::int64_t rows, std::int64_t columns) {
  KernelCase c{std::move(name), program::operators::softmax_graph({.rows = rows, .columns = columns}), {}};
  c.libraries.push_back(library_kernel("Eigen", c.graph, eigen_softmax(rows, columns)));
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel("oneDNN", c.graph, dnnl_softmax(rows, columns)));
#endif
  return c;
}

/// What the quick start shows.
inline std::vector<KernelCase> quickstart_cases() {
  std::vector<KernelCase> cases;
  cases.push_back(product_case("matmul_1024x1024x1024", {1, 1024, 1024, 1024}));
  cases.push_back(convolution_case("conv2d_3x3_28x28x128_128", {28, 28, 128, 128, 3, 1, 1}));
  cases.push_back(depthwise_case("depthwise_3x3_56x56x144", 56, 144, 1));
  cases.push_back(product_case("batch_matmul_12x128x64x128", {12, 128, 64, 128}));
  cases.push_back(softmax_case("softmax_1024x1024", 1024, 1024));
  return cases;
}

/// Every distinct convolution of ResNet-50 for one 224 x 224 image: height, width, channels in and out, kernel, stride, padding.
inline std::vector<ConvolutionShape> resnet50_convolutions() {
  return {{224, 224, 3, 64, 7, 2, 3},
          {56, 56, 64, 64, 1, 1, 0},     {56, 56, 64, 64, 3, 1, 1},    {56, 56, 64, 256, 1, 1, 0},   {56, 56, 256, 64, 1, 1, 0},
          {56, 56, 256, 128, 1, 1, 0},   {56, 56, 128, 128, 3, 2, 1},  {56, 56, 256, 512, 1, 2, 0},
          {28, 28, 128, 512, 1, 1, 0},   {28, 28, 512, 128, 1, 1, 0},  {28, 28, 128, 128, 3, 1, 1},
          {28, 28, 512, 256, 1, 1, 0},   {28, 28, 256, 256, 3, 2, 1},  {28, 28, 512, 1024, 1, 2, 0},
          {14, 14, 256, 1024, 1, 1, 0},  {14, 14, 1024, 256, 1, 1, 0}, {14, 14, 256, 256, 3, 1, 1},
          {14, 14, 1024, 512, 1, 1, 0},  {14, 14, 512, 512, 3, 2, 1},  {14, 14, 1024, 2048, 1, 2, 0},
          {7, 7, 512, 2048, 1, 1, 0},    {7, 7, 2048, 512, 1, 1, 0},   {7, 7, 512, 512, 3, 1, 1}};
}

/// What `bench_cpu_kernels` compares.
inline std::vector<KernelCase> benchmark_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t size : {512, 1024, 2048}) {
    const std::string extent = std::to_string(size);
    cases.push_back(product_case("matmul/" + extent + "x" + extent + "x" + extent, {1, size, size, size}));
  }
  cases.push_back(product_case("matmul/128x3072x768", {1, 128, 3072, 768}));
  cases.push_back(product_case("matmul/3136x64x576", {1, 3136, 64, 576}));
  cases.push_back(product_case("matmul/49x512x4608", {1, 49, 512, 4608}));
  for (const ConvolutionShape& s : resnet50_convolutions()) {
    cases.push_back(convolution_case("conv2d/" + std::to_string(s.height) + "x" + std::to_string(s.width) + "x" +
                                         std::to_string(s.in_channels) + "_" + std::to_string(s.out_channels) + "_k" +
                                         std::to_string(s.kernel) + "_s" + std::to_string(s.stride),
                                     s));
  }
  cases.push_back(depthwise_case("depthwise/56x56x144", 56, 144, 1));
  cases.push_back(product_case("batch_matmul/12x128x64x128", {12, 128, 64, 128}));
  cases.push_back(softmax_case("softmax/1024x1024", 1024, 1024));
  return cases;
}

}  // namespace tunewright::bench
