// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace tunewright::fuzz {

/// A folder in memory that is gone when the program ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = "/dev/shm/tunewright_fuzz_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder '" + name + "'");
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace tunewright::fuzz
