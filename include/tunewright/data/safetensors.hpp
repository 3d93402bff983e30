// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/data/safetensors/header.hpp"
#include "tunewright/data/safetensors/tensor.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

// The safetensors format:
//
//   8 bytes  n, low byte first
//   n bytes  {"<name>":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...,"__metadata__":{"<key>":"<text>"}}
//   the rest the tensors' elements, low byte first, without gaps; offsets count from here
//
// Other programs read and write the same files.

/// Longer headers are rejected, as by other readers.
inline constexpr std::uint64_t most_header_bytes = 100'000'000;

namespace safetensors_detail {

// Reads exactly `count` bytes. Memory grows with the data that arrives, so a wrong count stops at the end of the data.
template <class Container>
void read_exactly(std::istream& in, std::uint64_t count, Container& out, const std::string& what) {
  constexpr std::uint64_t chunk = 1U << 20;
  out.clear();
  while (out.size() < count) {
    const std::size_t begin = out.size();
    out.resize(begin + static_cast<std::size_t>(std::min<std::uint64_t>(chunk, count - begin)));
    in.read(reinterpret_cast<char*>(out.data() + begin), static_cast<std::streamsize>(out.size() - begin));
    if (static_cast<std::size_t>(in.gcount()) != out.size() - begin) {
      refuse("the data end " + std::to_string(count - begin - static_cast<std::uint64_t>(in.gcount())) +
             " bytes before the end of " + what);
    }
  }
}

// Bytes for the shape; throws if they exceed 64 bits.
std::uint64_t bytes_of(const Entry& entry);

// Checks that offsets match the shapes and cover the data without gap or overlap. Sorts the entries by offset.
void check_layout(std::vector<Entry>& entries);

}  // namespace safetensors_detail

/// Writes tensors and metadata. Larger element types come first, so that all data are aligned. Throws
/// `std::invalid_argument` for repeated names, the name `__metadata__`, and bytes that do not match a shape;
/// `std::runtime_error` if the stream rejects the data. O(bytes).
void write_safetensors(std::ostream& out, std::span<const Tensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Reads a whole file. Throws `std::runtime_error` with the reason for malformed files: truncated, too long,
/// overlapping, offsets out of range, an unknown dtype, a repeated name, ... O(bytes).
[[nodiscard]] TensorFile read_safetensors(std::istream& in);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include "tunewright/core/rounded_up.hpp"
#include "tunewright/json/utf8.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::data::safetensors_detail {

TUNEWRIGHT_INLINE std::uint64_t bytes_of(const Entry& entry) {
  std::uint64_t bytes = of(entry.type).bytes;
  for (const std::size_t extent : entry.shape) {
    if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / extent)
      refuse("the shape of tensor '" + entry.name + "' is beyond 64 bits");
    bytes *= extent;
  }
  return bytes;
}

TUNEWRIGHT_INLINE void check_layout(std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    const std::string whose = "tensor '" + entry.name + "'";
    if (entry.begin > entry.end) {
      refuse(whose + " begins at byte " + std::to_string(entry.begin) + " and ends at byte " +
             std::to_string(entry.end));
    }
    if (const std::uint64_t wanted = bytes_of(entry); entry.end - entry.begin != wanted) {
      refuse(whose + " has " + std::to_string(entry.end - entry.begin) + " bytes where its shape asks for " +
             std::to_string(wanted));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < end) {
      refuse("tensor '" + entry.name + "' overlaps the one before: it begins at byte " + std::to_string(entry.begin) +
             ", before byte " + std::to_string(end));
    }
    if (entry.begin > end) {
      refuse("bytes " + std::to_string(end) + " to " + std::to_string(entry.begin) +
             " belong to no tensor; offsets are out of range");
    }
    end = entry.end;
  }
}

}  // namespace tunewright::data::safetensors_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE void write_safetensors(std::ostream& out, std::span<const Tensor> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  using namespace safetensors_detail;
  std::vector<const Tensor*> order;
  std::set<std::string> names{"__metadata__"};
  for (const Tensor& tensor : tensors) {
    if (!names.insert(json::repaired(tensor.name)).second) {
      throw std::invalid_argument("data::write_safetensors: the name '" + tensor.name +
                                  "' is taken; give each tensor its own");
    }
    if (bytes_of({tensor.name, tensor.type, tensor.shape}) != tensor.bytes.size()) {
      throw std::invalid_argument("data::write_safetensors: tensor '" + tensor.name + "' has " +
                                  std::to_string(tensor.bytes.size()) + " bytes, not what its shape asks for");
    }
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) {
    return of(a->type).bytes != of(b->type).bytes ? of(a->type).bytes > of(b->type).bytes : a < b;
  });

  std::string header = "{";
  const auto separate = [&] {
    if (header.back() != '{') header += ',';
  };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, text] : metadata) {
      separate();
      json::write(header, key);
      header += ':';
      json::write(header, text);
    }
    header += '}';
  }
  std::uint64_t offset = 0;
  for (const Tensor* tensor : order) {
    separate();
    json::write(header, tensor->name);
    header += ":{\"dtype\":\"" + std::string(name(tensor->type)) + "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor->shape.size(); ++i)
      header += (i == 0 ? "" : ",") + std::to_string(tensor->shape[i]);
    header += "],\"data_offsets\":[" + std::to_string(offset);
    offset += tensor->bytes.size();
    header += ',' + std::to_string(offset) + "]}";
  }
  header += '}';
  header.resize(rounded_up(header.size(), 8), ' ');

  for (int byte = 0; byte < 8; ++byte)
    out.put(static_cast<char>((static_cast<std::uint64_t>(header.size()) >> (8 * byte)) & 0xff));
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const Tensor* tensor : order) {
    out.write(reinterpret_cast<const char*>(tensor->bytes.data()), static_cast<std::streamsize>(tensor->bytes.size()));
  }
  out.flush();
  if (!out) {
    throw std::runtime_error(
        "data::write_safetensors: the stream refused the data; is the disk full or the file not writable?");
  }
}

TUNEWRIGHT_INLINE TensorFile read_safetensors(std::istream& in) {
  using namespace safetensors_detail;
  std::string text;
  read_exactly(in, 8, text, "the length of the header");
  std::uint64_t length = 0;
  for (std::size_t byte = 0; byte < 8; ++byte)
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[byte])) << (8 * byte);
  if (length > most_header_bytes) {
    refuse("the header claims " + std::to_string(length) + " bytes, more than " + std::to_string(most_header_bytes));
  }
  read_exactly(in, length, text, "the header");
  if (text.empty() || text.front() != '{') refuse("the header does not begin with '{'");
  Header header = HeaderReader(text).read();
  check_layout(header.entries);

  TensorFile file;
  file.metadata = std::move(header.metadata);
  for (Entry& entry : header.entries) {
    Tensor tensor{std::move(entry.name), entry.type, std::move(entry.shape), {}};
    read_exactly(in, entry.end - entry.begin, tensor.bytes, "tensor '" + tensor.name + "'");
    file.tensors.push_back(std::move(tensor));
  }
  if (in.peek() != std::istream::traits_type::eof()) refuse("there are bytes after the last tensor");
  return file;
}

}  // namespace tunewright::data

#endif
