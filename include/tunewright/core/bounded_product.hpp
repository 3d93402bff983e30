// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tunewright {

/// a * b, or `most` if the product is larger, also where 64 bits do not hold it. `a` and `b` must be at least 0.
[[nodiscard]] constexpr std::int64_t bounded_product(std::int64_t a, std::int64_t b, std::int64_t most) noexcept {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? most : std::min(product, most);
}

}  // namespace tunewright
