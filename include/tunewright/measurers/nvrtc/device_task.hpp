// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/nvrtc/device_memory.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"
#include "tunewright/program/expr.hpp"

namespace tunewright::measurers::nvrtc {

/// Inputs and outputs of a task on a device, and what outputs should be. Views point into the data of the task, which
/// must outlive it.
class DeviceTask {
 public:
  struct Input {
    sandbox::InputView view;
    DeviceMemory memory;
    std::optional<DeviceMemory> original{};  ///< on the device, where copying it is quick; none where that is full
  };
  struct Output {
    sandbox::OutputView expected;
    DeviceMemory memory;
  };

  DeviceTask(const Driver& driver, sandbox::TaskView view);

  /// Null if the task has no such tensor.
  [[nodiscard]] const Input* input(program::TensorId tensor) const;
  [[nodiscard]] const Output* output(program::TensorId tensor) const;

  /// Fresh inputs and poisoned outputs.
  void refresh() const;

  /// How the outputs differ from the expected ones; empty if they do not. `results` is where they are read to.
  [[nodiscard]] std::optional<std::string> difference(PinnedMemory& results) const;

  /// Describes a write beside an output; empty if there is none.
  [[nodiscard]] std::optional<std::string> damage() const;

  /// Copies of inputs on the device: written from the host, given up to make room, or none for lack of it.
  void write_originals();
  void give_up_originals();
  [[nodiscard]] bool has_originals() const;
  /// Whether a kernel wrote to one of them. Cost: reads all of them.
  [[nodiscard]] bool originals_are_damaged() const;

 private:
  const Driver* driver_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

#include <algorithm>
#include <utility>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/measurers/sandbox/check.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE DeviceTask::DeviceTask(const Driver& driver, sandbox::TaskView view) : driver_(&driver) {
  for (sandbox::InputView& input : view.inputs) {
    DeviceMemory memory(driver, input.name, input.bytes.size());
    inputs_.push_back({std::move(input), std::move(memory)});
  }
  for (sandbox::OutputView& output : view.outputs) {
    const auto count = static_cast<std::size_t>(checked_elements(output.shape));
    DeviceMemory memory(driver, output.name, count * program::size_in_bytes(output.type));
    outputs_.push_back({std::move(output), std::move(memory)});
  }
  write_originals();
}

TUNEWRIGHT_INLINE const DeviceTask::Input* DeviceTask::input(program::TensorId tensor) const {
  const auto found =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& i) { return i.view.tensor == tensor; });
  return found == inputs_.end() ? nullptr : &*found;
}

TUNEWRIGHT_INLINE const DeviceTask::Output* DeviceTask::output(program::TensorId tensor) const {
  const auto found =
      std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& o) { return o.expected.tensor == tensor; });
  return found == outputs_.end() ? nullptr : &*found;
}

TUNEWRIGHT_INLINE void DeviceTask::refresh() const {
  for (const Input& input : inputs_) {
    if (input.original)
      input.memory.copy(*input.original);
    else
      input.memory.write(input.view.bytes.data());
  }
  for (const Output& output : outputs_) {
    output.memory.fill_zones();
    output.memory.poison();
  }
}

TUNEWRIGHT_INLINE std::optional<std::string> DeviceTask::difference(PinnedMemory& results) const {
  for (const Output& output : outputs_) {
    char* contents = results.with_room_for(output.memory.bytes());
    output.memory.read(contents);
    if (auto wrong = sandbox::mismatch(output.expected, contents)) return wrong;
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::optional<std::string> DeviceTask::damage() const {
  for (const Output& output : outputs_) {
    if (auto damage = output.memory.damage()) return damage;
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE void DeviceTask::write_originals() {
  try {
    for (Input& input : inputs_) {
      if (!input.original)
        input.original.emplace(*driver_, "the original of " + input.view.name, input.view.bytes.size());
      input.original->write(input.view.bytes.data());
    }
  } catch (const DriverError& error) {
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
    give_up_originals();
  }
}

TUNEWRIGHT_INLINE void DeviceTask::give_up_originals() {
  for (Input& input : inputs_) input.original.reset();
}

TUNEWRIGHT_INLINE bool DeviceTask::has_originals() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const Input& input) { return input.original.has_value(); });
}

TUNEWRIGHT_INLINE bool DeviceTask::originals_are_damaged() const {
  std::vector<char> there;
  return std::any_of(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    if (!input.original) return false;
    there.resize(input.original->bytes());
    input.original->read(there.data());
    return !std::equal(there.begin(), there.end(), input.view.bytes.begin());
  });
}

}  // namespace tunewright::measurers::nvrtc

#endif
