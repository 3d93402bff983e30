// SPDX-License-Identifier: Apache-2.0
#include "tunewright/reference/xtensor.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

using namespace tunewright;
using reference::Array;
using reference::from_xtensor;
using reference::to_xtensor;

TEST_CASE("arrays survive the way through xtensor") {
  const xt::xarray<double> table{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.5}};
  const Array array = from_xtensor(table, program::ScalarType::Float64);
  CHECK(array.type() == program::ScalarType::Float64);
  CHECK(array.shape() == std::vector<std::int64_t>{2, 3});
  CHECK(array.get(5) == 6.5);
  CHECK(to_xtensor<double>(array) == table);
  CHECK(xt::xarray<double>(2.0 * to_xtensor<double>(array))(1, 0) == 8.0);

  const xt::xarray<std::uint8_t> bytes{1, 0, 1};
  CHECK(from_xtensor(bytes, program::ScalarType::Bool).type() == program::ScalarType::Bool);
  CHECK_FALSE(from_xtensor(bytes, program::ScalarType::Bool) == from_xtensor(bytes, program::ScalarType::UInt8));
}

TEST_CASE("elements of another type are refused") {
  CHECK_THROWS_WITH_AS((void)to_xtensor<double>(Array(program::ScalarType::Float32, {2})),
                       "an array of float32 was asked for as another type; use its own", std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)from_xtensor(xt::xarray<float>{1.0F}, program::ScalarType::Float64),
                       "an array of float64 was asked for as another type; use its own", std::invalid_argument);
}
