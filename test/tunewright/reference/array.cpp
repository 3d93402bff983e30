// SPDX-License-Identifier: Apache-2.0
#include "tunewright/reference/array.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "support/refusal.hpp"

using namespace tunewright;
using program::ScalarType;
using reference::Array;

TEST_CASE("an array has zeros for each element of its shape") {
  const Array array(ScalarType::Float32, {2, 3});
  CHECK(array.size() == 6);
  CHECK(array.size_in_bytes() == 24);
  CHECK(array.get(5) == 0);
  CHECK(Array(ScalarType::Int64, {}).size() == 1);
  CHECK(Array(ScalarType::Int64, {3, 0}).size() == 0);
}

TEST_CASE("numbers beyond an integer type wrap around or saturate") {
  const auto stored = [](ScalarType type, double value) {
    Array array(type, {1});
    array.set(0, value);
    return array;
  };
  CHECK(stored(ScalarType::Int8, 130).get(0) == -126);
  CHECK(stored(ScalarType::UInt8, -1).get(0) == 255);
  CHECK(stored(ScalarType::Int32, 0x1p32 + 7.5).get(0) == 7);
  CHECK(stored(ScalarType::Bool, 1).get(0) == 1);
  CHECK(stored(ScalarType::Bool, 0).get(0) == 0);
  for (const double number : {-1.0, 0.25, 256.0, 0x1p40}) CHECK(stored(ScalarType::Bool, number).get(0) == 1);
  const auto long_integer = [&](double value) { return stored(ScalarType::Int64, value).elements<std::int64_t>()[0]; };
  CHECK(long_integer(-2.5) == -2);
  CHECK(long_integer(0x1p62) == std::int64_t{1} << 62);
  CHECK(long_integer(-0x1p63) == std::numeric_limits<std::int64_t>::min());
  for (const double far : {0x1p63, 1e300, std::numeric_limits<double>::infinity()}) {
    CHECK(long_integer(far) == std::numeric_limits<std::int64_t>::max());
    CHECK(long_integer(-far) == std::numeric_limits<std::int64_t>::min());
  }
  CHECK(long_integer(std::numeric_limits<double>::quiet_NaN()) == 0);
}

TEST_CASE("elements are given as their own type only") {
  Array half(ScalarType::Float16, {2});
  half.set(1, 1.5);
  CHECK(half.elements<program::Half>()[1].bits == 0x3e00);  // exponent 15, a half of the fraction
  CHECK(half.visit([](const auto& elements) { return elements.size_bytes(); }) == 4);
  const std::string said = "an array of float16 was asked for as another type; use its own";
  CHECK(test::refusal([&] { (void)half.elements<program::BFloat>(); }) == said);
  CHECK(test::refusal([&] { (void)std::as_const(half).elements<std::uint16_t>(); }) == said);
  CHECK(test::refusal([] { (void)Array(ScalarType::Int8, {1}).elements<std::uint8_t>(); }) ==
        "an array of int8 was asked for as another type; use its own");
  CHECK(Array(ScalarType::Bool, {3}).elements<std::uint8_t>().size() == 3);
}

TEST_CASE("an array of a shape that wraps around is refused") {
  constexpr std::int64_t half = std::int64_t{1} << 32;  // of the bits of a product
  CHECK(test::refusal([] { (void)Array(ScalarType::Float32, {half, half}); }) ==
        "an array of shape [4294967296, 4294967296] has more than 2^53 elements; give smaller extents");
  CHECK(test::refusal([] { (void)Array(ScalarType::Float32, {-1, 2}); }).find("has a negative extent") !=
        std::string::npos);
}
