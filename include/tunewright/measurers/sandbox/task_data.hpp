// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/checked_elements.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/random_number.hpp"

namespace tunewright::measurers {

/// Contents of an input or a constant, row-major.
struct TensorContents {
  program::TensorId tensor = 0;
  std::string name;
  program::ScalarType type = program::ScalarType::Float32;
  std::vector<std::int64_t> shape;
  std::vector<char> bytes;
};

/// Expected values of an output: `values[i]` at flat offset `points[i]`, or all elements if `points` is empty. An
/// element passes if
///
///   |computed - expected| <= absolute_tolerance + relative_tolerance * |expected|
///
/// or both are the same infinity, or both are not a number. Elements that are never written fail at any offset,
/// except integers on GPUs.
struct ExpectedOutput {
  program::TensorId tensor = 0;
  std::string name;
  program::ScalarType type = program::ScalarType::Float32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> points;
  std::vector<double> values;
  double relative_tolerance = 1e-5;
  double absolute_tolerance = 1e-5;
};

/// Everything a worker needs to run and check kernels of one task. Kernels name tensors by `TensorId`.
struct TaskData {
  std::vector<TensorContents> inputs;
  std::vector<ExpectedOutput> outputs;

  /// Total size of tensors and expected values.
  [[nodiscard]] std::size_t bytes() const noexcept;
};

/// Random contents: `program::random_number` an element, rounded to its type. Determinism: a function of the arguments.
[[nodiscard]] std::vector<char> random_contents(program::ScalarType type, const std::vector<std::int64_t>& shape,
                                                Rng rng, double low = -1, double high = 1);

namespace sandbox {

/// Throws `std::invalid_argument` for contradictory sizes, and for shapes that `checked_elements` refuses.
void validate(const TaskData& data);

void put(Writer& to, const TaskData& data);

/// A view of an input that `put` wrote: its spans point into the shared memory, so nothing large is copied.
struct InputView {
  program::TensorId tensor;
  std::string name;
  program::ScalarType type;
  std::vector<std::int64_t> shape;
  std::span<const char> bytes;
};
struct OutputView {
  program::TensorId tensor;
  std::string name;
  program::ScalarType type;
  std::vector<std::int64_t> shape;
  std::span<const std::int64_t> points;
  std::span<const double> values;
  double relative_tolerance;
  double absolute_tolerance;
};
struct TaskView {
  std::vector<InputView> inputs;
  std::vector<OutputView> outputs;
};

[[nodiscard]] TaskView get_task(Reader& from);

/// Serializes a kernel without the origins of its buffers, which calls do not need.
void put(Writer& to, const codegen::Kernel& kernel);

struct KernelView {
  std::string symbol;
  codegen::tunewright_kernel native = nullptr;
  std::span<const char> object;
  std::vector<codegen::KernelBuffer> buffers;
};

[[nodiscard]] KernelView get_kernel(Reader& from);

}  // namespace sandbox
}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/program/element_type.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE std::size_t TaskData::bytes() const noexcept {
  std::size_t count = 0;
  for (const TensorContents& input : inputs) count += input.bytes.size();
  for (const ExpectedOutput& output : outputs)
    count += output.points.size() * sizeof(std::int64_t) + output.values.size() * sizeof(double);
  return count;
}

TUNEWRIGHT_INLINE std::vector<char> random_contents(program::ScalarType type, const std::vector<std::int64_t>& shape,
                                                    Rng rng, double low, double high) {
  const auto count = static_cast<std::size_t>(checked_elements(shape));
  std::vector<char> bytes(count * program::size_in_bytes(type));
  program::with_element_type(type, [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(program::random_number(type, rng, low, high));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

}  // namespace tunewright::measurers

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE void validate(const TaskData& data) {
  for (const TensorContents& input : data.inputs) {
    const std::int64_t count = checked_elements(input.shape, "input '" + input.name + "'");
    const std::size_t wanted = static_cast<std::size_t>(count) * program::size_in_bytes(input.type);
    if (input.bytes.size() != wanted) {
      throw std::invalid_argument("input '" + input.name + "' has " + std::to_string(input.bytes.size()) +
                                  " bytes of contents where its shape needs " + std::to_string(wanted));
    }
  }
  for (const ExpectedOutput& output : data.outputs) {
    const std::int64_t count = checked_elements(output.shape, "output '" + output.name + "'");
    const std::size_t wanted = output.points.empty() ? static_cast<std::size_t>(count) : output.points.size();
    if (output.values.size() != wanted) {
      throw std::invalid_argument("output '" + output.name + "' has " + std::to_string(output.values.size()) +
                                  " expected values; give " + std::to_string(wanted));
    }
    for (const std::int64_t point : output.points) {
      if (point < 0 || point >= count) {
        throw std::invalid_argument("output '" + output.name + "' is to be checked at element " +
                                    std::to_string(point) + " of " + std::to_string(count) +
                                    "; give offsets inside it");
      }
    }
  }
}

TUNEWRIGHT_INLINE void put(Writer& to, const TaskData& data) {
  to.put(data.inputs.size());
  for (const TensorContents& input : data.inputs) {
    to.put(input.tensor);
    to.put_text(input.name);
    to.put(input.type);
    to.put_all(std::span<const std::int64_t>(input.shape));
    to.put_all(std::span<const char>(input.bytes));
  }
  to.put(data.outputs.size());
  for (const ExpectedOutput& output : data.outputs) {
    to.put(output.tensor);
    to.put_text(output.name);
    to.put(output.type);
    to.put_all(std::span<const std::int64_t>(output.shape));
    to.put_all(std::span<const std::int64_t>(output.points));
    to.put_all(std::span<const double>(output.values));
    to.put(output.relative_tolerance);
    to.put(output.absolute_tolerance);
  }
}

TUNEWRIGHT_INLINE TaskView get_task(Reader& from) {
  const auto shape = [&] {
    const auto extents = from.get_all<std::int64_t>();
    return std::vector<std::int64_t>(extents.begin(), extents.end());
  };
  TaskView view;
  for (auto left = from.get<std::size_t>(); left-- > 0;) {
    InputView input;
    input.tensor = from.get<program::TensorId>();
    input.name = from.get_text();
    input.type = from.get<program::ScalarType>();
    input.shape = shape();
    input.bytes = from.get_all<char>();
    view.inputs.push_back(std::move(input));
  }
  for (auto left = from.get<std::size_t>(); left-- > 0;) {
    OutputView output;
    output.tensor = from.get<program::TensorId>();
    output.name = from.get_text();
    output.type = from.get<program::ScalarType>();
    output.shape = shape();
    output.points = from.get_all<std::int64_t>();
    output.values = from.get_all<double>();
    output.relative_tolerance = from.get<double>();
    output.absolute_tolerance = from.get<double>();
    view.outputs.push_back(std::move(output));
  }
  return view;
}

TUNEWRIGHT_INLINE void put(Writer& to, const codegen::Kernel& kernel) {
  to.put_text(kernel.symbol);
  to.put(kernel.native);
  to.put_all(kernel.object ? std::span<const char>(*kernel.object) : std::span<const char>());
  to.put(kernel.buffers.size());
  for (const codegen::KernelBuffer& buffer : kernel.buffers) {
    to.put_text(buffer.layout.name);
    to.put(buffer.layout.tensor);
    to.put(buffer.layout.type);
    to.put(buffer.layout.role);
    to.put_all(std::span<const std::int64_t>(buffer.layout.shape));
    to.put_all(std::span<const loops::PackedDimension>(buffer.layout.packing));
  }
}

TUNEWRIGHT_INLINE KernelView get_kernel(Reader& from) {
  KernelView view;
  view.symbol = from.get_text();
  view.native = from.get<codegen::tunewright_kernel>();
  view.object = from.get_all<char>();
  for (auto left = from.get<std::size_t>(); left-- > 0;) {
    codegen::KernelBuffer buffer;
    buffer.layout.name = from.get_text();
    buffer.layout.tensor = from.get<program::TensorId>();
    buffer.layout.type = from.get<program::ScalarType>();
    buffer.layout.role = from.get<loops::BufferRole>();
    const auto shape = from.get_all<std::int64_t>();
    buffer.layout.shape.assign(shape.begin(), shape.end());
    const auto packing = from.get_all<loops::PackedDimension>();
    buffer.layout.packing.assign(packing.begin(), packing.end());
    view.buffers.push_back(std::move(buffer));
  }
  return view;
}

}  // namespace tunewright::measurers::sandbox

#endif
