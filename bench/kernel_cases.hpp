// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "library_kernels.hpp"
#include "shapes.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/softmax.hpp"

#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
#include "dnnl_kernels.hpp"
#endif

/// The kernels that are tuned and compared: a program, and every library that has the operator.
namespace tunewright::bench {

struct KernelCase {
  std::string name;
  std::shared_ptr<const program::ComputeGraph> graph;
  std::vector<LibraryKernel> libraries;
  bool narrow = false;  ///< elements that tensor units multiply
};

/// Both operands are inputs: nothing is packed ahead of time.
inline KernelCase product_case(std::string name, Product p) {
  KernelCase c{std::move(name), product_graph(p), {}};
  c.libraries.push_back(library_kernel("Eigen", c.graph, eigen_product(p)));
#ifdef TUNEWRIGHT_BENCH_HAS_OPENBLAS
  c.libraries.push_back(library_kernel("OpenBLAS", c.graph, openblas_product(p)));
#endif
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel("oneDNN", c.graph, dnnl_product(p)));
#endif
  return c;
}

/// Both operands are inputs, of bytes or bfloat16.
inline KernelCase narrow_product_case(std::string name, Product p, NarrowType type) {
  KernelCase c{std::move(name), narrow_product_graph(p, type), {}};
  c.narrow = true;
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel("oneDNN", c.graph, dnnl_narrow_product(p, type)));
#endif
  return c;
}

/// NHWC, batch 1; the kernel is a constant, which both sides may reorder ahead of time.
inline KernelCase convolution_case(std::string name, const ConvolutionShape& s) {
  KernelCase c{std::move(name), convolution_graph(s), {}};
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel(
      "oneDNN", c.graph,
      dnnl_convolution(
          {1, s.height, s.width, s.in_channels, s.out_channels, s.kernel, s.stride, s.padding, false, {}})));
#endif
  return c;
}

/// As `convolution_case`, of bytes or bfloat16.
inline KernelCase narrow_convolution_case(std::string name, const ConvolutionShape& s, NarrowType type) {
  KernelCase c{std::move(name), narrow_convolution_graph(s, type), {}};
  c.narrow = true;
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(library_kernel("oneDNN", c.graph,
                                       dnnl_convolution({1, s.height, s.width, s.in_channels, s.out_channels, s.kernel,
                                                         s.stride, s.padding, false, dnnl_types(type)})));
#endif
  return c;
}

inline KernelCase depthwise_case(std::string name, std::int64_t size, std::int64_t channels, std::int64_t stride) {
  KernelCase c{std::move(name),
               program::operators::depthwise_conv2d_graph(
                   {.height = size, .width = size, .channels = channels, .kernel = 3, .stride = stride, .padding = 1}),
               {}};
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  c.libraries.push_back(
      library_kernel("oneDNN", c.graph, dnnl_convolution({1, size, size, channels, channels, 3, stride, 1, true, {}})));
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

/// What `bench_cpu_kernels` compares.
inline std::vector<KernelCase> benchmark_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t size : {512, 1024, 2048}) {
    const std::string extent = std::to_string(size);
    cases.push_back(product_case("matmul/" + extent + "x" + extent + "x" + extent, {1, size, size, size}));
  }
  cases.push_back(narrow_product_case("matmul_int8/1024x1024x1024", {1, 1024, 1024, 1024}, NarrowType::Bytes));
  cases.push_back(narrow_product_case("matmul_bf16/1024x1024x1024", {1, 1024, 1024, 1024}, NarrowType::BFloat16));
  cases.push_back(narrow_product_case("matmul_bf16/4096x1024x1024", {1, 4096, 1024, 1024}, NarrowType::BFloat16));
  for (const NarrowType type : {NarrowType::Bytes, NarrowType::BFloat16}) {
    const std::string narrow = type == NarrowType::Bytes ? "int8" : "bf16";
    for (const ConvolutionShape& s : resnet50_convolutions()) {
      if (s.kernel != 3 || s.stride != 1) continue;
      cases.push_back(narrow_convolution_case("conv2d_" + narrow + name_of(s).substr(6), s, type));
    }
  }
  cases.push_back(product_case("matmul/128x3072x768", {1, 128, 3072, 768}));
  cases.push_back(product_case("matmul/3136x64x576", {1, 3136, 64, 576}));
  cases.push_back(product_case("matmul/49x512x4608", {1, 49, 512, 4608}));
  for (const ConvolutionShape& s : resnet50_convolutions()) {
    cases.push_back(convolution_case(name_of(s), s));
  }
  cases.push_back(depthwise_case("depthwise/56x56x144", 56, 144, 1));
  cases.push_back(product_case("batch_matmul/12x128x64x128", {12, 128, 64, 128}));
  cases.push_back(softmax_case("softmax/1024x1024", 1024, 1024));
  return cases;
}

}  // namespace tunewright::bench
