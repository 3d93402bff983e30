// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/codegen/cuda/device_code.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/nvrtc/code_wire.hpp"
#include "tunewright/measurers/nvrtc/device_memory.hpp"
#include "tunewright/measurers/nvrtc/device_task.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"

namespace tunewright::measurers::nvrtc {

/// A program that is loaded on a device, its launches bound to the memory of a task and to its own.
class DeviceProgram {
 public:
  /// Throws `DriverError` for code that the device does not load, and `sandbox::Rejected` for a buffer of a tensor that
  /// the task does not have.
  DeviceProgram(const Driver& driver, const DeviceTask& task, const sandbox::KernelView& kernel, const CodeView& code);

  double checked_call_seconds = 0;

  /// Packed constants as they should be, and poisoned workspace.
  void refresh() const;

  /// Launches its kernels, without waiting for them.
  void call();

  /// Describes a write beside its workspace; empty if there is none.
  [[nodiscard]] std::optional<std::string> damage() const;

 private:
  struct Module {
    Module(const Driver& d, const void* image) : driver(&d) {
      d.check(d->load_module(&handle, image, 0, nullptr, nullptr), "loading the code");
    }
    ~Module() { static_cast<void>((*driver)->unload_module(handle)); }
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    const Driver* driver;
    CUmodule handle = nullptr;
  };
  struct Launch {
    CUfunction function = nullptr;
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    unsigned shared_bytes = 0;
    std::vector<CUdeviceptr> values;
  };
  struct Packed {
    DeviceMemory memory;
    std::vector<char> contents;
  };

  [[nodiscard]] Launch prepare(const codegen::DeviceLaunch& from, const std::vector<CUdeviceptr>& addresses) const;
  [[nodiscard]] CUdeviceptr address(const codegen::KernelBuffer& buffer, const DeviceTask& task);

  const Driver* driver_;
  std::unique_ptr<Module> module_;
  std::vector<Launch> launches_;
  std::vector<DeviceMemory> workspace_;
  std::vector<Packed> packed_;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

#include <cstddef>
#include <cstdint>

#include "tunewright/measurers/sandbox/serve_requests.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE DeviceProgram::DeviceProgram(const Driver& driver, const DeviceTask& task,
                                               const sandbox::KernelView& kernel, const CodeView& code)
    : driver_(&driver), module_(std::make_unique<Module>(driver, code.image.data())) {
  std::vector<CUdeviceptr> addresses;
  for (const codegen::KernelBuffer& buffer : kernel.buffers) addresses.push_back(address(buffer, task));
  for (const CodeView::Launch& entry : code.launches) launches_.push_back(prepare(entry.launch, addresses));
}

TUNEWRIGHT_INLINE DeviceProgram::Launch DeviceProgram::prepare(const codegen::DeviceLaunch& from,
                                                               const std::vector<CUdeviceptr>& addresses) const {
  Launch launch;
  driver_->check((*driver_)->get_function(&launch.function, module_->handle, from.symbol.c_str()),
                 "finding kernel '" + from.symbol + "'");
  for (std::size_t d = 0; d < 3; ++d) {
    launch.grid[d] = static_cast<unsigned>(from.grid[d]);
    launch.block[d] = static_cast<unsigned>(from.block[d]);
  }
  launch.shared_bytes = static_cast<unsigned>(from.dynamic_shared_bytes);
  if (from.dynamic_shared_bytes > 0) {
    driver_->check((*driver_)->set_function_attribute(launch.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                      static_cast<int>(from.dynamic_shared_bytes)),
                   "asking for shared memory");
  }
  for (const std::uint32_t argument : from.arguments) launch.values.push_back(addresses.at(argument));
  return launch;
}

TUNEWRIGHT_INLINE CUdeviceptr DeviceProgram::address(const codegen::KernelBuffer& buffer, const DeviceTask& task) {
  const loops::Buffer& layout = buffer.layout;
  switch (layout.role) {
    case loops::BufferRole::Temporary:
      return workspace_.emplace_back(*driver_, "workspace " + layout.name, buffer.bytes()).data();
    case loops::BufferRole::Output:
      if (const DeviceTask::Output* output = task.output(layout.tensor)) return output->memory.data();
      break;
    case loops::BufferRole::Input:
    case loops::BufferRole::Constant:
      if (const DeviceTask::Input* input = task.input(layout.tensor)) {
        if (layout.packing.empty()) return input->memory.data();
        Packed& made = packed_.emplace_back(Packed{DeviceMemory(*driver_, "packed " + input->view.name, buffer.bytes()),
                                                   std::vector<char>(buffer.bytes())});
        codegen::pack_bytes(layout, input->view.bytes.data(), made.contents.data());
        return made.memory.data();
      }
      break;
  }
  throw sandbox::Rejected(Fault::InvalidSchedule, "the task has no tensor " + std::to_string(layout.tensor) +
                                                      " for buffer '" + layout.name + "'");
}

TUNEWRIGHT_INLINE void DeviceProgram::refresh() const {
  for (const Packed& constant : packed_) constant.memory.write(constant.contents.data());
  for (const DeviceMemory& memory : workspace_) memory.poison();
}

TUNEWRIGHT_INLINE void DeviceProgram::call() {
  for (Launch& launch : launches_) {
    std::vector<void*> arguments;
    arguments.reserve(launch.values.size());
    for (CUdeviceptr& value : launch.values) arguments.push_back(&value);
    driver_->check(
        (*driver_)->launch(launch.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                           launch.block[1], launch.block[2], launch.shared_bytes, nullptr, arguments.data(), nullptr),
        "launching the kernel");
  }
}

TUNEWRIGHT_INLINE std::optional<std::string> DeviceProgram::damage() const {
  for (const DeviceMemory& memory : workspace_) {
    if (auto damage = memory.damage()) return damage;
  }
  return std::nullopt;
}

}  // namespace tunewright::measurers::nvrtc

#endif
