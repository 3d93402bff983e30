// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tunewright/core/outcome.hpp"
#include "tunewright/measurers/protocol.hpp"

namespace tunewright::measurers::sandbox {

/// A request to a worker. The attached descriptor holds a task or a kernel.
struct Request {
  enum class Kind : std::uint32_t {
    SetTask,   ///< replaces buffers and expected values, drops all kernels
    Measure,   ///< loads, checks and times a kernel, then drops it
    Keep,      ///< loads and checks a kernel and keeps it as the next number, starting at 0
    Repeat,    ///< one repeat of kept kernel `kernel`: `calls` calls (0: calibrate) after untimed ones
    Drop,      ///< forgets the kept kernels
    Describe,  ///< writes facts about the device into `Reply::detail`; only workers of devices answer it
  };
  Kind kind = Kind::Measure;
  std::uint32_t kernel = 0;
  std::uint32_t calls = 0;
  std::uint32_t threads = 1;     ///< for `SetTask`
  std::bitset<1024> processors;  ///< for `SetTask`: may be used; none: any
  double best_seconds = 0;
  double settle_seconds = 0;  ///< for `Repeat`: idle time before it
  Protocol protocol;
};

/// The reply to one request. A signal handler reports crashes, so the record is plain and of fixed size.
struct Reply {
  enum class Kind : std::uint32_t {
    Done,
    Failed,   ///< with `fault` and `detail`; the worker continues
    Crashed,  ///< signal `signal` at `address`; the worker ends
    Exited,   ///< the kernel ended the process with status `signal`
  };
  Kind kind = Kind::Done;
  Fault fault = Fault::Unknown;
  StopReason stopped = StopReason::Budget;
  std::uint32_t calls = 1;
  std::uint32_t repeat_count = 0;
  std::int32_t signal = 0;
  std::uint32_t writes = 0;          ///< for a crash: 1 for a write, 0 for a read or unknown
  std::uintptr_t address = 0;        ///< for a crash
  std::uintptr_t stack_pointer = 0;  ///< for a crash
  std::uintptr_t data_begin = 0;     ///< of the buffer next to `address`, 0 if there is none
  std::uintptr_t data_end = 0;
  std::array<char, 48> buffer{};
  std::array<char, 512> detail{};
  std::array<double, Protocol::repeats_limit> repeats{};

  void set_detail(std::string_view text) noexcept {
    detail = {};
    text.copy(detail.data(), detail.size() - 1);
  }
};

/// Whether `reply` can be a worker's to a request of kind `to`. Kernels run in the worker's process, so one that went
/// wrong may have written over the record, or have sent one of its own.
[[nodiscard]] inline bool is_answer(const Reply& reply, Request::Kind to) noexcept {
  if (reply.kind > Reply::Kind::Exited || static_cast<std::size_t>(reply.fault) >= fault_names.size() ||
      reply.stopped > StopReason::Slower || reply.repeat_count > reply.repeats.size())
    return false;
  if (reply.kind != Reply::Kind::Done) return true;
  const bool timed = to == Request::Kind::Measure || to == Request::Kind::Repeat;
  if (timed && (reply.repeat_count == 0 || reply.calls == 0)) return false;
  return std::all_of(reply.repeats.begin(), reply.repeats.begin() + reply.repeat_count,
                     [](double seconds) { return seconds >= 0 && std::isfinite(seconds); });
}

/// The text in a field of a reply, which ends with the field at the latest.
template <std::size_t N>
[[nodiscard]] std::string text_of(const std::array<char, N>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

/// A request to the zygote. The worker's socket is attached to `Spawn`.
struct ZygoteRequest {
  enum class Kind : std::uint32_t { Spawn, End };
  Kind kind = Kind::Spawn;
  pid_t worker = 0;          ///< for `End`
  double grace_seconds = 0;  ///< for `End`: time that the worker has to end by itself before its group is killed
};
struct ZygoteReply {
  pid_t worker = 0;
  int wait_status = 0;
};

}  // namespace tunewright::measurers::sandbox
