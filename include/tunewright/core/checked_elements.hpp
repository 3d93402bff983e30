// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tunewright {

/// The number of elements of a dense tensor: the product of its extents, 1 without any.
///
/// Throws `std::invalid_argument` with `what`, such as "input 'x'", for a negative extent, and for extents other than 0
/// that make more than 2^53 elements. An extent of 0 hides no others, so products of a part of the extents do not
/// overflow either, bytes fit 64 bits, and a double holds the number of each element.
template <std::integral Extent>
[[nodiscard]] std::int64_t checked_elements(const std::vector<Extent>& shape, std::string_view what = "a tensor") {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const auto refuse = [&](const char* why) {
    std::string text = std::string(what) + " of shape [";
    for (std::size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
    throw std::invalid_argument(text + "] has " + why);
  };
  std::int64_t elements = 1;
  bool empty = false;
  for (const Extent extent : shape) {
    if (std::cmp_less(extent, 0)) refuse("a negative extent; give at least 0");
    if (std::cmp_greater(extent, most / elements)) refuse("more than 2^53 elements; give smaller extents");
    empty = empty || extent == 0;
    if (extent != 0) elements *= static_cast<std::int64_t>(extent);
  }
  return empty ? 0 : elements;
}

}  // namespace tunewright
