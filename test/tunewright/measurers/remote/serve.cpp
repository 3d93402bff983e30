// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/remote/serve.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/measurers/remote/conversation.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"

using namespace tunewright;
using namespace tunewright::measurers;

namespace {

/// What a worker throws whose host sends these bytes and closes the connection; `how` as of ::shutdown.
std::string refusal_of(const std::string& sent, int how = SHUT_WR) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  REQUIRE(::write(ends[0], sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()));
  REQUIRE(::shutdown(ends[0], how) == 0);
  remote::FrameStream there(ends[1], ends[1], 1000);
  remote::Worker worker;
  std::string refusal = test::refusal<remote::ConversationFailed>([&] { worker.serve(there); });
  ::close(ends[0]);
  ::close(ends[1]);
  return refusal;
}

}  // namespace

TEST_CASE("a worker ends with its host between two messages, and tells of one that was cut short") {
  CHECK(refusal_of("") == "nothing was thrown");
  const std::string header("TWRK\x02\0\0\0\x64\0\0\0", 12);  // a task of 100 bytes
  CHECK(refusal_of(header) == "it closed the connection in the middle of a message");
  CHECK(refusal_of(header + "0123456789") == "it closed the connection in the middle of a message");
  CHECK(refusal_of(header.substr(0, 4)) == "it said 'TWRK' and closed");
  // It is gone before it is answered.
  CHECK(refusal_of("", SHUT_RDWR) == "nothing was thrown");
}

TEST_CASE("a worker behind pipes ends with its host as one behind a socket does") {
  int to_worker[2], from_worker[2];
  REQUIRE(::pipe(to_worker) == 0);
  REQUIRE(::pipe(from_worker) == 0);
  ::close(to_worker[1]);
  ::close(from_worker[0]);
  // The first thing that a worker says, who it is, has no reader.
  remote::FrameStream there(to_worker[0], from_worker[1], 1000);
  remote::Worker worker;
  CHECK(test::refusal<std::exception>([&] { worker.serve(there); }) == "nothing was thrown");
  ::close(to_worker[0]);
  ::close(from_worker[1]);
}

TEST_CASE("a worker that talks through standard streams leaves nothing of them to what else it runs") {
  int conversation[2], errors[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, conversation) == 0);
  REQUIRE(::pipe(errors) == 0);
  sandbox::Descriptor ours(conversation[0]), said(errors[0]);
  const pid_t worker = ::fork();
  if (worker == 0) {
    ours.close();
    said.close();
    if (::dup2(conversation[1], STDIN_FILENO) < 0 || ::dup2(conversation[1], STDOUT_FILENO) < 0 ||
        ::dup2(errors[1], STDERR_FILENO) < 0)
      ::_exit(1);
    ::close(conversation[1]);
    ::close(errors[1]);
    int status = 2;
    try {
      status = remote::serve(STDIN_FILENO, STDOUT_FILENO);
    } catch (...) {
    }
    char byte = 0;
    if (::write(STDOUT_FILENO, "x", 1) != 1) status = 3;  // as a kernel prints
    if (::read(STDIN_FILENO, &byte, 1) != 0) status = 4;
    ::_exit(status);
  }
  ::close(conversation[1]);
  ::close(errors[1]);
  {
    remote::FrameStream here(ours.get(), ours.get(), remote::reply_limit_bytes);
    const remote::Conversation host(here, Seconds(60));
    CHECK(host.device().identity() == remote::this_device().identity());
  }
  ::shutdown(ours.get(), SHUT_WR);
  std::string text;
  for (char byte = 0; ::read(said.get(), &byte, 1) == 1;) text += byte;
  CHECK(text == "x");
  char byte = 0;
  CHECK(::read(ours.get(), &byte, 1) == 0);
  int status = 0;
  REQUIRE(::waitpid(worker, &status, 0) == worker);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a worker without one of the standard streams that it is to use does not start") {
  for (const int closed : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const pid_t worker = ::fork();
    if (worker == 0) {
      const int nothing = ::open("/dev/null", O_RDWR);
      for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(nothing, stream);
      ::close(closed);
      int status = 1;
      try {
        static_cast<void>(remote::serve(STDIN_FILENO, STDOUT_FILENO));
      } catch (const std::system_error& error) {
        const std::string_view text = error.what();
        status = text.starts_with("standard input, standard output or standard error") ? 0 : 2;
      } catch (...) {
      }
      ::_exit(status);
    }
    int status = 0;
    REQUIRE(::waitpid(worker, &status, 0) == worker);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("a kernel for which the system has no memory file is unknown with the reason, and the worker goes on") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const sandbox::Descriptor their_end(ends[1]);
  remote::FrameStream there(ends[1], ends[1], remote::request_limit_bytes);
  remote::Worker worker;
  const std::jthread serving([&] { worker.serve(there); });
  const sandbox::Descriptor our_end(ends[0]);  // goes before the thread, which that ends
  remote::FrameStream here(ends[0], ends[0], remote::reply_limit_bytes);
  remote::Conversation host(here, Seconds(60));

  TaskData data;
  data.outputs.push_back({.tensor = 1, .name = "c", .shape = {1}, .points = {}, .values = {0}});
  const std::vector<char> bytes = remote::to_bytes(data);
  host.set_task({.key = 1, .bytes = bytes.size(), .threads = 1}, bytes);
  remote::MeasureRequest request;
  request.kernel.object = std::make_shared<const std::vector<char>>(10, 'x');
  request.kernel.buffers.resize(1);
  request.kernel.buffers[0].layout.name = "c";
  request.kernel.buffers[0].layout.tensor = 1;
  request.kernel.buffers[0].layout.role = loops::BufferRole::Output;
  request.kernel.buffers[0].layout.shape = {1};
  const auto failure = [&] {
    host.send(request, Seconds(60));
    const Outcome outcome = host.receive(Seconds(60)).outcome;
    return outcome.failure() != nullptr ? *outcome.failure() : Failure{Fault::Unknown, "none"};
  };
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &usual) == 0);
  const rlimit few{1, usual.rlim_max};  // more than `poll` needs, less than there are
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const Failure without = failure();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
  CHECK(without.fault == Fault::Unknown);
  CHECK_MESSAGE(without.detail.starts_with("memfd_create"), without.detail);
  const Failure with = failure();
  CHECK_MESSAGE(with.fault == Fault::CompileError, with.detail);
}
