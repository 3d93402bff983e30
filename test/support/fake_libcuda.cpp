// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA driver where tests need one without a device. Memory is the host's, time is made up (10
// microseconds a launch), and what a kernel does follows from its name:
//
//   twice   y = 2 x, element by element    crash    ends the process with a signal
//   slow    twice in 1 ms                  hang     never returns
//   wrong   y = 3 x                        illegal  illegal address, from then on
//   lazy    nothing                        failing  launch failure, from then on
//   overrun twice, and a write past y      greedy   is refused for want of resources
//
// FAKE_CUDA_DEVICES, FAKE_CUDA_CAPABILITY (90) and FAKE_CUDA_MEMORY (bytes) describe the machine.
#include <cuda.h>
#undef cuMemAlloc
#undef cuMemFree
#undef cuEventElapsedTime
#undef cuDeviceTotalMem
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
#undef cuMemsetD8
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}

CUresult sticky = CUDA_SUCCESS;
double now_milliseconds = 0;
std::size_t allocated = 0;
std::map<CUdeviceptr, std::size_t> allocations;

struct Function {
  std::string name;
};
struct Event {
  double at = 0;
};

}  // namespace

#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

CUresult cuInit(unsigned) {
  return setting("FAKE_CUDA_DEVICES", 1) == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* count) {
  return *count = static_cast<int>(setting("FAKE_CUDA_DEVICES", 1)), CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "Paper GPU", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const int capability = static_cast<int>(setting("FAKE_CUDA_CAPABILITY", 90));
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 6144; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 4096; break;
    // Devices differ in their clock where the machine is said to be mixed.
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1980000 + (setting("FAKE_CUDA_MIXED", 0) != 0 ? 1000 * device : 0);
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 3201000; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = static_cast<std::size_t>(setting("FAKE_CUDA_MEMORY", 64 << 20));
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return *context = nullptr, CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return sticky; }
CUresult cuCtxSynchronize() { return sticky; }

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  if (sticky != CUDA_SUCCESS) return sticky;
  *module = reinterpret_cast<CUmodule>(&sticky);  // any address but null
  return std::memcmp(image, "\177ELF", 4) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
CUresult cuModuleUnload(CUmodule) { return sticky; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  *function = reinterpret_cast<CUfunction>(new Function{name});
  return sticky;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return sticky; }

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  if (sticky != CUDA_SUCCESS) return sticky;
  if (allocated + bytes > static_cast<std::size_t>(setting("FAKE_CUDA_MEMORY", 64 << 20)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  allocated += bytes;
  *pointer = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  allocations[*pointer] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  allocated -= allocations[pointer];
  allocations.erase(pointer);
  std::free(reinterpret_cast<void*>(pointer));
  return sticky;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return sticky;
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return sticky;
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return sticky;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                        unsigned, unsigned, CUstream, void** arguments, void**) {
  if (sticky != CUDA_SUCCESS) return sticky;
  const std::string& name = reinterpret_cast<Function*>(handle)->name;
  const auto is = [&](const char* what) { return name.find(what) == 0; };
  if (is("greedy")) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (is("crash")) std::abort();
  if (is("hang")) {
    for (;;) ::pause();
  }
  now_milliseconds += is("slow") ? 1 : 0.01;
  // Errors of a kernel show with a later call.
  if (is("illegal")) sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (is("failing")) sticky = CUDA_ERROR_LAUNCH_FAILED;
  if (sticky != CUDA_SUCCESS || is("lazy")) return CUDA_SUCCESS;
  const auto* x = reinterpret_cast<const float*>(*static_cast<CUdeviceptr*>(arguments[0]));
  auto* y = reinterpret_cast<float*>(*static_cast<CUdeviceptr*>(arguments[1]));
  const std::size_t count = std::size_t{grid} * block;
  for (std::size_t i = 0; i < count; ++i) y[i] = (is("wrong") ? 3 : 2) * x[i];
  if (is("overrun")) y[count + 2] = 0;
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  return *event = reinterpret_cast<CUevent>(new Event), sticky;
}
CUresult cuEventRecord(CUevent event, CUstream) {
  return reinterpret_cast<Event*>(event)->at = now_milliseconds, sticky;
}
CUresult cuEventSynchronize(CUevent) { return sticky; }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent stop) {
  *milliseconds =
      static_cast<float>(reinterpret_cast<Event*>(stop)->at - reinterpret_cast<Event*>(start)->at);
  return sticky;
}
CUresult cuGetErrorName(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_NO_DEVICE         ? "CUDA_ERROR_NO_DEVICE"
          : result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                 : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "it failed";
  return CUDA_SUCCESS;
}
}
