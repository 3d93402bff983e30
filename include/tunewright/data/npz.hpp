// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Writes arrays into one file for `numpy.load`: an uncompressed ZIP archive with one NPY file per array.
///
///   NpzWriter file(out);
///   file.add("labels", std::span<const float>(y));
///   file.add("features", x.values(), {x.rows(), x.columns()});
///   file.finish();
///
/// Throws `std::invalid_argument` for a shape that does not match the values, and beyond the limits of the format
/// without extensions: an archive beyond 4 GiB, 65,535 arrays or more, a name beyond 64 KiB. The bytes depend only on
/// the arrays: there are no time stamps.
class NpzWriter {
 public:
  explicit NpzWriter(std::ostream& out) : out_(out) {}

  /// An array of numbers; without a shape it has one dimension.
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(std::string_view name, std::span<const T> values, std::vector<std::size_t> shape = {}) {
    static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");
    constexpr char kind = std::is_floating_point_v<T> ? 'f' : std::is_unsigned_v<T> ? 'u' : 'i';
    if (shape.empty()) shape = {values.size()};
    const std::int64_t elements = checked_elements(shape, "npz: array '" + std::string(name) + "'");
    if (std::cmp_not_equal(elements, values.size())) {
      throw std::invalid_argument("npz: array '" + std::string(name) + "' has " + std::to_string(values.size()) +
                                  " values, its shape wants " + std::to_string(elements));
    }
    const std::string order = sizeof(T) == 1 ? "|" : "<";
    write(name, order + kind + std::to_string(sizeof(T)), shape,
          {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

  /// An array of text, [n], which numpy shows as `str`. Bytes that are not UTF-8 become U+FFFD.
  void add(std::string_view name, const std::vector<std::string>& texts);

  /// Ends the archive. Throws `std::runtime_error` if the stream failed.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint64_t at = 0, bytes = 0;
    std::uint32_t checksum = 0;
  };

  void write(std::string_view name, const std::string& type, const std::vector<std::size_t>& shape,
             std::string_view bytes);

  // The common part of the two headers of a member.
  void put_common(const Member& member);
  void put(std::uint64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8, ++written_) out_.put(static_cast<char>(value & 0xff));
  }
  void put(std::string_view bytes);
  static void check_size(std::uint64_t bytes);

  static std::uint32_t crc32(std::string_view bytes, std::uint32_t state);

  static std::u32string utf32(std::string_view text);

  std::ostream& out_;
  std::uint64_t written_ = 0;
  std::vector<Member> members_;
};

/// Writes a dataset for other tools:
///
///   features (R, D) float32     offsets [N + 1]: rows of record i are offsets[i] .. offsets[i + 1]
///   labels [N] float32          best of the group / cost, 0 for a failure
///   groups, task, target [N]    group = one task on one target; task and target number the names
///   cost_s, price_s [N] float64, fault [N] uint8 (if the cost is infinite, numbered as tunewright::Fault)
///   task_names, target_names, feature_names
///
/// `feature_names` [D] are those of the featurizer's schema; without them the array is empty. Features are omitted if
/// the dataset has none yet. Throws as NpzWriter, and for a number of names other than D.
void write_npz(std::ostream& out, const Dataset& data, const std::vector<std::string>& feature_names = {});

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include "tunewright/json/utf8.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE void NpzWriter::add(std::string_view name, const std::vector<std::string>& texts) {
  std::vector<std::u32string> decoded;
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, decoded.emplace_back(utf32(text)).size());
  std::vector<char32_t> padded;
  for (std::u32string& text : decoded) {
    text.resize(longest);
    padded.insert(padded.end(), text.begin(), text.end());
  }
  write(name, "<U" + std::to_string(longest), {texts.size()},
        {reinterpret_cast<const char*>(padded.data()), padded.size() * sizeof(char32_t)});
}

TUNEWRIGHT_INLINE void NpzWriter::finish() {
  const std::uint64_t directory_at = written_;
  for (const Member& member : members_) {
    put(0x02014b50, 4);
    put(20, 2);
    put_common(member);
    put(0, 2);  // comment
    put(0, 2);  // disk
    put(0, 2);
    put(0, 4);
    put(member.at, 4);
    put(member.name);
  }
  const std::uint64_t directory_bytes = written_ - directory_at;
  check_size(written_);
  put(0x06054b50, 4);
  put(0, 4);  // disks
  put(members_.size(), 2);
  put(members_.size(), 2);
  put(directory_bytes, 4);
  put(directory_at, 4);
  put(0, 2);
  out_.flush();
  if (!out_) throw std::runtime_error("npz: writing failed; is there space on the disk?");
}

TUNEWRIGHT_INLINE void NpzWriter::write(std::string_view name, const std::string& type,
                                        const std::vector<std::size_t>& shape, std::string_view bytes) {
  constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
  if (name.size() + 4 > most) {
    throw std::invalid_argument("npz: an array has a name of " + std::to_string(name.size()) +
                                " bytes; give one of at most " + std::to_string(most - 4));
  }
  if (members_.size() + 1 >= most) {
    throw std::invalid_argument("npz: the archive has " + std::to_string(members_.size()) +
                                " arrays, which is the most; put the others into another file");
  }
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (const std::size_t extent : shape) header += std::to_string(extent) + ",";
  header += "), }";
  constexpr std::size_t preamble = 10;  // magic, version, length of the header
  header.append(63 - (preamble + header.size()) % 64, ' ');
  header += '\n';
  if (header.size() > most) {
    throw std::invalid_argument("npz: array '" + std::string(name) + "' has " + std::to_string(shape.size()) +
                                " dimensions; numpy reads 32");
  }
  std::string npy("\x93NUMPY\x01\x00", 8);
  npy += static_cast<char>(header.size() & 0xff);
  npy += static_cast<char>(header.size() >> 8);
  npy += header;

  Member member{std::string(name) + ".npy", written_, npy.size() + bytes.size(), 0};
  check_size(written_ + member.bytes + 1024);
  member.checksum = ~crc32(bytes, crc32(npy, 0xffffffffU));
  put(0x04034b50, 4);
  put_common(member);
  put(member.name);
  put(npy);
  put(bytes);
  members_.push_back(std::move(member));
}

TUNEWRIGHT_INLINE void NpzWriter::put_common(const Member& member) {
  put(20, 2);     // version needed
  put(0x800, 2);  // names are UTF-8
  put(0, 2);      // stored
  put(0, 2);      // time
  put(0x21, 2);   // 1980-01-01
  put(member.checksum, 4);
  put(member.bytes, 4);
  put(member.bytes, 4);
  put(member.name.size(), 2);
  put(0, 2);
}

TUNEWRIGHT_INLINE void NpzWriter::put(std::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  written_ += bytes.size();
}

TUNEWRIGHT_INLINE void NpzWriter::check_size(std::uint64_t bytes) {
  if (bytes > std::numeric_limits<std::uint32_t>::max()) {
    throw std::invalid_argument("npz: the archive would have " + std::to_string(bytes) +
                                " bytes, 4 GiB is the most; write subsets of the dataset to several files");
  }
}

TUNEWRIGHT_INLINE std::uint32_t NpzWriter::crc32(std::string_view bytes, std::uint32_t state) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      entries[i] = i;
      for (int bit = 0; bit < 8; ++bit) entries[i] = (entries[i] >> 1) ^ ((entries[i] & 1U) != 0 ? 0xedb88320U : 0U);
    }
    return entries;
  }();
  for (const char byte : bytes) state = (state >> 8) ^ table[(state ^ static_cast<std::uint8_t>(byte)) & 0xffU];
  return state;
}

TUNEWRIGHT_INLINE std::u32string NpzWriter::utf32(std::string_view text) {
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) result += json::next_code_point(text, at);
  return result;
}

TUNEWRIGHT_INLINE void write_npz(std::ostream& out, const Dataset& data,
                                 const std::vector<std::string>& feature_names) {
  data.check();
  if (!feature_names.empty() && feature_names.size() != data.x.columns()) {
    throw std::invalid_argument("write_npz: " + std::to_string(feature_names.size()) + " feature names for " +
                                std::to_string(data.x.columns()) + " columns; give one a column, or none");
  }
  NpzWriter file(out);
  if (data.x.programs() > 0) {
    file.add("features", data.x.values(), {data.x.rows(), data.x.columns()});
    file.add("offsets", data.x.offsets());
  }
  const std::vector<float> labels = data.labels();
  const std::vector<std::uint32_t> groups = data.groups();
  std::vector<std::uint8_t> faults;
  for (const Fault fault : data.fault) faults.push_back(static_cast<std::uint8_t>(fault));
  std::vector<std::string> task_names;
  for (const DatasetTask& task : data.tasks) task_names.push_back(task.name);
  file.add("labels", std::span<const float>(labels));
  file.add("groups", std::span<const std::uint32_t>(groups));
  file.add("task", std::span<const std::uint32_t>(data.task));
  file.add("target", std::span<const std::uint32_t>(data.target));
  file.add("cost_s", std::span<const double>(data.cost_s));
  file.add("price_s", std::span<const double>(data.price_s));
  file.add("fault", std::span<const std::uint8_t>(faults));
  file.add("task_names", task_names);
  file.add("target_names", data.targets);
  file.add("feature_names", feature_names);
  file.finish();
}

}  // namespace tunewright::data

#endif
