// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <ios>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tunewright {

/// Writes a file in a folder that exists, in place of one that is there: calls `content(out)` with its binary
/// `std::ostream`, unless it cannot be opened. Throws `std::runtime_error` with the path and `remedy`, what to do
/// instead, if it cannot be written; what was written until then is left.
template <class Content>
void write_file(const std::filesystem::path& path, std::string_view remedy, const Content& content) {
  std::ofstream out(path, std::ios::binary);
  if (out) content(static_cast<std::ostream&>(out));
  out.close();  // a full disk may be noticed as late as here
  if (!out) throw std::runtime_error("cannot write '" + path.string() + "'; " + std::string(remedy));
}

}  // namespace tunewright
