// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"

namespace tunewright::measurers::sandbox {

/// One element as a number, with the type as a run-time value.
[[nodiscard]] double element(program::ScalarType type, const char* data, std::size_t offset);

/// The first element whose bits are all set, as in a poisoned output; only for floating-point types, since an integer
/// may be -1.
[[nodiscard]] std::optional<std::size_t> first_unwritten(program::ScalarType type, const char* data, std::size_t count);

/// The elements all of whose bytes are `byte`, in order. Cost: one pass.
[[nodiscard]] std::vector<std::size_t> elements_of(unsigned char byte, program::ScalarType type, const char* data,
                                                   std::size_t count);

/// One line about an element that no kernel wrote.
[[nodiscard]] std::string unwritten(const OutputView& output, std::size_t element);

/// Describes in one line how an output with elements `computed(offset)` differs from what is expected (an
/// `ExpectedOutput` or an `OutputView`); empty if it is right.
template <class Expected, class Computed>
[[nodiscard]] std::optional<std::string> difference(const Expected& expected, const Computed& computed) {
  std::size_t wrong = 0;
  std::size_t first = 0;
  double first_got = 0;
  double first_want = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const auto at = expected.points.empty() ? i : static_cast<std::size_t>(expected.points[i]);
    const double got = computed(at);
    const double want = expected.values[i];
    const double allowed = expected.absolute_tolerance + expected.relative_tolerance * std::abs(want);
    if (got == want || (std::isnan(got) && std::isnan(want))) continue;
    // An infinite expected value would allow any error.
    if (std::isfinite(want) && std::abs(got - want) <= allowed) continue;
    if (wrong++ == 0) {
      first = at;
      first_got = got;
      first_want = want;
    }
  }
  if (wrong == 0) return std::nullopt;
  char line[256];
  std::snprintf(line, sizeof line,
                "': element %zu is %.9g where %.9g was expected (within %.3g); %zu of %zu checked elements differ",
                first, first_got, first_want,
                expected.absolute_tolerance + expected.relative_tolerance * std::abs(first_want), wrong,
                expected.values.size());
  return "output '" + expected.name + line;
}

/// The same for an output in memory that was poisoned: also checks for unwritten elements. Cost: one pass over the
/// output, and one comparison per expected value.
[[nodiscard]] std::optional<std::string> mismatch(const OutputView& expected, const char* data);

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/program/element_type.hpp"

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE double element(program::ScalarType type, const char* data, std::size_t offset) {
  return program::with_element_type(type, [&]<class T>(T value) {
    std::memcpy(&value, data + offset * sizeof(T), sizeof(T));
    return static_cast<double>(value);
  });
}

TUNEWRIGHT_INLINE std::vector<std::size_t> elements_of(unsigned char byte, program::ScalarType type, const char* data,
                                                       std::size_t count) {
  std::vector<std::size_t> found;
  const auto scan = [&]<class T>(T wanted) {
    std::memset(&wanted, byte, sizeof wanted);
    const auto holds_it = [&](std::size_t i) {
      T bits;
      std::memcpy(&bits, data + i * sizeof(T), sizeof(T));
      return bits == wanted;
    };
    // Blocks without an exit become vector instructions.
    constexpr std::size_t block = 1024;
    for (std::size_t first = 0; first < count; first += block) {
      const std::size_t last = std::min(count, first + block);
      T any = 0;
      for (std::size_t i = first; i < last; ++i) any |= static_cast<T>(holds_it(i));
      for (std::size_t i = first; i < last && any != 0; ++i)
        if (holds_it(i)) found.push_back(i);
    }
  };
  switch (program::size_in_bytes(type)) {
    case 1: scan(std::uint8_t{}); break;
    case 2: scan(std::uint16_t{}); break;
    case 4: scan(std::uint32_t{}); break;
    default: scan(std::uint64_t{}); break;
  }
  return found;
}

TUNEWRIGHT_INLINE std::optional<std::size_t> first_unwritten(program::ScalarType type, const char* data,
                                                             std::size_t count) {
  if (!program::is_float(type)) return std::nullopt;
  const std::vector<std::size_t> unwritten = elements_of(0xff, type, data, count);
  return unwritten.empty() ? std::nullopt : std::optional(unwritten.front());
}

TUNEWRIGHT_INLINE std::string unwritten(const OutputView& output, std::size_t element) {
  return "output '" + output.name + "': element " + std::to_string(element) + " of " +
         std::to_string(checked_elements(output.shape)) + " was never written, or computed from one that was not";
}

TUNEWRIGHT_INLINE std::optional<std::string> mismatch(const OutputView& expected, const char* data) {
  const auto count = static_cast<std::size_t>(checked_elements(expected.shape));
  if (const auto hole = first_unwritten(expected.type, data, count)) return unwritten(expected, *hole);
  return difference(expected, [&](std::size_t at) { return element(expected.type, data, at); });
}

}  // namespace tunewright::measurers::sandbox

#endif
