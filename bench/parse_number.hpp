// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "tunewright/core/outcome.hpp"

/// Numbers as somebody wrote them, on a command line or in a file.
namespace tunewright::bench {

/// A whole number from `least` to `most` as somebody wrote it. Throws `std::invalid_argument` for anything else.
[[nodiscard]] inline std::uint64_t parse_number(std::string_view text, const std::string& what, std::uint64_t least,
                                                std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    throw std::invalid_argument(
        "'" + std::string(text) + "' was given for " + what + "; give a whole number, at least " +
        std::to_string(least) +
        (most == std::numeric_limits<std::uint64_t>::max() ? std::string() : ", at most " + std::to_string(most)));
  }
  return number;
}

/// A finite number; nothing for anything else.
[[nodiscard]] inline std::optional<double> finite_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// A positive number of seconds as somebody wrote it. Throws `std::invalid_argument` for anything else.
[[nodiscard]] inline Seconds parse_seconds(std::string_view text, const std::string& what) {
  const std::optional<double> seconds = finite_number(text);
  if (!seconds || *seconds <= 0) {
    throw std::invalid_argument("'" + std::string(text) + "' was given for " + what +
                                "; give a positive number of seconds");
  }
  return Seconds(*seconds);
}

}  // namespace tunewright::bench
