// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Checks a policy's option: throws `std::invalid_argument` with policy, option, value and allowed range unless
/// `holds`.
void require(bool holds, const char* policy, const char* option, double value, const char* range);

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
