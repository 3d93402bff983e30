// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "support/called_intrinsic.hpp"
#include "support/run_kernel.hpp"

namespace tunewright::test {

inline std::vector<const void*> prefetched;
inline void note_prefetch(const void* place, int, int, int) { prefetched.push_back(place); }

/// The distance in bytes, from the start of the argument with this role, of each place that the kernel prefetches, in
/// order; empty if its result is wrong.
inline std::vector<std::int64_t> prefetched_bytes(const loops::LoopNest& nest, codegen::LlvmCompiler& compiler,
                                                  loops::BufferRole role) {
  if (!(compiled_error(nest, compiler) < 1e-5)) return {};
  const CalledIntrinsic prefetch{"@llvm.prefetch.p0", reinterpret_cast<std::uintptr_t>(&note_prefetch)};
  const codegen::Kernel kernel = with_functions_for(std::span(&prefetch, 1), nest, compiler);
  std::vector<FencedMemory> memory;
  std::vector<void*> pointers;
  const char* start = nullptr;
  for (const codegen::KernelBuffer& buffer : kernel.buffers) {
    memory.emplace_back(buffer.bytes());
    pointers.push_back(memory.back().data());
    if (buffer.layout.role == role) start = static_cast<const char*>(pointers.back());
  }
  prefetched.clear();
  codegen::KernelLoader loader;
  const codegen::tunewright_runtime runtime{&run_in_halves, nullptr};
  loader.load(kernel)(pointers.data(), &runtime);
  std::vector<std::int64_t> bytes;
  for (const void* place : prefetched) bytes.push_back(static_cast<const char*>(place) - start);
  return bytes;
}

}  // namespace tunewright::test
