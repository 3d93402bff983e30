// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/data/safetensors/tensor.hpp"

namespace tunewright::data::safetensors_detail {

[[noreturn]] inline void refuse(const std::string& why) {
  throw std::runtime_error("not a sound safetensors file: " + why);
}

/// A tensor as the header describes it; its data are bytes [begin, end) behind the header.
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

/// Reads the small part of JSON that a header may hold: objects of known keys, strings and whole numbers.
///
/// By hand, so that models can be kept without a JSON library, and because general readers keep the last of
/// two equal keys without a word.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  [[nodiscard]] Header read() {
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
    if (skip_space() != '\0' || at_ < text_.size()) refuse("the header goes on after its last brace");
    return header;
  }

 private:
  char skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char wanted) {
    if (skip_space() != wanted || at_ >= text_.size()) {
      refuse(std::string("byte ") + std::to_string(at_) + " of the header is not '" + wanted + "'");
    }
    ++at_;
  }
  bool take(char wanted) {
    if (skip_space() != wanted || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  // Calls `value(key)` for each member of an object; it must read the value.
  template <class F>
  void members(F&& value) {
    expect('{');
    if (take('}')) return;
    do {
      const std::string key = string();
      expect(':');
      value(key);
    } while (take(','));
    expect('}');
  }

  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> out;
    expect('[');
    if (take(']')) return out;
    do {
      out.push_back(number());
    } while (take(','));
    expect(']');
    return out;
  }

  std::uint64_t number() {
    skip_space();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10)
        refuse("a number at byte " + std::to_string(start) + " of the header is beyond 64 bits");
      value = value * 10 + digit;
    }
    if (at_ == start) refuse("byte " + std::to_string(start) + " of the header does not begin a whole number");
    return value;
  }

  std::string string() {
    expect('"');
    std::string out;
    while (true) {
      if (at_ >= text_.size()) refuse("a string of the header has no end");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) refuse("a string of the header holds a control character");
      if (c == '\\')
        escaped(out);
      else
        out += c;
    }
  }
  void escaped(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt", stand_for = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (const std::size_t found = letters.find(c); found != std::string_view::npos) {
      out += stand_for[found];
      return;
    }
    if (c != 'u') refuse("a string of the header has an unknown escape");
    std::uint32_t point = four_digits();
    if (point >= 0xd800 && point < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") refuse("a string of the header has half a surrogate pair");
      at_ += 2;
      const std::uint32_t low = four_digits();
      if (low < 0xdc00 || low > 0xdfff) refuse("a string of the header has half a surrogate pair");
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
    if (point < 0x80) {
      byte(point);
    } else if (point < 0x800) {
      byte(0xc0 | (point >> 6));
      byte(0x80 | (point & 0x3f));
    } else {
      if (point < 0x10000) {
        byte(0xe0 | (point >> 12));
      } else {
        byte(0xf0 | (point >> 18));
        byte(0x80 | ((point >> 12) & 0x3f));
      }
      byte(0x80 | ((point >> 6) & 0x3f));
      byte(0x80 | (point & 0x3f));
    }
  }
  std::uint32_t four_digits() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = at_ < text_.size() ? text_[at_++] : '\0';
      const auto digit = std::string_view("0123456789abcdefABCDEF").find(c);
      if (c == '\0' || digit == std::string_view::npos) refuse("a string of the header has a broken \\u");
      value = value * 16 + static_cast<std::uint32_t>(digit < 16 ? digit : digit - 6);
    }
    return value;
  }

  Entry entry(const std::string& tensor) {
    Entry out;
    out.name = tensor;
    std::set<std::string> seen;
    const std::string whose = "tensor '" + tensor + "'";
    members([&](const std::string& key) {
      if (!seen.insert(key).second) refuse(whose + " gives '" + key + "' twice");
      if (key == "dtype") {
        out.type = type(whose, string());
      } else if (key == "shape") {
        for (const std::uint64_t extent : numbers()) out.shape.push_back(static_cast<std::size_t>(extent));
      } else if (key == "data_offsets") {
        const auto offsets = numbers();
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
  static TensorType type(const std::string& whose, const std::string& text) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i].name == text) return static_cast<TensorType>(i);
    }
    refuse(whose + " has the unknown dtype '" + text + "'");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// `text` in quotation marks, escaped.
[[nodiscard]] inline std::string as_json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) / 16];
      out += digits[static_cast<unsigned char>(c) % 16];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace tunewright::data::safetensors_detail
