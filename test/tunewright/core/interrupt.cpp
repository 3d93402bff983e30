// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/interrupt.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

using namespace tunewright;

namespace {

// Runs `body` in a child that says nothing, and returns its wait status.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
    std::signal(SIGINT, SIG_DFL);
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("the first Ctrl-C asks for an end") {
  const int status = in_child([] {
    Interrupt interrupt;
    if (interrupt.should_stop()) ::_exit(1);
    ::raise(SIGINT);
    ::_exit(interrupt.should_stop() ? 0 : 2);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a Ctrl-C leaves the error of the call that it interrupts") {
  const int status = in_child([] {
    Interrupt interrupt;
    ::close(STDERR_FILENO);  // so the message fails
    errno = ENOENT;
    ::raise(SIGINT);
    ::_exit(errno == ENOENT && interrupt.should_stop() ? 0 : 2);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the second Ctrl-C kills") {
  const int status = in_child([] {
    Interrupt interrupt;
    ::raise(SIGINT);
    ::raise(SIGINT);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("without the object Ctrl-C does what it did before") {
  const int status = in_child([] {
    {
      Interrupt interrupt;
    }
    ::raise(SIGINT);
  });
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("an ignored Ctrl-C stays ignored") {
  const int status = in_child([] {
    std::signal(SIGINT, SIG_IGN);
    {
      Interrupt interrupt;
      ::raise(SIGINT);
      ::raise(SIGINT);
      if (interrupt.should_stop()) ::_exit(2);
    }
    ::raise(SIGINT);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("one object at a time") {
  Interrupt interrupt;
  CHECK_THROWS_AS(Interrupt(), std::logic_error);
}
