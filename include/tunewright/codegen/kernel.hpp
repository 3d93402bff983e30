// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/loops/nest.hpp"

namespace tunewright::codegen {

extern "C" {
/// What a compiled kernel needs from its host. Plain C, so that exported kernels run without this library.
struct tunewright_runtime {
  /// Calls `body(context, begin, end)` for a partition of [0, count) and returns when all parts are done.
  void (*parallel_for)(const struct tunewright_runtime* self, std::int64_t count,
                       void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context);
  void* state;
};
/// Entry point of every kernel: one pointer a buffer, in the order of `Kernel::buffers`.
typedef void (*tunewright_kernel)(void* const* buffers, const struct tunewright_runtime* runtime);
}

/// A buffer the caller passes: the arguments of the loop nest in order, then top-level temporaries as workspace.
/// All are aligned to 64 bytes.
struct KernelBuffer {
  loops::Buffer layout;
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(layout.bytes()); }
};

/// Machine code for one candidate.
struct Kernel {
  std::string symbol = "kernel";
  std::vector<KernelBuffer> buffers;
  std::shared_ptr<const std::vector<char>> object;  ///< relocatable object file; empty for a native function
  tunewright_kernel native = nullptr;  ///< a function of this very program, measured like any candidate (baselines, tests)
};

/// Copies a row-major tensor into the packed order a kernel asked for; elements outside the tensor become zero.
/// `T` must have the size of `layout.type`. `tensor_shape` is the whole tensor. Cost: one pass over the packed buffer.
template <class T>
void pack(const loops::Buffer& layout, const std::vector<std::int64_t>& tensor_shape, const T* row_major, T* packed) {
  const std::vector<std::int64_t> extents = layout.physical_shape();
  std::vector<std::int64_t> position(extents.size(), 0);
  std::vector<std::int64_t> logical(tensor_shape.size());
  const std::int64_t count = layout.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    if (layout.packing.empty()) {
      logical = position;
    } else {
      logical.assign(tensor_shape.size(), 0);
      for (std::size_t p = 0; p < layout.packing.size(); ++p) {
        logical[layout.packing[p].dimension] += position[p] * layout.packing[p].divisor;
      }
    }
    std::int64_t offset = 0;
    bool inside = true;
    for (std::size_t d = 0; d < logical.size(); ++d) {
      inside = inside && logical[d] < tensor_shape[d];
      offset = offset * tensor_shape[d] + logical[d];
    }
    packed[i] = inside ? row_major[offset] : T{};
    for (std::size_t p = extents.size(); p-- > 0;) {
      if (++position[p] < extents[p]) break;
      position[p] = 0;
    }
  }
}

}  // namespace tunewright::codegen
