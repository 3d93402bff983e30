// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "tunewright/detail/config.hpp"

/// The CUDA driver, loaded at run time: only types come from its header, so a program built with the toolkit starts on
/// a machine without a GPU.
namespace tunewright::measurers::nvrtc {

/// There is no driver, no device, or no usable one; the message says what to do.
class NoDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A call of the driver failed.
class DriverError : public std::runtime_error {
 public:
  DriverError(CUresult result, const std::string& message) : std::runtime_error(message), result_(result) {}
  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  CUresult result_;
};

/// The functions used here, with the types that they have under these names in every driver since CUDA 11. (The header
/// renames some to newer versions, which older drivers lack.)
struct DriverFunctions {
  CUresult (*init)(unsigned flags) = nullptr;
  CUresult (*driver_version)(int* version) = nullptr;
  CUresult (*device_count)(int* count) = nullptr;
  CUresult (*device_get)(CUdevice* device, int ordinal) = nullptr;
  CUresult (*device_name)(char* name, int length, CUdevice device) = nullptr;
  CUresult (*device_attribute)(int* value, CUdevice_attribute attribute, CUdevice device) = nullptr;
  CUresult (*device_memory)(std::size_t* bytes, CUdevice device) = nullptr;
  CUresult (*retain_context)(CUcontext* context, CUdevice device) = nullptr;
  CUresult (*release_context)(CUdevice device) = nullptr;
  CUresult (*get_context)(CUcontext* context) = nullptr;
  CUresult (*set_context)(CUcontext context) = nullptr;
  CUresult (*synchronize)() = nullptr;
  CUresult (*load_module)(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                          void** values) = nullptr;
  CUresult (*unload_module)(CUmodule module) = nullptr;
  CUresult (*get_function)(CUfunction* function, CUmodule module, const char* name) = nullptr;
  CUresult (*set_function_attribute)(CUfunction function, CUfunction_attribute attribute, int value) = nullptr;
  CUresult (*allocate)(CUdeviceptr* pointer, std::size_t bytes) = nullptr;
  CUresult (*release)(CUdeviceptr pointer) = nullptr;
  CUresult (*copy_to_device)(CUdeviceptr to, const void* from, std::size_t bytes) = nullptr;
  CUresult (*copy_to_host)(void* to, CUdeviceptr from, std::size_t bytes) = nullptr;
  CUresult (*copy_on_device)(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) = nullptr;
  CUresult (*allocate_pinned)(void** pointer, std::size_t bytes) = nullptr;
  CUresult (*release_pinned)(void* pointer) = nullptr;
  CUresult (*fill)(CUdeviceptr to, unsigned char value, std::size_t bytes) = nullptr;
  CUresult (*launch)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** arguments,
                     void** extra) = nullptr;
  CUresult (*create_event)(CUevent* event, unsigned flags) = nullptr;
  CUresult (*record_event)(CUevent event, CUstream stream) = nullptr;
  CUresult (*wait_for_event)(CUevent event) = nullptr;
  CUresult (*elapsed_milliseconds)(float* milliseconds, CUevent start, CUevent stop) = nullptr;
  CUresult (*error_name)(CUresult result, const char** name) = nullptr;
  CUresult (*error_text)(CUresult result, const char** text) = nullptr;
};

/// The driver in this process. Construct it in the process that uses the device: a context does not survive a fork.
class Driver {
 public:
  static constexpr const char* system_library = "libcuda.so.1";

  /// Loads the library and starts the driver. Throws `NoDevice`.
  explicit Driver(const std::string& library = system_library);

  [[nodiscard]] const DriverFunctions& functions() const noexcept { return functions_; }
  [[nodiscard]] const DriverFunctions* operator->() const noexcept { return &functions_; }

  /// Throws `DriverError` with `what` and the driver's reason unless `result` is a success.
  void check(CUresult result, const std::string& what) const {
    if (result != CUDA_SUCCESS) throw DriverError(result, what + ": " + text(result));
  }
  [[nodiscard]] std::string text(CUresult result) const;

 private:
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_.get(), name));
    if (function == nullptr)
      throw NoDevice(std::string("the CUDA driver has no ") + name + "; install one for CUDA 11 or newer");
  }

  struct Close {
    void operator()(void* library) const noexcept { ::dlclose(library); }
  };
  std::unique_ptr<void, Close> library_;
  DriverFunctions functions_;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE Driver::Driver(const std::string& library) {
  library_.reset(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library_) {
    const char* reason = ::dlerror();
    throw NoDevice("no CUDA driver: '" + library + "' cannot be loaded (" +
                   (reason != nullptr ? reason : "no reason given") +
                   "); install NVIDIA's driver, or measure on a machine that has one");
  }
  load(functions_.init, "cuInit");
  load(functions_.driver_version, "cuDriverGetVersion");
  load(functions_.device_count, "cuDeviceGetCount");
  load(functions_.device_get, "cuDeviceGet");
  load(functions_.device_name, "cuDeviceGetName");
  load(functions_.device_attribute, "cuDeviceGetAttribute");
  load(functions_.device_memory, "cuDeviceTotalMem_v2");
  load(functions_.retain_context, "cuDevicePrimaryCtxRetain");
  load(functions_.release_context, "cuDevicePrimaryCtxRelease_v2");
  load(functions_.get_context, "cuCtxGetCurrent");
  load(functions_.set_context, "cuCtxSetCurrent");
  load(functions_.synchronize, "cuCtxSynchronize");
  load(functions_.load_module, "cuModuleLoadDataEx");
  load(functions_.unload_module, "cuModuleUnload");
  load(functions_.get_function, "cuModuleGetFunction");
  load(functions_.set_function_attribute, "cuFuncSetAttribute");
  load(functions_.allocate, "cuMemAlloc_v2");
  load(functions_.release, "cuMemFree_v2");
  load(functions_.copy_to_device, "cuMemcpyHtoD_v2");
  load(functions_.copy_to_host, "cuMemcpyDtoH_v2");
  load(functions_.copy_on_device, "cuMemcpyDtoD_v2");
  load(functions_.allocate_pinned, "cuMemAllocHost_v2");
  load(functions_.release_pinned, "cuMemFreeHost");
  load(functions_.fill, "cuMemsetD8_v2");
  load(functions_.launch, "cuLaunchKernel");
  load(functions_.create_event, "cuEventCreate");
  load(functions_.record_event, "cuEventRecord");
  load(functions_.wait_for_event, "cuEventSynchronize");
  load(functions_.elapsed_milliseconds, "cuEventElapsedTime");
  load(functions_.error_name, "cuGetErrorName");
  load(functions_.error_text, "cuGetErrorString");
  if (const CUresult result = functions_.init(0); result != CUDA_SUCCESS) {
    throw NoDevice("the CUDA driver does not start: " + text(result) +
                   (result == CUDA_ERROR_NO_DEVICE
                        ? "; is a GPU there, and is it visible (CUDA_VISIBLE_DEVICES)?"
                        : "; does nvidia-smi work here? A process that used CUDA before it made its first measurer "
                          "of devices gives this, too; NVRTC uses it to compile"));
  }
}

TUNEWRIGHT_INLINE std::string Driver::text(CUresult result) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (functions_.error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (functions_.error_text(result, &words) != CUDA_SUCCESS || words == nullptr) return name;
  return std::string(words) + " (" + name + ")";
}

}  // namespace tunewright::measurers::nvrtc

#endif
