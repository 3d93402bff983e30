// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace support {

/// Path of a file in test/data.
inline std::string data_file(const std::string& name) {
  return (std::filesystem::path(TUNEWRIGHT_TEST_DATA) / name).string();
}

}  // namespace support
