// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "tunewright/measurers/sandbox.hpp"

/// A task of three tensors, C = A + B over `count` floats, for kernels written by hand.
namespace native_kernels {

using namespace tunewright;
using measurers::ExpectedOutput;
using measurers::TaskData;
using measurers::TensorContents;

inline constexpr std::int64_t count = 1000;

inline TaskData addition() {
  TaskData data;
  ExpectedOutput c{.tensor = 2, .name = "C", .shape = {count}, .points = {}, .values = {}};
  std::vector<float> values[2];
  for (unsigned t = 0; t < 2; ++t) {
    TensorContents input{.tensor = t, .name = t == 0 ? "A" : "B", .shape = {count}, .bytes = {}};
    input.bytes = measurers::random_contents(input.type, input.shape, Rng(t));
    values[t].resize(count);
    std::memcpy(values[t].data(), input.bytes.data(), input.bytes.size());
    data.inputs.push_back(std::move(input));
  }
  for (std::size_t i = 0; i < count; ++i) c.values.push_back(double{values[0][i]} + double{values[1][i]});
  data.outputs.push_back(std::move(c));
  return data;
}

inline codegen::KernelBuffer buffer(const char* name, program::TensorId tensor, loops::BufferRole role,
                                    std::vector<std::int64_t> shape = {count}) {
  codegen::KernelBuffer made;
  made.layout.name = name;
  made.layout.tensor = tensor;
  made.layout.role = role;
  made.layout.shape = std::move(shape);
  return made;
}

/// `function` as a kernel of the task above, with 500 floats of workspace.
inline codegen::Kernel kernel(codegen::tunewright_kernel function) {
  codegen::Kernel made;
  made.native = function;
  made.buffers = {buffer("A", 0, loops::BufferRole::Input), buffer("B", 1, loops::BufferRole::Input),
                  buffer("C", 2, loops::BufferRole::Output), buffer("T", 3, loops::BufferRole::Temporary, {500})};
  return made;
}

/// Wrong kernels are wrong on purpose: no sanitizer shall see it first. Nor shall one make them so slow that caches no
/// longer matter.
#define TUNEWRIGHT_TEST_UNCHECKED __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

inline const float* in(void* const* buffers, int which) { return static_cast<const float*>(buffers[which]); }
inline float* out(void* const* buffers, int which = 2) { return static_cast<float*>(buffers[which]); }

TUNEWRIGHT_TEST_UNCHECKED inline void add(void* const* buffers, const codegen::tunewright_runtime*) {
  const float* const a = in(buffers, 0);
  const float* const b = in(buffers, 1);
  float* const c = out(buffers);
  for (std::int64_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

}  // namespace native_kernels
