// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/remote/fields.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"

namespace tunewright::measurers::remote {

/// Version of frames and messages. Both ends must have the same; the first field of `Hello` is the version in all
/// versions.
inline constexpr std::uint32_t protocol_version = 4;

/// The machine on which a worker runs kernels.
struct Device {
  Target target;                   ///< all of the machine that the worker may use
  std::uint64_t memory_bytes = 0;  ///< of the machine
  bool emulated = false;           ///< runs under an emulator: results are valid, latencies are not

  /// Its name in journals and messages, e.g. "Cortex-A72, neon, 4 threads, 4 GiB".
  [[nodiscard]] std::string identity() const;
  bool operator==(const Device&) const = default;
};

/// The device that a worker reports on this machine.
[[nodiscard]] Device this_device();

/// The reason why kernels for `wanted` cannot be measured on `device`, naming both; empty if they can. The device must
/// be of the same family and have the instructions, the tensor units and the threads; if both name an architecture, it
/// must be the same.
[[nodiscard]] std::string objection(const Target& wanted, const Device& device);

/// `target` with the device's processor name if the device is another processor than this machine's; LLVM would
/// otherwise compile for this machine's.
[[nodiscard]] Target compiled_for(const Target& target, const Device& device);

struct Hello {
  std::uint32_t version = protocol_version;
  Device device;
};

/// Selects the task of all later kernels. Its data have `bytes` bytes and follow in parts unless the worker has them.
struct SetTask {
  std::uint64_t key = 0;  ///< identifies the data
  std::uint64_t bytes = 0;
  std::uint32_t threads = 1;
};

struct TaskAnswer {
  enum class Kind : std::uint8_t { Ready, SendIt, Refused };
  Kind kind = Kind::Ready;
  std::string reason;  ///< if refused
};

struct MeasureRequest {
  std::uint64_t number = 0;  ///< repeated in the result
  codegen::Kernel kernel;
  Protocol protocol;
  double best_seconds = 0;
};

struct MeasureResult {
  std::uint64_t number = 0;
  Outcome outcome;
};

/// Maximum bytes of a worker's frame, because workers are not trusted. A result has at most 256 repeats.
inline constexpr std::size_t reply_limit_bytes = std::size_t{64} << 10;
/// Maximum bytes of a host's frame.
inline constexpr std::size_t request_limit_bytes = std::size_t{64} << 20;
/// Bytes of data in one `TaskPart`.
inline constexpr std::size_t task_part_bytes = std::size_t{1} << 20;

/// An enumeration; its values must be below `count`.
template <class Archive, class Enum>
void known_enum(Archive& archive, Enum& value, std::size_t count, const char* what) {
  archive(value);
  if (static_cast<std::size_t>(value) >= count) throw ProtocolError(std::string("there is no such ") + what);
}

// The layout of every message, for both directions: `T` may be const.
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, Target>
void fields(Archive& a, T& t) {
  a(t.name, t.threads);
  known_enum(a, t.kind, 2, "kind of device");
  known_enum(a, t.isa, all_isas.size(), "instruction set");
  a(t.cache_line_bytes, t.l1_bytes, t.l2_bytes, t.l3_bytes, t.vector_datapath_bytes, t.architecture, t.tensor_units);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, Device>
void fields(Archive& a, T& d) {
  a(d.target, d.memory_bytes, d.emulated);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, SetTask>
void fields(Archive& a, T& s) {
  a(s.key, s.bytes, s.threads);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, TaskAnswer>
void fields(Archive& a, T& t) {
  known_enum(a, t.kind, 3, "answer");
  a(t.reason);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, Protocol>
void fields(Archive& a, T& p) {
  a(p.warmup_calls, p.min_repeat_seconds, p.repeats_min, p.repeats_max, p.wanted_spread, p.noisy_spread,
    p.budget_seconds);
  known_enum(a, p.evict, evict_count, "eviction");
  a(p.far_slower_factor, p.partial_call_seconds, p.nearly_best_factor, p.cooldown_seconds, p.run_timeout_seconds,
    p.compile_timeout_seconds);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, loops::PackedDimension>
void fields(Archive& a, T& p) {
  a(p.dimension, p.divisor, p.extent);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, codegen::KernelBuffer>
void fields(Archive& a, T& b) {
  a(b.layout.name, b.layout.tensor);
  known_enum(a, b.layout.type, program::scalar_type_count, "type of elements");
  known_enum(a, b.layout.role, 4, "role of a buffer");
  a(b.layout.shape, b.layout.packing);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, TensorContents>
void fields(Archive& a, T& t) {
  a(t.tensor, t.name);
  known_enum(a, t.type, program::scalar_type_count, "type of elements");
  a(t.shape, t.bytes);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, ExpectedOutput>
void fields(Archive& a, T& o) {
  a(o.tensor, o.name);
  known_enum(a, o.type, program::scalar_type_count, "type of elements");
  a(o.shape, o.points, o.values, o.relative_tolerance, o.absolute_tolerance);
}
template <class Archive, class T>
  requires std::is_same_v<std::remove_const_t<T>, TaskData>
void fields(Archive& a, T& d) {
  a(d.inputs, d.outputs);
}

// Messages with parts that are not plain members.
void fields(FieldWriter& a, const Hello& hello);
/// Reads only the version if it differs from this one. Throws `ProtocolError` for a device without threads.
void fields(FieldReader& a, Hello& hello);
void fields(FieldWriter& a, const MeasureRequest& request);
void fields(FieldReader& a, MeasureRequest& request);
void fields(FieldWriter& a, const MeasureResult& result);
/// Throws `ProtocolError` for times and counts that cannot be those of measurements.
void fields(FieldReader& a, MeasureResult& result);

}  // namespace tunewright::measurers::remote

#if TUNEWRIGHT_DEFINES(remote)

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <utility>

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/latency.hpp"

namespace tunewright::measurers::remote {

TUNEWRIGHT_INLINE std::string Device::identity() const {
  std::string text = target.name + ", " + std::string(name(target.isa)) + ", " + std::to_string(target.threads) +
                     (target.threads == 1 ? " thread, " : " threads, ");
  if (!target.architecture.empty()) text += target.architecture + ", ";
  // Rounded, because the part that the system reserves differs from boot to boot.
  text += std::to_string((memory_bytes + (std::uint64_t{1} << 29)) >> 30) + " GiB";
  return emulated ? text + ", emulated" : text;
}

TUNEWRIGHT_INLINE Device this_device() {
  Device device;
  try {
    device.target = host_target();
  } catch (const std::runtime_error&) {  // an emulator shows the processors of its own machine, or none that are known
    device.emulated = true;
  }
  if (device.emulated || family_of(device.target.isa) != host_family) {
    device.emulated = true;
    device.target = {};
    device.target.name = "emulated " + std::string(name(host_family));
    device.target.isa = host_family == CpuFamily::Aarch64 ? Isa::Neon : Isa::Sse42;
    device.target.threads = static_cast<unsigned>(std::max<std::size_t>(1, host_processors().size()));
  } else if (host_family == CpuFamily::Aarch64 && !device.target.name.starts_with("ARM processor")) {
    // LLVM's name of a processor is the vendor's name in lower case.
    for (const char c : device.target.name)
      device.target.architecture += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  device.memory_bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return device;
}

TUNEWRIGHT_INLINE std::string objection(const Target& wanted, const Device& device) {
  const auto described = [](const Target& t) {
    std::string text = "'" + t.name + "' (" + std::string(name(t.isa)) + ", " + std::to_string(t.threads) + " threads";
    if (!t.architecture.empty()) text += ", " + t.architecture;
    return text + ")";
  };
  const Target& has = device.target;
  const char* lacks = nullptr;
  if (wanted.kind != DeviceKind::Cpu) {
    lacks = "is no GPU";
  } else if (family_of(wanted.isa) != family_of(has.isa)) {
    lacks = "is of another family of processors";
  } else if (!contains(has.isa, wanted.isa)) {
    lacks = "lacks these instructions";
  } else if ((wanted.tensor_units & ~has.tensor_units) != 0) {
    lacks = "lacks its tensor units";
  } else if (wanted.threads > has.threads) {
    lacks = "has fewer processors";
  } else if (!wanted.architecture.empty() && !has.architecture.empty() &&
             wanted.architecture.substr(0, wanted.architecture.find('+')) != has.architecture) {
    lacks = "is another processor";
  }
  if (lacks == nullptr) return {};
  return "the task is for " + described(wanted) + ", and the worker's device " + described(has) + " " + lacks +
         "; make the task for the worker's target";
}

TUNEWRIGHT_INLINE Target compiled_for(const Target& target, const Device& device) {
  Target named = target;
  const bool here = family_of(target.isa) == host_family;
  if (!here || !named.architecture.empty() || device.target.name == host_target().name) return named;
  if (target.isa == Isa::Avx512) {
    named.architecture = "skylake-avx512";
    for (const auto& [unit, feature] :
         {std::pair{TensorUnit::Avx512Vnni, "+avx512vnni"}, std::pair{TensorUnit::Avx512Bf16, "+avx512bf16"},
          std::pair{TensorUnit::AmxInt8, "+amx-tile+amx-int8"}, std::pair{TensorUnit::AmxBf16, "+amx-tile+amx-bf16"}}) {
      if (target.has(unit)) named.architecture += feature;
    }
  } else if (target.isa == Isa::Neon) {
    named.architecture = "generic";
  }
  return named;
}

TUNEWRIGHT_INLINE void fields(FieldWriter& a, const Hello& hello) { a(hello.version, hello.device); }
TUNEWRIGHT_INLINE void fields(FieldReader& a, Hello& hello) {
  a(hello.version);
  if (hello.version != protocol_version) {
    throw ProtocolError("it speaks version " + std::to_string(hello.version) + " of the protocol, and this program " +
                        std::to_string(protocol_version) + "; install the same version of the library on both");
  }
  a(hello.device);
  if (hello.device.target.threads == 0) throw ProtocolError("a device without threads");
}

TUNEWRIGHT_INLINE void fields(FieldWriter& a, const MeasureRequest& request) {
  const codegen::Kernel& kernel = request.kernel;
  static const std::vector<char> none;
  a(request.number, kernel.symbol, kernel.object ? *kernel.object : none, kernel.buffers, kernel.uses_tile_registers,
    request.protocol, request.best_seconds);
}
TUNEWRIGHT_INLINE void fields(FieldReader& a, MeasureRequest& request) {
  std::vector<char> object;
  codegen::Kernel& kernel = request.kernel;
  a(request.number, kernel.symbol, object, kernel.buffers, kernel.uses_tile_registers, request.protocol,
    request.best_seconds);
  kernel.object = std::make_shared<const std::vector<char>>(std::move(object));
}

TUNEWRIGHT_INLINE void fields(FieldWriter& a, const MeasureResult& result) {
  a(result.number, result.outcome.run_time.count(), result.outcome.valid());
  if (const Failure* failure = result.outcome.failure()) {
    a(failure->fault, failure->detail);
    return;
  }
  const Timing& timing = *result.outcome.timing();
  std::vector<double> repeats;
  for (const Seconds repeat : timing.repeats) repeats.push_back(repeat.count());
  a(timing.median.count(), timing.median_absolute_deviation.count(), timing.calls_per_repeat, timing.stopped, repeats);
}
TUNEWRIGHT_INLINE void fields(FieldReader& a, MeasureResult& result) {
  const auto duration = [](double seconds) {
    if (!(seconds >= 0) || !std::isfinite(seconds)) throw ProtocolError("a time of " + std::to_string(seconds) + " s");
    return Seconds(seconds);
  };
  double run_time = 0;
  bool valid = false;
  a(result.number, run_time, valid);
  result.outcome.run_time = duration(run_time);
  if (!valid) {
    Failure failure;
    known_enum(a, failure.fault, fault_names.size(), "fault");
    a(failure.detail);
    result.outcome.result = std::move(failure);
    return;
  }
  Timing timing;
  double median = 0, deviation = 0;
  std::vector<double> repeats;
  a(median, deviation, timing.calls_per_repeat);
  known_enum(a, timing.stopped, stop_names.size(), "reason to stop");
  a(repeats);
  if (timing.calls_per_repeat == 0 || repeats.size() > Protocol::repeats_limit) {
    throw ProtocolError("a result of " + std::to_string(repeats.size()) + " repeats of " +
                        std::to_string(timing.calls_per_repeat) + " calls");
  }
  timing.median = duration(median);
  timing.median_absolute_deviation = duration(deviation);
  for (const double repeat : repeats) timing.repeats.push_back(duration(repeat));
  result.outcome.result = std::move(timing);
  if (const auto latency = impossible_latency(result.outcome))
    throw ProtocolError("a latency of " + std::to_string(latency->count()) + " s");
}

}  // namespace tunewright::measurers::remote

#endif
