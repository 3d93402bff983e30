// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::codegen {

/// An object file for `static_library`.
struct LibraryMember {
  std::string symbol;        ///< the linker looks for it; the member is called `<symbol>.o`
  std::vector<char> object;  ///< the file's bytes
};

/// The bytes of a static library `lib<name>.a` for Linux (`ar` format with System V symbol index), so that many kernels
/// are one file to link.
///
/// Errors: `std::invalid_argument` without members and for two members with the same symbol.
/// Determinism: a function of the members; dates and owners are zero.
[[nodiscard]] std::vector<char> static_library(std::span<const LibraryMember> members);

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string_view>

namespace tunewright::codegen::detail {

/// The header of a member: name, date, owner, group, mode and size in columns of fixed width.
TUNEWRIGHT_INLINE std::string member_header(std::string name, std::size_t bytes) {
  std::string header;
  for (const auto& [text, width] : {std::pair<std::string, std::size_t>{std::move(name), 16},
                                    {"0", 12},
                                    {"0", 6},
                                    {"0", 6},
                                    {"644", 8},
                                    {std::to_string(bytes), 10}}) {
    header += text;
    header.append(width - text.size(), ' ');
  }
  return header + "`\n";
}

/// Members begin at even offsets.
TUNEWRIGHT_INLINE void append_member(std::string& library, const std::string& name, std::string_view content) {
  library += member_header(name, content.size());
  library += content;
  if (content.size() % 2 != 0) library += '\n';
}

TUNEWRIGHT_INLINE void append_big_endian(std::string& text, std::size_t value) {
  if (value > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument("a library of " + std::to_string(value) + " bytes or more has no index of symbols");
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
}

}  // namespace tunewright::codegen::detail

namespace tunewright::codegen {

TUNEWRIGHT_INLINE std::vector<char> static_library(std::span<const LibraryMember> members) {
  if (members.empty()) throw std::invalid_argument("a library without members; give at least one object file");
  constexpr std::string_view magic = "!<arch>\n";
  constexpr std::size_t header_bytes = 60;
  const auto even = [](std::size_t bytes) { return bytes + bytes % 2; };
  std::set<std::string_view> taken;
  std::string file_names;  // names that are too long for their column, in a separate member
  std::vector<std::size_t> name_at;
  std::size_t index_bytes = 4;
  for (const LibraryMember& member : members) {
    if (!taken.insert(member.symbol).second)
      throw std::invalid_argument("two members of a library define '" + member.symbol + "'; give each a symbol");
    name_at.push_back(file_names.size());
    file_names += member.symbol + ".o/\n";
    index_bytes += 4 + member.symbol.size() + 1;
  }

  std::string index;
  detail::append_big_endian(index, members.size());
  std::size_t at = magic.size() + header_bytes + even(index_bytes) + header_bytes + even(file_names.size());
  for (const LibraryMember& member : members) {
    detail::append_big_endian(index, at);
    at += header_bytes + even(member.object.size());
  }
  for (const LibraryMember& member : members) index.append(member.symbol.c_str(), member.symbol.size() + 1);

  std::string library(magic);
  detail::append_member(library, "/", index);
  detail::append_member(library, "//", file_names);
  for (std::size_t m = 0; m < members.size(); ++m) {
    detail::append_member(library, "/" + std::to_string(name_at[m]),
                          {members[m].object.data(), members[m].object.size()});
  }
  return {library.begin(), library.end()};
}

}  // namespace tunewright::codegen

#endif
