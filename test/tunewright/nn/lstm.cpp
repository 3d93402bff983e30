// SPDX-License-Identifier: Apache-2.0
#include "tunewright/nn/lstm.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "layer_harness.hpp"

using namespace tunewright;

namespace {
const std::vector<std::uint32_t> offsets{0, 3, 4, 4, 9};  // programs of 3, 1, 0 and 5 rows
}

TEST_CASE("time order: step by step, long programs first") {
  nn::TimeOrder order;
  order.set(offsets);
  CHECK(order.row == std::vector<std::uint32_t>{4, 0, 3, 5, 1, 6, 2, 7, 8});
  CHECK(order.starts == std::vector<std::uint32_t>{0, 3, 5, 7, 8, 9});
  nn::Matrix<double> rows(16, 1), sorted, back;
  for (std::size_t r = 0; r < 16; ++r) *rows.row(r) = r < 9 ? static_cast<double>(r) : 0;
  order.sort(rows, sorted);
  CHECK(*sorted.row(0) == 4);
  CHECK(*sorted.row(8) == 8);
  order.unsort(sorted, back);
  CHECK(std::equal(rows.data(), rows.data() + 16, back.data()));
}

TEST_CASE("two steps of one cell by hand") {
  // All gates see x alone, with weight 1, plus h with weight 2 for g only.
  //   x = 1: s = sigmoid(1), c = s tanh(1), h = s tanh(c);   x = -1: g = tanh(-1 + 2 h), c' = s' c + s' g
  nn::ParameterLayout layout;
  const nn::Lstm lstm(layout, "l", 1, 1, false);
  const std::vector<double> w{1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 2};
  REQUIRE(layout.size() == w.size());
  nn::Matrix<double> x(16, 1), y(16, 1);
  x.fill(0);
  *x.row(0) = 1;
  *x.row(1) = -1;
  nn::TimeOrder order;
  order.set(std::vector<std::uint32_t>{0, 2});
  nn::Lstm::Trace<double> t;
  lstm.forward(w.data(), x, order, t, y.view());
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double s = sigmoid(1), c = s * std::tanh(1.0), h = s * std::tanh(c);
  CHECK(*y.row(0) == doctest::Approx(h));
  const double s2 = sigmoid(-1), c2 = s2 * c + s2 * std::tanh(-1 + 2 * h);
  CHECK(*y.row(1) == doctest::Approx(s2 * std::tanh(c2)));
}

TEST_CASE("the second half of a bidirectional one is the first on rows turned round") {
  nn::ParameterLayout layout;
  const nn::BidirectionalLstm both(layout, "b", 3, 4);
  test::LayerHarness harness(layout, 16, 3, 9);
  const std::size_t half = layout.size() / 2;
  std::copy_n(harness.parameters.begin(), half, harness.parameters.begin() + static_cast<std::ptrdiff_t>(half));
  nn::TimeOrder order;
  order.set(std::vector<std::uint32_t>{0, 9});
  nn::BidirectionalLstm::Trace<double> t;
  both.forward(harness.parameters.data(), harness.x, order, t, harness.y);
  const nn::Matrix<double> straight = harness.y;
  for (std::size_t r = 0; r < 4; ++r) std::swap_ranges(harness.x.row(r), harness.x.row(r + 1), harness.x.row(8 - r));
  both.forward(harness.parameters.data(), harness.x, order, t, harness.y);
  for (std::size_t r = 0; r < 9; ++r)
    for (std::size_t c = 0; c < 4; ++c)
      CHECK(straight.row(r)[c] == doctest::Approx(harness.y.row(8 - r)[4 + c]).epsilon(1e-12));
}

TEST_CASE("gradient of a bidirectional layer over ragged rows") {
  nn::ParameterLayout layout;
  const nn::BidirectionalLstm both(layout, "b", 3, 4);
  test::LayerHarness harness(layout, 16, 3, 9);
  nn::TimeOrder order;
  order.set(offsets);
  nn::BidirectionalLstm::Trace<double> t;
  CHECK(harness.error(
            9, [&] { both.forward(harness.parameters.data(), harness.x, order, t, harness.y); },
            [&] {
              both.backward(harness.parameters.data(), harness.gradient.data(), harness.x, order, t, harness.dy,
                            harness.dx);
            }) < 1e-8);
}
