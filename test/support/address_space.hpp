// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
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

}  // namespace support
