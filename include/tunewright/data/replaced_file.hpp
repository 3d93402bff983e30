// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tunewright::data {

/// Writes a file beside another one, which it finally replaces. Until then the other one stays as it is; if it is not
/// replaced, what was written is removed. Of a symbolic link, the file that it leads to is replaced, since who has that
/// one open would otherwise not notice.
class ReplacedFile {
 public:
  /// Opens `path` with `ending` appended. Throws `std::runtime_error` with `path` if it cannot be written.
  ReplacedFile(std::string path, std::string_view ending)
      : path_(behind_links(std::move(path))),
        unfinished_(path_ + std::string(ending)),
        out_(unfinished_, std::ios::binary | std::ios::trunc) {
    check();
    is_there_ = true;
  }
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile() {
    if (!is_there_) return;
    out_.close();
    std::error_code ignored;
    std::filesystem::remove(unfinished_, ignored);
  }

  [[nodiscard]] std::ostream& stream() noexcept { return out_; }

  /// Throws `std::runtime_error` with the path if writing has failed.
  void check() const {
    if (!out_) throw std::runtime_error("cannot write '" + path_ + "'; check that the folder exists and has room");
  }

  /// Ends writing and waits until the file is on the disk. Throws `std::runtime_error` with the path if that fails.
  void complete() {
    if (is_complete_) return;
    out_.close();
    check();
    // Otherwise a machine that crashes soon could have lost the old file and not yet have the new one.
    const int fd = ::open(unfinished_.c_str(), O_RDONLY | O_CLOEXEC);
    const int error = fd >= 0 && ::fsync(fd) == 0 ? 0 : errno;
    if (fd >= 0) ::close(fd);
    if (error != 0) throw std::runtime_error("'" + path_ + "' does not reach the disk: " + std::strerror(error));
    is_complete_ = true;
  }

  /// Moves the file, once it is complete, to the path. Throws `std::runtime_error` with the path if that fails.
  void replace() {
    complete();
    std::error_code failed;
    std::filesystem::rename(unfinished_, path_, failed);
    if (failed) throw std::runtime_error("cannot replace '" + path_ + "': " + failed.message());
    is_there_ = false;
  }

 private:
  static std::string behind_links(std::filesystem::path path) {
    constexpr int most = 40;  // as many as the system follows
    for (int links = 0; links < most && std::filesystem::is_symlink(path); ++links)
      path = path.parent_path() / std::filesystem::read_symlink(path);
    return path.string();
  }

  std::string path_, unfinished_;
  std::ofstream out_;
  bool is_there_ = false;  ///< the unfinished file
  bool is_complete_ = false;
};

}  // namespace tunewright::data
