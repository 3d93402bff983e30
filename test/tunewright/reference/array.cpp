// SPDX-License-Identifier: Apache-2.0
#include "tunewright/reference/array.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

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

TEST_CASE("an array of a shape that wraps around is refused") {
  constexpr std::int64_t half = std::int64_t{1} << 32;  // of the bits of a product
  CHECK(test::refusal([] { (void)Array(ScalarType::Float32, {half, half}); }) ==
        "an array of shape [4294967296, 4294967296] has more than 2^53 elements; give smaller extents");
  CHECK(test::refusal([] { (void)Array(ScalarType::Float32, {-1, 2}); }).find("has a negative extent") !=
        std::string::npos);
}
