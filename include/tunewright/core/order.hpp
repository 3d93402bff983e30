// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// The positions 0, 1, ..., n - 1.
[[nodiscard]] std::vector<std::size_t> positions(std::size_t n);

/// The first `count` of `among` in the order `before`, sorted. `before` must be a strict total order on positions, so
/// that there is one result on every platform. O(N log count).
///
/// Not a template, so that one sort is compiled for all policies.
[[nodiscard]] std::vector<std::size_t> first_in_order(std::vector<std::size_t> among, std::size_t count,
                                                      const std::function<bool(std::size_t, std::size_t)>& before);

/// Sorts a few `values` in place and stably, by insertion. For up to some dozens of values this takes no longer than
/// `std::sort`, with a tenth of its code for every type and order.
template <class Values, class Before = std::less<>>
void sort_few(Values& values, const Before& before = {}) {
  for (auto next = values.begin(); next != values.end(); ++next) {
    auto value = std::move(*next);
    auto place = next;
    for (; place != values.begin() && before(value, *(place - 1)); --place) *place = std::move(*(place - 1));
    *place = std::move(value);
  }
}

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>
#include <numeric>

namespace tunewright {

TUNEWRIGHT_INLINE std::vector<std::size_t> positions(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> first_in_order(std::vector<std::size_t> among, std::size_t count,
                                                          const std::function<bool(std::size_t, std::size_t)>& before) {
  const std::size_t kept = std::min(count, among.size());
  std::partial_sort(among.begin(), among.begin() + static_cast<std::ptrdiff_t>(kept), among.end(),
                    [&before](std::size_t a, std::size_t b) { return before(a, b); });
  among.resize(kept);
  return among;
}

}  // namespace tunewright

#endif
