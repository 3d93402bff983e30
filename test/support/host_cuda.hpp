// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/host_ptx.hpp"
#include "support/host_wgmma.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/codegen/cuda/asynchronous_copies.hpp"
#include "tunewright/codegen/cuda/program.hpp"
#include "tunewright/program/element_type.hpp"
#include "tunewright/program/expr.hpp"

/// Runs the text of CUDA programs on the host: a C++ compiler compiles it with stand-ins for what the device
/// provides. Threads of a block are fibers that change places at barriers, of the block or of a warp, so the text
/// itself is checked, and a barrier that only some threads reach is found. What warps do by inline PTX is interpreted.
/// Arithmetic of signed integers that overflows, which device compilers may take for impossible, ends the process.
namespace tunewright::test {

inline constexpr const char* host_cuda_prelude = R"(
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))
struct Index3 { unsigned x, y, z; };
static Index3 blockIdx, threadIdx;
template <class T> struct alignas(2 * sizeof(T)) Two { T x, y; };
template <class T> struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) Four { T x, y, z, w; };
using float2 = Two<float>; using float4 = Four<float>; using double2 = Two<double>;
using int2 = Two<int>; using int4 = Four<int>; using longlong2 = Two<long long>;
using char2 = Two<signed char>; using char4 = Four<signed char>; using uchar2 = Two<unsigned char>; using uchar4 = Four<unsigned char>;
static float __int_as_float(int bits) { float f; std::memcpy(&f, &bits, 4); return f; }
static float __uint_as_float(unsigned bits) { float f; std::memcpy(&f, &bits, 4); return f; }
static unsigned __float_as_uint(float f) { unsigned u; std::memcpy(&u, &f, 4); return u; }
static int __float_as_int(float f) { return (int)__float_as_uint(f); }
// Towards zero. A long double holds every double and every long long.
static float truncated(long double x) {
  const float y = (float)x;
  return std::fabs((long double)y) > std::fabs(x) ? std::nextafter(y, 0.0f) : y;
}
static float __double2float_rz(double x) { return truncated(x); }
static float __int2float_rz(int x) { return truncated(x); }
static float __ll2float_rz(long long x) { return truncated(x); }
static int max(int a, int b) { return a > b ? a : b; }
static int min(int a, int b) { return a < b ? a : b; }
static long long max(long long a, long long b) { return a > b ? a : b; }
static long long min(long long a, long long b) { return a < b ? a : b; }
struct half { unsigned short bits; };
static float to_float(half x) { _Float16 h; std::memcpy(&h, &x, 2); return (float)h; }
static half to_half(float x) { half y; const _Float16 h = (_Float16)x; std::memcpy(&y, &h, 2); return y; }
)";
inline constexpr const char* host_threads_prelude = R"(
namespace {
struct Copy { char* to; const char* from; int bytes, used, group; };
struct Fiber { ucontext_t context; std::vector<char> stack; bool done = false, waits = false; Index3 index; std::vector<Copy> copies; int groups = 0; };
ucontext_t scheduler;
std::vector<Fiber> fibers;
Fiber* current;
void (*entry)(void* const*);
void* const* arguments;
void run_fiber() { entry(arguments); current->done = true; swapcontext(&current->context, &scheduler); }
unsigned number_in_block(Index3 size) { return threadIdx.x + size.x * (threadIdx.y + size.y * threadIdx.z); }
Index3 block_size;
alignas(16) char exchanged[1024][16];
}
namespace {
unsigned arrived;                 // at the barrier of the block
std::vector<unsigned> of_warp;    // at that of each warp
void wait() { current->waits = true; swapcontext(&current->context, &scheduler); threadIdx = current->index; }
unsigned threads_of_warp_at(unsigned thread) {
  const unsigned rest = (unsigned)fibers.size() - thread / 32 * 32;
  return rest < 32 ? rest : 32;
}
// Whoever arrives last does what there is to do for all and lets the others go on.
template <class Do> void at_barrier_of_warp(const Do& what) {
  const unsigned warp = number_in_block(block_size) / 32, lanes = threads_of_warp_at(32 * warp);
  if (++of_warp[warp] < lanes) return wait();
  of_warp[warp] = 0;
  what();
  for (unsigned lane = 0; lane < lanes; ++lane) fibers[32 * warp + lane].waits = false;
}
}
static void __syncthreads() {
  if (++arrived < fibers.size()) return wait();
  arrived = 0;
  async_proxy.barrier(number_in_block(block_size));
  for (Fiber& f : fibers) f.waits = false;
}
static void __syncwarp() { at_barrier_of_warp([] {}); }
template <class T> T shuffle(T value, unsigned from) {
  std::memcpy(exchanged[number_in_block(block_size)], &value, sizeof value);
  __syncwarp();
  T result; std::memcpy(&result, exchanged[from], sizeof result);
  __syncwarp();
  return result;
}
template <class T> T __shfl_xor_sync(unsigned, T value, int lanes, int width = 32) { return shuffle(value, number_in_block(block_size) ^ (unsigned)lanes); }
template <class T> T __shfl_down_sync(unsigned, T value, int lanes, int width = 32) {
  const unsigned me = number_in_block(block_size), from = me + (unsigned)lanes;
  return shuffle(value, from / width == me / width ? from : me);
}
template <class T> T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  const unsigned me = number_in_block(block_size);
  return shuffle(value, me / width * width + (unsigned)lane % width);
}
// Asynchronous copies arrive at the wait; until then there is something else.
template <int bytes, bool = false> void copy_async(void* to, const void* from, int used = bytes) {
  if ((std::uintptr_t)to % bytes != 0 || (used != 0 && (std::uintptr_t)from % bytes != 0)) std::abort();
  std::memset(to, 0xff, bytes);
  current->copies.push_back({(char*)to, (const char*)from, bytes, used, current->groups});
}
template <int bytes, bool = false> void copy_async_if(bool wanted, void* to, const void* from, int used = bytes) {
  if (wanted) copy_async<bytes>(to, from, used);
}
static void commit_copies() { ++current->groups; }
template <int under_way> void wait_for_copies() {
  std::vector<Copy> later;
  for (const Copy& c : current->copies) {
    if (c.group + under_way >= current->groups) { later.push_back(c); continue; }
    std::memset(c.to, 0, c.bytes);
    std::memcpy(c.to, c.from, c.used);
    async_proxy.note(number_in_block(block_size), c.to, c.bytes);
  }
  current->copies.swap(later);
}
static void launch(void (*kernel)(void* const*), void* const* pointers, Index3 grid, Index3 block, bool by_warp_groups) {
  const unsigned threads = block.x * block.y * block.z;
  entry = kernel; arguments = pointers; block_size = block;
  fibers.resize(threads);
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
  for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
    for (unsigned t = 0; t < threads; ++t) {
      Fiber& f = fibers[t];
      f.done = f.waits = false; f.copies.clear(); f.groups = 0; f.stack.resize(1 << 16);
      f.index = {t % block.x, t / block.x % block.y, t / block.x / block.y};
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data(); f.context.uc_stack.ss_size = f.stack.size(); f.context.uc_link = nullptr;
      makecontext(&f.context, run_fiber, 0);
    }
    arrived = 0;
    async_proxy.start(by_warp_groups, threads);
    of_warp.assign((threads + 31) / 32, 0);
    for (unsigned done = 0; done < threads;) {
      bool moved = false;
      done = 0;
      for (unsigned t = 0; t < threads; ++t) {
        if (fibers[t].done) ++done;
        if (fibers[t].done || fibers[t].waits) continue;
        moved = true;
        current = &fibers[t]; threadIdx = current->index;
        swapcontext(&scheduler, &current->context);
        async_proxy.note(t);
        done += current->done;
      }
      if (!moved && done != threads) std::abort();  // some threads wait for others that do not come
    }
  }
}
)";

/// Several programs, compiled together into one library.
class HostCuda {
 public:
  /// Names of the programs must differ.
  void add(const codegen::DeviceProgram& program) {
    std::string source = program.source;
    const auto drop = [&](const std::string& from, const std::string& to, const std::string& with) {
      if (const auto begin = source.find(from); begin != std::string::npos)
        source.replace(begin, source.find(to, begin) + to.size() - begin, with);
    };
    drop("struct half {", "return y;\n}\n\n", "");
    const std::string copies(codegen::cuda::asynchronous_copy_definition);
    drop(copies, copies, "");
    // The shared memory of a program is a section of its own, so that it has few addresses.
    std::int64_t dynamic_bytes = 0;
    for (const codegen::DeviceLaunch& launch : program.launches)
      dynamic_bytes = std::max(dynamic_bytes, launch.dynamic_shared_bytes);
    const auto replace_all = [&](const std::string& from, const std::string& with) {
      for (std::size_t at = 0; (at = source.find(from, at)) != std::string::npos; at += with.size())
        source.replace(at, from.size(), with);
    };
    for (const std::string aligned : {"__shared__ __align__(128) ", "__shared__ __align__(1024) "}) {
      replace_all("extern " + aligned + "unsigned char shared_memory[];",
                  aligned + "unsigned char shared_memory[" + std::to_string(dynamic_bytes) + "];");
    }
    const std::string section = "shared_of_" + program.name;
    replace_all("__shared__", "static __attribute__((section(\"" + section + "\")))");
    source = with_interpreted_assembly(source);
    // Definitions are the same wherever they occur, but may occur once only.
    text_ += "namespace program_" + program.name + " {\n" + source;
    for (const codegen::DeviceLaunch& launch : program.launches) {
      text_ += "static void call_" + launch.symbol + "(void* const* p) { " + launch.symbol + "(";
      for (std::size_t a = 0; a < launch.arguments.size(); ++a) {
        text_ += std::string(a == 0 ? "" : ", ") + "Any{p[" + std::to_string(launch.arguments[a]) + "]}";
      }
      text_ += "); }\n";
    }
    for (const char* end : {"start", "stop"})
      text_ += "extern \"C\" __attribute__((weak)) char __" + std::string(end) + "_" + section + "[];\n";
    text_ += "extern \"C\" void run_" + program.name + "(void* const* p) {\n  shared_window = __start_" + section +
             ", shared_window_end = __stop_" + section + ";\n";
    const auto three = [](const std::array<std::int64_t, 3>& v) {
      return "{" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + "}";
    };
    for (const codegen::DeviceLaunch& launch : program.launches)
      text_ += "  launch(call_" + launch.symbol + ", p, " + three(launch.grid) + ", " + three(launch.block) +
               (program.multiplies_by_warp_groups ? ", true);\n" : ", false);\n");
    text_ += "}\n}\n";
  }

  /// Throws `std::runtime_error` with the compiler's messages.
  void build() {
    const std::string at = folder_.path();
    const std::string trap_overflow = "-fsanitize=signed-integer-overflow -fsanitize-undefined-trap-on-error";
    std::ofstream(at + "/programs.cpp")
        << "#define __CUDA_ARCH__ " << architecture_ << "0\n"
        << host_cuda_prelude << host_async_proxy_prelude << host_threads_prelude << host_ptx_prelude
        << host_wgmma_prelude << "struct Any { void* p; template <class T> operator T*() const { return (T*)p; } };\n"
        << text_;
    const std::string command = "c++ -std=c++20 -O0 -w -fno-strict-aliasing -ffp-contract=off " + trap_overflow +
                                " -shared -fPIC -o " + at + "/programs.so " + at + "/programs.cpp > " + at +
                                "/messages 2>&1";
    if (std::system(command.c_str()) != 0) {
      std::ifstream messages(at + "/messages");
      throw std::runtime_error(std::string(std::istreambuf_iterator<char>(messages), {}));
    }
    library_ = ::dlopen((at + "/programs.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(::dlerror());
  }
  HostCuda() = default;
  /// `architecture` is a compute capability, times ten.
  explicit HostCuda(unsigned architecture) : architecture_(architecture) {}
  HostCuda(const HostCuda&) = delete;
  HostCuda& operator=(const HostCuda&) = delete;
  ~HostCuda() {
    if (library_ != nullptr) ::dlclose(library_);
  }

  /// Runs a program on arguments as numbers, in physical order; outputs are written back.
  void run(const codegen::DeviceProgram& program, std::vector<std::vector<double>>& arguments) const {
    using Run = void (*)(void* const*);
    const auto function = reinterpret_cast<Run>(::dlsym(library_, ("run_" + program.name).c_str()));
    if (function == nullptr) throw std::runtime_error("no program '" + program.name + "'");
    std::vector<std::vector<std::uint64_t>> memory;
    std::vector<void*> pointers;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const loops::Buffer& layout = program.buffers[b].layout;
      memory.emplace_back(program.buffers[b].bytes() / 8 + 4, ~std::uint64_t{0});
      void* data = memory.back().data();
      // Vectors of 16 bytes need their alignment.
      data = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(data) + 15) / 16 * 16);
      pointers.push_back(data);
      if (layout.role == loops::BufferRole::Output || layout.role == loops::BufferRole::Temporary) continue;
      program::with_element_type(layout.type, [&]<class T>(T) {
        for (std::size_t i = 0; i < arguments[b].size(); ++i)
          static_cast<T*>(data)[i] = static_cast<T>(arguments[b][i]);
      });
    }
    function(pointers.data());
    for (std::size_t b = 0; b < arguments.size(); ++b) {
      const loops::Buffer& layout = program.buffers[b].layout;
      if (layout.role != loops::BufferRole::Output) continue;
      program::with_element_type(layout.type, [&]<class T>(T) {
        for (std::size_t i = 0; i < arguments[b].size(); ++i)
          arguments[b][i] = static_cast<double>(static_cast<const T*>(pointers[b])[i]);
      });
    }
  }

 private:
  support::TemporaryFolder folder_;
  std::string text_;
  unsigned architecture_ = 80;
  void* library_ = nullptr;
};

/// Largest difference relative to 1 + magnitude; infinite where one side is not a number.
inline double largest_error(const std::vector<std::vector<double>>& got, const std::vector<std::vector<double>>& want) {
  double worst = 0;
  for (std::size_t a = 0; a < got.size(); ++a) {
    for (std::size_t i = 0; i < got[a].size(); ++i) {
      if (got[a][i] == want[a][i] || (std::isnan(got[a][i]) && std::isnan(want[a][i]))) continue;
      const double error = std::fabs(got[a][i] - want[a][i]) / (1 + std::fabs(want[a][i]));
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace tunewright::test
