// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/codegen/cuda/program.hpp"
#include "tunewright/core/outcome.hpp"

namespace tunewright::codegen {

/// PTX is translated by the driver for its device; a cubin is machine code for one architecture.
enum class DeviceFormat : std::uint8_t { Cubin, Ptx };

/// Resources of a kernel as reported by the assembler; -1: not reported.
struct KernelResources {
  std::int64_t registers = -1;  ///< per thread
  std::int64_t stack_bytes = -1;
  std::int64_t spill_store_bytes = -1;  ///< register spills, in bytes per thread
  std::int64_t spill_load_bytes = -1;
  std::int64_t static_shared_bytes = 0;
  bool operator==(const KernelResources&) const = default;
};

/// A program and its machine code.
struct DeviceCode {
  DeviceProgram program;
  std::string architecture;  ///< e.g. "sm_90"
  DeviceFormat format = DeviceFormat::Cubin;
  std::shared_ptr<const std::vector<char>> image;
  std::vector<KernelResources> resources;  ///< by launch; only for cubins
  std::string log;                         ///< warnings
  Seconds compile_time{0};
};

}  // namespace tunewright::codegen
