// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/narrow_float.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tunewright/program/scalar_type.hpp"

namespace {

using namespace tunewright::program;
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class Narrow>
double through(double value) {
  return static_cast<double>(Narrow(value));
}

}  // namespace

TEST_CASE("float16 has the bits of IEEE 754's binary16") {
  CHECK(Half(1.0).bits == 0x3c00);
  CHECK(Half(-2.0).bits == 0xc000);
  CHECK(Half(65504.0).bits == 0x7bff);  // the largest
  CHECK(Half(0x1p-14).bits == 0x0400);  // the smallest normal one
  CHECK(Half(0x1p-24).bits == 0x0001);  // the smallest
  CHECK(Half(-0.0).bits == 0x8000);
  CHECK(Half(infinite).bits == 0x7c00);
  CHECK(static_cast<double>(Half::from_bits(0x3555)) == 0x1.554p-2);  // a third, rounded
  CHECK(Half(1.0 / 3).bits == 0x3555);
}

TEST_CASE("bfloat16 has the upper half of the bits of a binary32") {
  CHECK(BFloat(1.0).bits == 0x3f80);
  CHECK(BFloat(-0.5).bits == 0xbf00);
  CHECK(BFloat(0x1.fep127).bits == 0x7f7f);
  CHECK(BFloat(0x1p-133).bits == 0x0001);
  CHECK(static_cast<double>(BFloat::from_bits(0x4049)) == 3.140625);
  CHECK(BFloat(3.14159265358979).bits == 0x4049);
}

TEST_CASE("of two equally near numbers the even one is taken") {
  CHECK(through<Half>(1 + 0x1p-11) == 1);                      // between 1 and 1 + 2^-10
  CHECK(through<Half>(1 + 0x3p-11) == 1 + 0x2p-10);            // between odd 1 + 2^-10 and even 1 + 2^-9
  CHECK(through<Half>(1 + 0x1p-11 + 0x1p-50) == 1 + 0x1p-10);  // beyond the middle, if only by a double's last bits
  CHECK(through<Half>(2049) == 2048);
  CHECK(through<Half>(2051) == 2052);
  CHECK(through<BFloat>(257) == 256);
  CHECK(through<BFloat>(259) == 260);
  CHECK(through<BFloat>(-259) == -260);
  CHECK(through<BFloat>(1 + 0x1p-8 + 0x1p-50) == 1 + 0x1p-7);
}

TEST_CASE("subnormal numbers keep their steps, and what is below half of the smallest is zero with its sign") {
  CHECK(through<Half>(0x1.8p-24) == 0x1p-23);  // tie between 1 and 2 steps: even
  CHECK(through<Half>(0x1p-25) == 0);          // tie between 0 and 1 step
  CHECK(through<Half>(0x1.001p-25) == 0x1p-24);
  CHECK(std::signbit(through<Half>(-0x1p-26)));
  CHECK(through<Half>(-0x1p-26) == 0);
  CHECK(through<Half>(0x1.ff8p-15) == 0x1.ff8p-15);  // 1023 steps, the largest subnormal number
  CHECK(through<Half>(0x1.ffcp-15) == 0x1p-14);      // half a step more, a tie, carries into the normal ones
  CHECK(through<BFloat>(0x1p-134) == 0);
  CHECK(through<BFloat>(0x1.8p-133) == 0x1p-132);
  CHECK(through<Half>(5e-324) == 0);
}

TEST_CASE("half a step beyond the largest number is infinite") {
  CHECK(through<Half>(65519.99) == 65504);
  CHECK(through<Half>(65520) == infinite);
  CHECK(through<Half>(-1e300) == -infinite);
  CHECK(through<BFloat>(0x1.feffp127) == 0x1.fep127);
  CHECK(through<BFloat>(0x1.ffp127) == infinite);
  CHECK(std::isnan(through<Half>(not_a_number)));
  CHECK(std::isnan(through<BFloat>(-not_a_number)));
}

TEST_CASE("every number of 16 bits survives the way through a double") {
  std::size_t changed = 0;
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const double half = static_cast<double>(Half::from_bits(bits));
    const double bfloat = static_cast<double>(BFloat::from_bits(bits));
    changed += std::isnan(half) ? (b & 0x7fffU) <= 0x7c00U : Half(half).bits != bits;
    changed += std::isnan(bfloat) ? (b & 0x7fffU) <= 0x7f80U : BFloat(bfloat).bits != bits;
  }
  CHECK(changed == 0);
}
