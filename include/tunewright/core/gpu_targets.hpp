// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

/// NVIDIA GPUs by name, for tuning without the device: simulation, generation of code for another machine, records made
/// elsewhere.
namespace tunewright {

/// Limits of a compute capability from the CUDA C++ Programming Guide ("Technical Specifications per Compute
/// Capability"). From 8.0 on a block can have 1 KiB less shared memory than a multiprocessor, because CUDA reserves 1
/// KiB per block.
struct ComputeCapability {
  unsigned version = 0;  ///< ten times the major number plus the minor: 90 is 9.0, "sm_90"
  std::uint64_t shared_memory_per_multiprocessor_bytes = 0;
  std::uint64_t max_shared_memory_per_block_bytes = 0;
  std::uint64_t l1_bytes = 0;  ///< data cache and shared memory together
  unsigned registers_per_multiprocessor = 65536;
  unsigned max_threads_per_multiprocessor = 2048;
  unsigned max_blocks_per_multiprocessor = 32;
};

inline constexpr std::array compute_capabilities{
    ComputeCapability{37, 112 << 10, 48 << 10, 128 << 10, 131072, 2048, 16},
    ComputeCapability{70, 96 << 10, 96 << 10, 128 << 10, 65536, 2048, 32},
    ComputeCapability{75, 64 << 10, 64 << 10, 96 << 10, 65536, 1024, 16},
    ComputeCapability{80, 164 << 10, 163 << 10, 192 << 10, 65536, 2048, 32},
    ComputeCapability{86, 100 << 10, 99 << 10, 128 << 10, 65536, 1536, 16},
    ComputeCapability{87, 164 << 10, 163 << 10, 192 << 10, 65536, 1536, 16},
    ComputeCapability{89, 100 << 10, 99 << 10, 128 << 10, 65536, 1536, 24},
    ComputeCapability{90, 228 << 10, 227 << 10, 256 << 10, 65536, 2048, 32},
};

/// What distinguishes devices with one compute capability.
struct GpuModel {
  std::string_view name;
  unsigned compute_capability = 0;
  unsigned multiprocessors = 0;
  std::uint64_t l2_bytes = 0;
  double peak_fp32_gflops = 0;    ///< at the boost clock, without tensor units
  double peak_gb_per_s = 0;       ///< of device memory
  double peak_tensor_gflops = 0;  ///< factors of 16 bits, sums of 32, nothing left out; 0: no tensor units
};

/// Rounded values from the maker's data sheets. "K80" is one of its two dies, as programs see it. "V100" and "A100
/// 80GB" are the PCIe cards, "A100" is the 40 GB card; "H100" and "H200" are the SXM modules; "Orin" is the 64 GB AGX.
inline constexpr std::array gpu_models{
    GpuModel{"K80", 37, 13, 1536 << 10, 4370, 240},
    GpuModel{"V100", 70, 80, 6 << 20, 14000, 900, 112000},
    GpuModel{"Titan V", 70, 80, 4608 << 10, 14900, 653, 110000},
    GpuModel{"T4", 75, 40, 4 << 20, 8100, 320, 65000},
    GpuModel{"GTX 1650", 75, 14, 1 << 20, 2980, 128},
    GpuModel{"RTX 2080 Ti", 75, 68, 5632 << 10, 13400, 616, 53800},
    GpuModel{"A100", 80, 108, 40 << 20, 19500, 1555, 312000},
    GpuModel{"A100 80GB", 80, 108, 40 << 20, 19500, 1935, 312000},
    GpuModel{"A4000", 86, 48, 4 << 20, 19200, 448, 76700},
    GpuModel{"RTX 3090", 86, 82, 6 << 20, 35600, 936, 71000},
    GpuModel{"Orin", 87, 16, 4 << 20, 5325, 204.8, 42600},
    GpuModel{"H100", 90, 132, 50 << 20, 66900, 3350, 989000},
    GpuModel{"H200", 90, 132, 50 << 20, 66900, 4800, 989000},
};

namespace detail {
template <class Table, class Matches>
[[nodiscard]] constexpr const auto* first_where(const Table& table, Matches matches) noexcept {
  for (const auto& row : table)
    if (matches(row)) return &row;
  return static_cast<decltype(table.data())>(nullptr);
}
}  // namespace detail

/// Number types that the tensor units of a compute capability multiply, as bits of `TensorUnit`.
[[nodiscard]] constexpr std::uint32_t tensor_cores_of(unsigned compute_capability) noexcept {
  const auto from = [=](unsigned first, TensorUnit unit) {
    return compute_capability >= first ? static_cast<std::uint32_t>(unit) : 0U;
  };
  return from(70, TensorUnit::TensorCoreFp16) | from(72, TensorUnit::TensorCoreInt8) |
         from(80, TensorUnit::TensorCoreBf16);
}

/// Operations per cycle of the tensor units of a multiprocessor, a multiply-add being two, with 16-bit factors and
/// 32-bit sums; 0 for compute capabilities without them, and the value of the latest known one for later ones. From
/// Turing on, GeForce cards (by `device_name`) accumulate in 32 bits at half the rate of data center and workstation
/// cards of the same compute capability.
[[nodiscard]] constexpr double tensor_operations_per_cycle(unsigned compute_capability,
                                                           std::string_view device_name = {}) noexcept {
  if (compute_capability < 70) return 0;
  const bool is_workstation_chip = compute_capability / 10 == 12;
  if (compute_capability >= 90 && !is_workstation_chip) return 4096;
  const double whole = compute_capability == 80 || compute_capability == 87 ? 2048 : 1024;
  return device_name.find("GeForce") != std::string_view::npos ? whole / 2 : whole;
}

/// The architecture to compile for, given a compute capability times ten. It is the specific one (such as "sm_90a") if
/// the devices have instructions that later devices lack.
[[nodiscard]] std::string architecture_of(unsigned compute_capability);

/// The model of that name; null if there is none.
[[nodiscard]] constexpr const GpuModel* find_gpu_model(std::string_view name) noexcept {
  return detail::first_where(gpu_models, [&](const GpuModel& model) { return model.name == name; });
}

/// Limits of a compute capability, e.g. 90; null if it is not listed.
[[nodiscard]] constexpr const ComputeCapability* find_compute_capability(unsigned version) noexcept {
  return detail::first_where(compute_capabilities,
                             [&](const ComputeCapability& row) { return row.version == version; });
}

static_assert(detail::first_where(compute_capabilities,
                                  [](const ComputeCapability& row) {
                                    return row.l1_bytes < row.shared_memory_per_multiprocessor_bytes;
                                  }) == nullptr,
              "L1 includes shared memory");

/// A listed GPU as a target. Throws `std::invalid_argument` with all names.
[[nodiscard]] Target gpu_target(std::string_view name);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE std::string architecture_of(unsigned compute_capability) {
  std::string plain = "sm_" + std::to_string(compute_capability);
  const std::string_view special = Target::warp_group_architecture;
  return special.substr(0, special.size() - 1) == plain ? std::string(special) : plain;
}

TUNEWRIGHT_INLINE Target gpu_target(std::string_view name) {
  const GpuModel* model = find_gpu_model(name);
  if (model == nullptr) {
    std::string message = "no data of a GPU '" + std::string(name) + "'; known are";
    for (const GpuModel& known : gpu_models)
      message += (&known == gpu_models.data() ? " '" : ", '") + std::string(known.name) + "'";
    throw std::invalid_argument(message + "; fill in a Target for others");
  }
  const ComputeCapability& limits = *find_compute_capability(model->compute_capability);
  Target target;
  target.name = std::string(model->name);
  target.kind = DeviceKind::Gpu;
  target.cache_line_bytes = 128;
  target.l1_bytes = limits.l1_bytes;
  target.l2_bytes = model->l2_bytes;
  target.shared_memory_per_block_bytes = 48 << 10;
  target.max_shared_memory_per_block_bytes = limits.max_shared_memory_per_block_bytes;
  target.shared_memory_per_multiprocessor_bytes = limits.shared_memory_per_multiprocessor_bytes;
  target.registers_per_block = 65536;
  target.registers_per_multiprocessor = limits.registers_per_multiprocessor;
  target.max_registers_per_thread = 255;
  target.max_threads_per_block = 1024;
  target.max_threads_per_multiprocessor = limits.max_threads_per_multiprocessor;
  target.max_blocks_per_multiprocessor = limits.max_blocks_per_multiprocessor;
  target.max_vthread_extent = 8;
  target.warp_size = 32;
  target.multiprocessors = model->multiprocessors;
  target.peak_fp32_gflops = model->peak_fp32_gflops;
  target.peak_gb_per_s = model->peak_gb_per_s;
  target.architecture = architecture_of(limits.version);
  target.peak_tensor_gflops = model->peak_tensor_gflops;
  if (model->peak_tensor_gflops > 0) target.tensor_units = tensor_cores_of(limits.version);
  return target;
}

}  // namespace tunewright

#endif
