// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tunewright/codegen/cuda/device_code.hpp"
#include "tunewright/codegen/cuda/program.hpp"
#include "tunewright/core/rounded_up.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

/// Device limits, checked before launching.
namespace tunewright::measurers::nvrtc {

/// Names the limit that a launch exceeds, or is empty. Limits of `target` that are 0 are unknown and not checked.
[[nodiscard]] std::string exceeded_limit(const codegen::DeviceLaunch& launch, const Target& target);
[[nodiscard]] std::string exceeded_limit(const codegen::DeviceProgram& program, const Target& target);

/// Registers allocated to a block of `threads` threads: whole warps, in units of 256 registers.
[[nodiscard]] constexpr std::int64_t registers_of_block(std::int64_t registers, std::int64_t threads) noexcept {
  const std::int64_t a_warp = rounded_up(registers * 32, 256);
  return a_warp * ((threads + 31) / 32);
}

/// The same for what only the compiler reports: `registers` per thread, not positive if unknown.
[[nodiscard]] std::string exceeded_registers(const codegen::DeviceLaunch& launch, std::int64_t registers,
                                             const Target& target);

/// Whether code for `architecture` runs on a device of compute capability `major`.`minor`: PTX runs on its own version
/// and newer ones, a cubin on its own minor version and higher ones of the same major version, "sm_90a" only on 9.0.
[[nodiscard]] bool runs_on(const std::string& architecture, codegen::DeviceFormat format, int major, int minor);

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(sandbox)

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE std::string exceeded_limit(const codegen::DeviceLaunch& launch, const Target& target) {
  const auto exceeds = [&](const char* what, std::int64_t value, std::int64_t limit) {
    if (limit <= 0 || value <= limit) return std::string();
    return "kernel '" + launch.symbol + "' " + what + " " + std::to_string(value) + "; the device has at most " +
           std::to_string(limit);
  };
  std::string found = exceeds("has threads a block:", launch.threads(), target.max_threads_per_block);
  if (found.empty())
    found = exceeds("needs bytes of shared memory:", launch.shared_bytes(),
                    static_cast<std::int64_t>(target.shared_memory_limit_bytes()));
  if (found.empty()) found = exceeds("has threads along z:", launch.block[2], 64);
  if (found.empty()) found = exceeds("has blocks along x:", launch.grid[0], 2147483647);
  if (found.empty()) found = exceeds("has blocks along y:", launch.grid[1], 65535);
  if (found.empty()) found = exceeds("has blocks along z:", launch.grid[2], 65535);
  return found;
}

TUNEWRIGHT_INLINE std::string exceeded_limit(const codegen::DeviceProgram& program, const Target& target) {
  for (const codegen::DeviceLaunch& launch : program.launches) {
    if (std::string found = exceeded_limit(launch, target); !found.empty()) return found;
  }
  return {};
}

TUNEWRIGHT_INLINE std::string exceeded_registers(const codegen::DeviceLaunch& launch, std::int64_t registers,
                                                 const Target& target) {
  const std::int64_t needed = registers_of_block(registers, launch.threads());
  if (registers <= 0 || target.registers_per_block == 0 || needed <= target.registers_per_block) return {};
  return "kernel '" + launch.symbol + "' needs registers a block: " + std::to_string(needed) +
         "; the device has at most " + std::to_string(target.registers_per_block);
}

TUNEWRIGHT_INLINE bool runs_on(const std::string& architecture, codegen::DeviceFormat format, int major, int minor) {
  if (architecture.size() < 5 || architecture.compare(0, 3, "sm_") != 0) return false;
  const bool specific = architecture.back() == 'a';
  const bool family = architecture.back() == 'f';
  int number = 0;
  for (const char c : architecture.substr(3)) {
    if (c >= '0' && c <= '9') number = number * 10 + (c - '0');
  }
  const int device = major * 10 + minor;
  if (specific) return number == device;
  if (format == codegen::DeviceFormat::Ptx && !family) return number <= device;
  return number / 10 == major && number <= device;
}

}  // namespace tunewright::measurers::nvrtc

#endif
