// SPDX-License-Identifier: Apache-2.0
#include "tunewright/session/described_rows.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

using namespace tunewright;

namespace {

/// One program for each number: a row that holds it, or no row for a negative one.
FeatureBatch rows(std::vector<float> numbers) {
  FeatureBatch x(1);
  for (const float number : numbers) {
    if (number < 0)
      x.close_program();
    else
      x.append_program(std::array{number});
  }
  return x;
}
std::vector<float> values(const FeatureBatch& x) { return {x.values().begin(), x.values().end()}; }

using Keys = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("rows are found again by key, in the order asked for") {
  DescribedRows known;
  known.add(Keys{7, 8}, rows({1, -1}));
  known.add(Keys{9}, rows({3}));
  CHECK(known.contains(8));
  CHECK_FALSE(known.contains(1));
  const FeatureBatch x = known.gather(Keys{9, 8, 7, 9});
  CHECK(x.programs() == 4);
  CHECK(x.program(1).empty());
  CHECK(values(x) == std::vector<float>{3, 1, 3});
  CHECK(known.gather(Keys{}).programs() == 0);
  CHECK_THROWS_AS((void)known.gather(Keys{1}), std::out_of_range);
}

TEST_CASE("a key that is known keeps its rows until it is forgotten") {
  DescribedRows known;
  known.add(Keys{7}, rows({1}));
  known.add(Keys{7, 8}, rows({2, 3}));
  CHECK(values(known.gather(Keys{7, 8})) == std::vector<float>{1, 3});
  known.forget(Keys{7});
  CHECK_FALSE(known.contains(7));
  CHECK(known.contains(8));
  known.forget(Keys{8});
  known.add(Keys{7}, rows({4}));
  CHECK(values(known.gather(Keys{7})) == std::vector<float>{4});
  known.clear();
  CHECK_FALSE(known.contains(7));
}

TEST_CASE("rows of another width are refused") {
  DescribedRows known;
  known.add(Keys{7}, rows({1}));
  FeatureBatch wide(2);
  wide.append_program(std::array{1.0F, 2.0F});
  CHECK_THROWS_AS(known.add(Keys{8}, wide), std::invalid_argument);
}

TEST_CASE("what there is no room for is not kept") {
  DescribedRows known;
  constexpr std::size_t columns = std::size_t{1} << 20;
  FeatureBatch large(columns);
  large.append_program(std::vector<float>(columns, 1));
  for (std::uint64_t key = 0; key < 20; ++key) known.add_if_room(Keys{key}, large);
  CHECK(known.contains(15));  // 64 MiB
  CHECK_FALSE(known.contains(16));
  for (std::uint64_t key = 0; key < 16; ++key) {
    known.add_if_room(Keys{20}, large);
    CHECK_FALSE(known.contains(20));
    known.forget(Keys{key});
  }
  known.add_if_room(Keys{20}, large);  // once all are forgotten
  CHECK(known.contains(20));
}
