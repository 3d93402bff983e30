// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/program/element_type.hpp"

namespace tunewright::test {

/// Bytes whose neighbours (from the next 64-byte boundary on) cannot be touched.
class FencedMemory {
 public:
  explicit FencedMemory(std::size_t bytes) : size_((bytes + 4095) / 4096 * 4096 + 2 * 4096) {
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + 4096, size_ - 2 * 4096, PROT_READ | PROT_WRITE);
    data_ = base_ + size_ - 4096 - (bytes + 63) / 64 * 64;
    std::memset(base_ + 4096, 0xff, size_ - 2 * 4096);  // NaN in every float type
  }
  FencedMemory(FencedMemory&& other) noexcept : size_(other.size_), base_(other.base_), data_(other.data_) {
    other.base_ = nullptr;
  }
  FencedMemory& operator=(FencedMemory&&) = delete;
  ~FencedMemory() {
    if (base_ != nullptr) munmap(base_, size_);
  }
  [[nodiscard]] void* data() const { return data_; }
  /// True while nothing around the first `bytes` bytes has been written.
  [[nodiscard]] bool intact_around(std::size_t bytes) const {
    for (const char* p = base_ + 4096; p != base_ + size_ - 4096; ++p) {
      if ((p < data_ || p >= data_ + bytes) && *p != '\xff') return false;
    }
    return true;
  }

 private:
  std::size_t size_;
  char* base_;
  char* data_;
};

/// Runs every part on the calling thread, as two halves.
inline void run_in_halves(const codegen::tunewright_runtime*, std::int64_t count,
                          void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context) {
  body(context, 0, count / 2);
  body(context, count / 2, count);
}

/// Calls the kernel with arguments as numbers, in physical order; outputs are written back. False when memory
/// outside the buffers was written.
inline bool run_kernel(const codegen::Kernel& kernel, std::vector<std::vector<double>>& arguments) {
  codegen::KernelLoader loader;
  const codegen::LoadedKernel loaded = loader.load(kernel);
  std::vector<FencedMemory> memory;
  std::vector<void*> pointers;
  for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
    const loops::Buffer& layout = kernel.buffers[b].layout;
    memory.emplace_back(kernel.buffers[b].bytes());
    pointers.push_back(memory.back().data());
    if (layout.role == loops::BufferRole::Output || layout.role == loops::BufferRole::Temporary) continue;
    program::with_element_type(layout.type, [&]<class T>(T) {
      auto* data = static_cast<T*>(pointers.back());
      for (std::size_t i = 0; i < arguments[b].size(); ++i) data[i] = static_cast<T>(arguments[b][i]);
    });
  }
  const codegen::tunewright_runtime runtime{&run_in_halves, nullptr};
  loaded(pointers.data(), &runtime);
  bool intact = true;
  for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
    intact = intact && memory[b].intact_around(kernel.buffers[b].bytes());
    if (kernel.buffers[b].layout.role != loops::BufferRole::Output) continue;
    program::with_element_type(kernel.buffers[b].layout.type, [&]<class T>(T) {
      const auto* data = static_cast<T*>(pointers[b]);
      for (std::size_t i = 0; i < arguments[b].size(); ++i) arguments[b][i] = static_cast<double>(data[i]);
    });
  }
  return intact;
}

/// Arguments with small numbers that differ, the same for the same nest.
inline std::vector<std::vector<double>> sample_arguments(const loops::LoopNest& nest) {
  std::vector<std::vector<double>> arguments;
  std::uint64_t state = 12345;
  for (const loops::BufferId id : nest.arguments) {
    std::vector<double>& values = arguments.emplace_back(static_cast<std::size_t>(nest.buffers[id].elements()));
    for (double& v : values) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      v = static_cast<double>(static_cast<std::int64_t>((state >> 33) % 41) - 20) /
          (program::is_float(nest.buffers[id].type) ? 8.0 : 1.0);
    }
  }
  return arguments;
}

/// What the interpreter makes of the arguments.
inline std::vector<std::vector<double>> interpreted(const loops::LoopNest& nest,
                                                    std::vector<std::vector<double>> arguments) {
  loops::interpret(nest, arguments);
  return arguments;
}

/// Largest difference between the compiled nest and what is expected, relative to 1 + magnitude; infinite
/// when memory outside the buffers was written or a NaN appears on one side only.
inline double compiled_error(const loops::LoopNest& nest, codegen::LlvmCompiler& compiler,
                             std::vector<std::vector<double>> arguments,
                             const std::vector<std::vector<double>>& expected) {
  if (!run_kernel(compiler.compile(nest), arguments)) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    for (std::size_t i = 0; i < arguments[a].size(); ++i) {
      const double got = arguments[a][i];
      const double want = expected[a][i];
      if (got == want || (std::isnan(got) && std::isnan(want))) continue;
      const double error = std::fabs(got - want) / (1 + std::fabs(want));
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
    }
  }
  return worst;
}
inline double compiled_error(const loops::LoopNest& nest, codegen::LlvmCompiler& compiler) {
  const auto arguments = sample_arguments(nest);
  return compiled_error(nest, compiler, arguments, interpreted(nest, arguments));
}

}  // namespace tunewright::test
