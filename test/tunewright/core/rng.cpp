// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <vector>

using namespace tunewright;

static_assert(std::uniform_random_bit_generator<Rng>);

TEST_CASE("the n-th number is a function of seed and n") {
  // key = mix64(seed + golden), output n = mix64(key + n golden).
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;
  Rng rng(5);
  const std::uint64_t key = mix64(5 + golden);
  CHECK(rng() == mix64(key + golden));
  CHECK(rng() == mix64(key + 2 * golden));
  Rng copy = rng;
  CHECK(copy() == rng());
}

TEST_CASE("splitting does not advance and streams differ") {
  const Rng root(1);
  Rng a = root.split(0), again = root.split(0);
  CHECK(a() == again());
  std::set<std::uint64_t> first{Rng(1)()};
  for (std::uint64_t stream = 0; stream < 1000; ++stream) {
    CHECK(first.insert(root.split(stream)()).second);
    CHECK(first.insert(root.split(stream).split(1)()).second);
  }
}

TEST_CASE("uniform numbers are in [0, 1) and evenly spread") {
  Rng rng(2);
  std::array<int, 10> counts{};
  for (int i = 0; i < 10000; ++i) {
    const double u = rng.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    ++counts[static_cast<std::size_t>(u * 10)];
  }
  double chi2 = 0;
  for (const int count : counts) chi2 += (count - 1000) * (count - 1000) / 1000.0;
  CHECK(chi2 < 27.9);  // 9 degrees of freedom, exceeded once in a thousand seeds
}

TEST_CASE("below reaches every number and no other") {
  Rng rng(3);
  for (const std::uint64_t n : {1ULL, 2ULL, 3ULL, 7ULL}) {
    std::vector<int> counts(n, 0);
    for (int i = 0; i < 7000; ++i) {
      const std::uint64_t value = rng.below(n);
      REQUIRE(value < n);
      ++counts[value];
    }
    const double expected = 7000.0 / static_cast<double>(n);
    for (const int count : counts) CHECK(std::abs(count - expected) <= 5 * std::sqrt(expected));
  }
  for (int i = 0; i < 100; ++i) CHECK(rng.below(~0ULL) < ~0ULL);
}

TEST_CASE("normal numbers have mean 0 and variance 1") {
  Rng rng(4);
  double sum = 0, squares = 0;
  constexpr int n = 20000;
  for (int i = 0; i < n; ++i) {
    const double value = rng.normal();
    REQUIRE(std::isfinite(value));
    sum += value;
    squares += value * value;
  }
  CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2.0 / n));
}

TEST_CASE("shuffle permutes, all orders equally often") {
  std::array<int, 6> counts{};
  Rng rng(6);
  for (int i = 0; i < 6000; ++i) {
    std::array<int, 3> values{0, 1, 2};
    rng.shuffle(std::span<int>(values));
    auto sorted = values;
    std::sort(sorted.begin(), sorted.end());
    REQUIRE(sorted == std::array<int, 3>{0, 1, 2});
    ++counts[static_cast<std::size_t>(values[0] * 2 + (values[1] > values[2] ? 1 : 0))];
  }
  for (const int count : counts) CHECK(std::abs(count - 1000) < 5 * 29);  // standard deviation 28.9
  std::vector<int> none;
  rng.shuffle(std::span<int>(none));
}
