// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "tunewright/core/uninterrupted.hpp"

namespace tunewright::data {

/// Writes a file beside another one, which it finally replaces and whose permissions it gets. Until then the other one
/// stays as it is; if it is not replaced, what was written is removed. Each writer has a file of its own, the first of
/// `PATH.unfinished.0`, `PATH.unfinished.1` and so on that is not there, so of writers at the same time the last one to
/// end replaces what the others wrote. One that is killed leaves its file behind. Of a symbolic link, the file that it
/// leads to is replaced, since who has that one open would otherwise not notice.
class ReplacedFile {
 public:
  /// Throws `std::runtime_error` with `path` if no file can be written beside it.
  explicit ReplacedFile(std::string path) : path_(behind_links(std::move(path))) {
    struct stat replaced{};
    if (::stat(path_.c_str(), &replaced) == 0) permissions_ = replaced.st_mode & 0777;
    // Others read it no sooner than they may read the one that it replaces.
    const mode_t mode = permissions_ ? *permissions_ | S_IRUSR | S_IWUSR : 0666;
    int fd = -1;
    for (unsigned number = 0; fd < 0; ++number) {
      unfinished_ = path_ + ".unfinished." + std::to_string(number);
      fd = uninterrupted([&] { return ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode); });
      if (fd < 0 && errno != EEXIST) break;
    }
    is_there_ = fd >= 0;
    if (is_there_) {
      ::close(fd);
      out_.open(unfinished_, std::ios::binary);
    }
    if (is_there_ && out_) return;
    remove();
    throw cannot_write();
  }
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile() { remove(); }

  [[nodiscard]] std::ostream& stream() noexcept { return out_; }

  /// Throws `std::runtime_error` with the path if writing has failed.
  void check() const {
    if (!out_) throw cannot_write();
  }

  /// Ends writing and waits until the file is on the disk. Throws `std::runtime_error` with the path if that fails.
  void complete() {
    if (is_complete_) return;
    out_.close();
    check();
    // Otherwise a machine that crashes soon could have lost the old file and not yet have the new one.
    const int fd = uninterrupted([&] { return ::open(unfinished_.c_str(), O_RDONLY | O_CLOEXEC); });
    const bool is_done = fd >= 0 && (!permissions_ || ::fchmod(fd, *permissions_) == 0) &&
                         uninterrupted([&] { return ::fsync(fd); }) == 0;
    const int error = is_done ? 0 : errno;
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

  [[nodiscard]] std::runtime_error cannot_write() const {
    return std::runtime_error("cannot write '" + path_ + "'; check that the folder exists and has room");
  }

  void remove() {
    if (!is_there_) return;
    out_.close();
    std::error_code ignored;
    std::filesystem::remove(unfinished_, ignored);
    is_there_ = false;
  }

  std::string path_, unfinished_;
  std::optional<mode_t> permissions_;  ///< of the replaced file, if there is one
  std::ofstream out_;
  bool is_there_ = false;  ///< the unfinished file
  bool is_complete_ = false;
};

}  // namespace tunewright::data
