// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/data/safetensors/tensor.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/scanner.hpp"

namespace tunewright::data::safetensors_detail {

[[noreturn]] inline void refuse(const std::string& why) {
  throw std::runtime_error("not a sound safetensors file: " + why);
}

/// A tensor in the header; its data are bytes [begin, end) after the header.
struct Entry {
  std::string name;
  TensorType type = TensorType::F32;
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct Header {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
};

/// Reads the JSON of a header: objects with known keys, strings and integers.
///
/// It checks members one by one to reject repeated names, for which general readers keep the last.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : json_(text) {}

  [[nodiscard]] Header read();

 private:
  Header whole();

  // Calls `value(key)` for each member of an object, which must read the value. Unlike `Scanner::object`, it rejects
  // keys with control characters.
  template <class F>
  void members(const F& value) {
    json_.expect('{');
    if (json_.accept('}')) return;
    do {
      const std::string key = string();
      json_.expect(':');
      value(key);
    } while (json_.accept(','));
    json_.expect('}');
  }

  std::string string();

  Entry entry(const std::string& tensor);
  static TensorType type(const std::string& whose, const std::string& text);

  json::Scanner json_;
};

}  // namespace tunewright::data::safetensors_detail

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data::safetensors_detail {

TUNEWRIGHT_INLINE Header HeaderReader::read() {
  try {
    return whole();
  } catch (const FormatError& error) {
    refuse(std::string("header, ") + error.what());
  }
}

TUNEWRIGHT_INLINE Header HeaderReader::whole() {
  Header header;
  std::set<std::string> names;
  members([&](const std::string& name) {
    if (!names.insert(name).second) refuse("the header names '" + name + "' twice");
    if (name == "__metadata__") {
      members([&](const std::string& key) {
        if (header.metadata.count(key) != 0) refuse("the metadata name '" + key + "' twice");
        header.metadata[key] = string();
      });
    } else {
      header.entries.push_back(entry(name));
    }
  });
  json_.expect_end();
  return header;
}

TUNEWRIGHT_INLINE std::string HeaderReader::string() {
  json_.peek();
  const char* const from = json_.position();
  std::string out = json_.string();
  for (const char* at = from; at != json_.position(); ++at) {
    if (static_cast<unsigned char>(*at) < 0x20) refuse("a string of the header holds a control character");
  }
  return out;
}

TUNEWRIGHT_INLINE Entry HeaderReader::entry(const std::string& tensor) {
  Entry out;
  out.name = tensor;
  std::set<std::string> seen;
  const std::string whose = "tensor '" + tensor + "'";
  members([&](const std::string& key) {
    if (!seen.insert(key).second) refuse(whose + " gives '" + key + "' twice");
    if (key == "dtype") {
      out.type = type(whose, string());
    } else if (key == "shape") {
      json_.integers(out.shape);
    } else if (key == "data_offsets") {
      std::vector<std::uint64_t> offsets;
      json_.integers(offsets);
      if (offsets.size() != 2) refuse(whose + " has " + std::to_string(offsets.size()) + " offsets, not 2");
      out.begin = offsets[0];
      out.end = offsets[1];
    } else {
      refuse(whose + " has the unknown key '" + key + "'");
    }
  });
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (seen.count(key) == 0) refuse(whose + " has no " + key);
  }
  return out;
}

TUNEWRIGHT_INLINE TensorType HeaderReader::type(const std::string& whose, const std::string& text) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].name == text) return static_cast<TensorType>(i);
  }
  refuse(whose + " has the unknown dtype '" + text + "'");
}

}  // namespace tunewright::data::safetensors_detail

#endif
