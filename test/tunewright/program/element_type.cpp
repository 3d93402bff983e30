// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/element_type.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

using namespace tunewright::program;

namespace {

/// Whether elements of `type` are stored as `Wanted`, and the function is told so by a zero.
template <class Wanted>
constexpr bool stored_as(ScalarType type) {
  return with_element_type(type, []<class T>(T zero) { return std::is_same_v<T, Wanted> && zero == T{}; });
}

}  // namespace

static_assert(stored_as<std::uint8_t>(ScalarType::Bool));
static_assert(stored_as<std::int32_t>(ScalarType::Int32));
static_assert(stored_as<std::int64_t>(ScalarType::Int64));
static_assert(stored_as<float>(ScalarType::Float32));
static_assert(stored_as<double>(ScalarType::Float64));
static_assert(stored_as<Half>(ScalarType::Float16));
static_assert(stored_as<BFloat>(ScalarType::BFloat16));
static_assert(stored_as<std::int8_t>(ScalarType::Int8));
static_assert(stored_as<std::uint8_t>(ScalarType::UInt8));

TEST_CASE("elements of each type have its size") {
  for (std::size_t number = 0; number < scalar_type_count; ++number) {
    const auto type = static_cast<ScalarType>(number);
    CAPTURE(name(type));
    CHECK(with_element_type(type, []<class T>(T) { return sizeof(T); }) == size_in_bytes(type));
  }
}

TEST_CASE("functions may return references, and nothing") {
  int calls = 0;
  int& same = with_element_type(ScalarType::Float32, [&](auto) -> int& { return calls; });
  CHECK(&same == &calls);
  with_element_type(ScalarType::Int8, [&](auto) { ++calls; });
  CHECK(calls == 1);
}
