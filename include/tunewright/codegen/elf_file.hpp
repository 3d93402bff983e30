// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

namespace tunewright::codegen {

/// Reads parts of the object file of a kernel; throws `std::invalid_argument` for reads beyond its end.
class ElfFile {
 public:
  /// `symbol` is named in error messages.
  ElfFile(std::span<const char> bytes, const std::string& symbol) : bytes_(bytes), symbol_(symbol) {}

  template <class T>
  [[nodiscard]] T at(std::uint64_t position) const {
    T value;
    std::memcpy(&value, part(position, sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::span<const char> part(std::uint64_t position, std::uint64_t count) const {
    if (position > bytes_.size() || count > bytes_.size() - position) throw wrong("is truncated");
    return bytes_.subspan(position, count);
  }
  /// The text at `position` of a table, which a zero byte or the end of the table ends.
  [[nodiscard]] std::string text(const Elf64_Shdr& table, std::uint64_t position) const {
    const auto characters = part(table.sh_offset, table.sh_size);
    if (position >= characters.size()) throw wrong("is truncated");
    const auto begin = characters.begin() + static_cast<std::ptrdiff_t>(position);
    return {begin, std::find(begin, characters.end(), '\0')};
  }
  [[nodiscard]] std::invalid_argument wrong(const std::string& what) const {
    return std::invalid_argument("the object file of kernel '" + symbol_ + "' " + what);
  }
  [[nodiscard]] static std::uint64_t offset(std::uint64_t base, std::size_t index, std::size_t size) {
    return base + index * size;
  }

 private:
  std::span<const char> bytes_;
  const std::string& symbol_;
};

}  // namespace tunewright::codegen
