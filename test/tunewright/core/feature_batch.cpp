// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/feature_batch.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

using namespace tunewright;

namespace {

std::vector<float> to_vector(std::span<const float> values) { return {values.begin(), values.end()}; }
std::vector<std::uint32_t> to_vector(std::span<const std::uint32_t> values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("an empty batch has no programs") {
  const FeatureBatch none;
  CHECK(none.programs() == 0);
  CHECK(none.rows() == 0);
  CHECK(none.columns() == 0);
  CHECK(FeatureBatch(164).columns() == 164);
}

TEST_CASE("programs own consecutive rows, some of them none") {
  FeatureBatch x(2);
  x.append_program(std::vector<float>{1, 2, 3, 4});
  x.close_program();
  x.append_program(std::vector<float>{5, 6});
  CHECK(x.programs() == 3);
  CHECK(x.rows() == 3);
  CHECK(to_vector(x.offsets()) == std::vector<std::uint32_t>{0, 2, 2, 3});
  CHECK(to_vector(x.row(1)) == std::vector<float>{3, 4});
  CHECK(to_vector(x.program(0)) == std::vector<float>{1, 2, 3, 4});
  CHECK(x.program(1).empty());
  CHECK(to_vector(x.program(2)) == std::vector<float>{5, 6});
  CHECK(to_vector(x.values()) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("rows are filled in place and start at zero") {
  FeatureBatch x(3);
  const auto row = x.append_row();
  CHECK(to_vector(row) == std::vector<float>{0, 0, 0});
  row[1] = 7;
  x.close_program();
  CHECK(to_vector(x.program(0)) == std::vector<float>{0, 7, 0});
}

TEST_CASE("a batch that was cleared is filled anew, in the same memory") {
  FeatureBatch x(2);
  x.reserve_rows(2);
  x.append_program(std::vector<float>{1, 2, 3, 4});
  const float* memory = x.values().data();
  x.clear();
  CHECK(x.programs() == 0);
  CHECK(x.rows() == 0);
  CHECK(x.columns() == 2);
  const auto row = x.append_row();
  CHECK(to_vector(row) == std::vector<float>{0, 0});  // not what was there before
  x.close_program();
  CHECK(to_vector(x.offsets()) == std::vector<std::uint32_t>{0, 1});
  CHECK(x.values().data() == memory);
}

TEST_CASE("batches join, program by program") {
  FeatureBatch x(1), other(1), unset;
  x.append_program(std::vector<float>{1, 2});
  other.append_program(std::vector<float>{3});
  other.close_program();
  x.append(other);
  CHECK(to_vector(x.offsets()) == std::vector<std::uint32_t>{0, 2, 3, 3});
  CHECK(to_vector(x.values()) == std::vector<float>{1, 2, 3});
  unset.append(x);  // takes the width of the first it meets
  CHECK(unset.columns() == 1);
  CHECK(unset.programs() == 3);
  x.append(FeatureBatch(9));  // nothing to join, no width to quarrel about
  CHECK(x.programs() == 3);
  x.append(x);
  CHECK(to_vector(x.offsets()) == std::vector<std::uint32_t>{0, 2, 3, 3, 5, 6, 6});
  CHECK(to_vector(x.values()) == std::vector<float>{1, 2, 3, 1, 2, 3});
}

TEST_CASE("a program without rows is appended like others, also where no width is known") {
  FeatureBatch x(2), unset;
  for (FeatureBatch* batch : {&x, &unset}) {
    batch->append_program({});
    CHECK(to_vector(batch->offsets()) == std::vector<std::uint32_t>{0, 0});
  }
  x.append_program(std::vector<float>{1, 2});
  x.append_program({});
  CHECK(to_vector(x.offsets()) == std::vector<std::uint32_t>{0, 0, 1, 1});
}

TEST_CASE("what does not fit is refused") {
  FeatureBatch x(2), wide(3), unset;
  CHECK_THROWS_WITH_AS(x.append_program(std::vector<float>{1, 2, 3}),
                       "FeatureBatch::append_program: 3 values are not whole rows of 2 columns", std::invalid_argument);
  CHECK_THROWS_AS(unset.append_program(std::vector<float>{1}), std::invalid_argument);
  x.append_program(std::vector<float>{1, 2});
  wide.append_program(std::vector<float>{1, 2, 3});
  CHECK_THROWS_WITH_AS(x.append(wide), "FeatureBatch::append: a batch of 3 columns cannot join one of 2",
                       std::invalid_argument);
  CHECK(x.programs() == 1);
}
