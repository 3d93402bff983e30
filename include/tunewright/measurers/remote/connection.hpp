// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/core/uninterrupted.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/remote/conversation.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"

namespace tunewright::measurers::remote {

/// A worker that a command started, and the conversation with it. The command runs in its own session, so that Ctrl-C
/// does not reach it; it shares the standard error of this program.
///
/// Every call throws `Disconnected` or `ProtocolError` if the conversation cannot continue; the worker is then
/// unusable.
class Connection {
 public:
  /// Starts the command and waits for the worker's first message. Throws `std::system_error` if the command cannot be
  /// started.
  Connection(const std::vector<std::string>& command, Seconds timeout);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Closes the worker's input, which ends it, and kills the remaining processes of the command after a second. In a
  /// fork of the process that made it, only closes the copied socket.
  ~Connection();

  /// The conversation with the worker.
  [[nodiscard]] Conversation& worker() noexcept { return *worker_; }
  [[nodiscard]] const Device& device() const noexcept { return worker_->device(); }
  [[nodiscard]] pid_t process() const noexcept { return process_; }

 private:
  void end() noexcept;

  pid_t process_ = -1, owner_ = ::getpid();
  sandbox::Descriptor socket_;
  std::unique_ptr<FrameStream> stream_;
  std::unique_ptr<Conversation> worker_;
};

}  // namespace tunewright::measurers::remote

#if TUNEWRIGHT_DEFINES(remote)

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <system_error>

namespace tunewright::measurers::remote {

TUNEWRIGHT_INLINE Connection::Connection(const std::vector<std::string>& command, Seconds timeout) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) sandbox::throw_system_error("socketpair");
  socket_ = sandbox::Descriptor(ends[0]);
  sandbox::Descriptor theirs(ends[1]);

  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), 1);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawnp(&process_, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  theirs.close();  // otherwise the end of the command would not be noticed
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start '" + command.front() + "'");

  stream_ = std::make_unique<FrameStream>(socket_.get(), socket_.get(), reply_limit_bytes);
  try {
    worker_ = std::make_unique<Conversation>(*stream_, timeout);
  } catch (...) {
    end();
    throw;
  }
}

TUNEWRIGHT_INLINE Connection::~Connection() { end(); }

TUNEWRIGHT_INLINE void Connection::end() noexcept {
  if (process_ <= 0 || ::getpid() != owner_) return;
  ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.close();
  siginfo_t info{};
  for (int turn = 0; turn < 200; ++turn) {
    if (::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0)
      break;
    ::usleep(5000);
  }
  ::kill(-process_, SIGKILL);  // the whole session, including processes that the command started
  static_cast<void>(uninterrupted([&] { return ::waitpid(process_, nullptr, 0); }));
  process_ = -1;
}

}  // namespace tunewright::measurers::remote

#endif
