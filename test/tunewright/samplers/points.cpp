// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/points.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "support/toy_model.hpp"
#include "tunewright/samplers/knobs.hpp"
#include "tunewright/samplers/pool.hpp"
#include "tunewright/samplers/quotas.hpp"

using namespace tunewright;
using namespace tunewright::samplers;

TEST_CASE("distances and products over every remainder of the vector width") {
  for (std::size_t size = 0; size < 20; ++size) {
    std::vector<float> a, b;
    float squared = 0, product = 0;
    for (std::size_t i = 0; i < size; ++i) {
      a.push_back(static_cast<float>(i));
      b.push_back(static_cast<float>(2 * i + 1));
      squared += (b[i] - a[i]) * (b[i] - a[i]);  // whole numbers: exact in any order
      product += a[i] * b[i];
    }
    CHECK(squared_distance(a, b) == squared);
    CHECK(dot(a, b) == product);
  }
}

TEST_CASE("standardised coordinates have mean 0 and deviation 1 over both sets") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  Points a{.columns = 4, .values = {1, 7, 0.1F, 0, 3, 7, 0.1F, 1}, .count = 2};
  Points b{.columns = 4, .values = {5, 7, 0.1F, infinite}, .count = 1};
  standardise(a, b);
  const float root = std::sqrt(1.5F);  // values 1, 3, 5: mean 3, variance 8/3
  CHECK(a[0][0] == doctest::Approx(-root));
  CHECK(a[1][0] == 0);
  CHECK(b[0][0] == doctest::Approx(root));
  for (std::size_t c : {1U, 2U, 3U}) {  // constant, constant but for rounding, not finite
    CHECK(a[0][c] == 0);
    CHECK(a[1][c] == 0);
    CHECK(b[0][c] == 0);
  }
  Points none;
  CHECK_NOTHROW(standardise(a, none));
  // Six sixths of 0.1F are not quite 0.1F, so that the deviation is 1e-17, not 0.
  Points same{.columns = 1, .values = std::vector<float>(6, 0.1F), .count = 6};
  standardise(same, none);
  CHECK(same.values == std::vector<float>(6, 0));
}

TEST_CASE("the nearest centre is updated centre by centre") {
  const Points points{.columns = 1, .values = {0, 3, 10}, .count = 3};
  NearestCentre nearest(3);
  CHECK(nearest.squared(2) == 1);
  nearest.add(points, points[0]);
  CHECK(nearest.squared(0) == 0);
  CHECK(nearest.squared(1) == 9);
  CHECK(nearest.squared(2) == 100);
  nearest.add(points, points[2]);
  CHECK(nearest.squared(1) == 9);
  CHECK(nearest.squared(2) == 0);
}

TEST_CASE("a draw follows the weights and never takes what has none") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Rng rng(3);
  const std::array weight{1.0, 0.0, 3.0, -2.0, nan};
  std::array<int, 6> count{};
  for (int draw = 0; draw < 4000; ++draw) ++count[draw_by_weight(weight, rng)];
  CHECK(std::abs(count[0] - 1000) < 140);  // deviation 27
  CHECK(count[0] + count[2] == 4000);
  CHECK(draw_by_weight(std::array{0.0, nan}, rng) == 2);
}

TEST_CASE("an embedding that is not one row a program is refused") {
  FeatureBatch two_rows(2);
  two_rows.append_program(std::array{1.0F, 2.0F, 3.0F, 4.0F});
  CHECK_THROWS_WITH_AS((void)points_of(two_rows, std::array{std::size_t{0}}),
                       doctest::Contains("program 0 is not one row"), std::invalid_argument);
  CHECK_THROWS_AS((void)points_of(two_rows, std::array{std::size_t{1}}), std::invalid_argument);
}

TEST_CASE("programs of several rows are summed") {
  FeatureBatch x(2);
  x.append_program(std::array{1.0F, 2.0F, 3.0F, 4.0F});
  x.append_program(std::array{5.0F, 6.0F});
  const Points points = summed_rows(x, std::array{std::size_t{1}, std::size_t{0}});
  CHECK(points.values == std::vector<float>{5, 6, 4, 6});
}

TEST_CASE("knob values become their places among the values seen") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const KnobTable table =
      knob_table({.columns = 2, .values = {32, 1, 8, 1, 32, 1, nan, 1, 1024, 1, nan, 1}, .count = 6});
  CHECK(table.values == std::vector<std::uint32_t>{4, 1});
  CHECK(table.index == std::vector<std::uint32_t>{1, 0, 0, 0, 1, 0, 3, 0, 2, 0, 3, 0});
}

TEST_CASE("measurements are divided by the largest remainder, within the room there is") {
  using Counts = std::vector<std::size_t>;
  CHECK(divide(10, std::array{1.0, 1.0, 2.0}, Counts{9, 9, 9}) == Counts{3, 2, 5});  // 2.5, 2.5, 5
  CHECK(divide(7, std::array{1.0, 2.0, 4.0}, Counts{9, 9, 9}) == Counts{1, 2, 4});
  CHECK(divide(2, std::array{1.0, 2.0, 4.0}, Counts{9, 9, 9}) == Counts{0, 1, 1});  // 0.29, 0.57, 1.14
  CHECK(divide(10, std::array{1.0, 1.0, 2.0}, Counts{9, 9, 1}) == Counts{5, 4, 1});
  CHECK(divide(10, std::array{1.0, 1.0, 2.0}, Counts{2, 1, 3}) == Counts{2, 1, 3});
  CHECK(divide(4, std::array{0.0, 0.0}, Counts{9, 9}) == Counts{2, 2});
  CHECK(divide(4, std::array{0.0, 1.0}, Counts{9, 2}) == Counts{2, 2});
  CHECK(divide(4, {}, Counts{}).empty());
  std::size_t sum = 0;
  for (const std::size_t part : divide(429, std::vector<double>(100, 0.1), Counts(100, 5))) sum += part;
  CHECK(sum == 429);
}

TEST_CASE("filling up takes the best of what is left, the undescribed last") {
  constexpr float hopeless = -std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const std::array score{0.5F, hopeless, 0.9F, nan, 0.7F};
  std::vector<std::size_t> chosen{0};
  fill_up(chosen, score, 4);
  CHECK(chosen == std::vector<std::size_t>{0, 2, 4, 1});
  fill_up(chosen, score, 9);
  CHECK(chosen == std::vector<std::size_t>{0, 2, 4, 1, 3});
}

TEST_CASE("members of tasks, without programs that cannot be described") {
  constexpr float hopeless = -std::numeric_limits<float>::infinity();
  FeatureBatch known(1);
  for (int l = 0; l < 3; ++l) known.append_program(std::array{1.0F});
  known.close_program();
  const std::array<std::uint32_t, 4> task{7, 9, 7, 7}, pool_task{7, 8, 7, 6};
  const auto tasks =
      by_task(std::array{1.0F, 1.0F, 2.0F, hopeless}, {.x = known, .task = task, .pool_task = pool_task});
  REQUIRE(tasks.size() == 2);
  CHECK(tasks.at(7).pool == std::vector<std::size_t>{0, 2});
  CHECK(tasks.at(7).labelled == std::vector<std::size_t>{0, 2});
  CHECK(tasks.at(8).pool == std::vector<std::size_t>{1});
  CHECK(tasks.at(8).labelled.empty());
}
