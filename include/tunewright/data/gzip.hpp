// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tunewright::data {

/// The bytes of a file, plain or gzip: which of the two is told by its first bytes, not by its name.
///
/// `read` gives what is there until the end. Damage does not throw: everything before it is given, and
/// `damage()` then says what is wrong. Throws `std::runtime_error` when the file cannot be opened.
class GzipReader {
 public:
  explicit GzipReader(const std::string& path) : file_(::gzopen(path.c_str(), "rbe")) {
    if (!file_) {
      throw std::runtime_error("cannot read '" + path + "'; name a readable file, plain or gzip");
    }
    ::gzbuffer(file_.get(), 256 * 1024);
  }

  /// Fills `into` with up to `capacity` bytes and returns how many; 0 at the end.
  std::size_t read(char* into, std::size_t capacity) {
    if (ended_) return 0;
    const int got = ::gzread(file_.get(), into, static_cast<unsigned>(capacity));
    if (got <= 0 || static_cast<std::size_t>(got) < capacity) {
      int code = Z_OK;
      const char* text = ::gzerror(file_.get(), &code);
      if (code == Z_BUF_ERROR) {
        damage_ = "the compressed stream ends early";
      } else if (code != Z_OK && code != Z_STREAM_END) {
        damage_ = code == Z_ERRNO ? std::string("cannot be read: ") + std::strerror(errno)
                                  : std::string("the compressed stream is damaged (") + text + ")";
      }
      ended_ = got <= 0 || !damage_.empty();
    }
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

  /// Empty as long as nothing is wrong.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

 private:
  struct Close {
    void operator()(gzFile_s* file) const noexcept { ::gzclose_r(file); }
  };
  std::unique_ptr<gzFile_s, Close> file_;
  std::string damage_;
  bool ended_ = false;
};

/// The whole of a plain or gzip file. Throws `std::runtime_error` when it cannot be opened, is damaged, or is
/// larger than `max_bytes` once decompressed.
[[nodiscard]] inline std::string read_text(const std::string& path,
                                           std::size_t max_bytes = std::size_t{1} << 30) {
  GzipReader reader(path);
  std::string text;
  constexpr std::size_t chunk = 256 * 1024;
  for (std::size_t got = 1; got > 0;) {
    const std::size_t size = text.size();
    text.resize(size + chunk);
    got = reader.read(text.data() + size, chunk);
    text.resize(size + got);
    if (text.size() > max_bytes) {
      throw std::runtime_error("'" + path + "' holds more than " + std::to_string(max_bytes) +
                               " bytes; raise the limit if that is meant");
    }
  }
  if (!reader.damage().empty()) throw std::runtime_error("'" + path + "': " + reader.damage());
  return text;
}

/// The lines of a plain or gzip file, one at a time, in memory bounded by the longest line.
///
/// A line is a view that stays valid until the next call; "\n" and "\r\n" end it, and the last line needs
/// neither. A line longer than `max_line_bytes` is given as empty with `too_long()` true.
class GzipLines {
 public:
  explicit GzipLines(const std::string& path, std::size_t max_line_bytes = std::size_t{64} << 20)
      : reader_(path), max_line_bytes_(max_line_bytes), buffer_(256 * 1024, '\0') {}

  /// The next line; false at the end of the file.
  bool next(std::string_view& line) {
    too_long_ = false;
    for (std::size_t searched = begin_;;) {
      const char* data = buffer_.data();
      if (const void* found = std::memchr(data + searched, '\n', end_ - searched)) {
        const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - data);
        return give(line, std::exchange(begin_, at + 1), at);
      }
      make_room();
      searched = end_;
      const std::size_t got = reader_.read(buffer_.data() + end_, buffer_.size() - end_);
      end_ += got;
      if (got == 0) {
        begin_ = end_;
        return (end_ > 0 || too_long_) && give(line, 0, end_);
      }
    }
  }

  [[nodiscard]] std::size_t number() const noexcept { return number_; }  ///< of the last line given, from 1
  [[nodiscard]] bool too_long() const noexcept { return too_long_; }
  [[nodiscard]] const std::string& damage() const noexcept { return reader_.damage(); }

 private:
  bool give(std::string_view& line, std::size_t from, std::size_t to) {
    ++number_;
    if (to > from && buffer_[to - 1] == '\r') --to;
    line = too_long_ ? std::string_view() : std::string_view(buffer_).substr(from, to - from);
    return true;
  }
  // Moves the unread part, which has no line end, to the front.
  void make_room() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    if (end_ > max_line_bytes_) {
      too_long_ = true;
      end_ = 0;
    }
    if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  }

  GzipReader reader_;
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of the unread part of `buffer_`
  std::size_t end_ = 0;
  std::size_t number_ = 0;
  bool too_long_ = false;
};

}  // namespace tunewright::data
