// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/core/rng.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::program {

/// A random element to check kernels with: floating-point numbers are uniform in [low, high), not yet rounded to their
/// type; int32 and int64 are uniform in {0, .., 7}; 8-bit integers are uniform over all values; Booleans are 1 with
/// probability 1/2. Determinism: a function of the arguments; `rng` is advanced by one number.
[[nodiscard]] inline double random_number(ScalarType type, Rng& rng, double low = -1, double high = 1) {
  switch (type) {
    case ScalarType::Bool: return static_cast<double>(rng.below(2));
    case ScalarType::Int32:
    case ScalarType::Int64: return static_cast<double>(rng.below(8));
    case ScalarType::Int8: return static_cast<double>(static_cast<std::int8_t>(rng.below(256)));
    case ScalarType::UInt8: return static_cast<double>(rng.below(256));
    case ScalarType::Float32:
    case ScalarType::Float64:
    case ScalarType::Float16:
    case ScalarType::BFloat16: break;
  }
  return low + (high - low) * rng.uniform();
}

}  // namespace tunewright::program
