// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <csignal>
#include <stdexcept>

#include <unistd.h>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Observer that turns Ctrl-C into an orderly end: the first Ctrl-C lets the batch finish and the run return its
/// results, the second one kills the process as usual. It is active while the object lives; one object at a time. After
/// a Ctrl-C, later runs with the same object stop too. Where Ctrl-C is ignored, as by jobs that a shell script started
/// in the background, it stays so.
///
///   Interrupt interrupt;
///   tuner.run(task, budget, journal, interrupt);
class Interrupt {
 public:
  /// Throws `std::logic_error` while another object lives.
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  [[nodiscard]] bool should_stop() const noexcept { return requested(); }

  /// Whether Ctrl-C was pressed while the present object, or the last one, lived.
  [[nodiscard]] static bool requested() noexcept { return requested_ != 0; }

 private:
  static void handle(int);

  // A signal handler can access only static storage.
  static inline volatile std::sig_atomic_t requested_ = 0;
  static inline int active_ = 0;
  struct sigaction previous_{};
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE Interrupt::Interrupt() {
  if (active_ != 0) throw std::logic_error("two Interrupt objects at a time; one serves every run of the process");
  active_ = 1;
  requested_ = 0;
  struct sigaction action{};
  action.sa_handler = &Interrupt::handle;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second signal meets the default action
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &previous_);
  if (previous_.sa_handler == SIG_IGN) ::sigaction(SIGINT, &previous_, nullptr);  // it is for other programs
}

TUNEWRIGHT_INLINE Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &previous_, nullptr);
  active_ = 0;
}

TUNEWRIGHT_INLINE void Interrupt::handle(int) {
  requested_ = 1;
  const int error = errno;  // the interrupted call may not have returned it yet
  constexpr char message[] = "\nstopping after this batch; Ctrl-C again to stop at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message, sizeof message - 1);
  errno = error;
}

}  // namespace tunewright

#endif
