// SPDX-License-Identifier: Apache-2.0
#include "tunewright/nn/attention.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "layer_harness.hpp"
#include "tunewright/nn/read_out.hpp"

using namespace tunewright;

namespace {
// Four programs of 3, 1, 0 and 9 rows: below and above what is multiplied by written-out loops.
const std::vector<std::uint32_t> offsets{0, 3, 4, 4, 13};
}  // namespace

TEST_CASE("softmax and its gradient by hand") {
  nn::Numbers<double> x(16, 7.0);
  x[0] = 0;
  x[1] = std::log(3.0);
  nn::softmax(x.data(), 2);
  CHECK(x[0] == doctest::Approx(0.25));
  CHECK(x[1] == doctest::Approx(0.75));
  std::vector<double> d{1, 0};  // p_i (d_i - sum p d) = 0.25 * 0.75, 0.75 * -0.25
  nn::softmax_backward(x.data(), d.data(), 2);
  CHECK(d[0] == doctest::Approx(0.1875));
  CHECK(d[1] == doctest::Approx(-0.1875));
}

TEST_CASE("self-attention of two rows by hand") {
  // d = 1; Q = x, K = x, V = 2 x, output 3 m + 1. Rows 0 and 1: the row 0 attends evenly, m = 1; row 1 has
  // shares e^0 and e^1, m = 2 e / (1 + e). A second program of one row 5 attends to itself: m = 10.
  nn::ParameterLayout layout;
  const nn::SelfAttention attention(layout, "a", 1, 1);
  const std::vector<double> w{1, 1, 2, 0, 0, 0, 3, 1};
  REQUIRE(layout.size() == w.size());
  nn::Matrix<double> x(16, 1), y;
  x.fill(0);
  x.row(1)[0] = 1;
  x.row(2)[0] = 5;
  const std::vector<std::uint32_t> two{0, 2, 3};
  nn::SelfAttention::Trace<double> trace;
  attention.forward(w.data(), x, two, trace, y);
  const double e = std::exp(1.0);
  CHECK(*y.row(0) == doctest::Approx(4));
  CHECK(*y.row(1) == doctest::Approx(3 * 2 * e / (1 + e) + 1));
  CHECK(*y.row(2) == doctest::Approx(31));
}

TEST_CASE("as many parameters as in Pruner and TLP") {
  nn::ParameterLayout pruner, tlp;
  const nn::SelfAttention four(pruner, "a", 128, 4), eight(tlp, "a", 256, 8);
  CHECK(pruner.size() == 66'048);
  CHECK(tlp.size() == 263'168);
  CHECK_THROWS_WITH_AS(nn::SelfAttention(tlp, "b", 10, 4), doctest::Contains("4 heads do not divide"),
                       std::invalid_argument);
}

TEST_CASE("gradient of self-attention") {
  nn::ParameterLayout layout;
  const nn::SelfAttention attention(layout, "a", 8, 2);
  test::LayerHarness harness(layout, 16, 8, 13);
  nn::SelfAttention::Trace<double> t;
  CHECK(harness.error(
            13, [&] { attention.forward(harness.parameters.data(), harness.x, offsets, t, harness.y); },
            [&] {
              attention.backward(harness.parameters.data(), harness.gradient.data(), harness.x, offsets, t, harness.dy,
                                 harness.dx);
            }) < 1e-8);
}

TEST_CASE("gradient of the repeated read-out") {
  nn::ParameterLayout layout;
  const nn::ReadOut read_out(layout, "r", 6, 2, 3);
  CHECK(layout.size() == 8 * 36 + 24);
  test::LayerHarness harness(layout, 16, 6, 13);
  nn::ReadOut::Trace<double> t;
  CHECK(harness.error(
            4, [&] { read_out.forward(harness.parameters.data(), harness.x, offsets, t, harness.y); },
            [&] {
              read_out.backward(harness.parameters.data(), harness.gradient.data(), harness.x, offsets, t, harness.dy,
                                harness.dx);
            }) < 1e-8);
  CHECK_THROWS_AS(nn::ReadOut(layout, "s", 6, 4, 2), std::invalid_argument);
}
