// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/operators/conv.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../../../support/evaluated.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/transposed_conv2d.hpp"

using namespace tunewright::program;
namespace op = tunewright::program::operators;
using op::Layout;
using tunewright::test::Evaluated;
using tunewright::test::evaluated;
using Values = std::vector<float>;
using Array = xt::xarray<float>;

namespace {

struct Case {
  std::int64_t n, h, w, ci, co, kh, kw, sh, sw, ph, pw, dh, dw, groups;
  Layout layout;
};

/// What a convolution is, in plain loops; x and weight are read through functions of logical coordinates.
template <class X, class W>
double convolved(const Case& c, const X& x, const W& weight, std::int64_t n, std::int64_t h, std::int64_t w,
                 std::int64_t co) {
  const std::int64_t ci_group = c.ci / c.groups;
  const std::int64_t first = co / (c.co / c.groups) * ci_group;
  double sum = 0;
  for (std::int64_t i = 0; i < c.kh; ++i) {
    for (std::int64_t j = 0; j < c.kw; ++j) {
      const std::int64_t y = h * c.sh + i * c.dh - c.ph;
      const std::int64_t z = w * c.sw + j * c.dw - c.pw;
      if (y < 0 || z < 0 || y >= c.h || z >= c.w) continue;
      for (std::int64_t k = 0; k < ci_group; ++k) sum += double{x(n, y, z, first + k)} * double{weight(i, j, k, co)};
    }
  }
  return sum;
}

void check_conv2d(const Case& c) {
  CAPTURE(c.kh);
  CAPTURE(c.groups);
  const bool last = c.layout == Layout::ChannelsLast;
  ComputeGraph g;
  const Tensor x = g.input(
      "x", last ? std::vector<std::int64_t>{c.n, c.h, c.w, c.ci} : std::vector<std::int64_t>{c.n, c.ci, c.h, c.w});
  const Tensor weight = g.constant("w", last ? std::vector<std::int64_t>{c.kh, c.kw, c.ci / c.groups, c.co}
                                             : std::vector<std::int64_t>{c.co, c.ci / c.groups, c.kh, c.kw});
  const Tensor y = op::conv2d(g, x, weight,
                              {.stride = {c.sh, c.sw},
                               .padding = {c.ph, c.pw},
                               .dilation = {c.dh, c.dw},
                               .groups = c.groups,
                               .layout = c.layout});
  const std::int64_t oh = (c.h + 2 * c.ph - c.dh * (c.kh - 1) - 1) / c.sh + 1;
  const std::int64_t ow = (c.w + 2 * c.pw - c.dw * (c.kw - 1) - 1) / c.sw + 1;
  CHECK(y.shape ==
        (last ? std::vector<std::int64_t>{c.n, oh, ow, c.co} : std::vector<std::int64_t>{c.n, c.co, oh, ow}));
  const Evaluated e(g);
  const Array& in = e[x];
  const Array& kernel = e[weight];
  const Array& out = e[y];
  double worst = 0;
  for (std::int64_t n = 0; n < c.n; ++n) {
    for (std::int64_t h = 0; h < oh; ++h) {
      for (std::int64_t w = 0; w < ow; ++w) {
        for (std::int64_t co = 0; co < c.co; ++co) {
          const double expected = convolved(
              c, [&](auto b, auto i, auto j, auto k) { return last ? in(b, i, j, k) : in(b, k, i, j); },
              [&](auto i, auto j, auto k, auto o) { return last ? kernel(i, j, k, o) : kernel(o, k, i, j); }, n, h, w,
              co);
          worst = std::max(worst, std::abs(expected - double{last ? out(n, h, w, co) : out(n, co, h, w)}));
        }
      }
    }
  }
  CHECK(worst < 1e-5);
}

}  // namespace

TEST_CASE("conv2d in both layouts, with stride, padding, dilation and groups") {
  for (const Layout layout : {Layout::ChannelsLast, Layout::ChannelsFirst}) {
    check_conv2d({1, 5, 5, 3, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, layout});
    check_conv2d({2, 7, 6, 4, 6, 3, 2, 2, 1, 1, 0, 1, 2, 1, layout});
    check_conv2d({1, 6, 7, 4, 6, 1, 1, 2, 2, 0, 0, 1, 1, 1, layout});
    check_conv2d({1, 5, 6, 4, 6, 3, 3, 1, 2, 2, 1, 2, 1, 2, layout});
    check_conv2d({1, 4, 4, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 3, layout});
  }
}

TEST_CASE("conv2d by hand") {
  // 2x2 box filter over 3x3, no padding.
  const auto graph = op::conv2d_graph({.height = 3, .width = 3, .kernel = 2});
  CHECK(graph->size() == 3);  // nothing to pad
  CHECK(evaluated(*graph, {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 1, 1}}) == Values{12, 16, 24, 28});
  const auto padded =
      op::conv2d_graph({.height = 2, .width = 2, .kernel = 3, .padding = 1, .layout = Layout::ChannelsFirst});
  CHECK(padded->size() == 4);
  CHECK(evaluated(*padded, {{1, 2, 3, 4}, {0, 0, 0, 0, 1, 2, 0, 0, 0}}) == Values{5, 2, 11, 4});
}

TEST_CASE("conv1d and conv3d by hand") {
  ComputeGraph one;
  const Tensor x1 = one.input("x", {1, 5, 1});
  op::conv1d(one, x1, one.constant("w", {2, 1, 1}), {.stride = 2, .dilation = 2});
  CHECK(evaluated(one, {{1, 2, 3, 4, 5}, {1, 10}}) == Values{31, 53});
  ComputeGraph first;
  const Tensor x2 = first.input("x", {1, 2, 3});
  op::conv1d(first, x2, first.constant("w", {1, 2, 2}), {.layout = Layout::ChannelsFirst});
  // channel 0: 1 2 3 with taps 1, 1; channel 1: 10 20 30 with taps 0, 1
  CHECK(evaluated(first, {{1, 2, 3, 10, 20, 30}, {1, 1, 0, 1}}) == Values{23, 35});
  ComputeGraph three;
  const Tensor x3 = three.input("x", {1, 2, 2, 2, 1});
  const Tensor y = op::conv3d(three, x3, three.constant("w", {2, 2, 2, 1, 1}), {.padding = {0, 0, 1}});
  CHECK(y.shape == std::vector<std::int64_t>{1, 1, 1, 3, 1});
  CHECK(evaluated(three, {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1, 1, 1, 1, 1}}) == Values{16, 36, 20});
}

TEST_CASE("depthwise conv2d equals a grouped convolution with as many groups as channels") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 6, 5, 3});
  const Tensor weight = g.constant("w", {3, 3, 6});
  const Tensor y = op::depthwise_conv2d(g, x, weight, {.stride = {2, 1}, .padding = 1});
  CHECK(y.shape == std::vector<std::int64_t>{1, 3, 5, 6});
  const Evaluated e(g);
  const Case c{1, 6, 5, 3, 6, 3, 3, 2, 1, 1, 1, 1, 1, 3, Layout::ChannelsLast};
  double worst = 0;
  for (int h = 0; h < 3; ++h) {
    for (int w = 0; w < 5; ++w) {
      for (int co = 0; co < 6; ++co) {
        const double expected = convolved(
            c, [&](auto... at) { return e[x](at...); },
            [&](auto i, auto j, auto, auto o) { return e[weight](i, j, o); }, 0, h, w, co);
        worst = std::max(worst, std::abs(expected - double{e[y](0, h, w, co)}));
      }
    }
  }
  CHECK(worst < 1e-6);
  const auto first = op::depthwise_conv2d_graph(
      {.height = 2, .width = 2, .channels = 2, .kernel = 2, .layout = Layout::ChannelsFirst});
  CHECK(evaluated(*first, {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1, 0, 0, 0, 1}}) == Values{10, 8});
}

TEST_CASE("depthwise conv2d sums in the type of its elements or in a wider one") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 4, 4, 2}, ScalarType::Float16);
  const Tensor weight = g.constant("w", {3, 3, 2}, ScalarType::Float16);
  CHECK(op::depthwise_conv2d(g, x, weight).type == ScalarType::Float16);
  CHECK(op::depthwise_conv2d(g, x, weight, {.accumulator = ScalarType::Float32}).type == ScalarType::Float32);
  CHECK_REFUSES("products of float16 and float16 cannot be summed in bfloat16",
                op::depthwise_conv2d(g, x, weight, {.accumulator = ScalarType::BFloat16}));
}

TEST_CASE("transposed conv2d scatters scaled kernels") {
  for (const Layout layout : {Layout::ChannelsLast, Layout::ChannelsFirst}) {
    const bool last = layout == Layout::ChannelsLast;
    const int stride = 2;
    const int padding = 1;
    ComputeGraph g;
    const Tensor x = g.input("x", last ? std::vector<std::int64_t>{1, 3, 4, 2} : std::vector<std::int64_t>{1, 2, 3, 4});
    const Tensor weight =
        g.constant("w", last ? std::vector<std::int64_t>{3, 3, 2, 5} : std::vector<std::int64_t>{2, 5, 3, 3});
    const Tensor y = op::transposed_conv2d(
        g, x, weight, {.stride = stride, .padding = padding, .output_padding = {1, 0}, .layout = layout});
    const int oh = 2 * stride - 2 * padding + 3 + 1;
    const int ow = 3 * stride - 2 * padding + 3;
    CHECK(y.shape == (last ? std::vector<std::int64_t>{1, oh, ow, 5} : std::vector<std::int64_t>{1, 5, oh, ow}));
    const Evaluated e(g);
    std::vector<double> expected(static_cast<std::size_t>(oh * ow * 5), 0.0);
    for (int h = 0; h < 3; ++h)
      for (int w = 0; w < 4; ++w)
        for (int ci = 0; ci < 2; ++ci) {
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
              for (int co = 0; co < 5; ++co) {
                const int a = h * stride + i - padding;
                const int b = w * stride + j - padding;
                if (a < 0 || b < 0 || a >= oh || b >= ow) continue;
                const float value = last ? e[x](0, h, w, ci) : e[x](0, ci, h, w);
                const float tap = last ? e[weight](i, j, ci, co) : e[weight](ci, co, i, j);
                expected[static_cast<std::size_t>((a * ow + b) * 5 + co)] += double{value} * double{tap};
              }
        }
    double worst = 0;
    for (int a = 0; a < oh; ++a)
      for (int b = 0; b < ow; ++b)
        for (int co = 0; co < 5; ++co) {
          const float actual = last ? e[y](0, a, b, co) : e[y](0, co, a, b);
          worst = std::max(worst, std::abs(double{actual} - expected[static_cast<std::size_t>((a * ow + b) * 5 + co)]));
        }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("convolutions that do not fit are refused") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 4, 4, 6});
  const auto weight = [&](std::int64_t k, std::int64_t ci, std::int64_t co) { return g.constant("w", {k, k, ci, co}); };
  CHECK_REFUSES("input channels of weight is 5 but must be 6", op::conv2d(g, x, weight(3, 5, 8)));
  CHECK_REFUSES("4 groups do not divide 6 input", op::conv2d(g, x, weight(3, 6, 8), {.groups = 4}));
  CHECK_REFUSES("groups is 0; give at least 1", op::conv2d(g, x, weight(3, 6, 8), {.groups = 0}));
  CHECK_REFUSES("stride of dimension h is 0", op::conv2d(g, x, weight(3, 6, 8), {.stride = 0}));
  CHECK_REFUSES("padding of dimension w is -1", op::conv2d(g, x, weight(3, 6, 8), {.padding = {0, -1}}));
  CHECK_REFUSES("a window spanning 5 elements does not fit into the 4 + 2*0", op::conv2d(g, x, weight(5, 6, 8)));
  CHECK_REFUSES("3 numbers were given for 2 window dimensions",
                op::conv2d(g, x, weight(3, 6, 8), {.stride = {1, 2, 3}}));
  CHECK_REFUSES("give it rank 3, [n, w, c]", op::conv1d(g, x, weight(3, 6, 8)));
  CHECK_REFUSES("not a multiple of the 6 input channels", op::depthwise_conv2d(g, x, g.constant("w", {3, 3, 8})));
  CHECK_REFUSES("kernel minus padding of dimension h is 0",
                op::transposed_conv2d(g, x, weight(3, 6, 8), {.padding = 3}));
  CHECK_REFUSES("stride minus output padding", op::transposed_conv2d(g, x, weight(3, 6, 8), {.output_padding = 1}));
  const std::int64_t huge = std::int64_t{1} << 62;  // whose products would overflow
  CHECK_REFUSES("dilation of dimension h is 4611686018427387904; give at most 2147483648",
                op::conv2d(g, x, weight(3, 6, 8), {.dilation = huge}));
  CHECK_REFUSES("stride of dimension h is 4611686018427387904",
                op::transposed_conv2d(g, x, weight(3, 6, 8), {.stride = huge}));
  CHECK_REFUSES("conv2d: height is 0; give at least 1", (void)op::conv2d_graph({.height = 0}));
  CHECK_REFUSES("conv2d: kernel width is 0", (void)op::conv2d_graph({.kernel = {1, 0}}));
  CHECK_REFUSES("conv2d: in_channels / groups is 0", (void)op::conv2d_graph({.in_channels = 2, .groups = 4}));
  CHECK_REFUSES("depthwise_conv2d: channels is -2", (void)op::depthwise_conv2d_graph({.channels = -2}));
}
