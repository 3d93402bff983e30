// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/remote/serve.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "support/refusal.hpp"
#include "tunewright/measurers/remote/frames.hpp"

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
