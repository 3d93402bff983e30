// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu_device.hpp"
#include "shapes.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"

#if __has_include(<cublas_api.h>) && __has_include(<cublasLt.h>)
#define TUNEWRIGHT_BENCH_HAS_CUBLAS 1
#include <cublasLt.h>
#include <cublas_api.h>
#endif
#if __has_include(<cudnn.h>)
#define TUNEWRIGHT_BENCH_HAS_CUDNN 1
#include <cudnn.h>
#endif

/// NVIDIA's libraries, timed in this process on its own context. They are opened when they run, under the major version
/// of their headers. Single precision is computed in single precision: TF32 and other uses of tensor units are not
/// allowed. Half precision is what tensor units are for.
namespace tunewright::bench {

namespace detail {

/// Memory of the device with the contents that our own kernels are given: what is multiplied decides the power
/// drawn, and so the clock.
inline measurers::nvrtc::DeviceMemory random_tensor(const GpuDevice& device, program::ScalarType type,
                                                    std::int64_t elements, std::uint64_t seed) {
  const std::vector<char> contents = measurers::random_contents(type, {elements}, Rng(seed));
  measurers::nvrtc::DeviceMemory memory(device.driver(), "operand", contents.size());
  memory.write(contents.data());
  return memory;
}
inline measurers::nvrtc::DeviceMemory tensor(const GpuDevice& device, program::ScalarType type, std::int64_t elements) {
  return {device.driver(), "result", static_cast<std::size_t>(elements) * program::size_in_bytes(type)};
}
template <class T = void>
T* address(const measurers::nvrtc::DeviceMemory& memory) {
  return reinterpret_cast<T*>(memory.data());
}

}  // namespace detail

#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS

namespace detail {

constexpr std::size_t cublas_workspace_bytes = std::size_t{32} << 20;  // what NVIDIA advises for Hopper

struct Cublas {
  Cublas() {
    library.find(create, "cublasCreate_v2");
    library.find(destroy, "cublasDestroy_v2");
    library.find(set_stream, "cublasSetStream_v2");
    library.find(set_workspace, "cublasSetWorkspace_v2");
    library.find(text, "cublasGetStatusString");
    library.find(float_product, "cublasSgemmStridedBatched");
    library.find(half_product, "cublasGemmEx");
  }
  void check(cublasStatus_t status, const char* call) const {
    if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + text(status));
  }
  SharedLibrary library{"libcublas.so." + std::to_string(CUBLAS_VER_MAJOR)};
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasGetStatusString) text;
  decltype(&cublasSgemmStridedBatched) float_product;
  // One of several of that name for C++.
  cublasStatus_t (*half_product)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                                 const void* alpha, const void* a, cudaDataType, int, const void* b, cudaDataType, int,
                                 const void* beta, void* c, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
};

struct CublasLt {
  CublasLt() {
    library.find(create, "cublasLtCreate");
    library.find(destroy, "cublasLtDestroy");
    library.find(text, "cublasLtGetStatusString");
    library.find(create_product, "cublasLtMatmulDescCreate");
    library.find(destroy_product, "cublasLtMatmulDescDestroy");
    library.find(create_layout, "cublasLtMatrixLayoutCreate");
    library.find(destroy_layout, "cublasLtMatrixLayoutDestroy");
    library.find(create_preference, "cublasLtMatmulPreferenceCreate");
    library.find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    library.find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    library.find(propose, "cublasLtMatmulAlgoGetHeuristic");
    library.find(product, "cublasLtMatmul");
  }
  void check(cublasStatus_t status, const char* call) const {
    if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + text(status));
  }
  SharedLibrary library{"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)};
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) text;
  decltype(&cublasLtMatmulDescCreate) create_product;
  decltype(&cublasLtMatmulDescDestroy) destroy_product;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose;
  decltype(&cublasLtMatmul) product;
};

struct ProductTensors {
  ProductTensors(const GpuDevice& device, const Product& p, program::ScalarType type)
      : a(random_tensor(device, type, p.batch * p.m * p.k, 1)),
        b(random_tensor(device, type, p.batch * p.k * p.n, 2)),
        c(tensor(device, type, p.batch * p.m * p.n)),
        workspace(device.driver(), "workspace", cublas_workspace_bytes) {}
  measurers::nvrtc::DeviceMemory a, b, c, workspace;
};

}  // namespace detail

/// C = A B of row-major matrices by cuBLAS; for the column-major library, C' = B' A'. float32 by float32 units,
/// float16 by tensor units, summed in 32 bits.
inline TimedWork cublas_product(const GpuDevice& device, const Product& p, program::ScalarType type) {
  struct State : detail::ProductTensors {
    State(const GpuDevice& on, const Product& product, program::ScalarType element)
        : detail::ProductTensors(on, product, element) {
      cublas.check(cublas.create(&handle), "cublasCreate");
      cublas.check(cublas.set_stream(handle, on.stream()), "cublasSetStream");
      // Memory of its own: the library would allocate while runs are recorded.
      cublas.check(cublas.set_workspace(handle, detail::address(workspace), workspace.bytes()), "cublasSetWorkspace");
    }
    ~State() { cublas.destroy(handle); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    detail::Cublas cublas;
    cublasHandle_t handle = nullptr;
  };
  auto state = std::make_shared<State>(device, p, type);
  return fastest_way(
      device,
      {{"cuBLAS", [state, p, type] {
          const detail::Cublas& cublas = state->cublas;
          const float one = 1, zero = 0;
          const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
          using detail::address;
          if (type == program::ScalarType::Float16) {
            cublas.check(cublas.half_product(state->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, address(state->b),
                                             CUDA_R_16F, n, address(state->a), CUDA_R_16F, k, &zero, address(state->c),
                                             CUDA_R_16F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                         "cublasGemmEx");
            return;
          }
          cublas.check(
              cublas.float_product(state->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, address<float>(state->b), n,
                                   p.k * p.n, address<float>(state->a), k, p.m * p.k, &zero, address<float>(state->c),
                                   n, p.m * p.n, static_cast<int>(p.batch)),
              "cublasSgemmStridedBatched");
        }}});
}

/// The fastest of the algorithms that cuBLASLt proposes for one product, otherwise as `cublas_product`.
inline TimedWork cublas_lt_product(const GpuDevice& device, const Product& p, program::ScalarType type) {
  struct State : detail::ProductTensors {
    State(const GpuDevice& on, const Product& product, program::ScalarType element)
        : detail::ProductTensors(on, product, element) {
      lt.check(lt.create(&handle), "cublasLtCreate");
      lt.check(lt.create_product(&product_form, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
      const cudaDataType_t held = element == program::ScalarType::Float16 ? CUDA_R_16F : CUDA_R_32F;
      const auto layout = [&](cublasLtMatrixLayout_t& to, std::int64_t rows, std::int64_t columns) {
        lt.check(
            lt.create_layout(&to, held, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows),
            "cublasLtMatrixLayoutCreate");
      };
      layout(a_form, product.k, product.m);
      layout(b_form, product.n, product.k);
      layout(c_form, product.n, product.m);
    }
    ~State() {
      for (cublasLtMatrixLayout_t form : {c_form, b_form, a_form}) {
        if (form != nullptr) lt.destroy_layout(form);
      }
      if (product_form != nullptr) lt.destroy_product(product_form);
      if (handle != nullptr) lt.destroy(handle);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    detail::CublasLt lt;
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t product_form = nullptr;
    cublasLtMatrixLayout_t a_form = nullptr, b_form = nullptr, c_form = nullptr;
  };
  auto state = std::make_shared<State>(device, p, type);
  const detail::CublasLt& lt = state->lt;
  cublasLtMatmulPreference_t preference = nullptr;
  lt.check(lt.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t workspace_bytes = state->workspace.bytes();
  lt.check(
      lt.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes),
      "cublasLtMatmulPreferenceSetAttribute");
  std::array<cublasLtMatmulHeuristicResult_t, 16> proposals{};
  int found = 0;
  const cublasStatus_t status =
      lt.propose(state->handle, state->product_form, state->b_form, state->a_form, state->c_form, state->c_form,
                 preference, static_cast<int>(proposals.size()), proposals.data(), &found);
  lt.destroy_preference(preference);
  lt.check(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<GpuWork> ways;
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& proposal = proposals[static_cast<std::size_t>(i)];
    if (proposal.state != CUBLAS_STATUS_SUCCESS) continue;
    ways.push_back({"cuBLASLt", [state, stream = device.stream(), algorithm = proposal.algo] {
                      using detail::address;
                      const float one = 1, zero = 0;
                      state->lt.check(
                          state->lt.product(state->handle, state->product_form, &one, address(state->b), state->b_form,
                                            address(state->a), state->a_form, &zero, address(state->c), state->c_form,
                                            address(state->c), state->c_form, &algorithm, address(state->workspace),
                                            state->workspace.bytes(), stream),
                          "cublasLtMatmul");
                    }});
  }
  return fastest_way(device, ways);
}

#endif

#ifdef TUNEWRIGHT_BENCH_HAS_CUDNN

namespace detail {

struct Cudnn {
  Cudnn() {
    library.find(create, "cudnnCreate");
    library.find(destroy, "cudnnDestroy");
    library.find(set_stream, "cudnnSetStream");
    library.find(text, "cudnnGetErrorString");
    library.find(create_tensor, "cudnnCreateTensorDescriptor");
    library.find(destroy_tensor, "cudnnDestroyTensorDescriptor");
    library.find(set_tensor, "cudnnSetTensor4dDescriptor");
    library.find(create_filter, "cudnnCreateFilterDescriptor");
    library.find(destroy_filter, "cudnnDestroyFilterDescriptor");
    library.find(set_filter, "cudnnSetFilter4dDescriptor");
    library.find(create_convolution, "cudnnCreateConvolutionDescriptor");
    library.find(destroy_convolution, "cudnnDestroyConvolutionDescriptor");
    library.find(set_convolution, "cudnnSetConvolution2dDescriptor");
    library.find(set_math, "cudnnSetConvolutionMathType");
    library.find(propose, "cudnnGetConvolutionForwardAlgorithm_v7");
    library.find(convolve, "cudnnConvolutionForward");
  }
  void check(cudnnStatus_t status, const char* call) const {
    if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + text(status));
  }
  SharedLibrary library{"libcudnn.so." + std::to_string(CUDNN_MAJOR)};
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnGetErrorString) text;
  decltype(&cudnnCreateTensorDescriptor) create_tensor;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor;
  decltype(&cudnnSetTensor4dDescriptor) set_tensor;
  decltype(&cudnnCreateFilterDescriptor) create_filter;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter;
  decltype(&cudnnSetFilter4dDescriptor) set_filter;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution;
  decltype(&cudnnSetConvolutionMathType) set_math;
  decltype(&cudnnGetConvolutionForwardAlgorithm_v7) propose;
  decltype(&cudnnConvolutionForward) convolve;
};

struct CudnnConvolution {
  CudnnConvolution(const GpuDevice& device, const ConvolutionShape& s, cudnnTensorFormat_t format)
      : x(random_tensor(device, program::ScalarType::Float32, s.height * s.width * s.in_channels, 1)),
        w(random_tensor(device, program::ScalarType::Float32, s.kernel * s.kernel * s.in_channels * s.out_channels, 2)),
        y(tensor(device, program::ScalarType::Float32, after(s, s.height) * after(s, s.width) * s.out_channels)) {
    const auto i = [](std::int64_t value) { return static_cast<int>(value); };
    cudnn.check(cudnn.create(&handle), "cudnnCreate");
    cudnn.check(cudnn.set_stream(handle, device.stream()), "cudnnSetStream");
    cudnn.check(cudnn.create_tensor(&x_form), "cudnnCreateTensorDescriptor");
    cudnn.check(cudnn.create_tensor(&y_form), "cudnnCreateTensorDescriptor");
    cudnn.check(cudnn.create_filter(&w_form), "cudnnCreateFilterDescriptor");
    cudnn.check(cudnn.create_convolution(&form), "cudnnCreateConvolutionDescriptor");
    cudnn.check(cudnn.set_tensor(x_form, format, CUDNN_DATA_FLOAT, 1, i(s.in_channels), i(s.height), i(s.width)),
                "cudnnSetTensor4dDescriptor");
    cudnn.check(cudnn.set_tensor(y_form, format, CUDNN_DATA_FLOAT, 1, i(s.out_channels), i(after(s, s.height)),
                                 i(after(s, s.width))),
                "cudnnSetTensor4dDescriptor");
    cudnn.check(cudnn.set_filter(w_form, CUDNN_DATA_FLOAT, format, i(s.out_channels), i(s.in_channels), i(s.kernel),
                                 i(s.kernel)),
                "cudnnSetFilter4dDescriptor");
    cudnn.check(cudnn.set_convolution(form, i(s.padding), i(s.padding), i(s.stride), i(s.stride), 1, 1,
                                      CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                "cudnnSetConvolution2dDescriptor");
    cudnn.check(cudnn.set_math(form, CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");
  }
  ~CudnnConvolution() {
    if (form != nullptr) cudnn.destroy_convolution(form);
    if (w_form != nullptr) cudnn.destroy_filter(w_form);
    if (y_form != nullptr) cudnn.destroy_tensor(y_form);
    if (x_form != nullptr) cudnn.destroy_tensor(x_form);
    if (handle != nullptr) cudnn.destroy(handle);
  }
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;
  static std::int64_t after(const ConvolutionShape& s, std::int64_t extent) {
    return (extent + 2 * s.padding - s.kernel) / s.stride + 1;
  }

  Cudnn cudnn;
  measurers::nvrtc::DeviceMemory x, w, y;
  std::unique_ptr<measurers::nvrtc::DeviceMemory> workspace;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t x_form = nullptr, y_form = nullptr;
  cudnnFilterDescriptor_t w_form = nullptr;
  cudnnConvolutionDescriptor_t form = nullptr;
};

}  // namespace detail

/// The fastest algorithm of cuDNN that does not use tensor units, in the given layout. These are the functions that
/// cuDNN 8 and 9 have in common; they choose among the engines that its graphs have.
inline TimedWork cudnn_convolution(const GpuDevice& device, const ConvolutionShape& s, cudnnTensorFormat_t layout) {
  auto state = std::make_shared<detail::CudnnConvolution>(device, s, layout);
  const std::string name = layout == CUDNN_TENSOR_NHWC ? "cuDNN, NHWC" : "cuDNN, NCHW";
  std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> proposals{};
  int found = 0;
  state->cudnn.check(state->cudnn.propose(state->handle, state->x_form, state->w_form, state->form, state->y_form,
                                          static_cast<int>(proposals.size()), &found, proposals.data()),
                     "cudnnGetConvolutionForwardAlgorithm_v7");
  std::size_t most = 256;
  std::vector<GpuWork> ways;
  for (int i = 0; i < found; ++i) {
    const cudnnConvolutionFwdAlgoPerf_t& proposal = proposals[static_cast<std::size_t>(i)];
    constexpr std::size_t workspace_limit = std::size_t{4} << 30;
    // What is not for tensor units may be called default or FMA; either runs under the descriptor's FMA_MATH.
    if (proposal.status != CUDNN_STATUS_SUCCESS || proposal.mathType == CUDNN_TENSOR_OP_MATH ||
        proposal.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION || proposal.memory > workspace_limit)
      continue;
    most = std::max(most, proposal.memory);
    ways.push_back({name, [state, algorithm = proposal.algo, bytes = proposal.memory] {
                      using detail::address;
                      const float one = 1, zero = 0;
                      state->cudnn.check(
                          state->cudnn.convolve(state->handle, &one, state->x_form, address(state->x), state->w_form,
                                                address(state->w), state->form, algorithm, address(*state->workspace),
                                                bytes, &zero, state->y_form, address(state->y)),
                          "cudnnConvolutionForward");
                    }});
  }
  state->workspace = std::make_unique<measurers::nvrtc::DeviceMemory>(device.driver(), "cuDNN's workspace", most);
  return fastest_way(device, ways);
}

#endif

}  // namespace tunewright::bench
