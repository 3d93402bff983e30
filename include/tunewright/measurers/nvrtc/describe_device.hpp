// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tunewright/measurers/nvrtc/device_facts.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"

namespace tunewright::measurers::nvrtc {

/// The driver's facts about `device`, one of `count`. Throws `DriverError` if name, memory or driver version cannot be
/// read; other facts that the driver does not know are 0.
[[nodiscard]] inline DeviceFacts describe(const Driver& driver, CUdevice device, int count) {
  DeviceFacts facts;
  facts.device_count = count;
  driver.check(driver->device_name(facts.name.data(), static_cast<int>(facts.name.size()) - 1, device),
               "the device's name");
  driver.check(driver->driver_version(&facts.driver), "the driver's version");
  std::size_t bytes = 0;
  driver.check(driver->device_memory(&bytes, device), "the device's memory");
  facts.memory_bytes = bytes;
  const auto read = [&](std::int32_t& to, CUdevice_attribute attribute) {
    int value = 0;
    if (driver->device_attribute(&value, attribute, device) == CUDA_SUCCESS) to = value;
  };
  read(facts.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  read(facts.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  read(facts.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  read(facts.warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  read(facts.max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  read(facts.max_threads_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  read(facts.max_blocks_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  read(facts.shared_bytes_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  read(facts.max_shared_bytes_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  read(facts.shared_bytes_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  read(facts.registers_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  read(facts.registers_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  read(facts.l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  read(facts.clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  read(facts.memory_clock_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  read(facts.memory_bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  return facts;
}

}  // namespace tunewright::measurers::nvrtc
