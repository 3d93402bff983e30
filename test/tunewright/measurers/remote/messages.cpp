// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/remote/messages.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/measurers/remote/frames.hpp"

using namespace tunewright;
using namespace tunewright::measurers;
using remote::ProtocolError;

namespace {

template <class Message>
std::string refusal_of(const std::vector<char>& bytes) {
  return test::refusal<ProtocolError>([&] { static_cast<void>(remote::from_bytes<Message>(bytes)); });
}
remote::MeasureResult timed(double median, double repeat = 1e-3) {
  return {.number = 7,
          .outcome = {.result = Timing{.repeats = {Seconds(repeat)}, .median = Seconds(median), .calls_per_repeat = 3},
                      .run_time = Seconds(0.25)}};
}

}  // namespace

TEST_CASE("numbers travel little end first, texts and vectors behind their count") {
  const std::vector<char> bytes = remote::to_bytes(remote::TaskAnswer{remote::TaskAnswer::Kind::Refused, "no"});
  CHECK(bytes == std::vector<char>{2, 2, 0, 0, 0, 'n', 'o'});
  const std::vector<char> task = remote::to_bytes(remote::SetTask{.key = 0x0102, .bytes = 3, .threads = 4});
  CHECK(task == std::vector<char>{2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0});
}

TEST_CASE("messages come back as they went, and in no part of them") {
  const remote::MeasureResult result = timed(1e-3);
  const std::vector<char> bytes = remote::to_bytes(result);
  CHECK(remote::from_bytes<remote::MeasureResult>(bytes).outcome == result.outcome);
  for (std::size_t count = 0; count < bytes.size(); ++count) {
    const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    CHECK(refusal_of<remote::MeasureResult>(part).find("ends too early") != std::string::npos);
  }
  std::vector<char> longer = bytes;
  longer.push_back(0);
  CHECK(refusal_of<remote::MeasureResult>(longer).find("1 bytes too many") != std::string::npos);

  remote::Device board{.target = arm_target("Raspberry Pi 4"), .memory_bytes = std::uint64_t{4} << 30};
  board.target.vector_datapath_bytes = 8;
  CHECK(remote::from_bytes<remote::Hello>(remote::to_bytes(remote::Hello{.device = board})).device == board);
  board.target.threads = 0;
  CHECK(refusal_of<remote::Hello>(remote::to_bytes(remote::Hello{.device = board})) == "a device without threads");
  board.target.threads = 4;
  CHECK(board.identity() == "Raspberry Pi 4, neon, 4 threads, cortex-a72, 4 GiB");

  TaskData data;
  data.inputs.push_back({.tensor = 3, .name = "a", .shape = {2}, .bytes = {1, 2, 3, 4, 5, 6, 7, 8}});
  data.outputs.push_back({.tensor = 4, .name = "c", .shape = {2}, .points = {1}, .values = {0.5}});
  const auto back = remote::from_bytes<TaskData>(remote::to_bytes(data));
  REQUIRE(back.inputs.size() == 1);
  CHECK(back.inputs[0].bytes == data.inputs[0].bytes);
  CHECK(back.outputs.at(0).values == data.outputs[0].values);
}

TEST_CASE("texts come without what a terminal or a journal would take for more than text") {
  const auto received = [](const std::string& text) {
    return remote::from_bytes<remote::TaskAnswer>(
               remote::to_bytes(remote::TaskAnswer{remote::TaskAnswer::Kind::Refused, text}))
        .reason;
  };
  CHECK(received("no memory, 3 \xc2\xb5s \xe2\x82\xac") == "no memory, 3 \xc2\xb5s \xe2\x82\xac");
  CHECK(received("a\nb\x1b[2Jc\x7f") == "a b [2Jc ");
  CHECK(received("\xc2\x9b\x32J") == "  2J");  // the same command in one character
  CHECK(received("\xc3\x9b") == "\xc3\x9b");
}

TEST_CASE("what no worker says is refused") {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const remote::MeasureResult& result :
       {timed(0), timed(-1), timed(infinite), timed(1e-3, -1), timed(1e-3, infinite)})
    CHECK(refusal_of<remote::MeasureResult>(remote::to_bytes(result)).starts_with("a "));
  remote::MeasureResult most = timed(1e-3);
  Timing& timing = std::get<Timing>(most.outcome.result);
  timing.repeats.resize(256, Seconds(1e-3));
  CHECK(remote::from_bytes<remote::MeasureResult>(remote::to_bytes(most)).outcome == most.outcome);
  timing.repeats.resize(257, Seconds(1e-3));
  CHECK(refusal_of<remote::MeasureResult>(remote::to_bytes(most)) == "a result of 257 repeats of 3 calls");
  timing.repeats.resize(1);
  timing.calls_per_repeat = 0;
  CHECK(refusal_of<remote::MeasureResult>(remote::to_bytes(most)) == "a result of 1 repeats of 0 calls");
  remote::MeasureResult failed;
  failed.outcome.result = Failure{Fault::RunError, "two\nlines"};
  std::vector<char> bytes = remote::to_bytes(failed);
  CHECK(remote::from_bytes<remote::MeasureResult>(bytes).outcome.failure()->detail == "two lines");
  bytes[17] = 99;  // behind number, time and flag
  CHECK(refusal_of<remote::MeasureResult>(bytes) == "there is no such fault");
  for (const Evict evict : {Evict::Nothing, Evict::Constants, Evict::Everything}) {
    const std::vector<char> sent = remote::to_bytes(Protocol{.evict = evict});
    CHECK(remote::from_bytes<Protocol>(sent).evict == evict);
  }
  std::vector<char> unknown = remote::to_bytes(Protocol{});
  unknown[44] = static_cast<char>(evict_count);  // behind three numbers of 4 bytes and four of 8
  CHECK(refusal_of<Protocol>(unknown) == "there is no such eviction");
  std::vector<char> many = remote::to_bytes(remote::TaskAnswer{});
  many[4] = 127;  // a text of 2 GiB that is not there
  CHECK(refusal_of<remote::TaskAnswer>(many).find("ends too early") != std::string::npos);
}

TEST_CASE("a target is refused by what the device lacks, with both named") {
  const remote::Device board{.target = arm_target("Raspberry Pi 4")};
  CHECK(remote::objection(board.target, board).empty());
  CHECK(remote::objection(board.target.with_threads(1), board).empty());
  const std::string other = remote::objection(arm_target("Raspberry Pi 3"), board);
  CHECK(other.find("'Raspberry Pi 3' (neon, 4 threads, cortex-a53)") != std::string::npos);
  CHECK(other.find("'Raspberry Pi 4' (neon, 4 threads, cortex-a72) is another processor") != std::string::npos);
  CHECK(remote::objection(board.target.with_threads(5), board).find("fewer processors") != std::string::npos);
  CHECK(remote::objection(Target{.isa = Isa::Avx2}, board).find("another family") != std::string::npos);
  const remote::Device old{.target = Target{.isa = Isa::Sse42}};
  CHECK(remote::objection(Target{.isa = Isa::Avx2}, old).find("lacks these instructions") != std::string::npos);
  CHECK(remote::objection(Target{.kind = DeviceKind::Gpu}, old).find("is no GPU") != std::string::npos);
}

TEST_CASE("frames arrive whole, and what is none is told by what it is") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  remote::FrameStream here(ends[0], ends[0], 100), there(ends[1], ends[1], 100);
  const std::vector<char> payload = {'a', 'b'};
  here.send(remote::FrameKind::SetTask, payload);
  const remote::Frame frame = there.receive();
  CHECK(frame.kind == remote::FrameKind::SetTask);
  CHECK(frame.payload == payload);
  const auto told = [&] {
    return test::refusal<std::runtime_error>([&] { static_cast<void>(there.receive(Seconds(0.05))); });
  };
  CHECK(told() == "it was not heard of for 0.05 s");
  here.send(remote::FrameKind::SetTask, std::vector<char>(101));
  CHECK(told() == "a frame of 101 bytes, where at most 100 are taken");
  std::vector<char> rest(101);
  REQUIRE(::read(ends[1], rest.data(), rest.size()) == 101);
  REQUIRE(::write(ends[0], "Last login: today\n", 18) == 18);
  CHECK(told().find("'Last login: today?'") != std::string::npos);
  ::close(ends[0]);
  CHECK(told() == "it has closed the connection");
  CHECK(test::refusal<remote::Disconnected>([&] { there.send(remote::FrameKind::Hello, payload); }) ==
        "it has closed the connection");
  ::close(ends[1]);
}
