// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

/// Limits of the memory of a process, for tests of what must do with little.
namespace support {

// Sanitizers take address space for each thread, and end the program if there is none.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool limits_address_space = false;
#elif defined(__has_feature)
inline constexpr bool limits_address_space = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
inline constexpr bool limits_address_space = true;
#endif

/// Limits the address space of this process to what it has and `more` bytes; ends it with status 4 if it cannot.
inline void leave_room_for(rlim_t more) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(4);
}

/// Calls `work` in a process that has `more` bytes of address space left; returns the status it ends with: that which
/// `work` returns, 2 where it throws, and -1 if a signal ends the process or there is none.
template <class Work>
[[nodiscard]] int status_with_room_for(rlim_t more, const Work& work) {
  const pid_t process = ::fork();
  if (process == 0) {
    leave_room_for(more);
    int status = 2;
    try {
      status = work();
    } catch (...) {
      // The status tells.
    }
    ::_exit(status);
  }
  int status = -1;
  if (process < 0 || ::waitpid(process, &status, 0) != process || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace support
