// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/remote/fields.hpp"

namespace tunewright::measurers::remote {

/// The content of a frame; the numbers are transmitted.
enum class FrameKind : std::uint32_t {
  Hello = 1,    ///< worker: `Hello`, its first message
  SetTask = 2,  ///< host: `SetTask`
  TaskPart,     ///< host: bytes of the task's data, in order
  TaskAnswer,   ///< worker: `TaskAnswer`
  Measure,      ///< host: `MeasureRequest`
  Result,       ///< worker: `MeasureResult`
};

struct Frame {
  FrameKind kind = FrameKind::Hello;
  std::vector<char> payload;
};

/// The other end closed the connection or does not respond.
class Disconnected : public ConversationFailed {
 public:
  using ConversationFailed::ConversationFailed;
};

/// The other end closed the connection between two frames, as it does when it has finished. Whoever reads and whoever
/// writes next notices.
class EndOfConversation final : public Disconnected {
 public:
  using Disconnected::Disconnected;
};

/// An ordered, bidirectional channel for frames.
class FrameCarrier {
 public:
  using Seconds = std::chrono::duration<double>;
  static constexpr Seconds for_ever{-1};

  virtual ~FrameCarrier() = default;
  /// Throws `EndOfConversation` if the other end has closed before the frame, `Disconnected` if it does so within it or
  /// did not accept it in time.
  virtual void send(FrameKind kind, std::span<const char> payload, Seconds timeout) = 0;
  /// The next frame. Throws `EndOfConversation` at the end, `Disconnected` within a frame and after `timeout`,
  /// `ProtocolError` for a frame that is too long.
  [[nodiscard]] virtual Frame receive(Seconds timeout) = 0;
};

/// Frames over a pair of descriptors, which it does not own. A frame is the four bytes "TWRK", kind and payload length
/// in 32 bits each, and the payload.
class FrameStream final : public FrameCarrier {
 public:
  /// Payloads of more than `receive_limit` bytes are refused before memory is allocated for them.
  FrameStream(int in, int out, std::size_t receive_limit) : in_(in), out_(out), receive_limit_(receive_limit) {}

  void send(FrameKind kind, std::span<const char> payload, Seconds timeout = for_ever) override;

  /// Also throws `ProtocolError` for bytes that are not a frame; the message quotes them, since they are often the
  /// output of a login shell.
  [[nodiscard]] Frame receive(Seconds timeout = for_ever) override;

 private:
  using SteadyClock = std::chrono::steady_clock;
  void wait(int fd, short events, SteadyClock::time_point start, Seconds timeout) const;
  void read_exactly(std::span<char> into, SteadyClock::time_point start, Seconds timeout, bool frame_begun);

  int in_, out_;
  std::size_t receive_limit_;
};

}  // namespace tunewright::measurers::remote

#if TUNEWRIGHT_DEFINES(remote)

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace tunewright::measurers::remote {

namespace frames {
inline constexpr std::array<char, 4> magic{'T', 'W', 'R', 'K'};
struct Header {
  std::array<char, 4> mark = magic;
  FrameKind kind = FrameKind::Hello;
  std::uint32_t length = 0;
};
static_assert(sizeof(Header) == 12);

/// Bytes as one line of readable text.
[[nodiscard]] inline std::string quoted(std::span<const char> bytes) {
  std::string text;
  for (const char c : bytes) text += c >= ' ' && c <= '~' ? c : '?';
  return "'" + text + "'";
}

/// Writes to a pipe as `::send` to a socket: one that nobody reads is an error (EPIPE), not a signal. Blocks the signal
/// for this thread and takes the one that the write made.
[[nodiscard]] inline ssize_t write_to_pipe(int fd, std::span<const char> bytes) {
  sigset_t broken, before, pending;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  const int error = errno;
  if (written < 0 && error == EPIPE && ::sigismember(&pending, SIGPIPE) == 0) {
    const timespec at_once{};
    while (::sigtimedwait(&broken, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}
}  // namespace frames

TUNEWRIGHT_INLINE void FrameStream::wait(int fd, short events, SteadyClock::time_point start, Seconds timeout) const {
  for (;;) {
    int wait_ms = -1;
    if (timeout.count() >= 0) {
      const double left = Seconds(timeout - (SteadyClock::now() - start)).count();
      wait_ms = static_cast<int>(std::clamp(left * 1e3 + 1, 0.0, 1e9));
      if (left <= 0) wait_ms = 0;
    }
    pollfd ready{fd, events, 0};
    const int count = ::poll(&ready, 1, wait_ms);
    if (count > 0) return;
    if (count < 0 && errno == EINTR) continue;
    char limit[32];
    std::snprintf(limit, sizeof limit, "%g", timeout.count());
    throw Disconnected(count == 0 ? "it was not heard of for " + std::string(limit) + " s"
                                  : "poll: " + std::string(std::strerror(errno)));
  }
}

TUNEWRIGHT_INLINE void FrameStream::send(FrameKind kind, std::span<const char> payload, Seconds timeout) {
  if (payload.size() > 0xffffffffU) throw std::length_error("a frame of 4 GiB or more does not travel");
  const frames::Header header{.kind = kind, .length = static_cast<std::uint32_t>(payload.size())};
  std::vector<char> bytes(sizeof header + payload.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), bytes.begin() + sizeof header);
  const auto start = SteadyClock::now();
  for (std::size_t done = 0; done < bytes.size();) {
    wait(out_, POLLOUT, start, timeout);
    // Prevents SIGPIPE on sockets, and blocking beyond the timeout.
    ssize_t sent = ::send(out_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == ENOTSOCK) sent = frames::write_to_pipe(out_, std::span(bytes).subspan(done));
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0 && done == 0) throw EndOfConversation("it has closed the connection");
    if (sent <= 0) throw Disconnected("it closed the connection in the middle of a message");
    done += static_cast<std::size_t>(sent);
  }
}

TUNEWRIGHT_INLINE void FrameStream::read_exactly(std::span<char> into, SteadyClock::time_point start, Seconds timeout,
                                                 bool frame_begun) {
  for (std::size_t done = 0; done < into.size();) {
    wait(in_, POLLIN, start, timeout);
    const ssize_t got = ::read(in_, into.data() + done, into.size() - done);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      if (!frame_begun && done > 0) throw ProtocolError("it said " + frames::quoted(into.first(done)) + " and closed");
      if (!frame_begun) throw EndOfConversation("it has closed the connection");
      throw Disconnected("it closed the connection in the middle of a message");
    }
    done += static_cast<std::size_t>(got);
  }
}

TUNEWRIGHT_INLINE Frame FrameStream::receive(Seconds timeout) {
  const auto start = SteadyClock::now();
  frames::Header header;
  std::array<char, sizeof header> bytes;
  read_exactly(bytes, start, timeout, false);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.mark != frames::magic) {
    // The bytes that follow show the reader where they come from.
    std::string reply(bytes.begin(), bytes.end());
    char more[64];
    pollfd ready{in_, POLLIN, 0};
    if (::poll(&ready, 1, 200) > 0) {
      if (const ssize_t got = ::read(in_, more, sizeof more); got > 0)
        reply.append(more, static_cast<std::size_t>(got));
    }
    throw ProtocolError("it said " + frames::quoted(reply) +
                        ", which is no frame of the protocol; if that is what a login shell prints, let it print "
                        "nothing where it is not interactive");
  }
  if (header.length > receive_limit_) {
    throw ProtocolError("a frame of " + std::to_string(header.length) + " bytes, where at most " +
                        std::to_string(receive_limit_) + " are taken");
  }
  Frame frame{header.kind, std::vector<char>(header.length)};
  read_exactly(frame.payload, start, timeout, true);
  return frame;
}

}  // namespace tunewright::measurers::remote

#endif
