// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tunewright/codegen/cuda/types.hpp"
#include "tunewright/loops/nest.hpp"

/// Asynchronous copies from device memory to shared memory (`cp.async`).
namespace tunewright::codegen::cuda {

/// Whether one instruction copies this number of bytes, between addresses that are multiples of it. Other sizes are
/// loaded and stored by the thread, which completes before it is required.
[[nodiscard]] inline bool is_copied_at_once(const CudaType& type, std::int64_t lanes) {
  const std::int64_t bytes = static_cast<std::int64_t>(type.bytes) * lanes;
  return bytes == 4 || bytes == 8 || bytes == 16;
}

/// Whether copies to the buffer fill lines of shared memory, of 128 bytes: they may bypass L1 then. Others that do take
/// up to three times as long on an H200 as those that do not.
[[nodiscard]] inline bool has_whole_lines(const loops::Buffer& buffer) {
  return buffer.physical_shape().back() * static_cast<std::int64_t>(program::size_in_bytes(buffer.type)) % 128 == 0;
}

/// `whole_lines`: see `has_whole_lines`. A condition becomes a predicate of the instruction:
/// with a branch, the compiler would not interleave address arithmetic of copies with computation.
inline constexpr std::string_view asynchronous_copy_definition =
    "// Copies the first `used` bytes, and zeros for the rest, while the thread goes on.\n"
    "template <int bytes, bool whole_lines = false>\n"
    "__device__ __forceinline__ void copy_async(void* to, const void* from, int used = bytes) {\n"
    "  const unsigned place = (unsigned)__cvta_generic_to_shared(to);\n"
    "  const unsigned long long source = __cvta_generic_to_global(from);\n"
    "  if constexpr (bytes == 16 && whole_lines) {\n"
    "    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"\n"
    "                 :: \"r\"(place), \"l\"(source), \"r\"(used) : \"memory\");\n"
    "  } else {\n"
    "    asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2, %3;\"\n"
    "                 :: \"r\"(place), \"l\"(source), \"n\"(bytes), \"r\"(used) : \"memory\");\n"
    "  }\n"
    "}\n"
    "// The same where `wanted`, without a branch.\n"
    "template <int bytes, bool whole_lines = false>\n"
    "__device__ __forceinline__ void copy_async_if(bool wanted, void* to, const void* from, int used = "
    "bytes) {\n"
    "  const unsigned place = (unsigned)__cvta_generic_to_shared(to);\n"
    "  const unsigned long long source = __cvta_generic_to_global(from);\n"
    "  if constexpr (bytes == 16 && whole_lines) {\n"
    "    asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.s32 p, %3, 0;\\n\"\n"
    "                 \"@p cp.async.cg.shared.global [%0], [%1], 16, %2;\\n}\"\n"
    "                 :: \"r\"(place), \"l\"(source), \"r\"(used), \"r\"((int)wanted) : \"memory\");\n"
    "  } else {\n"
    "    asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.s32 p, %4, 0;\\n\"\n"
    "                 \"@p cp.async.ca.shared.global [%0], [%1], %2, %3;\\n}\"\n"
    "                 :: \"r\"(place), \"l\"(source), \"n\"(bytes), \"r\"(used), \"r\"((int)wanted) : "
    "\"memory\");\n"
    "  }\n"
    "}\n"
    "__device__ __forceinline__ void commit_copies() { asm volatile(\"cp.async.commit_group;\" ::: "
    "\"memory\"); }\n"
    "template <int under_way>\n"
    "__device__ __forceinline__ void wait_for_copies() {\n"
    "  asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(under_way) : \"memory\");\n"
    "}\n\n";

}  // namespace tunewright::codegen::cuda
