// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/nvrtc/code_wire.hpp"
#include "tunewright/measurers/nvrtc/device_facts.hpp"
#include "tunewright/measurers/nvrtc/device_memory.hpp"
#include "tunewright/measurers/nvrtc/device_program.hpp"
#include "tunewright/measurers/nvrtc/device_task.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"
#include "tunewright/measurers/nvrtc/primary_context.hpp"
#include "tunewright/measurers/sandbox/records.hpp"
#include "tunewright/measurers/sandbox/stopwatch.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"

namespace tunewright::measurers::nvrtc {

/// The worker process of one device: owns the context and answers the requests of `Sandbox`. It loads the driver at the
/// first request, so that a missing driver is reported in the answer.
class DeviceChild {
 public:
  DeviceChild(int socket, std::string library, int ordinal)
      : socket_(socket), library_(std::move(library)), ordinal_(ordinal) {}

  /// Answers requests until the tuner closes its end.
  void serve();

  /// The fault that an error of the driver means for the kernel that was run. After `RunError` and `OutOfBounds` the
  /// context is mostly unusable, so `Sandbox` replaces the worker.
  [[nodiscard]] static Fault fault_of(CUresult result) noexcept;

 private:
  /// Calls that are timed on the device, between two events.
  struct Calls {
    const DeviceChild& child;
    DeviceProgram& program;
    [[nodiscard]] double seconds(unsigned calls) const { return child.time(program, calls); }
  };

  void answer(const sandbox::Request& request, sandbox::Mapping mapping, sandbox::Reply& reply);

  void start();
  void set_task(sandbox::Mapping mapping);

  /// The child gives up originals if the device lacks memory for the program, and tries again.
  [[nodiscard]] DeviceProgram load_and_check_with_room(const sandbox::Mapping& mapping);
  [[nodiscard]] DeviceProgram load_and_check(const sandbox::Mapping& mapping);
  void reject_unfit(const CodeView& code) const;

  [[nodiscard]] double time(DeviceProgram& program, unsigned calls) const;

  /// Calls the kernel once on fresh inputs and poisoned outputs and workspace, and compares the outputs. Originals that
  /// an earlier kernel may have overwritten are written anew before the kernel counts as wrong.
  void check(DeviceProgram& program);
  void call_on_fresh_data(DeviceProgram& program) const;
  void check_zones(const DeviceProgram& program) const;

  /// Overwrites twice the size of the L2 cache, or 64 MiB if that is unknown; empty if nothing is evicted. The host
  /// does not wait for the device, so a kernel follows at once and its time includes no wait for the host.
  [[nodiscard]] sandbox::Eviction eviction(const Protocol& protocol);

  int socket_;
  std::string library_;
  int ordinal_;
  std::unique_ptr<Driver> driver_;  // these two are declared before what lives in them
  std::unique_ptr<PrimaryContext> context_;
  DeviceFacts facts_;
  std::array<CUevent, 2> events_{};
  sandbox::Mapping mapping_;
  std::optional<DeviceTask> task_;
  std::optional<PinnedMemory> results_;
  std::optional<DeviceMemory> filler_;
  std::vector<DeviceProgram> kept_;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

#include "tunewright/measurers/nvrtc/describe_device.hpp"
#include "tunewright/measurers/nvrtc/device_limits.hpp"
#include "tunewright/measurers/sandbox/serve_requests.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE void DeviceChild::serve() {
  sandbox::serve_requests(socket_,
                          [this](const sandbox::Request& request, sandbox::Mapping mapping, sandbox::Reply& reply) {
                            try {
                              answer(request, std::move(mapping), reply);
                            } catch (const DriverError& error) {
                              throw sandbox::Rejected(fault_of(error.result()), error.what());
                            } catch (const NoDevice& missing) {
                              throw sandbox::Rejected(Fault::Unknown, missing.what());
                            }
                          });
}

TUNEWRIGHT_INLINE Fault DeviceChild::fault_of(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS: return Fault::OutOfBounds;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NOT_FOUND: return Fault::DeviceCompileError;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: return Fault::InvalidSchedule;
    default: return Fault::RunError;
  }
}

TUNEWRIGHT_INLINE void DeviceChild::answer(const sandbox::Request& request, sandbox::Mapping mapping,
                                           sandbox::Reply& reply) {
  using Kind = sandbox::Request::Kind;
  start();
  switch (request.kind) {
    case Kind::Describe: {
      static_assert(std::is_trivially_copyable_v<DeviceFacts> && sizeof(DeviceFacts) <= sizeof(reply.detail));
      std::memcpy(reply.detail.data(), &facts_, sizeof facts_);
      break;
    }
    case Kind::SetTask: set_task(std::move(mapping)); break;
    case Kind::Drop: kept_.clear(); break;
    case Kind::Keep: kept_.push_back(load_and_check_with_room(mapping)); break;
    case Kind::Measure: {
      DeviceProgram program = load_and_check_with_room(mapping);
      Protocol protocol = request.protocol;
      // The first call may be slow for reasons that have nothing to do with the kernel: rising clocks, loading of code.
      protocol.partial_call_seconds = std::numeric_limits<double>::infinity();
      sandbox::report(sandbox::time_kernel(protocol, request.best_seconds, program.checked_call_seconds,
                                           Calls{*this, program}, eviction(request.protocol)),
                      reply);
      check_zones(program);
      break;
    }
    case Kind::Repeat: {
      DeviceProgram& program = kept_.at(request.kernel);
      std::this_thread::sleep_for(std::chrono::duration<double>(request.settle_seconds));
      sandbox::report(
          sandbox::one_turn(request.protocol, request.calls, Calls{*this, program}, eviction(request.protocol)), reply);
      break;
    }
  }
}

TUNEWRIGHT_INLINE void DeviceChild::start() {
  if (driver_) return;
  auto driver = std::make_unique<Driver>(library_);
  int count = 0;
  driver->check((*driver)->device_count(&count), "counting devices");
  if (ordinal_ < 0 || ordinal_ >= count) {
    throw NoDevice("device " + std::to_string(ordinal_) + " was asked for, but the CUDA driver sees " +
                   std::to_string(count) +
                   (count == 0 ? "; is a GPU there, and is it visible (CUDA_VISIBLE_DEVICES)?"
                               : "; give 0 to " + std::to_string(count - 1)));
  }
  CUdevice device = 0;
  driver->check((*driver)->device_get(&device, ordinal_), "opening the device");
  auto context = std::make_unique<PrimaryContext>(*driver, device);
  for (CUevent& event : events_) driver->check((*driver)->create_event(&event, CU_EVENT_DEFAULT), "making an event");
  facts_ = describe(*driver, device, count);
  driver_ = std::move(driver);
  context_ = std::move(context);
  results_.emplace(*driver_);
}

TUNEWRIGHT_INLINE void DeviceChild::set_task(sandbox::Mapping mapping) {
  kept_.clear();
  task_.reset();
  mapping_ = std::move(mapping);
  sandbox::Reader reader(mapping_.bytes());
  task_.emplace(*driver_, sandbox::get_task(reader));
}

TUNEWRIGHT_INLINE DeviceProgram DeviceChild::load_and_check_with_room(const sandbox::Mapping& mapping) {
  if (!task_) throw sandbox::Rejected(Fault::Unknown, "a program before its task");
  try {
    return load_and_check(mapping);
  } catch (const DriverError& error) {
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY || !task_->has_originals()) throw;
  }
  task_->give_up_originals();
  return load_and_check(mapping);
}

TUNEWRIGHT_INLINE DeviceProgram DeviceChild::load_and_check(const sandbox::Mapping& mapping) {
  sandbox::Reader reader(mapping.bytes());
  const sandbox::KernelView kernel = sandbox::get_kernel(reader);
  if (kernel.native != nullptr)
    throw sandbox::Rejected(Fault::CompileError, "a native kernel runs on processors, not on a device");
  const CodeView code = get_code(kernel.object);
  reject_unfit(code);
  DeviceProgram program(*driver_, *task_, kernel, code);
  check(program);
  return program;
}

TUNEWRIGHT_INLINE void DeviceChild::reject_unfit(const CodeView& code) const {
  if (!runs_on(code.architecture, code.format, facts_.major, facts_.minor)) {
    throw sandbox::Rejected(Fault::DeviceCompileError, "code for " + code.architecture + " does not run on '" +
                                                           facts_.name.data() + "'; compile for " +
                                                           facts_.architecture());
  }
  const Target target = target_of(facts_);
  for (const CodeView::Launch& entry : code.launches) {
    std::string limit = exceeded_limit(entry.launch, target);
    if (limit.empty()) limit = exceeded_registers(entry.launch, entry.registers, target);
    if (!limit.empty()) throw sandbox::Rejected(Fault::InvalidSchedule, limit);
  }
}

TUNEWRIGHT_INLINE double DeviceChild::time(DeviceProgram& program, unsigned calls) const {
  driver_->check((*driver_)->record_event(events_[0], nullptr), "recording the start");
  for (unsigned i = 0; i < calls; ++i) program.call();
  driver_->check((*driver_)->record_event(events_[1], nullptr), "recording the end");
  driver_->check((*driver_)->wait_for_event(events_[1]), "running the kernel");
  float milliseconds = 0;
  driver_->check((*driver_)->elapsed_milliseconds(&milliseconds, events_[0], events_[1]), "reading the time");
  return static_cast<double>(milliseconds) * 1e-3;
}

TUNEWRIGHT_INLINE void DeviceChild::check(DeviceProgram& program) {
  call_on_fresh_data(program);
  std::optional<std::string> wrong = task_->difference(*results_);
  if (wrong && task_->originals_are_damaged()) {  // by an earlier kernel: this one may be right
    task_->write_originals();
    call_on_fresh_data(program);
    wrong = task_->difference(*results_);
  }
  if (wrong) throw sandbox::Rejected(Fault::WrongResult, *wrong);
}

TUNEWRIGHT_INLINE void DeviceChild::call_on_fresh_data(DeviceProgram& program) const {
  task_->refresh();
  program.refresh();
  driver_->check((*driver_)->synchronize(), "preparing the memory");
  program.checked_call_seconds = time(program, 1);
  check_zones(program);
}

TUNEWRIGHT_INLINE void DeviceChild::check_zones(const DeviceProgram& program) const {
  for (const std::optional<std::string>& damage : {task_->damage(), program.damage()})
    if (damage) throw sandbox::Rejected(Fault::OutOfBounds, *damage);
}

TUNEWRIGHT_INLINE sandbox::Eviction DeviceChild::eviction(const Protocol& protocol) {
  if (protocol.evict == Evict::Nothing) return {};
  if (!filler_) {
    const std::int64_t bytes = facts_.l2_bytes > 0 ? std::int64_t{2} * facts_.l2_bytes : std::int64_t{64} << 20;
    filler_.emplace(*driver_, "cache filler", static_cast<std::size_t>(bytes));
  }
  return [this] { filler_->poison(); };
}

}  // namespace tunewright::measurers::nvrtc

#endif
