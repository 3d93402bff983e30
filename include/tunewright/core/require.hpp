// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Checks a policy's option: throws `std::invalid_argument` with policy, option, value and allowed range unless
/// `holds`.
void require(bool holds, const char* policy, const char* option, double value, const char* range);

/// Calls `policy.check_options()`, which throws `std::invalid_argument` for options out of range, if there is one that
/// anyone may call. Other policies check their options when they are used.
template <class Policy>
void check_options_of(const Policy& policy) {
  if constexpr (requires { policy.check_options(); }) policy.check_options();
}

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <stdexcept>
#include <string>

#include "tunewright/core/number_text.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE void require(bool holds, const char* policy, const char* option, double value, const char* range) {
  if (holds) return;
  std::string message = policy;
  for (const char* part : {": ", option, " is "}) message += part;
  message += number_text(value);
  for (const char* part : {"; give ", range}) message += part;
  throw std::invalid_argument(message);
}

}  // namespace tunewright

#endif
