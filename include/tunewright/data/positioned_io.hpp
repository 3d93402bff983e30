// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/core/uninterrupted.hpp"

/// Reading and writing parts of large files in bounded memory.
namespace tunewright::data {

/// Longer lines are split; no line of a journal is this long.
inline constexpr std::uint64_t longest_line_bytes = std::uint64_t{64} << 20;

/// Reads exactly `count` bytes at `offset`; false if the file ends before.
[[nodiscard]] inline bool read_at(int fd, std::uint64_t offset, void* into, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = uninterrupted(
        [&] { return ::pread(fd, static_cast<char*>(into) + done, count - done, static_cast<off_t>(offset + done)); });
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

/// Appends from a position on, in blocks of a MiB.
class BufferedWriter {
 public:
  BufferedWriter(int fd, std::uint64_t offset) : fd_(fd), offset_(offset) {}

  void append(const void* bytes, std::size_t count) {
    const auto* from = static_cast<const char*>(bytes);
    buffer_.insert(buffer_.end(), from, from + count);
    if (buffer_.size() >= std::size_t{1} << 20) flush();
  }
  /// Throws `std::runtime_error` if the file cannot be written.
  void flush() {
    for (std::size_t done = 0; done < buffer_.size();) {
      const ssize_t written = uninterrupted([&] {
        return ::pwrite(fd_, buffer_.data() + done, buffer_.size() - done, static_cast<off_t>(offset_ + done));
      });
      if (written < 0)
        throw std::runtime_error("cannot write the index of a journal: " + std::string(std::strerror(errno)));
      done += static_cast<std::size_t>(written);
    }
    offset_ += buffer_.size();
    buffer_.clear();
  }

 private:
  int fd_;
  std::uint64_t offset_;
  std::vector<char> buffer_;
};

/// Reads the complete lines of a file from a position on; a last line without a newline does not count.
class LineReader {
 public:
  LineReader(int fd, std::uint64_t offset) : fd_(fd), offset_(offset) {}

  /// The next line without its newline, valid until the next call, and its position; false at the end.
  /// Throws `std::runtime_error` if the file cannot be read.
  bool next(std::string_view& line, std::uint64_t& begin) {
    std::size_t searched = at_;
    for (;;) {
      const auto* const found = static_cast<const char*>(
          searched < buffer_.size() ? std::memchr(buffer_.data() + searched, '\n', buffer_.size() - searched)
                                    : nullptr);
      if (found != nullptr || buffer_.size() - at_ > longest_line_bytes) {
        const std::size_t end =
            found != nullptr ? static_cast<std::size_t>(found - buffer_.data()) : buffer_.size() - 1;
        line = {buffer_.data() + at_, end - at_};
        begin = offset_ + at_;
        at_ = end + 1;
        return true;
      }
      buffer_.erase(0, at_);
      offset_ += at_;
      at_ = 0;
      searched = buffer_.size();
      const std::size_t piece = std::max(piece_, searched);
      piece_ = std::min<std::size_t>(2 * piece_, std::size_t{1} << 20);
      buffer_.resize(searched + piece);
      const ssize_t got = uninterrupted(
          [&] { return ::pread(fd_, buffer_.data() + searched, piece, static_cast<off_t>(offset_ + searched)); });
      if (got < 0) throw std::runtime_error("cannot read a journal: " + std::string(std::strerror(errno)));
      buffer_.resize(searched + static_cast<std::size_t>(got));
      if (got == 0) return false;
    }
  }
  /// The text after the last complete line, once `next` has returned false.
  [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(at_); }

 private:
  int fd_;
  std::uint64_t offset_;  // of the buffer in the file
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t piece_ = std::size_t{1} << 13;  // who wants one line reads little, who wants all reads in large pieces
};

}  // namespace tunewright::data
