// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "tunewright/core/outcome.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/remote/messages.hpp"

namespace tunewright::measurers::remote {

/// Checks the options that all measurers with workers share. Throws `std::invalid_argument`, with `who`, for one out of
/// range.
template <class Measurer>
void check_worker_options(const char* who, const Measurer& measurer) {
  validate(measurer.protocol);
  require(measurer.ahead >= 1 && measurer.ahead <= 64, who, "ahead", measurer.ahead, "1 to 64");
  require(measurer.connect_timeout_seconds > 0, who, "connect_timeout_seconds", measurer.connect_timeout_seconds,
          "a time above 0");
  require(measurer.reply_grace_seconds > 0, who, "reply_grace_seconds", measurer.reply_grace_seconds, "a time above 0");
}

/// The host's side of the protocol, over a carrier that it does not own.
///
/// Every call throws `Disconnected` or `ProtocolError` if the conversation cannot continue; the worker is then
/// unusable.
class Conversation {
 public:
  /// Waits for the worker's first message. `timeout` also limits sending a message, and waiting for the answer to a
  /// task.
  Conversation(FrameCarrier& carrier, Seconds timeout);

  [[nodiscard]] const Device& device() const noexcept { return device_; }

  /// Prepares the worker for kernels of a task; `data` are transferred only if the worker lacks them. Throws
  /// `std::invalid_argument` with the worker's message if it refuses the task.
  void set_task(const SetTask& task, std::span<const char> data);

  /// Sends a kernel, within `patience` or the time of the constructor, whichever is longer: the worker reads nothing
  /// while a kernel runs, so `patience` is that for its result.
  void send(const MeasureRequest& request, Seconds patience) {
    carrier_.send(FrameKind::Measure, to_bytes(request), std::max(timeout_, patience));
  }
  [[nodiscard]] MeasureResult receive(Seconds timeout) { return expect<MeasureResult>(FrameKind::Result, timeout); }

 private:
  template <class Message>
  [[nodiscard]] Message expect(FrameKind kind, Seconds timeout) {
    const Frame frame = carrier_.receive(timeout);
    if (frame.kind != kind) {
      throw ProtocolError("it sent a frame of kind " + std::to_string(static_cast<std::uint32_t>(frame.kind)) +
                          " where " + std::to_string(static_cast<std::uint32_t>(kind)) + " was expected");
    }
    return from_bytes<Message>(frame.payload);
  }

  FrameCarrier& carrier_;
  Seconds timeout_;
  Device device_;
};

}  // namespace tunewright::measurers::remote

#if TUNEWRIGHT_DEFINES(remote)

#include <cstddef>
#include <stdexcept>

namespace tunewright::measurers::remote {

TUNEWRIGHT_INLINE Conversation::Conversation(FrameCarrier& carrier, Seconds timeout)
    : carrier_(carrier), timeout_(timeout), device_(expect<Hello>(FrameKind::Hello, timeout).device) {}

TUNEWRIGHT_INLINE void Conversation::set_task(const SetTask& task, std::span<const char> data) {
  carrier_.send(FrameKind::SetTask, to_bytes(task), timeout_);
  auto answer = expect<TaskAnswer>(FrameKind::TaskAnswer, timeout_);
  if (answer.kind == TaskAnswer::Kind::SendIt) {
    for (std::size_t done = 0; done < data.size(); done += task_part_bytes)
      carrier_.send(FrameKind::TaskPart, data.subspan(done, std::min(task_part_bytes, data.size() - done)), timeout_);
    answer = expect<TaskAnswer>(FrameKind::TaskAnswer, timeout_);
  }
  if (answer.kind == TaskAnswer::Kind::SendIt) throw ProtocolError("it asks for the task's data again");
  if (answer.kind == TaskAnswer::Kind::Refused)
    throw std::invalid_argument("the worker refuses the task: " + answer.reason);
}

}  // namespace tunewright::measurers::remote

#endif
