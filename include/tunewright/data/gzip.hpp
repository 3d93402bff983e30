// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Reads the bytes of a plain or gzip file; the first bytes, not the name, determine which. A gzip file may have
/// several members, one after the other, followed by zeros.
///
/// `read` returns all data up to the end. Damage does not throw: everything before it is returned, and `damage()` then
/// describes it. Throws `std::runtime_error` if the file cannot be opened.
class GzipReader {
 public:
  explicit GzipReader(const std::string& path);

  /// Fills `into` with up to `capacity` bytes and returns how many; 0 at the end.
  std::size_t read(char* into, std::size_t capacity);

  /// Empty as long as there is no damage.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// Approximate total number of bytes, from the file's own information; 0 if unknown.
  [[nodiscard]] std::size_t expected_bytes();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  std::size_t read_file(unsigned char* into, std::size_t capacity);
  /// Whether `count` bytes of the file are buffered at `packed_at_`; fewer may remain at its end.
  bool has(std::size_t count);
  bool at_member() { return has(2) && packed_[packed_at_] == 0x1f && packed_[packed_at_ + 1] == 0x8b; }

  std::size_t copy(char* into, std::size_t capacity);

  std::size_t inflate(char* into, std::size_t capacity);
  void next_member();
  void end_with(std::string damage);
  static const char* reason(int code) noexcept;

  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<inflate_state> stream_;  // none for a plain file
  std::vector<unsigned char> packed_ = std::vector<unsigned char>(256 * 1024);
  std::size_t packed_at_ = 0;  // of what was read from the file and not used yet
  std::size_t packed_end_ = 0;
  std::string damage_;
  bool ended_ = false;
};

/// The contents of a plain or gzip file. Throws `std::runtime_error` if it cannot be opened, is damaged, or is larger
/// than `max_bytes` after decompression.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t max_bytes = std::size_t{1} << 30);

/// The lines of a plain or gzip file, one at a time, in memory bounded by the longest line.
///
/// A line is a view that stays valid until the next call; "\n" and "\r\n" end it, and the last line needs neither. A
/// line longer than `max_line_bytes` is returned empty with `too_long()` true.
class GzipLines {
 public:
  explicit GzipLines(const std::string& path, std::size_t max_line_bytes = std::size_t{64} << 20)
      : reader_(path), max_line_bytes_(max_line_bytes), buffer_(256 * 1024, '\0') {}

  /// The next line; false at the end of the file.
  bool next(std::string_view& line);

  [[nodiscard]] std::size_t number() const noexcept { return number_; }  ///< of the last line given, from 1
  [[nodiscard]] bool too_long() const noexcept { return too_long_; }
  [[nodiscard]] const std::string& damage() const noexcept { return reader_.damage(); }

 private:
  bool give(std::string_view& line, std::size_t from, std::size_t to);
  // Moves the unread part, which has no line end, to the front.
  void make_room();

  GzipReader reader_;
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of the unread part of `buffer_`
  std::size_t end_ = 0;
  std::size_t number_ = 0;
  bool too_long_ = false;
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(gzip)

#include "tunewright/core/huge_pages.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE GzipReader::GzipReader(const std::string& path) : file_(std::fopen(path.c_str(), "rbe")) {
  if (!file_) {
    throw std::runtime_error("cannot read '" + path + "'; name a readable file, plain or gzip");
  }
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // whole chunks are read
  if (at_member()) {
    stream_ = std::make_unique<inflate_state>();
    ::isal_inflate_init(stream_.get());
    stream_->crc_flag = ISAL_GZIP;
  }
}

TUNEWRIGHT_INLINE std::size_t GzipReader::read(char* into, std::size_t capacity) {
  if (ended_ || capacity == 0) return 0;
  const std::size_t got = stream_ ? inflate(into, capacity) : copy(into, capacity);
  ended_ = ended_ || got == 0;
  return got;
}

TUNEWRIGHT_INLINE std::size_t GzipReader::expected_bytes() {
  const long at = std::ftell(file_.get());
  unsigned char last[4] = {};
  if (at < 0 || std::fseek(file_.get(), stream_ ? -4 : 0, SEEK_END) != 0) return 0;
  std::size_t bytes = 0;
  if (!stream_) {
    bytes = static_cast<std::size_t>(std::max(0L, std::ftell(file_.get())));
  } else if (std::fread(last, 1, sizeof last, file_.get()) == sizeof last) {  // a gzip file ends with it
    for (const unsigned byte : {last[3], last[2], last[1], last[0]}) bytes = bytes << 8 | byte;
    constexpr std::size_t highest_ratio = 1032;  // of the format
    bytes = std::min(bytes, highest_ratio * static_cast<std::size_t>(std::ftell(file_.get())));
  }
  std::fseek(file_.get(), at, SEEK_SET);
  return bytes;
}

TUNEWRIGHT_INLINE std::size_t GzipReader::read_file(unsigned char* into, std::size_t capacity) {
  const std::size_t got = std::fread(into, 1, capacity, file_.get());
  if (got < capacity && std::ferror(file_.get()) != 0) {
    end_with(std::string("cannot be read: ") + std::strerror(errno));
  }
  return got;
}

TUNEWRIGHT_INLINE bool GzipReader::has(std::size_t count) {
  if (packed_end_ - packed_at_ < count) {
    std::memmove(packed_.data(), packed_.data() + packed_at_, packed_end_ - packed_at_);
    packed_end_ -= std::exchange(packed_at_, 0);
    packed_end_ += read_file(packed_.data() + packed_end_, packed_.size() - packed_end_);
  }
  return packed_end_ - packed_at_ >= count;
}

TUNEWRIGHT_INLINE std::size_t GzipReader::copy(char* into, std::size_t capacity) {
  const std::size_t kept = std::min(capacity, packed_end_ - packed_at_);
  std::memcpy(into, packed_.data() + packed_at_, kept);
  packed_at_ += kept;
  return kept > 0 ? kept : read_file(reinterpret_cast<unsigned char*>(into), capacity);
}

TUNEWRIGHT_INLINE std::size_t GzipReader::inflate(char* into, std::size_t capacity) {
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  stream_->next_out = reinterpret_cast<std::uint8_t*>(into);
  stream_->avail_out = static_cast<std::uint32_t>(std::min(capacity, most));
  while (stream_->avail_out > 0 && !ended_) {
    const bool more = has(1);
    const std::uint32_t room = stream_->avail_out;
    stream_->next_in = packed_.data() + packed_at_;
    stream_->avail_in = static_cast<std::uint32_t>(packed_end_ - packed_at_);
    const int code = ::isal_inflate(stream_.get());
    packed_at_ = packed_end_ - stream_->avail_in;
    if (code < 0) {
      end_with(std::string("the compressed stream is damaged (") + reason(code) + ")");
    } else if (stream_->block_state == ISAL_BLOCK_FINISH) {
      next_member();
    } else if (!more && stream_->avail_out == room) {
      end_with("the compressed stream ends early");
    }
  }
  return static_cast<std::size_t>(stream_->next_out - reinterpret_cast<std::uint8_t*>(into));
}

TUNEWRIGHT_INLINE void GzipReader::next_member() {
  if (at_member()) {
    ::isal_inflate_reset(stream_.get());
    stream_->crc_flag = ISAL_GZIP;
    return;
  }
  while (has(1) && packed_[packed_at_] == 0) ++packed_at_;
  if (has(1)) end_with("the compressed stream is damaged (other bytes follow it)");
  ended_ = true;
}

TUNEWRIGHT_INLINE void GzipReader::end_with(std::string damage) {
  if (damage_.empty()) damage_ = std::move(damage);
  ended_ = true;
}

TUNEWRIGHT_INLINE const char* GzipReader::reason(int code) noexcept {
  switch (code) {
    case ISAL_INVALID_BLOCK: return "invalid block";
    case ISAL_INVALID_SYMBOL: return "invalid code";
    case ISAL_INVALID_LOOKBACK: return "invalid distance";
    case ISAL_INVALID_WRAPPER: return "invalid header";
    case ISAL_UNSUPPORTED_METHOD: return "unknown method of compression";
    case ISAL_INCORRECT_CHECKSUM: return "wrong checksum";
    default: return "unknown fault";
  }
}

TUNEWRIGHT_INLINE std::string read_text(const std::string& path, std::size_t max_bytes) {
  GzipReader reader(path);
  std::string text;
  constexpr std::size_t chunk = 256 * 1024;
  text.reserve(std::min(reader.expected_bytes(), max_bytes) + chunk);
  advise_huge_pages(text.data(), text.capacity());
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

TUNEWRIGHT_INLINE bool GzipLines::next(std::string_view& line) {
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

TUNEWRIGHT_INLINE bool GzipLines::give(std::string_view& line, std::size_t from, std::size_t to) {
  ++number_;
  if (to > from && buffer_[to - 1] == '\r') --to;
  too_long_ = too_long_ || to - from > max_line_bytes_;
  line = too_long_ ? std::string_view() : std::string_view(buffer_).substr(from, to - from);
  return true;
}

TUNEWRIGHT_INLINE void GzipLines::make_room() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  if (end_ > max_line_bytes_) {
    too_long_ = true;
    end_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
}

}  // namespace tunewright::data

#endif
