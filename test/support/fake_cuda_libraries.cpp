// SPDX-License-Identifier: Apache-2.0
// Stands in for cuBLAS, cuBLASLt and cuDNN, as far as the comparison of GPU kernels calls them, over the stand-in for
// the CUDA driver: every run takes 20 microseconds of its time. cuBLAS refuses what its contract excludes (no stream,
// no workspace, TF32), cuBLASLt proposes an algorithm that does not run beside one that does, and cuDNN can compute
// nothing in NHWC.
#include <cublasLt.h>
#include <cublas_api.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

struct CublasHandle {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
};
struct Tensor {
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
};

/// The driver is found as libraries find it: by its name.
void run_for(double milliseconds) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  static const auto run =
      reinterpret_cast<void (*)(double)>(driver == nullptr ? nullptr : ::dlsym(driver, "fake_cuda_run"));
  if (run == nullptr) std::abort();
  run(milliseconds);
}

/// Any address but null; what it stands for has no state.
template <class Handle>
auto made(Handle* handle) {
  static int nothing = 0;
  *handle = reinterpret_cast<Handle>(&nothing);
}

cublasStatus_t product(const CublasHandle* handle) {
  if (handle->stream == nullptr || handle->workspace == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (::getenv("NVIDIA_TF32_OVERRIDE") != nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  run_for(0.02);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmissing-declarations"
#pragma GCC diagnostic ignored "-Wunused-parameter"
extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new CublasHandle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete reinterpret_cast<CublasHandle*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  *reinterpret_cast<CublasHandle*>(handle) = {stream, nullptr};  // the workspace is the library's own again
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t) {
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  reinterpret_cast<CublasHandle*>(handle)->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) { return "refused"; }
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int, int, int,
                                         const float*, const float*, int, long long, const float*, int, long long,
                                         const float*, float*, int, long long, int) {
  return product(reinterpret_cast<CublasHandle*>(handle));
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                            const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                            cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t) {
  return product(reinterpret_cast<CublasHandle*>(handle));
}

const char* cublasLtGetStatusString(cublasStatus_t) { return "refused"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return made(handle), CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* form, cublasComputeType_t, cudaDataType_t) {
  return made(form), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* form, cudaDataType, std::uint64_t rows, std::uint64_t,
                                          std::int64_t leading) {
  made(form);
  return leading >= static_cast<std::int64_t>(rows) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return made(preference), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t* proposals, int* found) {
  *found = wanted < 3 ? wanted : 3;
  for (int i = 0; i < *found; ++i) {
    proposals[i].state = i == 2 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    proposals[i].algo.data[0] = static_cast<std::uint64_t>(i);
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
                              void*, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t, cudaStream_t stream) {
  if (algorithm->data[0] != 0 || stream == nullptr || workspace == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  run_for(0.02);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t) { return "refused"; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return made(handle), CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* form) {
  *form = reinterpret_cast<cudnnTensorDescriptor_t>(new Tensor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t form) {
  delete reinterpret_cast<Tensor*>(form);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t form, cudnnTensorFormat_t format, cudnnDataType_t, int,
                                         int, int, int) {
  reinterpret_cast<Tensor*>(form)->format = format;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* form) { return made(form), CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t, cudnnDataType_t, cudnnTensorFormat_t, int, int, int,
                                         int) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* form) {
  return made(form), CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t, int, int, int, int, int, int,
                                              cudnnConvolutionMode_t, cudnnDataType_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t,
                                                     cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, int,
                                                     int* found, cudnnConvolutionFwdAlgoPerf_t* proposals) {
  *found = 2;
  const bool computes = reinterpret_cast<Tensor*>(x)->format == CUDNN_TENSOR_NCHW;
  proposals[0] = {};
  proposals[0].status = computes ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
  proposals[0].mathType = CUDNN_DEFAULT_MATH;
  proposals[0].memory = 1024;
  proposals[1] = proposals[0];
  proposals[1].mathType = CUDNN_TENSOR_OP_MATH;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*,
                                      cudnnFilterDescriptor_t, const void*, cudnnConvolutionDescriptor_t,
                                      cudnnConvolutionFwdAlgo_t, void* workspace, std::size_t, const void*,
                                      cudnnTensorDescriptor_t, void*) {
  if (workspace == nullptr) return CUDNN_STATUS_BAD_PARAM;
  run_for(0.02);
  return CUDNN_STATUS_SUCCESS;
}
}
