// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tunewright/core/outcome.hpp"

namespace tunewright::test {

/// The name of the fault, "none" where there is none.
inline std::string fault_of(const Outcome& outcome) {
  return outcome.failure() == nullptr ? "none" : std::string(name(outcome.failure()->fault));
}

}  // namespace tunewright::test
