// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/remote/conversation.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"

using namespace tunewright;
using namespace tunewright::measurers;

TEST_CASE("a worker that reads nothing while a kernel runs is waited for as long as for the result") {
  remote::MeasureRequest request;  // more than a socket holds
  request.kernel.object = std::make_shared<const std::vector<char>>(std::size_t{4} << 20);
  const auto refusal = [&](Seconds patience, bool reads) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const sandbox::Descriptor here(ends[0]), there(ends[1]);
    remote::FrameStream worker(there.get(), there.get(), remote::request_limit_bytes);
    worker.send(remote::FrameKind::Hello, remote::to_bytes(remote::Hello{}));
    remote::FrameStream carrier(here.get(), here.get(), remote::reply_limit_bytes);
    remote::Conversation host(carrier, Seconds(0.1));
    std::jthread reader;
    if (reads) {
      reader = std::jthread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        static_cast<void>(worker.receive(Seconds(60)));
      });
    }
    return test::refusal<remote::ConversationFailed>([&] { host.send(request, patience); });
  };
  CHECK(refusal(Seconds(60), true) == "nothing was thrown");
  CHECK(refusal(Seconds(0), false) == "it was not heard of for 0.1 s");
  CHECK(refusal(Seconds(0.2), false) == "it was not heard of for 0.2 s");
}
