// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/check.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace tunewright;
using measurers::sandbox::mismatch;
using measurers::sandbox::OutputView;
using program::ScalarType;

namespace {

/// Whether `got` passes for `want` with an absolute tolerance of 0.01 and a relative one of 0.1.
template <class T>
bool passes(ScalarType type, T got, double want) {
  const std::vector<double> values{want};
  OutputView expected{0, "C", type, {1}, {}, values, 0.1, 0.01};
  return !mismatch(expected, reinterpret_cast<const char*>(&got));
}

}  // namespace

TEST_CASE("close enough is absolute plus relative") {
  CHECK(passes(ScalarType::Float64, 2.2, 2.0));    // 0.2 <= 0.01 + 0.2
  CHECK(!passes(ScalarType::Float64, 2.22, 2.0));  // 0.22 > 0.21
  CHECK(passes(ScalarType::Float64, 0.009, 0.0));
  CHECK(!passes(ScalarType::Float64, 0.011, 0.0));
  CHECK(passes(ScalarType::Float32, -2.2F, -2.0));
  CHECK(passes(ScalarType::Int32, std::int32_t{-1}, -1.0));
  CHECK(!passes(ScalarType::Int64, std::int64_t{3}, 2.0));
  CHECK(passes(ScalarType::Bool, std::uint8_t{1}, 1.0));
  CHECK(passes(ScalarType::Float16, std::uint16_t{0x4000}, 2.1));  // the bits of 2
  CHECK(!passes(ScalarType::BFloat16, std::uint16_t{0x4000}, 2.3));
  CHECK(passes(ScalarType::Int8, std::int8_t{-128}, -128.0));
  CHECK(passes(ScalarType::UInt8, std::uint8_t{255}, 255.0));
  CHECK(!passes(ScalarType::Float16, std::uint16_t{0xffff}, 2.0));  // never written
}

TEST_CASE("what is not finite equals its own kind only") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(passes(ScalarType::Float64, infinity, infinity));
  CHECK(!passes(ScalarType::Float64, -infinity, infinity));
  CHECK(!passes(ScalarType::Float64, 1.0, infinity));
  CHECK(!passes(ScalarType::Float64, infinity, 1.0));
  CHECK(passes(ScalarType::Float64, nan, nan));
  CHECK(!passes(ScalarType::Float64, nan, 1.0));
  CHECK(!passes(ScalarType::Float64, 1.0, nan));
}

TEST_CASE("unwritten elements are found where nothing else is compared") {
  std::vector<std::uint32_t> data(100, 0);
  const std::vector<std::int64_t> points{0, 99};
  const std::vector<double> values{0, 0};
  const OutputView expected{0, "C", ScalarType::Float32, {10, 10}, points, values, 0, 0};
  const auto* bytes = reinterpret_cast<const char*>(data.data());
  CHECK(!mismatch(expected, bytes));
  data[50] = 0x3f800000;  // 1.0, at an element that is not compared
  CHECK(!mismatch(expected, bytes));
  data[51] = 0xffffffff;
  CHECK(mismatch(expected, bytes).value().find("element 51 of 100 was never written") != std::string::npos);
  data[51] = 0;
  data[99] = 0x3f800000;
  CHECK(mismatch(expected, bytes).value() ==
        "output 'C': element 99 is 1 where 0 was expected (within 0); 1 of 2 checked elements differ");
}

TEST_CASE("an unwritten element is found wherever it is") {
  using measurers::sandbox::first_unwritten;
  for (const std::size_t count : {1023U, 1024U, 1025U, 3000U}) {
    std::vector<std::uint16_t> data(count, 0x3c00);
    const auto* bytes = reinterpret_cast<const char*>(data.data());
    CHECK_FALSE(first_unwritten(ScalarType::Float16, bytes, count));
    for (const std::size_t hole : {std::size_t{0}, std::size_t{1000}, count - 1}) {
      data[hole] = 0xffff;
      CHECK(first_unwritten(ScalarType::Float16, bytes, count) == hole);
      data[hole] = 0x3c00;
    }
  }
}
