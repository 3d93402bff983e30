// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/gbdt/binning.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/models/gbdt/binned_rows.hpp"

using namespace tunewright;
using models::gbdt::ColumnBinner;

TEST_CASE("few distinct values get a bin each, with thresholds half-way") {
  const std::vector<float> values{4, 1, 1, 2, 4};
  std::vector<std::uint8_t> bins(5);
  const auto column = ColumnBinner{}.cut(values, 256, bins);
  CHECK(column.thresholds == std::vector<float>{1.5F, 3});
  CHECK(bins == std::vector<std::uint8_t>{2, 0, 0, 1, 2});
}

TEST_CASE("both zeros are one value, infinities are values") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values{-0.0F, 0.0F, inf, -inf};
  std::vector<std::uint8_t> bins(4);
  const auto column = ColumnBinner{}.cut(values, 256, bins);
  REQUIRE(column.bins() == 3);
  CHECK(bins == std::vector<std::uint8_t>{1, 1, 2, 0});
  for (std::size_t i = 0; i < values.size(); ++i) {  // what predict sees agrees with what was trained on
    std::size_t above = 0;
    for (const float threshold : column.thresholds) above += values[i] > threshold ? 1U : 0U;
    CHECK(above == bins[i]);
  }
}

TEST_CASE("neighbouring floats are still told apart") {
  const float low = 1, high = std::nextafter(1.0F, 2.0F);
  std::vector<std::uint8_t> bins(2);
  const auto column = ColumnBinner{}.cut(std::vector<float>{low, high}, 256, bins);
  REQUIRE(column.thresholds.size() == 1);
  CHECK_FALSE(low > column.thresholds[0]);
  CHECK(high > column.thresholds[0]);
}

TEST_CASE("many distinct values are cut into bins of equal count") {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), -500.0F);
  Rng(3).shuffle(std::span(values));
  std::vector<std::uint8_t> bins(values.size());
  const auto column = ColumnBinner{}.cut(values, 4, bins);
  CHECK(column.thresholds == std::vector<float>{-250.5F, -0.5F, 249.5F});
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(bins[i] == (values[i] < -250 ? 0 : values[i] < 0 ? 1 : values[i] < 250 ? 2 : 3));
  }
}

TEST_CASE("a frequent value has a bin of its own") {
  std::vector<float> values;
  for (int i = 0; i < 300; ++i) values.push_back(static_cast<float>(i));
  for (int i = 0; i < 700; ++i) values.push_back(150.25F);
  std::vector<std::uint8_t> bins(values.size());
  ColumnBinner{}.cut(values, 8, bins);
  const std::uint8_t own = bins.back();
  for (std::size_t i = 0; i < 300; ++i) CHECK(bins[i] != own);
}

TEST_CASE("rows are freed of what cannot matter") {
  FeatureBatch x(5);
  // column 0 varies; 1 is constant; 2 orders rows as 0 does; 3 is mostly zero; 4 orders them the other way
  // round
  for (const auto& row :
       {std::vector<float>{1, 9, 10, 0, -1}, {2, 9, 20, 0, -2}, {1, 9, 10, 0, -1}, {3, 9, 21, 7, -3}}) {
    x.append_program(row);
  }
  ThreadTeam team(1);
  const auto data = models::gbdt::bin_rows(x, 256, team);
  REQUIRE(data.columns.size() == 3);
  CHECK(data.columns[0].source == 0);
  CHECK(data.columns[1].source == 3);
  CHECK(data.columns[2].source == 4);
  CHECK(data.bins == 3 + 2 + 3);
  CHECK(data.rows == 3);
  CHECK(data.distinct_of == std::vector<std::uint32_t>{0, 1, 0, 2});
  // common bins: 0 of column 0 (value 1), 0 of column 3 (value 0), 2 of column 4 (value -1)
  CHECK(data.list_offsets == std::vector<std::size_t>{0, 0, 2, 5});
  CHECK(data.lists == std::vector<std::uint16_t>{1, 6, 2, 4, 5});
}

TEST_CASE("rows of columns that all are constant are one row without bins") {
  FeatureBatch x(2);
  for (int program = 0; program < 3; ++program) x.append_program(std::vector<float>{1, 9});
  ThreadTeam team(1);
  const auto data = models::gbdt::bin_rows(x, 256, team);
  CHECK(data.columns.empty());
  CHECK(data.bins == 0);
  CHECK(data.rows == 1);
  CHECK(data.distinct_of == std::vector<std::uint32_t>{0, 0, 0});
}
