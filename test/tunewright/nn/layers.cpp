// SPDX-License-Identifier: Apache-2.0
// The simple layers: linear, residual, sums of segments, normalisation, dropout, input.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "layer_harness.hpp"
#include "tunewright/nn/dropout.hpp"
#include "tunewright/nn/input.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/normalisation.hpp"
#include "tunewright/nn/segments.hpp"

using namespace tunewright;
using doctest::Approx;

TEST_CASE("linear by hand") {
  nn::ParameterLayout layout;
  const nn::Linear linear(layout, "l", 2, 2);
  const std::vector<double> w{1, 2, 3, 4, 1, -100};
  nn::Matrix<double> x(1, 2), y;
  x.fill(1);
  linear.forward(w.data(), x, y);
  CHECK(y.row(0)[0] == 5);
  CHECK(y.row(0)[1] == -94);
  linear.forward_relu(w.data(), x, y);
  CHECK(y.row(0)[0] == 5);
  CHECK(y.row(0)[1] == 0);
}

TEST_CASE("gradients of linear layers and residual blocks") {
  for (const std::size_t outputs : {1U, 3U, 40U}) {
    nn::ParameterLayout layout;
    const nn::Linear linear(layout, "l", 5, outputs);
    test::LayerHarness harness(layout, 16, 5, 16);
    CHECK(harness.error(
              16, [&] { linear.forward(harness.parameters.data(), harness.x, harness.y); },
              [&] {
                linear.backward(harness.parameters.data(), harness.gradient.data(), harness.x, harness.dy, &harness.dx);
              }) < 1e-8);
  }
  nn::ParameterLayout layout;
  const nn::Residual residual(layout, "r", 5);
  test::LayerHarness harness(layout, 16, 5, 16);
  nn::Matrix<double> active, scratch;
  CHECK(harness.error(
            16, [&] { residual.forward(harness.parameters.data(), harness.x, active, harness.y); },
            [&] {
              harness.dx = harness.dy;
              residual.backward(harness.parameters.data(), harness.gradient.data(), harness.x, active, harness.dx,
                                scratch);
            }) < 1e-8);
}

namespace {

// Small whole numbers, whose products and sums floats hold exactly.
nn::Matrix<float> whole_numbers(std::size_t rows, std::size_t columns, unsigned start) {
  nn::Matrix<float> m(rows, columns);
  for (std::size_t i = 0; i < m.size(); ++i)
    m.data()[i] = static_cast<float>(static_cast<int>((start + i * 7 + i / 5) % 9) - 4);
  return m;
}
nn::Matrix<float> transposed(const nn::Matrix<float>& m) {
  nn::Matrix<float> t(m.columns(), m.rows());
  for (std::size_t r = 0; r < m.rows(); ++r)
    for (std::size_t c = 0; c < m.columns(); ++c) t.row(c)[r] = m.row(r)[c];
  return t;
}

}  // namespace

TEST_CASE("products of float matrices of any shape are exact on small whole numbers") {
  struct Shape {
    std::size_t m, n, k;
  };
  for (const auto [m, n, k] :
       {Shape{14, 32, 16}, Shape{29, 70, 33}, Shape{16, 16, 300}, Shape{3, 100, 20}, Shape{1, 40, 8}, Shape{5, 1, 30},
        Shape{15, 17, 513}, Shape{8, 8, 32}, Shape{14, 32, 0}}) {
    const nn::Matrix<float> a = whole_numbers(m, k, 1), b = whole_numbers(k, n, 3);
    const nn::Matrix<float> a_t = transposed(a), b_t = transposed(b);
    nn::Matrix<float> out(m, n), sum(m, n), sum_t(m, n), replaced(m, n);
    for (nn::Matrix<float>* start : {&out, &sum, &sum_t, &replaced}) start->fill(5);
    nn::multiply<float>(a.view(), b.view(), out.view());
    nn::multiply_transposed<float>(a.view(), b_t.view(), replaced.view());
    nn::multiply_transposed<float>(a.view(), b_t.view(), sum.view(), true);
    nn::add_transposed_multiply<float>(a_t.view(), b.view(), sum_t.view());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        float expected = 0;
        for (std::size_t l = 0; l < k; ++l) expected += a.row(i)[l] * b.row(l)[j];
        wrong += out.row(i)[j] != expected || replaced.row(i)[j] != expected || sum.row(i)[j] != expected + 5 ||
                 sum_t.row(i)[j] != expected + 5;
      }
    }
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a row of a float product does not depend on the rows beside it") {
  nn::Matrix<float> a(40, 90), b(90, 50), all(40, 50), one(16, 50);
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b.data()[i] = std::cos(static_cast<float>(i));
  nn::multiply<float>(a.view(), b.view(), all.view());
  for (const std::size_t first : {1U, 7U, 24U}) {
    nn::multiply<float>(a.view().block(first, 16, 0, 90), b.view(), one.view());
    for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(one.data()[i] == all.row(first + i / 50)[i % 50]);
  }
}

TEST_CASE("sums of segments and their way back") {
  const std::vector<std::uint32_t> offsets{0, 2, 2, 3};
  nn::Matrix<double> rows(16, 1), sums, back;
  rows.fill(100);
  for (std::size_t r = 0; r < 3; ++r) *rows.row(r) = static_cast<double>(r + 1);
  nn::segment_sum<double>(rows, offsets, sums);
  CHECK(sums.rows() == 16);
  CHECK(std::vector<double>(sums.data(), sums.data() + 4) == std::vector<double>{3, 0, 3, 0});
  *sums.row(1) = 7;
  nn::segment_spread<double>(sums, offsets, 16, back);
  CHECK(std::vector<double>(back.data(), back.data() + 4) == std::vector<double>{3, 3, 3, 0});
}

TEST_CASE("layer normalisation by hand, and its gradient") {
  nn::ParameterLayout layout;
  const nn::LayerNorm norm(layout, "n", 2);
  const std::vector<double> w{2, 2, 5, 6};
  nn::Matrix<double> x(1, 2), standard, y;
  x.row(0)[0] = 1;
  x.row(0)[1] = 3;  // mean 2, variance 1
  std::vector<double> inverse;
  norm.forward(w.data(), x, standard, inverse, y);
  CHECK(y.row(0)[0] == Approx(3).epsilon(1e-4));
  CHECK(y.row(0)[1] == Approx(8).epsilon(1e-4));

  nn::ParameterLayout wide;
  const nn::LayerNorm five(wide, "n", 5);
  test::LayerHarness harness(wide, 4, 5, 4);
  CHECK(harness.error(
            4, [&] { five.forward(harness.parameters.data(), harness.x, standard, inverse, harness.y); },
            [&] {
              five.backward(harness.parameters.data(), harness.gradient.data(), standard, inverse, harness.dy,
                            harness.dx);
            }) < 1e-8);
}

TEST_CASE("batch normalisation over two shards by hand") {
  // 1, 3 | 5: mean 3, variance 8/3 (unbiased 4); running mean 0.3, running variance 0.9 + 0.4.
  nn::ParameterLayout layout;
  const nn::BatchNorm norm(layout, "n", 1);
  const std::vector<double> w{2, 1};
  nn::Matrix<double> first(16, 1), second(16, 1), y;
  first.fill(99);
  second.fill(99);
  *first.row(0) = 1;
  *first.row(1) = 3;
  *second.row(0) = 5;
  nn::BatchNorm::Trace<double> one, two;
  norm.moments(first, 2, one);
  norm.moments(second, 1, two);
  nn::BatchNorm::Trace<double>* both[]{&one, &two};
  std::vector<double> running{0, 1};
  norm.join<double>(both, running.data());
  CHECK(running[0] == Approx(0.3));
  CHECK(running[1] == Approx(1.3));
  norm.forward(w.data(), second, two, y);
  CHECK(*y.row(0) == Approx(2 * 2 / std::sqrt(8.0 / 3) + 1).epsilon(1e-5));
  norm.use_running(running.data(), two);
  norm.forward(w.data(), second, two, y);
  CHECK(*y.row(0) == Approx(2 * 4.7 / std::sqrt(1.3) + 1).epsilon(1e-4));

  // One program says nothing of the variance.
  nn::BatchNorm::Trace<double>* alone[]{&two};
  norm.join<double>(alone, running.data());
  CHECK(running[0] == Approx(0.9 * 0.3 + 0.1 * 5));
  CHECK(running[1] == Approx(1.3));
}

TEST_CASE("dropout leaves out the wanted share, and the same units for the same reasons") {
  nn::Matrix<float> whole(64, 100), part(32, 100), mask;
  whole.fill(1);
  part.fill(1);
  const nn::Pass training{true, 0.25F, Rng(3)}, predicting{false, 0.25F, Rng(3)};
  nn::dropout(training, 7, 0, whole, mask);
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    zeros += whole.data()[i] == 0 ? 1U : 0U;
    if (whole.data()[i] != 0) CHECK(whole.data()[i] == Approx(4.0 / 3));
  }
  CHECK(zeros > 1450);  // of 6400, 1600 expected, deviation 35
  CHECK(zeros < 1750);
  CHECK_FALSE(std::equal(whole.row(0), whole.row(1), whole.row(1)));
  nn::dropout(training, 7, 32, part, mask);  // the second half of the same mini-batch
  CHECK(std::equal(part.row(0), part.row(31) + 100, whole.row(32)));
  whole.fill(1);
  nn::dropout(predicting, 7, 0, whole, mask);
  CHECK(std::equal(whole.row(0), whole.row(1), whole.row(40)));
  whole.fill(1);
  nn::dropout({}, 7, 0, whole, mask);
  CHECK(whole.row(3)[3] == 1);
}

TEST_CASE("input is divided by the largest magnitude, and nothing is beyond four times that") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  FeatureBatch x(3);
  x.append_program(std::vector<float>{2, 4, 0});
  x.append_program(std::vector<float>{1, -8, 0, infinity, 1, 0});
  const auto scale = nn::InputScale::fit(x);
  CHECK(scale.magnitude == std::vector<float>{2, 8, 1});
  const std::vector<float> row{1, -infinity, std::numeric_limits<float>::quiet_NaN()};
  float out[3];
  scale.apply(row, 0, 3, out);
  CHECK(out[0] == 0.5F);
  CHECK(out[1] == -4);
  CHECK(out[2] == 0);
  nn::Matrix<float> rows;
  std::vector<std::uint32_t> offsets;
  const std::vector<std::uint32_t> chosen{1, 0};
  nn::gather(nn::Programs{&x, chosen, &scale}, 1, 2, [](std::span<const float> r) { return r[0] >= 2; }, rows, offsets);
  CHECK(offsets == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(rows.rows() == 16);
  CHECK(rows.row(0)[0] == 0.125F);
  CHECK(rows.row(1)[0] == 0.5F);
  CHECK(rows.row(2)[0] == 0);
}
