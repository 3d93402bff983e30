// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/measurers/reference_data.hpp"
#include "tunewright/measurers/task_cache.hpp"

namespace tunewright::measurers {

/// Checks GPU programs on machines without a GPU: runs their kernels on the CPU, with the threads in step from barrier
/// to barrier, and compares the outputs with the reference. It finds out whether a program is right; only a model can
/// tell how fast it is.
///
///   measurers::SimtCheck check;
///   check.latency = [machine = measurers::Simulated{}](const Task& task, const loops::LoopNest& nest) {
///     return machine.latency(nest, task.target);
///   };
///   check.latency_identity = measurers::Simulated{}.identity();
///
/// | what the program does                                  | outcome           |
/// | ------------------------------------------------------ | ----------------- |
/// | exceeds a limit of the target, or is no GPU program    | `InvalidSchedule` |
/// | touches memory outside a buffer                        | `OutOfBounds`     |
/// | reads what was not written, or races                   | `WrongResult`     |
/// | leaves elements unwritten or wrong                     | `WrongResult`     |
/// | runs more statements than `max_statements`             | `RunTimeout`      |
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer.
/// Units:       latencies are those of `latency`; without it, every program takes one nanosecond, so that all correct
///              programs are equal.
/// Cost:        about half a microsecond per executed statement; reference values once per task, which are cached up to
///              `task_cache_bytes`. Each program advances the virtual clock by `trial`.
/// Errors:      `std::invalid_argument` for a task without a graph.
/// Determinism: a function of the programs and of `reference.seed`.
struct SimtCheck {
  std::function<Seconds(const Task&, const loops::LoopNest&)> latency{};  ///< of a lowered program
  std::string latency_identity{};  ///< names `latency` in journals, which compare only latencies of one name
  ReferenceData reference{};
  std::size_t task_cache_bytes = std::size_t{256} << 20;  ///< limit of the cached data of tasks
  std::int64_t max_statements = 100'000'000;
  Seconds trial{0.1};  ///< simulated time of one measurement
  VirtualClock clock{};

  // Run-time state, shared by copies of a measurer.
  std::shared_ptr<TaskCache<TaskData>> tasks = std::make_shared<TaskCache<TaskData>>();

  /// Tells latencies of one nanosecond, of a function without a name, and of each named function apart.
  [[nodiscard]] std::string identity() const {
    if (!latency) return "simt check 1";
    return "simt check 1, latencies of " + (latency_identity.empty() ? "a function" : latency_identity);
  }

  [[nodiscard]] std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                                             const OutcomeSink& sink = {}) const;

  /// Checks one program. Throws `std::invalid_argument` for a task without a graph.
  [[nodiscard]] Outcome outcome(const Task& task, const loops::LoopNest& nest) const;

 private:
  /// Initial value of outputs: a NaN that no computation produces.
  static constexpr std::uint64_t poison = 0x7ff8'7e57'ab1e'd00dULL;

  [[nodiscard]] std::optional<Failure> objection(const Task& task, const loops::LoopNest& nest) const;

  /// Number of executed statements if all guards hold.
  static double statements(const loops::LoopNest& nest, const loops::Body& body);

  [[nodiscard]] static std::vector<std::vector<double>> arguments_of(const loops::LoopNest& nest, const TaskData& data);

  [[nodiscard]] static std::optional<Failure> difference(const loops::LoopNest& nest,
                                                         const std::vector<std::vector<double>>& arguments,
                                                         const TaskData& data);
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/simt.hpp"
#include "tunewright/measurers/sandbox/check.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE std::vector<Outcome> SimtCheck::measure(const Task& task, std::span<const loops::LoopNest> programs,
                                                          const OutcomeSink& sink) const {
  std::vector<Outcome> outcomes;
  outcomes.reserve(programs.size());
  for (const loops::LoopNest& nest : programs) {
    outcomes.push_back(outcome(task, nest));
    clock.advance(trial);
    if (sink) sink(outcomes.size() - 1, outcomes.back());
  }
  return outcomes;
}

TUNEWRIGHT_INLINE Outcome SimtCheck::outcome(const Task& task, const loops::LoopNest& nest) const {
  Outcome result;
  result.run_time = trial;
  if (std::optional<Failure> wrong = objection(task, nest)) {
    result.result = *std::move(wrong);
    return result;
  }
  Timing timing;
  timing.median = latency ? latency(task, nest) : Seconds(1e-9);
  timing.repeats = {timing.median};
  timing.stopped = StopReason::Precise;
  result.result = std::move(timing);
  return result;
}

TUNEWRIGHT_INLINE std::optional<Failure> SimtCheck::objection(const Task& task, const loops::LoopNest& nest) const {
  const std::string_view exceeded = loops::exceeded_limit(nest, loops::GpuLimits::of(task.target));
  if (!exceeded.empty()) return Failure{Fault::InvalidSchedule, std::string(exceeded)};
  const std::shared_ptr<const TaskData> kept = tasks->data_of(task, reference, task_cache_bytes);
  const TaskData& data = *kept;
  try {
    const loops::LoopNest device = loops::to_device(nest);
    if (statements(device, device.body) > static_cast<double>(max_statements)) {
      return Failure{Fault::RunTimeout, "more than " + std::to_string(max_statements) +
                                            " statements to run; check smaller shapes, or allow more"};
    }
    std::vector<std::vector<double>> arguments = arguments_of(device, data);
    loops::run_simt(device, arguments);
    return difference(device, arguments, data);
  } catch (const loops::DeviceFormError& error) {
    return Failure{Fault::InvalidSchedule, error.what()};
  } catch (const loops::InterpretError& error) {
    switch (error.fault()) {
      case loops::AccessFault::Outside: return Failure{Fault::OutOfBounds, error.what()};
      case loops::AccessFault::NotRunnable: return Failure{Fault::InvalidSchedule, error.what()};
      case loops::AccessFault::Unwritten:
      case loops::AccessFault::Race: break;
    }
    return Failure{Fault::WrongResult, error.what()};
  }
}

TUNEWRIGHT_INLINE double SimtCheck::statements(const loops::LoopNest& nest, const loops::Body& body) {
  double count = 0;
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content))
      count += static_cast<double>(nest.variables[loop->var].extent) * statements(nest, loop->body);
    if (const auto* branch = std::get_if<loops::Branch>(&node.content))
      count += std::max(statements(nest, branch->then), statements(nest, branch->otherwise));
    if (std::holds_alternative<loops::Statement>(node.content)) ++count;
  }
  return count;
}

TUNEWRIGHT_INLINE std::vector<std::vector<double>> SimtCheck::arguments_of(const loops::LoopNest& nest,
                                                                           const TaskData& data) {
  std::vector<std::vector<double>> arguments;
  for (const loops::BufferId id : nest.arguments) {
    const loops::Buffer& buffer = nest.buffers[id];
    std::vector<double>& values =
        arguments.emplace_back(static_cast<std::size_t>(buffer.elements()), std::bit_cast<double>(poison));
    for (const TensorContents& input : data.inputs) {
      if (buffer.role == loops::BufferRole::Output || input.tensor != buffer.tensor) continue;
      std::vector<double> plain(static_cast<std::size_t>(checked_elements(input.shape)));
      for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = sandbox::element(input.type, input.bytes.data(), i);
      codegen::pack<double>(buffer, plain.data(), values.data());
    }
  }
  return arguments;
}

TUNEWRIGHT_INLINE std::optional<Failure> SimtCheck::difference(const loops::LoopNest& nest,
                                                               const std::vector<std::vector<double>>& arguments,
                                                               const TaskData& data) {
  for (const ExpectedOutput& expected : data.outputs) {
    for (std::size_t a = 0; a < arguments.size(); ++a) {
      const loops::Buffer& buffer = nest.buffers[nest.arguments[a]];
      if (buffer.role != loops::BufferRole::Output || buffer.tensor != expected.tensor) continue;
      for (std::size_t i = 0; i < arguments[a].size(); ++i) {
        if (std::bit_cast<std::uint64_t>(arguments[a][i]) != poison) continue;
        return Failure{Fault::WrongResult, "output '" + expected.name + "': element " + std::to_string(i) + " of " +
                                               std::to_string(arguments[a].size()) + " was never written"};
      }
      if (auto wrong = sandbox::difference(expected, [&](std::size_t at) { return arguments[a][at]; }))
        return Failure{Fault::WrongResult, *std::move(wrong)};
    }
  }
  return std::nullopt;
}

}  // namespace tunewright::measurers

#endif
