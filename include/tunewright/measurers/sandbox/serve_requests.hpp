// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include "tunewright/core/outcome.hpp"
#include "tunewright/measurers/sandbox/records.hpp"
#include "tunewright/measurers/sandbox/stopwatch.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"

/// What workers share, on whatever device their kernels run.
namespace tunewright::measurers::sandbox {

/// A request that fails for a reason that is known; the worker continues.
struct Rejected : std::runtime_error {
  Rejected(Fault why, const std::string& detail) : std::runtime_error(detail), fault(why) {}
  Fault fault;
};

inline void fail(Reply& reply, Fault fault, const std::string& detail) noexcept {
  reply.kind = Reply::Kind::Failed;
  reply.fault = fault;
  reply.set_detail(detail);
}

inline void report(const Series& series, Reply& reply) {
  reply.calls = series.calls;
  reply.stopped = series.stopped;
  reply.repeat_count = static_cast<std::uint32_t>(series.repeats.size());
  for (std::size_t i = 0; i < series.repeats.size(); ++i) reply.repeats[i] = series.repeats[i];
}

/// Answers requests until the tuner closes its end of the socket. `answer(request, mapping, reply)` may throw; the
/// mapping is of what came with the request.
template <class Answer>
void serve_requests(int socket, const Answer& answer) {
  for (;;) {
    Request request;
    Descriptor contents;
    if (receive_record(socket, request, &contents) != Received::Message) return;
    Reply reply;
    try {
      const auto size = contents ? ::lseek(contents.get(), 0, SEEK_END) : 0;
      answer(request, Mapping(contents.get(), static_cast<std::size_t>(size)), reply);
    } catch (const Rejected& rejected) {
      fail(reply, rejected.fault, rejected.what());
    } catch (const std::exception& error) {
      fail(reply, Fault::RunError, std::string("exception: ") + error.what());
    } catch (...) {
      fail(reply, Fault::RunError, "the kernel threw something that is no std::exception");
    }
    if (!send_record(socket, reply)) return;
  }
}

}  // namespace tunewright::measurers::sandbox
