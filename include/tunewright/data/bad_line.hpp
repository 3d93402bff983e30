// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tunewright::data {

/// A line that is not a record.
struct BadLine {
  std::size_t number = 0;  ///< from 1
  std::string reason;      ///< for people
  bool is_newer = false;   ///< of a newer schema: no damage, another version of the library reads it
  bool operator==(const BadLine&) const = default;
};

/// The reason for a last line that has no newline and is not a record.
inline constexpr std::string_view cut_short = "cut short: the writer was stopped in the middle";

}  // namespace tunewright::data
