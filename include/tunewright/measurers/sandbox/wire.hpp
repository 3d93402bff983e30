// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/rounded_up.hpp"
#include "tunewright/core/uninterrupted.hpp"
#include "tunewright/detail/config.hpp"

/// Communication of tuner, zygote and workers: fixed-size records over sequenced-packet sockets; larger contents in
/// anonymous shared memory whose descriptor is attached to the record. All three are forks of one program, so a
/// trivially copyable type has the same layout in all of them.
namespace tunewright::measurers::sandbox {

/// A file descriptor; the destructor closes it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

[[noreturn]] inline void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// A connected pair of sockets that preserve message boundaries and are closed by exec.
[[nodiscard]] std::pair<Descriptor, Descriptor> socket_pair();

/// The memory of a descriptor, mapped read-only for the lifetime of the object. Who makes the pages writable after all
/// writes to copies of his own.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, std::size_t bytes);
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (base_ != nullptr) ::munmap(base_, bytes_);
  }
  [[nodiscard]] std::span<const char> bytes() const noexcept { return {static_cast<const char*>(base_), bytes_}; }

 private:
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Anonymous shared memory with a copy of `bytes`.
[[nodiscard]] Descriptor share(std::span<const char> bytes);

/// Appends trivially copyable values, strings and vectors of values; `Reader` reads them in the same order.
class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    const auto* from = reinterpret_cast<const char*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put_all(std::span<const T> values) {
    put(values.size());
    bytes_.resize(rounded_up(bytes_.size(), 64));  // aligned, so that a reader can use the values in place
    const auto* from = reinterpret_cast<const char*>(values.data());
    bytes_.insert(bytes_.end(), from, from + values.size_bytes());
  }
  void put_text(const std::string& text) { put_all(std::span<const char>(text)); }
  [[nodiscard]] std::span<const char> bytes() const noexcept { return bytes_; }

 private:
  std::vector<char> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const char> bytes) noexcept : bytes_(bytes) {}
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T get() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  /// A view into the bytes.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::span<const T> get_all() {
    const auto count = get<std::size_t>();
    at_ = rounded_up(at_, 64);
    return {reinterpret_cast<const T*>(take(count * sizeof(T))), count};
  }
  [[nodiscard]] std::string get_text();

 private:
  const char* take(std::size_t count);
  std::span<const char> bytes_;
  std::size_t at_ = 0;
};

/// What is left of a limit to waiting. A wait takes no more of it than was asked for, which is a slice at most: a
/// machine that was frozen meanwhile wakes up with the rest.
class TimeLeft {
 public:
  static constexpr std::chrono::milliseconds slice{500};

  /// Without a limit if `limit` is negative.
  explicit TimeLeft(std::chrono::duration<double> limit) noexcept : limited_(limit.count() >= 0), left_(limit) {}
  /// How long to wait next, as `poll` takes it: -1 without a limit.
  [[nodiscard]] int next_ms() const noexcept {
    if (!limited_) return -1;
    if (left_ >= slice) return static_cast<int>(slice.count());
    return left_.count() <= 0 ? 0 : static_cast<int>(left_.count() * 1e3) + 1;
  }
  /// After a wait of `next_ms()` that took `seconds`.
  void take(std::chrono::duration<double> seconds) noexcept {
    if (limited_) left_ -= std::min(seconds, std::chrono::duration<double>(std::chrono::milliseconds(next_ms())));
  }
  [[nodiscard]] bool over() const noexcept { return limited_ && left_.count() <= 0; }

 private:
  bool limited_;
  std::chrono::duration<double> left_;
};

enum class Received { Message, Closed, TimedOut };

/// Sends one record, with descriptor `fd` unless that is negative. False if the other end is gone.
template <class Record>
  requires std::is_trivially_copyable_v<Record>
[[nodiscard]] bool send_record(int socket, const Record& record, int fd = -1) noexcept {
  iovec part{const_cast<Record*>(&record), sizeof record};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  const ssize_t sent = uninterrupted([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
  return sent == static_cast<ssize_t>(sizeof record);
}

/// Waits up to `timeout`, as `TimeLeft` counts it, for one record; forever if it is negative. A record of another size
/// counts as the end of the connection, because the other side violates the protocol. The first descriptor that comes
/// with the record goes to `fd`; the others are closed, as are all without `fd`.
template <class Record>
  requires std::is_trivially_copyable_v<Record>
[[nodiscard]] Received receive_record(
    int socket, Record& record, Descriptor* fd = nullptr,
    std::chrono::duration<double> timeout = std::chrono::duration<double>(-1)) noexcept {
  using SteadyClock = std::chrono::steady_clock;
  TimeLeft left(timeout);
  for (;;) {
    pollfd ready{socket, POLLIN, 0};
    const auto start = SteadyClock::now();
    const int count = ::poll(&ready, 1, left.next_ms());
    const int error = errno;
    left.take(SteadyClock::now() - start);
    if (count < 0 && error == EINTR) continue;
    if (count == 0 && !left.over()) continue;
    if (count == 0) return Received::TimedOut;
    if (count < 0) return Received::Closed;

    iovec part{&record, sizeof record};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd != nullptr) {
      message.msg_control = control;
      // The padding of the whole array has room for a second descriptor; the system closes those without room.
      message.msg_controllen = CMSG_LEN(sizeof(int));
    }
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message);
        got > 0 && header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(header), sizeof passed);
      *fd = Descriptor(passed);
    }
    const bool whole = got == static_cast<ssize_t>(sizeof record) && (message.msg_flags & MSG_TRUNC) == 0;
    return whole ? Received::Message : Received::Closed;
  }
}

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(measurers)

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE std::pair<Descriptor, Descriptor> socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) throw_system_error("socketpair");
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

TUNEWRIGHT_INLINE Mapping::Mapping(int fd, std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  base_ = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (base_ == MAP_FAILED) throw_system_error("mmap of shared memory");
}

TUNEWRIGHT_INLINE Descriptor share(std::span<const char> bytes) {
  Descriptor memory(::memfd_create("tunewright", MFD_CLOEXEC));
  if (!memory) throw_system_error("memfd_create");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written =
        uninterrupted([&] { return ::write(memory.get(), bytes.data() + done, bytes.size() - done); });
    if (written <= 0) throw_system_error("write to shared memory");
    done += static_cast<std::size_t>(written);
  }
  return memory;
}

TUNEWRIGHT_INLINE std::string Reader::get_text() {
  const auto text = get_all<char>();
  return {text.begin(), text.end()};
}

TUNEWRIGHT_INLINE const char* Reader::take(std::size_t count) {
  if (at_ > bytes_.size() || count > bytes_.size() - at_) throw std::logic_error("shared memory ends too early");
  return bytes_.data() + std::exchange(at_, at_ + count);
}

}  // namespace tunewright::measurers::sandbox

#endif
