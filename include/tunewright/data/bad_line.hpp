// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace tunewright::data {

/// A line that is not a record.
struct BadLine {
  std::size_t number = 0;  ///< from 1
  std::string reason;      ///< for people
  bool operator==(const BadLine&) const = default;
};

}  // namespace tunewright::data
