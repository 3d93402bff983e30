// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::loops {

/// Limits of a CPU candidate. They bound compile times and stack size; slow candidates are left to the search.
struct CpuLimits {
  std::int64_t max_local_bytes = 2 << 20;  ///< total of the buffers that a thread allocates inside its loops
  std::int64_t max_workspace_bytes = 1LL << 30;
  std::int64_t max_unrolled_statements = 2048;  ///< copies of one statement because of unrolling and vector splitting
  std::int64_t max_vector_extent = 1024;
};

/// Limits of a GPU candidate: those of the device, and those that bound compile times and registers. Slow candidates
/// are left to the search.
struct GpuLimits {
  std::int64_t max_shared_bytes = 48 << 10;  ///< per block
  std::int64_t max_threads = 1024;           ///< per block
  std::int64_t max_virtual_threads = 8;      ///< per thread
  std::int64_t max_local_bytes = 2048;       ///< per thread, including copies for virtual threads
  std::int64_t max_workspace_bytes = 1LL << 30;
  std::int64_t max_unrolled_statements = 2048;  ///< as on CPUs; virtual threads are unrolled
  std::int64_t max_kernel_statements = 768;     ///< limit of `written_statements`; compilers take up to 3 ms for each
  std::array<std::int64_t, 3> max_grid{(1LL << 31) - 1, 65535, 65535};  ///< blocks along x, y, z
  std::array<std::int64_t, 3> max_block{1024, 1024, 64};                ///< threads along x, y, z
  bool asynchronous_copies = true;
  std::uint32_t tensor_units = ~std::uint32_t{0};  ///< bits of `TensorUnit`
  unsigned compute_capability = ~0U;               ///< times ten; determines the instructions of tensor cores
  bool warp_groups = true;                         ///< whether warp groups can multiply

  /// The limits of a target. Values that it does not state are those of devices of compute capability 7.0 and later;
  /// locals may take twice the registers of a thread, beyond which they hardly pay.
  [[nodiscard]] static GpuLimits of(const Target& target) noexcept;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE GpuLimits GpuLimits::of(const Target& target) noexcept {
  GpuLimits limits;
  const auto take = [](std::int64_t& limit, std::uint64_t told) {
    if (told != 0) limit = static_cast<std::int64_t>(told);
  };
  take(limits.max_shared_bytes, target.shared_memory_limit_bytes());
  take(limits.max_threads, target.max_threads_per_block);
  take(limits.max_virtual_threads, target.max_vthread_extent);
  take(limits.max_local_bytes, std::uint64_t{2} * 4 * target.max_registers_per_thread);
  limits.asynchronous_copies = target.copies_asynchronously();
  limits.tensor_units = target.tensor_units;
  limits.compute_capability = target.compute_capability();
  limits.warp_groups = target.multiplies_by_warp_groups();
  return limits;
}

}  // namespace tunewright::loops

#endif
