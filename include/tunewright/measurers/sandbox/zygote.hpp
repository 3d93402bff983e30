// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/records.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"
#include "tunewright/measurers/sandbox/worker_parts.hpp"

namespace tunewright::measurers::sandbox {

/// A copy of this process, forked early, that forks workers on request.
///
/// The tuner must not fork workers itself: by then it has compile threads, and a fork copies the locks that they hold.
/// The zygote always has a single thread. It also works if the tuner has threads already when the zygote is forked,
/// because the zygote itself only forks, kills and waits; but whatever else a worker uses must then not have been in
/// use by another thread at that moment (the C library's allocator is safe after a fork).
///
/// No process outlives the tuner: the zygote ends when its socket closes, however the tuner ended, and kills its
/// workers; the kernel kills them if the zygote itself is killed. Each worker leads a process group, so processes that
/// a kernel started end with it.
class Zygote {
 public:
  explicit Zygote(WorkerParts parts);
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;
  /// In a fork of the process that made it, only closes the copied socket.
  ~Zygote();

  struct Worker {
    pid_t pid = 0;
    Descriptor socket;
  };
  [[nodiscard]] Worker spawn();

  /// Ends a worker and its process group at once, or after it had `grace` to end by itself. Returns the status of
  /// `waitpid`.
  int end(pid_t worker, std::chrono::duration<double> grace) {
    return ask({.kind = ZygoteRequest::Kind::End, .worker = worker, .grace_seconds = grace.count()}).wait_status;
  }

  /// Whether this process made it, instead of being a fork of the one that did.
  [[nodiscard]] bool is_ours() const noexcept { return ::getpid() == owner_; }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Whether the zygote is running.
  [[nodiscard]] bool alive() const noexcept;

 private:
  ZygoteReply ask(const ZygoteRequest& request, int fd = -1);

  /// Detaches the copy from the tuner: terminal signals, handlers, descriptors.
  static void be_quiet(int socket);

  static void serve(int socket, const WorkerParts& parts);

  static int end_worker(pid_t worker, std::chrono::duration<double> grace);

  static void be_worker(int socket, pid_t zygote, const WorkerParts& parts);

  pid_t pid_ = -1, owner_ = ::getpid();
  Descriptor socket_;
  std::mutex mutex_;  // guards the socket, since a zygote may be shared
};

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/uninterrupted.hpp"
#include "tunewright/measurers/sandbox/child.hpp"
#include "tunewright/measurers/sandbox/crash_report.hpp"

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE Zygote::Zygote(WorkerParts parts) {
  auto [ours, theirs] = socket_pair();
  std::fflush(nullptr);  // otherwise a kernel that prints would print our unwritten text again
  const pid_t pid = ::fork();
  if (pid < 0) throw_system_error("fork");
  if (pid == 0) {
    ours.close();  // `be_quiet` leaves standard streams open, and without those of the tuner it is one
    // An exception must not unwind into the copied frames of the tuner.
    try {
      be_quiet(theirs.get());
      serve(theirs.get(), parts);
    } catch (...) {
    }
    ::_exit(0);
  }
  pid_ = pid;
  socket_ = std::move(ours);
}

TUNEWRIGHT_INLINE Zygote::~Zygote() {
  if (!is_ours()) return;
  ::shutdown(socket_.get(), SHUT_RDWR);  // ends it even if a fork of this process still holds the socket
  socket_.close();
  static_cast<void>(uninterrupted([&] { return ::waitpid(pid_, nullptr, 0); }));
}

TUNEWRIGHT_INLINE Zygote::Worker Zygote::spawn() {
  auto [ours, theirs] = socket_pair();
  const ZygoteReply reply = ask({.kind = ZygoteRequest::Kind::Spawn}, theirs.get());
  if (reply.worker <= 0) throw std::runtime_error("the measuring process cannot fork; is there a process limit?");
  return {reply.worker, std::move(ours)};
}

TUNEWRIGHT_INLINE bool Zygote::alive() const noexcept {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

TUNEWRIGHT_INLINE ZygoteReply Zygote::ask(const ZygoteRequest& request, int fd) {
  const std::lock_guard lock(mutex_);
  ZygoteReply reply;
  if (!send_record(socket_.get(), request, fd) || receive_record(socket_.get(), reply) != Received::Message) {
    throw std::runtime_error("the measuring process " + std::to_string(pid_) +
                             " is gone; was it killed, or the machine short of memory?");
  }
  return reply;
}

TUNEWRIGHT_INLINE void Zygote::be_quiet(int socket) {
  ::setpgid(0, 0);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // The tuner's locks and sockets must not stay open here. This matters most for sockets of other zygotes, which end
  // when they are closed.
  if (socket > 3) ::close_range(3, static_cast<unsigned>(socket) - 1, 0);
  ::close_range(static_cast<unsigned>(socket) + 1, ~0U, 0);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

TUNEWRIGHT_INLINE void Zygote::serve(int socket, const WorkerParts& parts) {
  std::vector<pid_t> workers;
  for (;;) {
    ZygoteRequest request;
    Descriptor passed;
    if (receive_record(socket, request, &passed) != Received::Message) break;
    ZygoteReply reply;
    if (request.kind == ZygoteRequest::Kind::Spawn) {
      const pid_t zygote = ::getpid();
      reply.worker = ::fork();
      if (reply.worker == 0) {
        ::close(socket);
        be_worker(passed.get(), zygote, parts);
        ::_exit(0);
      }
      // Called here and in the worker, because either may run first.
      if (reply.worker > 0) ::setpgid(reply.worker, reply.worker);
      if (reply.worker > 0) workers.push_back(reply.worker);
    } else if (const auto known = std::find(workers.begin(), workers.end(), request.worker); known != workers.end()) {
      reply.worker = request.worker;
      reply.wait_status = end_worker(request.worker, std::chrono::duration<double>(request.grace_seconds));
      workers.erase(known);
    }
    if (!send_record(socket, reply)) break;
  }
  for (const pid_t worker : workers) end_worker(worker, {});
}

TUNEWRIGHT_INLINE int Zygote::end_worker(pid_t worker, std::chrono::duration<double> grace) {
  const auto start = std::chrono::steady_clock::now();
  siginfo_t info{};
  // WNOWAIT does not reap, which keeps the id of a dead worker, and of its group, from being reused.
  while (grace.count() > 0 && ::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0 && std::chrono::steady_clock::now() - start < grace) {
    ::usleep(500);
  }
  ::kill(-worker, SIGKILL);
  int status = 0;
  static_cast<void>(uninterrupted([&] { return ::waitpid(worker, &status, 0); }));
  return status;
}

TUNEWRIGHT_INLINE void Zygote::be_worker(int socket, pid_t zygote, const WorkerParts& parts) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != zygote) return;  // the zygote died before the line above
  crash_report::install(socket);
  if (parts.serve) {
    parts.serve(socket);
  } else {
    // The tuner may have requested permission only after the zygote was forked. Fails harmlessly without such
    // registers.
    (void)host::permit_tile_registers();
    confine(parts.confinement);
    Child(socket, parts).serve();
  }
}

}  // namespace tunewright::measurers::sandbox

#endif
