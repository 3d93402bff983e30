// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/program/scalar_type.hpp"

namespace tunewright::program {

/// Calls `f` with the zero of the C++ type that stores elements of `type`, which is `Half` or `BFloat` for 16-bit
/// floats and a byte for booleans, and returns its result, whose type must be the same for all of them:
///
///   with_element_type(type, [&]<class T>(T) { fill<T>(bytes); });
template <class F>
constexpr decltype(auto) with_element_type(ScalarType type, const F& f) {
  switch (type) {
    case ScalarType::Int8: return f(std::int8_t{});
    case ScalarType::Int32: return f(std::int32_t{});
    case ScalarType::Int64: return f(std::int64_t{});
    case ScalarType::Float16: return f(Half{});
    case ScalarType::BFloat16: return f(BFloat{});
    case ScalarType::Float32: return f(float{});
    case ScalarType::Float64: return f(double{});
    case ScalarType::Bool:
    case ScalarType::UInt8: break;
  }
  return f(std::uint8_t{});
}

}  // namespace tunewright::program
