// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tunewright::data::journal_index {

/// The type of a line, from its beginning as this library writes it.
struct LineHead {
  int schema = 0;  ///< 0: neither a record nor a description
  std::uint64_t task = 0;
};
[[nodiscard]] inline LineHead head_of(std::string_view line) {
  constexpr std::string_view begin = "{\"schema\":", middle = ",\"task\":\"";
  LineHead head;
  if (line.size() < begin.size() + 1 + middle.size() + 16 || !line.starts_with(begin) ||
      line.substr(begin.size() + 1, middle.size()) != middle)
    return head;
  for (const char c : line.substr(begin.size() + 1 + middle.size(), 16)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return head;
    head.task = head.task * 16 + static_cast<std::uint64_t>(digit);
  }
  const char version = line[begin.size()];
  if (version == '1' || version == '2') head.schema = version - '0';
  return head;
}

}  // namespace tunewright::data::journal_index
