// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/checked_elements.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"

namespace tunewright::measurers {

/// A task's data in shared memory, for any number of workers, and the description of its tensors, against which kernels
/// are checked. Occupies its size in shared memory for its lifetime.
class SharedTask {
 public:
  explicit SharedTask(const TaskData& data);

  [[nodiscard]] int descriptor() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The reason why `kernel` cannot run on this task; empty if it can.
  [[nodiscard]] std::string objection(const codegen::Kernel& kernel) const;

 private:
  struct Tensor {
    program::TensorId id;
    program::ScalarType type;
    std::int64_t elements;
    bool output;
  };
  sandbox::Descriptor memory_;
  std::size_t bytes_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(sandbox)

namespace tunewright::measurers {

TUNEWRIGHT_INLINE SharedTask::SharedTask(const TaskData& data) {
  sandbox::validate(data);
  sandbox::Writer writer;
  sandbox::put(writer, data);
  bytes_ = writer.bytes().size();
  memory_ = sandbox::share(writer.bytes());
  for (const TensorContents& input : data.inputs)
    tensors_.push_back({input.tensor, input.type, checked_elements(input.shape), false});
  for (const ExpectedOutput& output : data.outputs)
    tensors_.push_back({output.tensor, output.type, checked_elements(output.shape), true});
}

TUNEWRIGHT_INLINE std::string SharedTask::objection(const codegen::Kernel& kernel) const {
  std::size_t outputs = 0;
  for (const codegen::KernelBuffer& buffer : kernel.buffers) {
    const loops::Buffer& layout = buffer.layout;
    if (layout.role == loops::BufferRole::Temporary) continue;
    const bool output = layout.role == loops::BufferRole::Output;
    const auto known = std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
      return tensor.id == layout.tensor && tensor.output == output;
    });
    const std::string which = "buffer '" + layout.name + "' (tensor " + std::to_string(layout.tensor) + ")";
    if (known == tensors_.end()) return which + " is no " + (output ? "output" : "input") + " of the task";
    if (known->type != layout.type) {
      return which + " holds " + std::string(program::name(layout.type)) + ", the task's tensor " +
             std::string(program::name(known->type));
    }
    if (!layout.packing.empty() && layout.role != loops::BufferRole::Constant) {
      return which + " is packed, which only constants may be";
    }
    try {  // shapes differ if the schedule merges axes
      if (checked_elements(layout.shape, which) != known->elements)
        return which + " does not have as many elements as the tensor";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    outputs += output ? 1 : 0;
  }
  const auto wanted = static_cast<std::size_t>(
      std::count_if(tensors_.begin(), tensors_.end(), [](const Tensor& tensor) { return tensor.output; }));
  if (outputs != wanted) {
    return "the kernel has " + std::to_string(outputs) + " outputs, the task " + std::to_string(wanted);
  }
  return {};
}

}  // namespace tunewright::measurers

#endif
