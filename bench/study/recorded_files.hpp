// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tunewright::study {

/// The files below `root / folder` whose names end in `ending`, in order of their paths.
inline std::vector<std::filesystem::path> files(const std::filesystem::path& root, const std::string& folder,
                                                std::string_view ending = ".gz") {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tunewright::study
