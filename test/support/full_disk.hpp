// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <stdexcept>

namespace support {

/// While it lives, files of this process grow to `bytes` at most: beyond that writing fails, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : on_full_(std::signal(SIGXFSZ, SIG_IGN)) {
    const bool is_known = ::getrlimit(RLIMIT_FSIZE, &usual_) == 0;
    const rlimit full{bytes, usual_.rlim_max};
    if (!is_known || ::setrlimit(RLIMIT_FSIZE, &full) != 0) throw std::runtime_error("the size of files has no limit");
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &usual_);
    std::signal(SIGXFSZ, on_full_);
  }

 private:
  void (*on_full_)(int);
  rlimit usual_{};
};

}  // namespace support
