// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/guarded_memory.hpp"
#include "tunewright/measurers/sandbox/records.hpp"
#include "tunewright/measurers/sandbox/serve_requests.hpp"
#include "tunewright/measurers/sandbox/stopwatch.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"
#include "tunewright/measurers/sandbox/worker_parts.hpp"

namespace tunewright::measurers::sandbox {

/// The worker's side of the sandbox: holds the buffers of one task, binds kernels to them, and answers requests.
class Child {
 public:
  Child(int socket, const WorkerParts& parts) : socket_(socket), parts_(parts) {
    if (::sched_getaffinity(0, sizeof usual_processors_, &usual_processors_) != 0) CPU_ZERO(&usual_processors_);
  }

  /// Answers requests until the tuner closes its end.
  void serve();

 private:
  struct Output {
    OutputView expected;
    GuardedBuffer memory;
  };
  /// A kernel and its arguments.
  struct Bound {
    LoadedObject code;
    std::vector<void*> arguments;
    std::vector<std::span<const char>> constants, others;  // what the arguments point to
    std::vector<GuardedBuffer> workspace;
    std::vector<std::shared_ptr<const GuardedBuffer>> packed;
    const codegen::tunewright_runtime* runtime = nullptr;
    bool native = false;
    double checked_call_seconds = 0;
  };
  struct Packed {
    program::TensorId tensor;
    std::vector<std::int64_t> shape;
    std::vector<loops::PackedDimension> packing;
    std::shared_ptr<const GuardedBuffer> memory;
  };

  void answer(const Request& request, Mapping mapping, Reply& reply);

  void measure(const Mapping& mapping, const Request& request, Reply& reply);

  void set_task(Mapping mapping, const Request& request);

  [[nodiscard]] Bound load_and_check(const Mapping& mapping);

  [[nodiscard]] Bound load(const Mapping& mapping);

  [[nodiscard]] Bound bind(const KernelView& kernel);

  [[nodiscard]] void* address(const codegen::KernelBuffer& buffer, Bound& bound);

  /// Constants in the order that a kernel reads them; cached, because similar candidates often use the same order.
  [[nodiscard]] std::shared_ptr<const GuardedBuffer> packed(const InputView& input, const GuardedBuffer& row_major,
                                                            const codegen::KernelBuffer& buffer);

  /// Created for the first kernel instead of for the task, so that threads start only if they are needed.
  [[nodiscard]] const codegen::tunewright_runtime* runtime();

  /// Calls come from the first processor, since the runtime's threads use the others.
  void keep_to_first_processor() const {
    if (!processors_.empty()) allow(0, std::span(processors_).first(1));
  }

  /// Keeps to the first of the task's processors, or without any to those that the process may use. Throws
  /// `std::runtime_error` if one of them may not be used. The system refuses a set of such alone, and ignores them in a
  /// set with others.
  void take_processors() const;

  /// Called before the first call of a native kernel: it may start its own threads, which inherit the caller's
  /// affinity.
  void use_all_processors() const {
    if (!processors_.empty()) allow(0, processors_);
  }

  /// Pins each thread that a native kernel started to its own processor, as its library does when asked to bind
  /// threads. If two threads share a processor, a barrier between them takes a time slice of the scheduler.
  void spread_threads() const;

  static void allow(pid_t thread, std::span<const int> processors);

  static void call(const Bound& bound) { call(bound, bound.runtime); }
  TUNEWRIGHT_CALLS_COMPILED_CODE static void call(const Bound& bound, const codegen::tunewright_runtime* runtime) {
    bound.code.entry(bound.arguments.data(), runtime);
  }

  /// The latency extrapolated from partial calls, if `extrapolate` finds them sufficient. A partial call that completes
  /// becomes the checked call.
  [[nodiscard]] std::optional<Series> time_parts(Bound& bound, const Request& request);

  /// Calls the kernel once on poisoned memory, unless a checked call was made already; then compares outputs with the
  /// expected values and red zones with their pattern.
  void check(Bound& bound);

  /// Throws `Rejected` if an integer was not written. An element may rightly have the value of the poison, but not that
  /// of another poison after another call, too.
  void check_integers(const Bound& bound) const;

  void poison(const Bound& bound) const;

  void check_red_zones(const Bound& bound) const;

  /// Evicts what the protocol says, if `bound`, which must outlive it, has such buffers. Helpers of the runtime fall
  /// asleep meanwhile, so it also wakes them, unless a native kernel has threads of its own, which they would disturb.
  [[nodiscard]] Eviction eviction(const Protocol& protocol, const Bound& bound) const;

  static constexpr std::size_t packed_limit_bytes = std::size_t{128} << 20;

  int socket_;
  const WorkerParts& parts_;
  Mapping mapping_;
  unsigned threads_ = 1;
  cpu_set_t usual_processors_;   // before any task; empty if the system has more processors than a set holds
  std::vector<int> processors_;  // of the task
  std::vector<std::pair<InputView, GuardedBuffer>> inputs_;
  std::vector<Output> outputs_;
  std::deque<Packed> packed_;
  std::size_t packed_bytes_ = 0;
  HostRuntime runtime_;
  std::vector<Bound> kept_;
};

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/sandbox/check.hpp"
#include "tunewright/measurers/sandbox/crash_report.hpp"

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE void Child::serve() {
  serve_requests(socket_, [this](const Request& request, Mapping mapping, Reply& reply) {
    answer(request, std::move(mapping), reply);
  });
}

TUNEWRIGHT_INLINE void Child::answer(const Request& request, Mapping mapping, Reply& reply) {
  switch (request.kind) {
    case Request::Kind::SetTask: set_task(std::move(mapping), request); break;
    case Request::Kind::Drop: kept_.clear(); break;
    case Request::Kind::Keep: kept_.push_back(load_and_check(mapping)); break;
    case Request::Kind::Measure: measure(mapping, request, reply); break;
    case Request::Kind::Repeat: {
      const Bound& bound = kept_.at(request.kernel);
      keep_to_first_processor();
      std::this_thread::sleep_for(std::chrono::duration<double>(request.settle_seconds));
      report(one_turn(request.protocol, request.calls, [&] { call(bound); }, eviction(request.protocol, bound)), reply);
      break;
    }
    case Request::Kind::Describe:
      throw Rejected(Fault::Unknown, "this worker runs kernels on the processors of this machine");
  }
}

TUNEWRIGHT_INLINE void Child::measure(const Mapping& mapping, const Request& request, Reply& reply) {
  Bound bound = load(mapping);
  std::optional<Series> series;
  // A native kernel's own threads do not run the runtime's parallel loops, so it cannot be called in part.
  if (request.best_seconds > 0 && std::isfinite(request.protocol.partial_call_seconds) && !bound.native)
    series = time_parts(bound, request);
  if (!series) {
    check(bound);
    series = time_kernel(
        request.protocol, request.best_seconds, bound.checked_call_seconds, [&] { call(bound); },
        eviction(request.protocol, bound));
  }
  report(*series, reply);
  check_red_zones(bound);
}

TUNEWRIGHT_INLINE std::optional<Series> Child::time_parts(Bound& bound, const Request& request) {
  PartialCall part(*runtime_.dividing, request.protocol.partial_call_seconds,
                   request.protocol.nearly_best_factor * request.best_seconds);
  const auto time = [&] {
    const PartialTime taken = part.time([&](const codegen::tunewright_runtime* runtime) { call(bound, runtime); });
    if (taken.complete) bound.checked_call_seconds = taken.spent_seconds;
    check_red_zones(bound);
    return taken;
  };
  const Eviction evicting = eviction(request.protocol, bound);
  return extrapolate(request.protocol, request.best_seconds, time, [&] {
    poison(bound);
    if (evicting) evicting();
  });
}

TUNEWRIGHT_INLINE void Child::set_task(Mapping mapping, const Request& request) {
  kept_.clear();
  packed_.clear();
  packed_bytes_ = 0;
  outputs_.clear();
  inputs_.clear();
  mapping_ = std::move(mapping);
  std::vector<int> processors;
  for (int p = 0; p < static_cast<int>(request.processors.size()); ++p) {
    if (request.processors.test(static_cast<std::size_t>(p))) processors.push_back(p);
  }
  if (threads_ != request.threads || processors_ != processors) runtime_ = {};
  threads_ = request.threads;
  processors_ = std::move(processors);
  Reader reader(mapping_.bytes());
  TaskView view = get_task(reader);
  for (InputView& input : view.inputs) {
    // A copy instead of the shared pages, which are small and have no guard pages.
    GuardedBuffer memory(input.name, input.bytes.size());
    if (!input.bytes.empty()) std::memcpy(memory.data(), input.bytes.data(), input.bytes.size());
    memory.make_read_only();
    inputs_.emplace_back(std::move(input), std::move(memory));
  }
  for (OutputView& output : view.outputs) {
    const auto count = static_cast<std::size_t>(checked_elements(output.shape));
    GuardedBuffer memory(output.name, count * program::size_in_bytes(output.type));
    outputs_.push_back({std::move(output), std::move(memory)});
  }
  take_processors();
  (void)runtime();
}

TUNEWRIGHT_INLINE void Child::take_processors() const {
  if (processors_.empty()) {
    if (CPU_COUNT(&usual_processors_) > 0 && ::sched_setaffinity(0, sizeof usual_processors_, &usual_processors_) != 0)
      throw_system_error("sched_setaffinity");
    return;
  }
  cpu_set_t allowed = host::cpu_set_of(processors_);
  if (::sched_setaffinity(0, sizeof allowed, &allowed) != 0) {
    CPU_ZERO(&allowed);
  } else if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw_system_error("sched_getaffinity");
  }
  for (const int processor : processors_) {
    if (!CPU_ISSET(static_cast<std::size_t>(processor), &allowed))
      throw std::runtime_error("processor " + std::to_string(processor) + " is none that this process may use");
  }
  keep_to_first_processor();
}

TUNEWRIGHT_INLINE Child::Bound Child::load(const Mapping& mapping) {
  Reader reader(mapping.bytes());
  return bind(get_kernel(reader));
}

TUNEWRIGHT_INLINE Child::Bound Child::load_and_check(const Mapping& mapping) {
  Bound bound = load(mapping);
  check(bound);
  return bound;
}

TUNEWRIGHT_INLINE Child::Bound Child::bind(const KernelView& kernel) {
  Bound bound;
  if (kernel.native != nullptr) {
    bound.code.entry = kernel.native;
  } else {
    if (!parts_.load) throw Rejected(Fault::CompileError, "object files cannot be loaded: no loader was given");
    try {
      bound.code = parts_.load(kernel.object, kernel.symbol);
    } catch (const std::exception& error) {
      throw Rejected(Fault::CompileError, std::string("the object file does not load: ") + error.what());
    }
    if (bound.code.entry == nullptr) {
      throw Rejected(Fault::CompileError, "the object file has no symbol '" + kernel.symbol + "'");
    }
  }
  for (const codegen::KernelBuffer& buffer : kernel.buffers) {
    void* const memory = bound.arguments.emplace_back(address(buffer, bound));
    auto& of_its_kind = buffer.layout.role == loops::BufferRole::Constant ? bound.constants : bound.others;
    of_its_kind.emplace_back(static_cast<const char*>(memory), buffer.bytes());
  }
  bound.native = kernel.native != nullptr;
  keep_to_first_processor();
  bound.runtime = runtime();
  return bound;
}

TUNEWRIGHT_INLINE void* Child::address(const codegen::KernelBuffer& buffer, Bound& bound) {
  const loops::Buffer& layout = buffer.layout;
  switch (layout.role) {
    case loops::BufferRole::Temporary:
      return bound.workspace.emplace_back("workspace " + layout.name, buffer.bytes()).data();
    case loops::BufferRole::Output:
      for (const Output& output : outputs_) {
        if (output.expected.tensor == layout.tensor) return output.memory.data();
      }
      break;
    case loops::BufferRole::Input:
    case loops::BufferRole::Constant:
      for (const auto& [input, memory] : inputs_) {
        if (input.tensor != layout.tensor) continue;
        if (layout.packing.empty()) return memory.data();
        return bound.packed.emplace_back(packed(input, memory, buffer))->data();
      }
      break;
  }
  throw Rejected(Fault::InvalidSchedule,
                 "the task has no tensor " + std::to_string(layout.tensor) + " for buffer '" + layout.name + "'");
}

TUNEWRIGHT_INLINE std::shared_ptr<const GuardedBuffer> Child::packed(const InputView& input,
                                                                     const GuardedBuffer& row_major,
                                                                     const codegen::KernelBuffer& buffer) {
  const loops::Buffer& layout = buffer.layout;
  for (const Packed& known : packed_) {
    if (known.tensor == layout.tensor && known.shape == layout.shape && known.packing == layout.packing) {
      return known.memory;
    }
  }
  auto memory = std::make_shared<GuardedBuffer>("packed " + input.name, buffer.bytes());
  codegen::pack_bytes(layout, row_major.data(), memory->data());
  memory->make_read_only();
  packed_bytes_ += memory->bytes();
  packed_.push_back({layout.tensor, layout.shape, layout.packing, memory});
  while (packed_.size() > 1 && packed_bytes_ > packed_limit_bytes) {
    packed_bytes_ -= packed_.front().memory->bytes();
    packed_.pop_front();
  }
  return memory;
}

TUNEWRIGHT_INLINE const codegen::tunewright_runtime* Child::runtime() {
  if (runtime_.runtime == nullptr) runtime_ = parts_.runtime(threads_, processors_);
  return runtime_.runtime;
}

TUNEWRIGHT_INLINE void Child::spread_threads() const {
  if (processors_.empty()) return;
  const std::span<const int> others =
      processors_.size() > 1 ? std::span(processors_).subspan(1) : std::span(processors_);
  std::size_t next = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(entry.path().filename().string());
    cpu_set_t allowed;
    // Skips threads that have ended or are pinned already.
    if (thread == ::getpid() || ::sched_getaffinity(thread, sizeof allowed, &allowed) != 0) continue;
    if (CPU_COUNT(&allowed) > 1) allow(thread, others.subspan(next++ % others.size(), 1));
  }
}

TUNEWRIGHT_INLINE void Child::allow(pid_t thread, std::span<const int> processors) {
  const cpu_set_t set = host::cpu_set_of(processors);
  if (::sched_setaffinity(thread, sizeof set, &set) != 0 && errno != ESRCH) throw_system_error("sched_setaffinity");
}

TUNEWRIGHT_INLINE void Child::poison(const Bound& bound) const {
  for (const Output& output : outputs_) output.memory.poison(GuardedBuffer::unwritten);
  for (const GuardedBuffer& memory : bound.workspace) memory.poison(GuardedBuffer::unwritten);
}

TUNEWRIGHT_INLINE void Child::check(Bound& bound) {
  if (bound.checked_call_seconds == 0) {
    poison(bound);
    if (bound.native) use_all_processors();
    bound.checked_call_seconds = seconds_of(1, [&] { call(bound); });
    if (bound.native) {
      spread_threads();
      keep_to_first_processor();
    }
  }
  check_red_zones(bound);
  for (const Output& output : outputs_) {
    if (const auto wrong = mismatch(output.expected, output.memory.data())) {
      throw Rejected(Fault::WrongResult, *wrong);
    }
  }
  check_integers(bound);
}

TUNEWRIGHT_INLINE void Child::check_integers(const Bound& bound) const {
  constexpr std::uint32_t other_poison = 0xA5A5A5A5;
  const auto holding = [](const Output& output, std::uint32_t poison) {
    return elements_of(static_cast<unsigned char>(poison), output.expected.type, output.memory.data(),
                       static_cast<std::size_t>(checked_elements(output.expected.shape)));
  };
  std::vector<std::pair<const Output*, std::vector<std::size_t>>> doubtful;
  for (const Output& output : outputs_) {
    if (program::is_float(output.expected.type)) continue;
    std::vector<std::size_t> elements = holding(output, GuardedBuffer::unwritten);
    if (!elements.empty()) doubtful.emplace_back(&output, std::move(elements));
  }
  if (doubtful.empty()) return;
  for (const auto& [output, elements] : doubtful) output->memory.poison(other_poison);
  for (const GuardedBuffer& memory : bound.workspace) memory.poison(other_poison);
  call(bound);
  for (const auto& [output, elements] : doubtful) {
    const std::vector<std::size_t> left = holding(*output, other_poison);
    std::vector<std::size_t> never;
    std::set_intersection(elements.begin(), elements.end(), left.begin(), left.end(), std::back_inserter(never));
    if (!never.empty()) throw Rejected(Fault::WrongResult, unwritten(output->expected, never.front()));
  }
}

TUNEWRIGHT_INLINE void Child::check_red_zones(const Bound& bound) const {
  const auto look = [](const std::string& name, const GuardedBuffer& memory) {
    const auto damage = memory.damage();
    if (!damage) return;
    const bool before = *damage < 0;
    const auto distance = before ? -*damage : *damage - static_cast<std::ptrdiff_t>(memory.bytes());
    throw Rejected(Fault::OutOfBounds, "wrote " + std::to_string(distance) + " bytes " +
                                           (before ? "before the start" : "after the end") + " of buffer '" + name +
                                           "'");
  };
  for (const Output& output : outputs_) look(output.expected.name, output.memory);
  for (const GuardedBuffer& memory : bound.workspace) look("workspace", memory);
}

TUNEWRIGHT_INLINE Eviction Child::eviction(const Protocol& protocol, const Bound& bound) const {
  std::vector<std::span<const char>> evicted;
  if (protocol.evict != Evict::Nothing) evicted = bound.constants;
  if (protocol.evict == Evict::Everything) evicted.insert(evicted.end(), bound.others.begin(), bound.others.end());
  if (evicted.empty()) return {};
  return [evicted = std::move(evicted), woken = bound.native ? nullptr : bound.runtime, threads = threads_] {
    evict(evicted);
    const auto nothing = [](void*, std::int64_t, std::int64_t) {};
    if (woken != nullptr) woken->parallel_for(woken, threads, nothing, nullptr);
  };
}

}  // namespace tunewright::measurers::sandbox

#endif
