// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace tunewright {

/// Makes a folder and those above it, where they are missing; an empty path is the current folder. Throws
/// `std::runtime_error` with the folder, the cause and `remedy`, what to do instead, if it cannot be made.
inline void make_folder(const std::filesystem::path& folder, std::string_view remedy = "name one that you may write") {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw std::runtime_error("the folder '" + folder.string() + "' cannot be made (" + error.message() + "); " +
                             std::string(remedy));
  }
}

}  // namespace tunewright
