// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// A number for messages: the shortest text that is read back as the same number, of those that a float holds as the
/// same float. `std::to_string` would print a microsecond as 0.000001 and a nanosecond as 0.
[[nodiscard]] std::string number_text(double value);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <charconv>
#include <cmath>
#include <limits>

namespace tunewright {

TUNEWRIGHT_INLINE std::string number_text(double value) {
  char text[32];
  const auto write = [&](auto number) {
    return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
  };
  // Options are often floats, and 0.1F is 0.10000000149011612.
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) return write(value);
  const auto narrow = static_cast<float>(value);
  return static_cast<double>(narrow) == value ? write(narrow) : write(value);
}

}  // namespace tunewright

#endif
