// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/codegen/cuda/program.hpp"
#include "tunewright/core/outcome.hpp"

namespace tunewright::codegen {

/// Ptx is text that a driver translates for its device; a cubin is ready for one architecture.
enum class DeviceFormat : std::uint8_t { Cubin, Ptx };

/// The resources of a multiprocessor that a kernel uses, as the assembler reports them; -1: not reported.
struct KernelResources {
  std::int64_t registers = -1;  ///< of a thread
  std::int64_t stack_bytes = -1;
  std::int64_t spill_store_bytes = -1;  ///< registers that did not fit and were stored, in bytes of one thread
  std::int64_t spill_load_bytes = -1;
  std::int64_t static_shared_bytes = 0;
  bool operator==(const KernelResources&) const = default;
};

/// A program with its machine code.
struct DeviceCode {
  DeviceProgram program;
  std::string architecture;  ///< e.g. "sm_90"
  DeviceFormat format = DeviceFormat::Cubin;
  std::shared_ptr<const std::vector<char>> image;
  std::vector<KernelResources> resources;  ///< by launch; of cubins only
  std::string log;                         ///< warnings
  Seconds compile_time{0};
};

}  // namespace tunewright::codegen
