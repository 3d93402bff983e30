// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tunewright/codegen/kernel.hpp"

namespace tunewright::codegen {

/// One kernel launch.
struct DeviceLaunch {
  std::string symbol;
  std::array<std::int64_t, 3> grid{1, 1, 1};   ///< blocks along x, y, z
  std::array<std::int64_t, 3> block{1, 1, 1};  ///< threads per block along x, y, z
  std::int64_t static_shared_bytes = 0;
  /// In addition to static shared memory. If both together exceed 48 KiB, the launcher must set the kernel's attribute
  /// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES to it before the first launch.
  std::int64_t dynamic_shared_bytes = 0;
  std::vector<std::uint32_t> arguments;  ///< pointer arguments in order: indices into `DeviceProgram::buffers`

  [[nodiscard]] std::int64_t threads() const noexcept { return block[0] * block[1] * block[2]; }
  [[nodiscard]] std::int64_t blocks() const noexcept { return grid[0] * grid[1] * grid[2]; }
  [[nodiscard]] std::int64_t shared_bytes() const noexcept { return static_shared_bytes + dynamic_shared_bytes; }
  bool operator==(const DeviceLaunch&) const = default;
};

/// CUDA C++ for a loop nest, and what a host needs to run it: allocate the buffers, and launch the kernels in order.
struct DeviceProgram {
  std::string name = "kernel";
  std::string source;
  /// The arguments of the loop nest in order, then workspace. Each is aligned to at least 16 bytes.
  std::vector<KernelBuffer> buffers;
  std::vector<DeviceLaunch> launches;
  /// Minimum compute capability, times ten: 80 for 8.0; 0: any.
  unsigned min_compute_capability = 0;
  /// Whether it has instructions that require code for `Target::warp_group_architecture`.
  bool multiplies_by_warp_groups = false;
};

}  // namespace tunewright::codegen
