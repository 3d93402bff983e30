// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace tunewright::fuzz {

/// A folder in memory that is gone when the program ends.
struct Folder {
  std::filesystem::path path = "/dev/shm/tunewright_fuzz_" + std::to_string(::getpid());
  Folder() { std::filesystem::create_directory(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace tunewright::fuzz
