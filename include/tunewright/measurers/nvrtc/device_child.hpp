// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/nvrtc/code_wire.hpp"
#include "tunewright/measurers/nvrtc/device_facts.hpp"
#include "tunewright/measurers/nvrtc/device_memory.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"
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
  struct Rejected : std::runtime_error {
    Rejected(Fault why, const std::string& detail) : std::runtime_error(detail), fault(why) {}
    Fault fault;
  };
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
  struct Input {
    sandbox::InputView view;
    DeviceMemory memory;
    std::optional<DeviceMemory> original{};  ///< on the device, where copying it is quick; none where that is full
  };
  struct Output {
    sandbox::OutputView expected;
    DeviceMemory memory;
  };
  struct Packed {
    DeviceMemory memory;
    std::vector<char> contents;
  };
  /// A program and the memory that it runs on.
  struct Bound {
    std::unique_ptr<Module> module;
    std::vector<Launch> launches;
    std::vector<std::unique_ptr<DeviceMemory>> workspace;
    std::vector<std::unique_ptr<Packed>> packed;
    double checked_call_seconds = 0;
  };
  /// Calls that are timed on the device, between two events.
  struct Calls {
    DeviceChild& child;
    Bound& bound;
    [[nodiscard]] double seconds(unsigned calls) const { return child.time(bound, calls); }
  };

  static void fail(sandbox::Reply& reply, Fault fault, const std::string& detail) noexcept;

  void answer(const sandbox::Request& request, sandbox::Descriptor contents, sandbox::Reply& reply);

  static void report(const sandbox::Series& series, sandbox::Reply& reply);

  // The device.

  void start();

  // Tasks and programs.

  void set_task(sandbox::Mapping mapping);

  void keep_originals();
  void give_up_originals();
  [[nodiscard]] bool has_originals() const;

  /// The child gives up originals if the device lacks memory for the program, and tries again.
  [[nodiscard]] Bound load_and_check_with_room(const sandbox::Mapping& mapping);
  [[nodiscard]] Bound load_and_check(const sandbox::Mapping& mapping);

  void reject_unfit(const CodeView& code) const;

  [[nodiscard]] Launch prepare(const codegen::DeviceLaunch& from, const std::vector<CUdeviceptr>& addresses,
                               const Bound& bound) const;

  [[nodiscard]] CUdeviceptr address(const codegen::KernelBuffer& buffer, Bound& bound) const;

  [[nodiscard]] std::unique_ptr<Packed> packed(const Input& input, const codegen::KernelBuffer& buffer) const;

  // Runs.

  void call(Bound& bound) const;

  [[nodiscard]] double time(Bound& bound, unsigned calls) const;

  /// Calls the kernel once on fresh inputs and poisoned outputs and workspace, and compares the outputs. Originals that
  /// an earlier kernel may have overwritten are written anew before the kernel counts as wrong.
  void check(Bound& bound);
  void call_on_fresh_data(Bound& bound);
  [[nodiscard]] std::optional<std::string> difference();

  void check_zones(const Bound& bound) const;

  /// Overwrites twice the size of the L2 cache. Nothing waits for that: a kernel launched meanwhile follows at once, so
  /// that its time includes no wait for the host.
  void flush(const Protocol& protocol);

  int socket_;
  std::string library_;
  int ordinal_;
  std::unique_ptr<Driver> driver_;  // declared before what lives in it
  DeviceFacts facts_;
  std::array<CUevent, 2> events_{};
  sandbox::Mapping mapping_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::optional<PinnedMemory> results_;
  std::optional<DeviceMemory> flushed_;
  std::vector<Bound> kept_;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

#include "tunewright/measurers/nvrtc/describe_device.hpp"
#include "tunewright/measurers/nvrtc/device_limits.hpp"
#include "tunewright/measurers/sandbox/check.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE void DeviceChild::serve() {
  for (;;) {
    sandbox::Request request;
    sandbox::Descriptor contents;
    if (sandbox::receive_record(socket_, request, &contents) != sandbox::Received::Message) return;
    sandbox::Reply reply;
    try {
      answer(request, std::move(contents), reply);
    } catch (const Rejected& rejected) {
      fail(reply, rejected.fault, rejected.what());
    } catch (const DriverError& error) {
      fail(reply, fault_of(error.result()), error.what());
    } catch (const NoDevice& missing) {
      fail(reply, Fault::Unknown, missing.what());
    } catch (const std::exception& error) {
      fail(reply, Fault::RunError, error.what());
    }
    if (!sandbox::send_record(socket_, reply)) return;
  }
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

TUNEWRIGHT_INLINE void DeviceChild::fail(sandbox::Reply& reply, Fault fault, const std::string& detail) noexcept {
  reply.kind = sandbox::Reply::Kind::Failed;
  reply.fault = fault;
  reply.set_detail(detail);
}

TUNEWRIGHT_INLINE void DeviceChild::answer(const sandbox::Request& request, sandbox::Descriptor contents,
                                           sandbox::Reply& reply) {
  using Kind = sandbox::Request::Kind;
  start();
  const auto size = contents ? ::lseek(contents.get(), 0, SEEK_END) : 0;
  sandbox::Mapping mapping(contents.get(), static_cast<std::size_t>(size));
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
      Bound bound = load_and_check_with_room(mapping);
      Protocol protocol = request.protocol;
      // The first call may be slow for reasons that have nothing to do with the kernel: rising clocks, loading of code.
      protocol.partial_call_seconds = std::numeric_limits<double>::infinity();
      report(sandbox::time_kernel(protocol, request.best_seconds, bound.checked_call_seconds, Calls{*this, bound},
                                  [&] { flush(request.protocol); }),
             reply);
      check_zones(bound);
      break;
    }
    case Kind::Repeat: {
      Bound& bound = kept_.at(request.kernel);
      std::this_thread::sleep_for(std::chrono::duration<double>(request.settle_seconds));
      report(sandbox::one_turn(request.protocol, request.calls, Calls{*this, bound}, [&] { flush(request.protocol); }),
             reply);
      break;
    }
  }
}

TUNEWRIGHT_INLINE void DeviceChild::report(const sandbox::Series& series, sandbox::Reply& reply) {
  reply.calls = series.calls;
  reply.stopped = series.stopped;
  reply.repeat_count = static_cast<std::uint32_t>(series.repeats.size());
  for (std::size_t i = 0; i < series.repeats.size(); ++i) reply.repeats[i] = series.repeats[i];
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
  CUcontext context = nullptr;
  const CUresult retained = (*driver)->retain_context(&context, device);
  driver->check(retained, retained == CUDA_ERROR_DEVICE_UNAVAILABLE
                              ? "making a context; is the device for one process alone (nvidia-smi -q -d "
                                "COMPUTE) and in use?"
                              : "making a context");
  driver->check((*driver)->set_context(context), "taking the context");
  for (CUevent& event : events_) driver->check((*driver)->create_event(&event, CU_EVENT_DEFAULT), "making an event");
  facts_ = describe(*driver, device, count);
  driver_ = std::move(driver);
  results_.emplace(*driver_);
}

TUNEWRIGHT_INLINE void DeviceChild::set_task(sandbox::Mapping mapping) {
  kept_.clear();
  outputs_.clear();
  inputs_.clear();
  mapping_ = std::move(mapping);
  sandbox::Reader reader(mapping_.bytes());
  sandbox::TaskView view = sandbox::get_task(reader);
  for (sandbox::InputView& input : view.inputs) {
    DeviceMemory memory(*driver_, input.name, input.bytes.size());
    inputs_.push_back({std::move(input), std::move(memory)});
  }
  for (sandbox::OutputView& output : view.outputs) {
    DeviceMemory memory(*driver_, output.name,
                        static_cast<std::size_t>(checked_elements(output.shape)) * program::size_in_bytes(output.type));
    outputs_.push_back({std::move(output), std::move(memory)});
  }
  keep_originals();
}

TUNEWRIGHT_INLINE void DeviceChild::keep_originals() {
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

TUNEWRIGHT_INLINE void DeviceChild::give_up_originals() {
  for (Input& input : inputs_) input.original.reset();
}

TUNEWRIGHT_INLINE bool DeviceChild::has_originals() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const Input& input) { return input.original.has_value(); });
}

TUNEWRIGHT_INLINE DeviceChild::Bound DeviceChild::load_and_check_with_room(const sandbox::Mapping& mapping) {
  try {
    return load_and_check(mapping);
  } catch (const DriverError& error) {
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY || !has_originals()) throw;
  }
  give_up_originals();
  return load_and_check(mapping);
}

TUNEWRIGHT_INLINE DeviceChild::Bound DeviceChild::load_and_check(const sandbox::Mapping& mapping) {
  sandbox::Reader reader(mapping.bytes());
  const sandbox::KernelView kernel = sandbox::get_kernel(reader);
  if (kernel.native != nullptr)
    throw Rejected(Fault::CompileError, "a native kernel runs on processors, not on a device");
  const CodeView code = get_code(kernel.object);
  reject_unfit(code);
  Bound bound;
  bound.module = std::make_unique<Module>(*driver_, code.image.data());
  std::vector<CUdeviceptr> addresses;
  for (const codegen::KernelBuffer& buffer : kernel.buffers) addresses.push_back(address(buffer, bound));
  for (const CodeView::Launch& entry : code.launches) bound.launches.push_back(prepare(entry.launch, addresses, bound));
  check(bound);
  return bound;
}

TUNEWRIGHT_INLINE void DeviceChild::reject_unfit(const CodeView& code) const {
  if (!runs_on(code.architecture, code.format, facts_.major, facts_.minor)) {
    throw Rejected(Fault::DeviceCompileError, "code for " + code.architecture + " does not run on '" +
                                                  facts_.name.data() + "'; compile for " + facts_.architecture());
  }
  const Target target = target_of(facts_);
  for (const CodeView::Launch& entry : code.launches) {
    std::string limit = exceeded_limit(entry.launch, target);
    if (limit.empty()) limit = exceeded_registers(entry.launch, entry.registers, target);
    if (!limit.empty()) throw Rejected(Fault::InvalidSchedule, limit);
  }
}

TUNEWRIGHT_INLINE DeviceChild::Launch DeviceChild::prepare(const codegen::DeviceLaunch& from,
                                                           const std::vector<CUdeviceptr>& addresses,
                                                           const Bound& bound) const {
  Launch launch;
  driver_->check((*driver_)->get_function(&launch.function, bound.module->handle, from.symbol.c_str()),
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

TUNEWRIGHT_INLINE CUdeviceptr DeviceChild::address(const codegen::KernelBuffer& buffer, Bound& bound) const {
  const loops::Buffer& layout = buffer.layout;
  switch (layout.role) {
    case loops::BufferRole::Temporary:
      bound.workspace.push_back(std::make_unique<DeviceMemory>(*driver_, "workspace " + layout.name, buffer.bytes()));
      return bound.workspace.back()->data();
    case loops::BufferRole::Output:
      for (const Output& output : outputs_) {
        if (output.expected.tensor == layout.tensor) return output.memory.data();
      }
      break;
    case loops::BufferRole::Input:
    case loops::BufferRole::Constant:
      for (const Input& input : inputs_) {
        if (input.view.tensor != layout.tensor) continue;
        if (layout.packing.empty()) return input.memory.data();
        bound.packed.push_back(packed(input, buffer));
        return bound.packed.back()->memory.data();
      }
      break;
  }
  throw Rejected(Fault::InvalidSchedule,
                 "the task has no tensor " + std::to_string(layout.tensor) + " for buffer '" + layout.name + "'");
}

TUNEWRIGHT_INLINE std::unique_ptr<DeviceChild::Packed> DeviceChild::packed(const Input& input,
                                                                           const codegen::KernelBuffer& buffer) const {
  auto made = std::make_unique<Packed>(
      Packed{DeviceMemory(*driver_, "packed " + input.view.name, buffer.bytes()), std::vector<char>(buffer.bytes())});
  const auto copy = [&]<class T>(T) {
    codegen::pack(buffer.layout, input.view.shape, reinterpret_cast<const T*>(input.view.bytes.data()),
                  reinterpret_cast<T*>(made->contents.data()));
  };
  switch (program::size_in_bytes(buffer.layout.type)) {
    case 1: copy(std::uint8_t{}); break;
    case 2: copy(std::uint16_t{}); break;
    case 4: copy(std::uint32_t{}); break;
    default: copy(std::uint64_t{}); break;
  }
  return made;
}

TUNEWRIGHT_INLINE void DeviceChild::call(Bound& bound) const {
  for (Launch& launch : bound.launches) {
    std::vector<void*> arguments;
    arguments.reserve(launch.values.size());
    for (CUdeviceptr& value : launch.values) arguments.push_back(&value);
    driver_->check(
        (*driver_)->launch(launch.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                           launch.block[1], launch.block[2], launch.shared_bytes, nullptr, arguments.data(), nullptr),
        "launching the kernel");
  }
}

TUNEWRIGHT_INLINE double DeviceChild::time(Bound& bound, unsigned calls) const {
  driver_->check((*driver_)->record_event(events_[0], nullptr), "recording the start");
  for (unsigned i = 0; i < calls; ++i) call(bound);
  driver_->check((*driver_)->record_event(events_[1], nullptr), "recording the end");
  driver_->check((*driver_)->wait_for_event(events_[1]), "running the kernel");
  float milliseconds = 0;
  driver_->check((*driver_)->elapsed_milliseconds(&milliseconds, events_[0], events_[1]), "reading the time");
  return static_cast<double>(milliseconds) * 1e-3;
}

TUNEWRIGHT_INLINE void DeviceChild::check(Bound& bound) {
  call_on_fresh_data(bound);
  std::optional<std::string> wrong = difference();
  if (wrong && has_originals()) {
    keep_originals();
    call_on_fresh_data(bound);
    wrong = difference();
  }
  if (wrong) throw Rejected(Fault::WrongResult, *wrong);
}

TUNEWRIGHT_INLINE void DeviceChild::call_on_fresh_data(Bound& bound) {
  for (const Input& input : inputs_) {
    if (input.original)
      input.memory.copy(*input.original);
    else
      input.memory.write(input.view.bytes.data());
  }
  for (const auto& constant : bound.packed) constant->memory.write(constant->contents.data());
  for (const Output& output : outputs_) {
    output.memory.fill_zones();
    output.memory.poison();
  }
  for (const auto& memory : bound.workspace) memory->poison();
  driver_->check((*driver_)->synchronize(), "preparing the memory");
  bound.checked_call_seconds = time(bound, 1);
  check_zones(bound);
}

TUNEWRIGHT_INLINE std::optional<std::string> DeviceChild::difference() {
  for (const Output& output : outputs_) {
    char* contents = results_->with_room_for(output.memory.bytes());
    output.memory.read(contents);
    if (auto wrong = sandbox::mismatch(output.expected, contents)) return wrong;
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE void DeviceChild::check_zones(const Bound& bound) const {
  const auto look = [](const DeviceMemory& memory) {
    if (const auto damage = memory.damage()) throw Rejected(Fault::OutOfBounds, *damage);
  };
  for (const Output& output : outputs_) look(output.memory);
  for (const auto& memory : bound.workspace) look(*memory);
}

TUNEWRIGHT_INLINE void DeviceChild::flush(const Protocol& protocol) {
  if (!protocol.flush_cache) return;
  if (!flushed_) {
    const std::int64_t bytes = facts_.l2_bytes > 0 ? std::int64_t{2} * facts_.l2_bytes : std::int64_t{64} << 20;
    flushed_.emplace(*driver_, "cache flush", static_cast<std::size_t>(bytes));
  }
  flushed_->poison();
}

}  // namespace tunewright::measurers::nvrtc

#endif
