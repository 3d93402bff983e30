// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/loops/nest.hpp"

namespace tunewright::codegen {

extern "C" {
/// The services that a compiled kernel needs from its host, in plain C, so that exported kernels do not need this
/// library.
struct tunewright_runtime {
  /// Calls `body(context, begin, end)` for a partition of [0, count) and returns when all parts are finished.
  void (*parallel_for)(const struct tunewright_runtime* self, std::int64_t count,
                       void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context);
  void* state;
};
/// Entry point of every kernel: one pointer per buffer, in the order of `Kernel::buffers`.
typedef void (*tunewright_kernel)(void* const* buffers, const struct tunewright_runtime* runtime);
}

/// A buffer that the caller passes: the arguments of the loop nest in order, then top-level temporaries as workspace.
/// Every buffer is aligned to 64 bytes.
struct KernelBuffer {
  loops::Buffer layout;
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(layout.bytes()); }
};

/// Machine code for one candidate.
struct Kernel {
  std::string symbol = "kernel";
  std::vector<KernelBuffer> buffers;
  std::shared_ptr<const std::vector<char>> object;  ///< relocatable object file; empty for a native function
  tunewright_kernel native = nullptr;  ///< a function of this program, measured like any candidate (baselines, tests)
  unsigned threads = 1;                ///< of the target for which it was tuned
  std::string processor;  ///< LLVM's name of the target processor, as in `Target::architecture`; empty if unknown
  bool uses_tile_registers = false;  ///< of AMX, which a process must request from Linux first
};

/// Copies a whole row-major tensor into the packed layout of a kernel; elements outside the tensor become zero. `T`
/// must have the size of `layout.type`. Cost: one pass over the packed buffer.
template <class T>
void pack(const loops::Buffer& layout, const T* row_major, T* packed) {
  const std::vector<std::int64_t>& tensor_shape = layout.shape;
  std::vector<loops::PackedDimension> pieces = layout.packing;
  if (pieces.empty()) {
    for (std::uint32_t d = 0; d < layout.shape.size(); ++d) pieces.push_back({d, 1, layout.shape[d]});
  }
  if (pieces.empty()) {
    *packed = *row_major;
    return;
  }
  std::vector<std::int64_t> stride(tensor_shape.size(), 1);
  for (std::size_t d = stride.size(); d-- > 1;) stride[d - 1] = stride[d] * tensor_shape[d];

  // A coordinate is linear in its pieces, so the innermost piece is a strided copy up to the edge of the tensor.
  const loops::PackedDimension inner = pieces.back();
  const std::int64_t step = inner.divisor * stride[inner.dimension];
  std::vector<std::int64_t> position(pieces.size(), 0);
  std::vector<std::int64_t> logical(tensor_shape.size(), 0);
  for (;;) {
    std::int64_t offset = 0;
    bool inside = true;
    for (std::size_t d = 0; d < logical.size(); ++d) {
      inside = inside && logical[d] < tensor_shape[d];
      offset += logical[d] * stride[d];
    }
    const std::int64_t room = tensor_shape[inner.dimension] - logical[inner.dimension];
    const std::int64_t copied = inside ? std::min(inner.extent, (room + inner.divisor - 1) / inner.divisor) : 0;
    for (std::int64_t i = 0; i < copied; ++i) packed[i] = row_major[offset + i * step];
    std::fill(packed + copied, packed + inner.extent, T{});
    packed += inner.extent;

    std::size_t p = pieces.size() - 1;
    while (p-- > 0) {
      logical[pieces[p].dimension] += pieces[p].divisor;
      if (++position[p] < pieces[p].extent) break;
      logical[pieces[p].dimension] -= pieces[p].divisor * pieces[p].extent;
      position[p] = 0;
    }
    if (p == static_cast<std::size_t>(-1)) return;
  }
}

/// The same for the bytes of tensors, of whatever type.
inline void pack_bytes(const loops::Buffer& layout, const void* row_major, void* packed) {
  const auto copy = [&]<class T>(T) { pack(layout, static_cast<const T*>(row_major), static_cast<T*>(packed)); };
  switch (program::size_in_bytes(layout.type)) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    default: return copy(std::uint64_t{});
  }
}

}  // namespace tunewright::codegen
