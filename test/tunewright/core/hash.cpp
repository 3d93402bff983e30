// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/hash.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

using namespace tunewright;

TEST_CASE("the mixer is the finaliser of SplitMix64") {
  // First outputs of the published SplitMix64 for the seed 1234567: mix64 of seed + golden, seed + 2 golden.
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;
  static_assert(mix64(1234567 + golden) == 6457827717110365317ULL);
  static_assert(mix64(1234567 + 2 * golden) == 3203168211198807973ULL);
  static_assert(mix64(0) == 0);
}

TEST_CASE("every input bit changes about half of the output bits") {
  for (int bit = 0; bit < 64; ++bit) {
    int changed = 0;
    for (std::uint64_t x = 1; x <= 64; ++x) {
      changed += std::popcount(mix64(mix64(x)) ^ mix64(mix64(x) ^ (std::uint64_t{1} << bit)));
    }
    CHECK(changed > 64 * 32 - 5 * 32);  // standard deviation 4 a trial, 32 for 64 of them
    CHECK(changed < 64 * 32 + 5 * 32);
  }
}

TEST_CASE("order, number and kind of what is added count") {
  std::set<std::uint64_t> seen;
  const auto fresh = [&seen](const StableHash& hash) { return seen.insert(hash.value()).second; };
  CHECK(fresh(StableHash{}));
  CHECK(fresh(StableHash{}.add(0)));
  CHECK(fresh(StableHash{}.add(0).add(0)));
  CHECK(fresh(StableHash{}.add(1).add(2)));
  CHECK(fresh(StableHash{}.add(2).add(1)));
  CHECK(fresh(StableHash{}.add(std::string_view("ab")).add(std::string_view("c"))));
  CHECK(fresh(StableHash{}.add(std::string_view("a")).add(std::string_view("bc"))));
  CHECK(fresh(StableHash{}.add(1.0)));
  CHECK(fresh(StableHash{}.add(-1.0)));
}

TEST_CASE("integers hash by value, not by type") {
  CHECK(StableHash{}.add(7).value() == StableHash{}.add(std::uint64_t{7}).value());
  CHECK(StableHash{}.add(-1).value() == StableHash{}.add(std::int64_t{-1}).value());
  CHECK(StableHash{}.add(7U).value() == StableHash{}.add(std::int64_t{7}).value());
}

TEST_CASE("hashes do not change between builds: journals are keyed by them") {
  static_assert(StableHash{}.add(1).value() == StableHash{}.add(std::uint64_t{1}).value());
  // By the definition: state = mix64(init ^ (1 + golden)) + golden, value = mix64(state ^ 1).
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL, init = 0x6a09e667f3bcc908ULL;
  static_assert(StableHash{}.add(1).value() == mix64((mix64(init ^ (1 + golden)) + golden) ^ 1));
}

TEST_CASE("sixteen lower-case digits") {
  CHECK(to_hex(0) == "0000000000000000");
  CHECK(to_hex(0xdeadbeefULL) == "00000000deadbeef");
  CHECK(to_hex(~0ULL) == "ffffffffffffffff");
}

TEST_CASE("the digits are read back, and no other text is") {
  CHECK(from_hex("0000000000000000", "key") == 0);
  CHECK(from_hex("00000000deadbeef", "key") == 0xdeadbeefULL);
  CHECK(from_hex("ffffffffffffffff", "key") == ~0ULL);
  CHECK_THROWS_WITH_AS((void)from_hex("", "key"), "'key' is empty", std::runtime_error);
  for (const char* text : {"0", "00000000DEADBEEF", "00000000deadbeefa", "0x000000deadbeef", "00000000deadbee "}) {
    CHECK_THROWS_WITH_AS((void)from_hex(text, "key"),
                         ("'key' is '" + std::string(text) + "', not 16 hexadecimal digits").c_str(),
                         std::runtime_error);
  }
}
