// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::samplers {

/// Divides `n` measurements among T parts in proportion to `share` [T], each at least 0, with at most `room` [T] per
/// part: whole numbers by the largest remainder, equals in order; the excess goes to the others in the same way. The
/// sum is min(n, sum of room). O(T² log T) at worst.
[[nodiscard]] std::vector<std::size_t> divide(std::size_t n, std::span<const double> share,
                                              std::span<const std::size_t> room);

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/order.hpp"

namespace tunewright::samplers {

TUNEWRIGHT_INLINE std::vector<std::size_t> divide(std::size_t n, std::span<const double> share,
                                                  std::span<const std::size_t> room) {
  std::vector<std::size_t> given(room.size());
  std::size_t left = std::min(n, std::accumulate(room.begin(), room.end(), std::size_t{0}));
  while (left > 0) {
    std::vector<std::size_t> open;
    double total = 0;
    for (std::size_t t = 0; t < room.size(); ++t) {
      if (given[t] == room[t]) continue;
      open.push_back(t);
      total += share[t];
    }
    std::vector<double> remainder(room.size());
    const std::size_t round = left;
    for (const std::size_t t : open) {
      const double part = total > 0 ? static_cast<double>(round) * share[t] / total
                                    : static_cast<double>(round) / static_cast<double>(open.size());
      const std::size_t whole = std::min({static_cast<std::size_t>(part), room[t] - given[t], left});
      given[t] += whole;
      left -= whole;
      remainder[t] = part - static_cast<double>(whole);
    }
    const auto next = first_in_order(open, left, [&](std::size_t a, std::size_t b) {
      return remainder[a] != remainder[b] ? remainder[a] > remainder[b] : a < b;
    });
    for (const std::size_t t : next) {
      if (left == 0 || given[t] == room[t]) continue;
      ++given[t];
      --left;
    }
  }
  return given;
}

}  // namespace tunewright::samplers

#endif
