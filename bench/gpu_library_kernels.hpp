// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shapes.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/stats/robust.hpp"

#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS
#include <cublasLt.h>
#include <cublas_v2.h>
#endif
#ifdef TUNEWRIGHT_BENCH_HAS_CUDNN
#include <cudnn.h>
#endif

/// NVIDIA's libraries, timed in this process on its own context. Single precision is computed in single
/// precision: TF32 and other uses of tensor units are not allowed. Half precision is what tensor units are for.
namespace tunewright::bench {

/// Something that runs on the device, with what it needs; `enqueue` starts one run of it.
struct GpuLibraryKernel {
  std::string library;
  std::function<void()> enqueue;
};

namespace detail {

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

/// Numbers of [-1, 1), as our own kernels are given: what is multiplied decides the power drawn, and so the clock.
template <class Element>
std::vector<Element> random_elements(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Element> values(count);
  for (Element& value : values) value = static_cast<Element>(static_cast<float>(2 * rng.uniform() - 1));
  return values;
}

/// Device memory for `elements` of a type.
template <class Element>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t elements) {
    check(cudaMalloc(&data_, elements * sizeof(Element)), "cudaMalloc");
  }
  explicit DeviceArray(const std::vector<Element>& values) : DeviceArray(values.size()) {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(Element), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  [[nodiscard]] Element* data() const { return static_cast<Element*>(data_); }

 private:
  void* data_ = nullptr;
};

/// Seconds of one run, over `runs` runs between two events.
inline double seconds_of(const GpuLibraryKernel& kernel, unsigned runs) {
  struct Event {
    Event() { check(cudaEventCreate(&handle), "cudaEventCreate"); }
    ~Event() { cudaEventDestroy(handle); }
    cudaEvent_t handle{};
  } start, stop;
  check(cudaEventRecord(start.handle), "cudaEventRecord");
  for (unsigned run = 0; run < runs; ++run) kernel.enqueue();
  check(cudaEventRecord(stop.handle), "cudaEventRecord");
  check(cudaEventSynchronize(stop.handle), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.handle, stop.handle), "cudaEventElapsedTime");
  return milliseconds * 1e-3 / runs;
}

}  // namespace detail

/// Median of `repeats` timings of at least 10 ms each, after a warm-up.
inline double median_seconds(const GpuLibraryKernel& kernel, unsigned repeats = 11) {
  const double once = std::max(detail::seconds_of(kernel, 3), 1e-7);
  const auto runs = static_cast<unsigned>(std::clamp(0.01 / once, 1.0, 1e5));
  std::vector<double> seconds;
  for (unsigned repeat = 0; repeat < repeats; ++repeat) seconds.push_back(detail::seconds_of(kernel, runs));
  return stats::median(std::move(seconds));
}

/// Of several ways that a library offers, the fastest here.
inline GpuLibraryKernel fastest_way(std::vector<GpuLibraryKernel> ways) {
  if (ways.empty()) throw std::runtime_error("the library offers no way to run it");
  std::size_t best = 0;
  double best_s = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const double s = median_seconds(ways[i], 3);
    if (s < best_s) {
      best = i;
      best_s = s;
    }
  }
  return std::move(ways[best]);
}

#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS

namespace detail {
inline void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}
template <class Element>
struct ProductArrays {
  explicit ProductArrays(const Product& p)
      : a(random_elements<Element>(static_cast<std::size_t>(p.batch * p.m * p.k), 1)),
        b(random_elements<Element>(static_cast<std::size_t>(p.batch * p.k * p.n), 2)),
        c(static_cast<std::size_t>(p.batch * p.m * p.n)) {}
  DeviceArray<Element> a, b, c;
};
template <class Element>
struct CublasState : ProductArrays<Element> {
  explicit CublasState(const Product& p) : ProductArrays<Element>(p) {
    check(cublasCreate(&handle), "cublasCreate");
  }
  ~CublasState() { cublasDestroy(handle); }
  CublasState(const CublasState&) = delete;
  CublasState& operator=(const CublasState&) = delete;
  cublasHandle_t handle = nullptr;
};
}  // namespace detail

/// C = A B of row-major matrices: for the column-major library, C' = B' A'.
inline GpuLibraryKernel cublas_product(const Product& p) {
  auto state = std::make_shared<detail::CublasState<float>>(p);
  return {"cuBLAS", [state, p] {
            const float one = 1, zero = 0;
            const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
            detail::check(
                cublasSgemmStridedBatched(state->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one,
                                          state->b.data(), n, p.k * p.n, state->a.data(), k, p.m * p.k, &zero,
                                          state->c.data(), n, p.m * p.n, static_cast<int>(p.batch)),
                "cublasSgemmStridedBatched");
          }};
}

/// C = A B of row-major matrices of 16-bit floats by the device's tensor units, summed in 32 bits.
inline GpuLibraryKernel cublas_half_product(const Product& p) {
  auto state = std::make_shared<detail::CublasState<__half>>(p);
  return {"cuBLAS", [state, p] {
            const float one = 1, zero = 0;
            const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
            detail::check(
                cublasGemmEx(state->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, state->b.data(),
                             CUDA_R_16F, n, state->a.data(), CUDA_R_16F, k, &zero, state->c.data(),
                             CUDA_R_16F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                "cublasGemmEx");
          }};
}

/// The fastest of the algorithms that cuBLASLt proposes for one product.
inline GpuLibraryKernel cublas_lt_product(const Product& p) {
  constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  struct State : detail::ProductArrays<float> {
    explicit State(const Product& product)
        : detail::ProductArrays<float>(product), workspace(workspace_bytes / sizeof(float)) {
      detail::check(cublasLtCreate(&handle), "cublasLtCreate");
      detail::check(cublasLtMatmulDescCreate(&product_form, CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F),
                    "cublasLtMatmulDescCreate");
      const auto layout = [](cublasLtMatrixLayout_t& to, std::int64_t rows, std::int64_t columns) {
        detail::check(cublasLtMatrixLayoutCreate(&to, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                                 static_cast<std::uint64_t>(columns), rows),
                      "cublasLtMatrixLayoutCreate");
      };
      layout(a_form, product.k, product.m);
      layout(b_form, product.n, product.k);
      layout(c_form, product.n, product.m);
    }
    ~State() {
      cublasLtMatrixLayoutDestroy(c_form);
      cublasLtMatrixLayoutDestroy(b_form);
      cublasLtMatrixLayoutDestroy(a_form);
      cublasLtMatmulDescDestroy(product_form);
      cublasLtDestroy(handle);
    }
    detail::DeviceArray<float> workspace;
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t product_form = nullptr;
    cublasLtMatrixLayout_t a_form = nullptr, b_form = nullptr, c_form = nullptr;
  };
  auto state = std::make_shared<State>(p);
  cublasLtMatmulPreference_t preference = nullptr;
  detail::check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  detail::check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &workspace_bytes, sizeof workspace_bytes),
                "cublasLtMatmulPreferenceSetAttribute");
  std::array<cublasLtMatmulHeuristicResult_t, 16> proposals{};
  int found = 0;
  detail::check(cublasLtMatmulAlgoGetHeuristic(state->handle, state->product_form, state->b_form,
                                               state->a_form, state->c_form, state->c_form, preference,
                                               static_cast<int>(proposals.size()), proposals.data(), &found),
                "cublasLtMatmulAlgoGetHeuristic");
  cublasLtMatmulPreferenceDestroy(preference);
  std::vector<GpuLibraryKernel> ways;
  for (int i = 0; i < found; ++i) {
    ways.push_back({"cuBLASLt", [state, algorithm = proposals[static_cast<std::size_t>(i)].algo] {
                      const float one = 1, zero = 0;
                      detail::check(
                          cublasLtMatmul(state->handle, state->product_form, &one, state->b.data(),
                                         state->b_form, state->a.data(), state->a_form, &zero,
                                         state->c.data(), state->c_form, state->c.data(), state->c_form,
                                         &algorithm, state->workspace.data(), workspace_bytes, nullptr),
                          "cublasLtMatmul");
                    }});
  }
  return fastest_way(std::move(ways));
}

#endif

#ifdef TUNEWRIGHT_BENCH_HAS_CUDNN

namespace detail {
inline void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cudnnGetErrorString(status));
}
}  // namespace detail

/// The fastest algorithm of cuDNN that does not use tensor units, in the given layout.
inline GpuLibraryKernel cudnn_convolution(const ConvolutionShape& s, cudnnTensorFormat_t layout) {
  struct State {
    State(const ConvolutionShape& shape, cudnnTensorFormat_t format)
        : x(detail::random_elements<float>(elements(shape.height, shape.width, shape.in_channels), 1)),
          w(detail::random_elements<float>(
              elements(shape.kernel * shape.kernel, shape.in_channels, shape.out_channels), 2)),
          y(elements(out(shape, shape.height), out(shape, shape.width), shape.out_channels)) {
      detail::check(cudnnCreate(&handle), "cudnnCreate");
      detail::check(cudnnCreateTensorDescriptor(&x_form), "cudnnCreateTensorDescriptor");
      detail::check(cudnnCreateTensorDescriptor(&y_form), "cudnnCreateTensorDescriptor");
      detail::check(cudnnCreateFilterDescriptor(&w_form), "cudnnCreateFilterDescriptor");
      detail::check(cudnnCreateConvolutionDescriptor(&form), "cudnnCreateConvolutionDescriptor");
      const auto i = [](std::int64_t value) { return static_cast<int>(value); };
      detail::check(cudnnSetTensor4dDescriptor(x_form, format, CUDNN_DATA_FLOAT, 1, i(shape.in_channels),
                                               i(shape.height), i(shape.width)),
                    "cudnnSetTensor4dDescriptor");
      detail::check(cudnnSetTensor4dDescriptor(y_form, format, CUDNN_DATA_FLOAT, 1, i(shape.out_channels),
                                               i(out(shape, shape.height)), i(out(shape, shape.width))),
                    "cudnnSetTensor4dDescriptor");
      detail::check(cudnnSetFilter4dDescriptor(w_form, CUDNN_DATA_FLOAT, format, i(shape.out_channels),
                                               i(shape.in_channels), i(shape.kernel), i(shape.kernel)),
                    "cudnnSetFilter4dDescriptor");
      detail::check(
          cudnnSetConvolution2dDescriptor(form, i(shape.padding), i(shape.padding), i(shape.stride),
                                          i(shape.stride), 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
      detail::check(cudnnSetConvolutionMathType(form, CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");
    }
    ~State() {
      cudnnDestroyConvolutionDescriptor(form);
      cudnnDestroyFilterDescriptor(w_form);
      cudnnDestroyTensorDescriptor(y_form);
      cudnnDestroyTensorDescriptor(x_form);
      cudnnDestroy(handle);
    }
    static std::size_t elements(std::int64_t a, std::int64_t b, std::int64_t c) {
      return static_cast<std::size_t>(a * b * c);
    }
    static std::int64_t out(const ConvolutionShape& shape, std::int64_t extent) {
      return (extent + 2 * shape.padding - shape.kernel) / shape.stride + 1;
    }
    detail::DeviceArray<float> x, w, y;
    std::unique_ptr<detail::DeviceArray<float>> workspace;
    cudnnHandle_t handle = nullptr;
    cudnnTensorDescriptor_t x_form = nullptr, y_form = nullptr;
    cudnnFilterDescriptor_t w_form = nullptr;
    cudnnConvolutionDescriptor_t form = nullptr;
  };
  auto state = std::make_shared<State>(s, layout);
  std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> proposals{};
  int found = 0;
  detail::check(cudnnGetConvolutionForwardAlgorithm_v7(
                    state->handle, state->x_form, state->w_form, state->form, state->y_form,
                    static_cast<int>(proposals.size()), &found, proposals.data()),
                "cudnnGetConvolutionForwardAlgorithm_v7");
  std::size_t most = 1;
  std::vector<GpuLibraryKernel> ways;
  for (int i = 0; i < found; ++i) {
    const cudnnConvolutionFwdAlgoPerf_t& proposal = proposals[static_cast<std::size_t>(i)];
    if (proposal.status != CUDNN_STATUS_SUCCESS || proposal.mathType != CUDNN_FMA_MATH) continue;
    most = std::max(most, proposal.memory);
    ways.push_back({"cuDNN", [state, algorithm = proposal.algo, bytes = proposal.memory] {
                      const float one = 1, zero = 0;
                      detail::check(cudnnConvolutionForward(state->handle, &one, state->x_form,
                                                            state->x.data(), state->w_form, state->w.data(),
                                                            state->form, algorithm, state->workspace->data(),
                                                            bytes, &zero, state->y_form, state->y.data()),
                                    "cudnnConvolutionForward");
                    }});
  }
  state->workspace = std::make_unique<detail::DeviceArray<float>>(most / sizeof(float) + 1);
  return fastest_way(std::move(ways));
}

#endif

}  // namespace tunewright::bench
