// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA driver where tests need one without a device. Memory is the host's, time is made up (10
// microseconds a launch), and what a kernel does follows from its name:
//
//   twice   y = 2 x, element by element    crash    ends the process with a signal
//   slow    twice in 1 ms                  hang     never returns
//   wrong   y = 3 x                        illegal  illegal address, from then on
//   lazy    nothing                        failing  launch failure, from then on
//   overrun twice, and a write past y      greedy   is refused for want of resources
//   stray   twice, and zeros in all memory but that of its arguments
//   cached  twice in 10 microseconds, or 50 if as many bytes as its cache twice holds were filled since the last kernel
//
// Others do nothing, or, with FAKE_CUDA_ORACLE, write what the measuring process expects of them (fake_oracle.hpp).
//
// It refuses what a driver refuses: calls before cuInit, after a fork, without the primary context as the current one,
// which its last user ends with all that is in it; code for another device or of a newer toolkit, kernels that the code
// does not have or that were unloaded; launches beyond the limits of the device, of the kernel's launch bounds and of
// shared memory, of which more than 48 KiB must be asked for; memory outside what was allocated. Work waits until
// somebody waits for it: errors of kernels show then, and times of events that were not waited for are not ready.
//
// FAKE_CUDA_DEVICES, FAKE_CUDA_CAPABILITY (90), FAKE_CUDA_DRIVER (13000), FAKE_CUDA_MEMORY (bytes) describe the
// machine; FAKE_CUDA_REFUSES is a function that fails: cuDevicePrimaryCtxRetain, cuCtxSetCurrent with that context,
// cuModuleLoadData or cuLaunchKernel.
#include <cuda.h>
#undef cuMemAlloc
#undef cuMemFree
#undef cuEventElapsedTime
#undef cuDeviceTotalMem
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
#undef cuMemcpyDtoD
#undef cuMemAllocHost
#undef cuMemsetD8
#undef cuStreamBeginCapture
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/cubin_view.hpp"
#include "support/fake_oracle.hpp"

namespace {

using tunewright::test::CubinKernel;
using tunewright::test::CubinView;

long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}

bool refuses(const char* function) {
  const char* text = std::getenv("FAKE_CUDA_REFUSES");
  return text != nullptr && std::strcmp(text, function) == 0;
}

constexpr int shared_bytes_of_block = 49152, most_shared_bytes_of_block = 232448;

struct Function {
  std::string name;
  CubinKernel kernel;
  int dynamic_shared_bytes = shared_bytes_of_block;  // that may be asked for
};
struct Module {
  const void* image = nullptr;
  std::set<Function*> functions;
};
struct Event {
  bool recorded = false;
  bool reached = false;
  double at = 0;
};

pid_t initialized_in = 0;
thread_local CUcontext current = nullptr;
unsigned users_of_primary = 0;
CUresult sticky = CUDA_SUCCESS;
const auto primary = reinterpret_cast<CUcontext>(&sticky);
double now_milliseconds = 0;
constexpr std::size_t l2_bytes = 4096;
std::size_t most_filled_bytes = 0;  // at once, since the last kernel
std::size_t allocated = 0;
std::map<CUdeviceptr, std::size_t> allocations;
std::vector<CUdeviceptr> allocation_order;
std::set<Module*> modules;
std::set<Function*> functions;
std::vector<std::function<void()>> work;                  // enqueued, not done
std::vector<std::function<void()>>* recording = nullptr;  // of a stream's capture

/// Why nothing can be done at all, if so.
CUresult refusal() {
  if (initialized_in == 0 || initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (sticky != CUDA_SUCCESS) return sticky;
  return current == primary && users_of_primary > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult finish_work() {
  for (std::size_t i = 0; i < work.size() && sticky == CUDA_SUCCESS; ++i) work[i]();
  work.clear();
  return sticky;
}
void enqueue(std::function<void()> task) { (recording != nullptr ? *recording : work).push_back(std::move(task)); }

bool is_memory(CUdeviceptr begin, std::size_t bytes) {
  auto after = allocations.upper_bound(begin);
  if (after == allocations.begin()) return false;
  --after;
  return begin - after->first <= after->second && bytes <= after->second - (begin - after->first);
}

bool exceeds_limits(const Function& function, const unsigned* grid, const unsigned* block, unsigned shared) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || block[0] == 0 || block[1] == 0 || block[2] == 0) return true;
  if (grid[0] > 2147483647U || grid[1] > 65535 || grid[2] > 65535 || block[2] > 64 || block[0] > 1024 ||
      block[1] > 1024)
    return true;
  const unsigned threads = block[0] * block[1] * block[2];
  const auto& bounds = function.kernel.threads;
  if (threads > 1024 || (bounds[0] != 0 && threads > bounds[0] * bounds[1] * bounds[2])) return true;
  return static_cast<int>(shared) > function.dynamic_shared_bytes ||
         function.kernel.static_shared_bytes + static_cast<std::int64_t>(shared) > most_shared_bytes_of_block ||
         (function.dynamic_shared_bytes == shared_bytes_of_block &&
          function.kernel.static_shared_bytes + static_cast<std::int64_t>(shared) > shared_bytes_of_block);
}

/// What the kernel does when its turn comes.
void execute(const std::string& name, std::size_t threads, unsigned shape, const std::vector<CUdeviceptr>& arguments) {
  const auto is = [&](const char* what) { return name.rfind(what, 0) == 0; };
  if (is("hang")) {
    for (;;) ::pause();
  }
  if (is("illegal")) sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (is("failing")) sticky = CUDA_ERROR_LAUNCH_FAILED;
  for (const CUdeviceptr argument : arguments) {
    if (!is_memory(argument, 1)) sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (argument % 16 != 0) sticky = CUDA_ERROR_MISALIGNED_ADDRESS;
  }
  if (sticky != CUDA_SUCCESS) return;
  const bool cold = most_filled_bytes >= 2 * l2_bytes;
  most_filled_bytes = 0;
  if (is("cached")) now_milliseconds += cold ? 0.04 : 0;
  if (is("twice") || is("cached") || is("slow") || is("wrong") || is("overrun") || is("stray")) {
    now_milliseconds += is("slow") ? 1 : 0.01;
    const auto* x = reinterpret_cast<const float*>(arguments.at(0));
    auto* y = reinterpret_cast<float*>(arguments.at(1));
    for (std::size_t i = 0; i < threads; ++i) y[i] = (is("wrong") ? 3 : 2) * x[i];
    if (is("overrun")) y[threads + 2] = 0;
    for (const auto& [first, bytes] : allocations) {
      const auto holds = [first = first, bytes = bytes](CUdeviceptr p) { return p >= first && p < first + bytes; };
      if (is("stray") && std::none_of(arguments.begin(), arguments.end(), holds))
        std::memset(reinterpret_cast<void*>(first), 0, bytes);
    }
    return;
  }
  now_milliseconds += 0.01 + 0.001 * (shape % 61);
  if (setting("FAKE_CUDA_ORACLE", 0) == 0) return;
  std::vector<std::pair<std::uint64_t, std::size_t>> memory;
  for (const CUdeviceptr each : allocation_order) memory.emplace_back(each, allocations.at(each));
  tunewright::test::write_expected(memory);
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

CUresult cuInit(unsigned) {
  if (initialized_in != 0 && initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (setting("FAKE_CUDA_DEVICES", 1) == 0) return CUDA_ERROR_NO_DEVICE;
  initialized_in = ::getpid();
  return CUDA_SUCCESS;
}
/// NVRTC asks for it, in the process that compiles and after cuInit.
CUresult cuGetExportTable(const void** table, const CUuuid*) { return *table = nullptr, CUDA_ERROR_NOT_FOUND; }
CUresult cuDriverGetVersion(int* version) {
  return *version = static_cast<int>(setting("FAKE_CUDA_DRIVER", 13000)), CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  if (initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  return *count = static_cast<int>(setting("FAKE_CUDA_DEVICES", 1)), CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (ordinal < 0 || ordinal >= setting("FAKE_CUDA_DEVICES", 1)) return CUDA_ERROR_INVALID_DEVICE;
  return *device = ordinal, CUDA_SUCCESS;
}
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
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = shared_bytes_of_block; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 6144; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = most_shared_bytes_of_block; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = static_cast<int>(l2_bytes); break;
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
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  if (initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (refuses("cuDevicePrimaryCtxRetain")) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  ++users_of_primary;
  return *context = primary, CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  if (initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (users_of_primary == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--users_of_primary > 0) return CUDA_SUCCESS;
  modules.clear();
  functions.clear();
  allocations.clear();
  allocation_order.clear();
  allocated = 0;
  work.clear();
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  return *active = users_of_primary > 0, CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  if (initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  return *context = current, CUDA_SUCCESS;
}
/// A context of the caller's own may be any address.
CUresult cuCtxSetCurrent(CUcontext context) {
  if (initialized_in != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  current = context;
  return context == primary && refuses("cuCtxSetCurrent") ? CUDA_ERROR_INVALID_CONTEXT : sticky;
}
CUresult cuCtxSynchronize() {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  return finish_work();
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (reinterpret_cast<std::uintptr_t>(image) % 8 != 0 || !CubinView::is_cubin(image)) return CUDA_ERROR_INVALID_IMAGE;
  if (setting("FAKE_CUDA_DRIVER", 13000) / 1000 < CUDA_VERSION / 1000) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  const int code = CubinView(image).architecture();
  const int device = static_cast<int>(setting("FAKE_CUDA_CAPABILITY", 90));
  if (code / 10 != device / 10 || code > device) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  auto* made = new Module{image, {}};
  modules.insert(made);
  *module = reinterpret_cast<CUmodule>(made);
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (refuses("cuModuleLoadData")) return CUDA_ERROR_INVALID_IMAGE;
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
CUresult cuModuleUnload(CUmodule handle) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  auto* module = reinterpret_cast<Module*>(handle);
  if (modules.erase(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  for (Function* function : module->functions) functions.erase(function);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  auto* module = reinterpret_cast<Module*>(handle);
  if (modules.count(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  const auto kernel = CubinView(module->image).kernel(name);
  if (!kernel) return CUDA_ERROR_NOT_FOUND;
  auto* made = new Function{name, *kernel};
  functions.insert(made);
  module->functions.insert(made);
  *function = reinterpret_cast<CUfunction>(made);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  auto* function = reinterpret_cast<Function*>(handle);
  if (functions.count(function) == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      value + function->kernel.static_shared_bytes > most_shared_bytes_of_block)
    return CUDA_ERROR_INVALID_VALUE;
  function->dynamic_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (allocated + bytes > static_cast<std::size_t>(setting("FAKE_CUDA_MEMORY", 64 << 20)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  allocated += bytes;
  *pointer = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  allocations[*pointer] = bytes;
  allocation_order.push_back(*pointer);
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (const CUresult failed = finish_work(); failed != CUDA_SUCCESS) return failed;
  const auto found = allocations.find(pointer);
  if (found == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  allocated -= found->second;
  allocations.erase(found);
  std::erase(allocation_order, pointer);
  std::free(reinterpret_cast<void*>(pointer));
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (!is_memory(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult failed = finish_work(); failed != CUDA_SUCCESS) return failed;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (!is_memory(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult failed = finish_work(); failed != CUDA_SUCCESS) return failed;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (!is_memory(to, bytes) || !is_memory(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  enqueue([=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
  return CUDA_SUCCESS;
}
CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *pointer = std::malloc(bytes);
  return *pointer == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* pointer) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  std::free(pointer);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t bytes) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (!is_memory(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  enqueue([=] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    most_filled_bytes = std::max(most_filled_bytes, bytes);
  });
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream, void** arguments, void**) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  auto* function = reinterpret_cast<Function*>(handle);
  if (functions.count(function) == 0) return CUDA_ERROR_INVALID_HANDLE;
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  if (exceeds_limits(*function, grid, block, shared_bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (function->name.rfind("greedy", 0) == 0 || refuses("cuLaunchKernel")) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (function->name.rfind("crash", 0) == 0) std::abort();
  std::vector<CUdeviceptr> values;
  for (std::size_t i = 0; i < function->kernel.parameters; ++i)
    values.push_back(*static_cast<const CUdeviceptr*>(arguments[i]));
  enqueue([name = function->name, threads = std::size_t{grid_x} * block_x,
           shape = grid_x * 31 + block_x * 7 + shared_bytes / 64, values] { execute(name, threads, shape, values); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  return *event = reinterpret_cast<CUevent>(new Event), CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent handle, CUstream) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  auto* event = reinterpret_cast<Event*>(handle);
  event->recorded = true;
  event->reached = false;
  enqueue([event] {
    event->at = now_milliseconds;
    event->reached = true;
  });
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  return finish_work();
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent stop) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  const auto &from = *reinterpret_cast<Event*>(start), &to = *reinterpret_cast<Event*>(stop);
  if (!from.recorded || !to.recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (!from.reached || !to.reached) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(to.at - from.at);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  return *stream = reinterpret_cast<CUstream>(&work), CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  if (stream == nullptr || recording != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  recording = new std::vector<std::function<void()>>;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream, CUgraph* graph) {
  if (recording == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = reinterpret_cast<CUgraph>(std::exchange(recording, nullptr));
  return refusal();
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  *executable = reinterpret_cast<CUgraphExec>(
      new std::vector<std::function<void()>>(*reinterpret_cast<std::vector<std::function<void()>>*>(graph)));
  return refusal();
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream) {
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused;
  for (const auto& each : *reinterpret_cast<std::vector<std::function<void()>>*>(executable)) enqueue(each);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<std::vector<std::function<void()>>*>(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  delete reinterpret_cast<std::vector<std::function<void()>>*>(executable);
  return CUDA_SUCCESS;
}

/// Libraries that stand in for NVIDIA's call it: their kernels take so long on this device.
void fake_cuda_run(double milliseconds) {
  enqueue([milliseconds] { now_milliseconds += milliseconds; });
}

CUresult cuGetErrorName(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_NO_DEVICE            ? "CUDA_ERROR_NO_DEVICE"
          : result == CUDA_ERROR_ILLEGAL_ADDRESS    ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == CUDA_ERROR_NOT_INITIALIZED    ? "CUDA_ERROR_NOT_INITIALIZED"
          : result == CUDA_ERROR_INVALID_VALUE      ? "CUDA_ERROR_INVALID_VALUE"
          : result == CUDA_ERROR_MISALIGNED_ADDRESS ? "CUDA_ERROR_MISALIGNED_ADDRESS"
                                                    : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "it failed";
  return CUDA_SUCCESS;
}
}
