// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Intervals of integers, and their division, rounded down or up.
namespace tunewright::program {

/// Closed interval of integers.
struct Range {
  std::int64_t min = 0;
  std::int64_t max = 0;
  [[nodiscard]] std::int64_t extent() const noexcept { return max - min + 1; }
  bool operator==(const Range&) const = default;
};

[[nodiscard]] constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept {
  // Nearly all numbers are small, and dividing small ones takes a fraction of the time.
  constexpr auto is_small = [](std::int64_t x) { return static_cast<std::uint64_t>(x) >> 32 == 0; };
  if (is_small(a) && is_small(b)) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
[[nodiscard]] constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) noexcept {
  return a - floor_div(a, b) * b;
}
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return -floor_div(-a, b); }

}  // namespace tunewright::program
