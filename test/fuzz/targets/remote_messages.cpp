// SPDX-License-Identifier: Apache-2.0
// What the other end of a worker's connection may send: frames, each with the message that its kind announces. A
// message that is taken is written again and reads equal; a result is one that journals take; data of a task that are
// taken have the sizes of their shapes.
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/remote/messages.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"

using namespace tunewright;
using namespace tunewright::measurers;

namespace {

template <class Message>
std::optional<Message> checked(std::span<const char> payload) {
  Message message{};
  if (!fuzz::accepts<remote::ProtocolError>([&] { message = remote::from_bytes<Message>(payload); })) return {};
  // Bytes of the first message may differ: any byte but zero is true, and control characters become spaces.
  const std::vector<char> bytes = remote::to_bytes(message);
  fuzz::require(bytes.size() == payload.size(), "a message has its length");
  fuzz::require(remote::to_bytes(remote::from_bytes<Message>(bytes)) == bytes, "a message reads equal");
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text(bytes, size));
  remote::FrameStream stream(file.descriptor(), -1, remote::reply_limit_bytes);
  for (;;) {
    remote::Frame frame;
    try {
      frame = stream.receive(std::chrono::seconds(1));
    } catch (const remote::ProtocolError&) {
      return 0;
    } catch (const remote::Disconnected&) {
      return 0;
    }
    fuzz::require(frame.payload.size() <= remote::reply_limit_bytes, "long frames are refused");
    switch (frame.kind) {
      case remote::FrameKind::Hello: {
        if (const auto hello = checked<remote::Hello>(frame.payload)) {
          (void)hello->device.identity();
          (void)remote::objection(Target{}, hello->device);
        }
        break;
      }
      case remote::FrameKind::SetTask: (void)checked<remote::SetTask>(frame.payload); break;
      case remote::FrameKind::TaskPart: {
        const auto data = checked<TaskData>(frame.payload);
        if (!data || !fuzz::accepts<std::invalid_argument>([&] { sandbox::validate(*data); })) break;
        for (const TensorContents& input : data->inputs) {
          double wanted = static_cast<double>(program::size_in_bytes(input.type));
          for (const std::int64_t extent : input.shape) wanted *= static_cast<double>(extent);
          fuzz::require(wanted == static_cast<double>(input.bytes.size()), "an input has the size of its shape");
        }
        break;
      }
      case remote::FrameKind::TaskAnswer: (void)checked<remote::TaskAnswer>(frame.payload); break;
      case remote::FrameKind::Measure: (void)checked<remote::MeasureRequest>(frame.payload); break;
      case remote::FrameKind::Result: {
        Record record;
        if (const auto result = checked<remote::MeasureResult>(frame.payload)) {
          record.outcome = result->outcome;
          fuzz::require(data::record_json::refused_number(record).empty(), "a journal takes the outcome");
          fuzz::require(data::from_line(data::to_line(record)) == record, "a journal keeps the outcome");
        }
        break;
      }
    }
  }
}
