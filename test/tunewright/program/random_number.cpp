// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/random_number.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

using namespace tunewright;
using program::ScalarType;

TEST_CASE("every number that a type's draws may be is drawn, and no other") {
  const auto drawn = [](ScalarType type) {
    std::set<double> numbers;
    Rng rng(1);
    for (int n = 0; n < 5'000; ++n) numbers.insert(program::random_number(type, rng));
    return numbers;
  };
  const auto from_to = [](int first, int last) {
    std::set<double> numbers;
    for (int n = first; n <= last; ++n) numbers.insert(n);
    return numbers;
  };
  CHECK(drawn(ScalarType::Bool) == from_to(0, 1));
  CHECK(drawn(ScalarType::Int32) == from_to(0, 7));
  CHECK(drawn(ScalarType::Int64) == from_to(0, 7));
  CHECK(drawn(ScalarType::Int8) == from_to(-128, 127));
  CHECK(drawn(ScalarType::UInt8) == from_to(0, 255));
}

TEST_CASE("floating-point numbers lie in their interval, and each takes one number of the generator") {
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Float32, ScalarType::Float64}) {
    Rng rng(2);
    Rng plain(2);
    for (int n = 0; n < 100; ++n) CHECK(program::random_number(type, rng, 3, 5) == 3 + 2 * plain.uniform());
    CHECK(program::random_number(type, rng) == 2 * plain.uniform() - 1);
  }
}
