// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

namespace tunewright {

/// The smallest multiple of `multiple`, an integer above 0, that is not below `value`, an integer of at least 0 so far
/// below the largest of its type that the multiple is no larger.
template <std::integral T>
[[nodiscard]] constexpr T rounded_up(T value, std::type_identity_t<T> multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace tunewright
