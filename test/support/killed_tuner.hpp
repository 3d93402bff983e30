// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/toy_space.hpp"
#include "tunewright/measurers/concept.hpp"

/// What tests of tuners that are killed at random moments share.
namespace support {

/// Takes its time, so that kills meet it in every state, and writes down by itself which measurement it has completed:
/// task and key, a line each.
struct Witnessed {
  int fd = -1;

  [[nodiscard]] static Witnessed to(const std::string& path) {
    return {::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)};
  }

  std::vector<tunewright::Outcome> measure(const tunewright::Task& task, std::span<const toy::Program> programs,
                                           const tunewright::OutcomeSink& sink = {}) const {
    std::vector<tunewright::Outcome> outcomes;
    for (const toy::Program& program : programs) {
      std::this_thread::sleep_for(std::chrono::microseconds(600));
      outcomes.push_back(toy::outcome(program.tiles));
      if (sink) sink(outcomes.size() - 1, outcomes.back());
      // After the journal: whatever stands here must stand there.
      const std::string line = task.name + " " + tunewright::to_hex(program.key) + "\n";
      if (::write(fd, line.data(), line.size()) < 0) ::_exit(3);
    }
    return outcomes;
  }
};

/// How often each measurement was completed, by task and key.
inline std::map<std::pair<std::string, std::uint64_t>, int> witnessed(const std::string& path) {
  std::map<std::pair<std::string, std::uint64_t>, int> times;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.rfind(' ');  // names of tasks may have some, too
    ++times[{line.substr(0, space), std::stoull(line.substr(space + 1), nullptr, 16)}];
  }
  return times;
}

/// Calls `tune()` in a process of its own, which a timer kills after `life`, less than a second; a life of 0 has no such
/// end. Returns whether it had finished.
template <class Tune>
bool live_for(std::chrono::microseconds life, const Tune& tune) {
  const pid_t child = ::fork();
  if (child == 0) {
    // The kernel keeps this time. A parent that sleeps for so long wakes late on a machine under load, when all is done.
    const itimerval once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = life.count()}};
    if (::signal(SIGALRM, SIG_DFL) == SIG_ERR || ::setitimer(ITIMER_REAL, &once, nullptr) != 0) ::_exit(4);
    tune();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE((WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM : WEXITSTATUS(status) == 0));
  return WIFEXITED(status);
}

}  // namespace support
