// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "fuzz/fuzz.hpp"

namespace tunewright::fuzz {

/// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view contents) : fd_(::memfd_create("input", MFD_CLOEXEC)) {
    const auto written = ::write(fd_, contents.data(), contents.size());
    require(written == static_cast<ssize_t>(contents.size()), "a file in memory can be written");
    ::lseek(fd_, 0, SEEK_SET);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace tunewright::fuzz
