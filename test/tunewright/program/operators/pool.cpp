// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/operators/pool.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../../support/evaluated.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"

using namespace tunewright::program;
namespace op = tunewright::program::operators;
using op::Layout;
using tunewright::test::Evaluated;
using tunewright::test::evaluated;
using Values = std::vector<float>;

namespace {
const Values nine{1, 2, 3, 4, 5, 6, 7, 8, 9};
}

TEST_CASE("max pooling never takes its padding") {
  ComputeGraph g;
  op::max_pool2d(g, g.input("x", {1, 3, 3, 1}), {.kernel = 2, .stride = 2, .padding = 1});
  CHECK(evaluated(g, {{-1, -2, -3, -4, -5, -6, -7, -8, -9}}) == Values{-1, -2, -4, -5});
  ComputeGraph first;
  op::max_pool2d(first, first.input("x", {1, 1, 3, 3}),
                 {.kernel = {2, 3}, .stride = 1, .layout = Layout::ChannelsFirst});
  CHECK(evaluated(first, {nine}) == Values{6, 9});
}

TEST_CASE("average pooling divides by the elements there are, or by the whole window") {
  ComputeGraph g;
  op::avg_pool2d(g, g.input("x", {1, 3, 3, 1}), {.kernel = 2, .stride = 2, .padding = 1});
  CHECK(evaluated(g, {nine}) == Values{1, 2.5F, 5.5F, 7});
  ComputeGraph whole;
  op::avg_pool2d(whole, whole.input("x", {1, 3, 3, 1}),
                 {.kernel = 2, .stride = 2, .padding = 1, .count_padding = true});
  CHECK(evaluated(whole, {nine}) == Values{0.25F, 1.25F, 2.75F, 7});
  ComputeGraph one_side;
  op::avg_pool2d(one_side, one_side.input("x", {1, 3, 3, 1}), {.kernel = {3, 2}, .stride = {1, 2}, .padding = {0, 1}});
  CHECK(evaluated(one_side, {nine}) == Values{4, 5.5F});
}

TEST_CASE("global pooling") {
  ComputeGraph g;
  op::global_avg_pool2d(g, g.input("x", {1, 2, 2, 2}));
  CHECK(evaluated(g, {{1, 10, 2, 20, 3, 30, 6, 60}}) == Values{3, 30});
  ComputeGraph first;
  op::global_max_pool2d(first, first.input("x", {1, 2, 2, 2}), Layout::ChannelsFirst);
  CHECK(evaluated(first, {{1, 10, 2, 20, 3, 30, 6, 60}}) == Values{20, 60});
}

TEST_CASE("softmax along each dimension, without overflow") {
  for (const int axis : {0, 1, -1}) {
    ComputeGraph g;
    const Tensor x = g.input("x", {3, 4, 5});
    const Tensor y = op::softmax(g, x, {.axis = axis});
    CHECK(g.size() == 5);
    const Evaluated e(g);
    const int extent[] = {3, 4, 5};
    const int along = axis < 0 ? 2 : axis;
    double worst = 0;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 4; ++b)
        for (int c = 0; c < 5; ++c) {
          double sum = 0;
          for (int k = 0; k < extent[along]; ++k) {
            sum += std::exp(double{along == 0 ? e[x](k, b, c) : along == 1 ? e[x](a, k, c) : e[x](a, b, k)});
          }
          worst = std::max(worst, std::abs(std::exp(double{e[x](a, b, c)}) / sum - double{e[y](a, b, c)}));
        }
    CHECK(worst < 1e-6);
  }
  CHECK(evaluated(*op::softmax_graph({.rows = 1, .columns = 2}), {{1000, 1000}}) == Values{0.5F, 0.5F});
}

TEST_CASE("layer normalisation gives rows of mean 0 and variance 1 before gamma and beta") {
  ComputeGraph g;
  const Tensor x = g.input("x", {2, 4});
  const Tensor gamma = g.constant("gamma", {4});
  op::layer_norm(g, x, gamma, g.constant("beta", {4}), {.epsilon = 0});
  // Row 0: mean 3, variance 5; row 1: mean 0, variance 1.
  const Values y = evaluated(g, {{0, 2, 4, 6, 1, -1, 1, -1}, {1, 1, 1, 2}, {0, 0, 0, 1}});
  const double s = std::sqrt(5.0);
  const double expected[] = {-3 / s, -1 / s, 1 / s, 2 * 3 / s + 1, 1, -1, 1, -1};
  for (std::size_t i = 0; i < 8; ++i) CHECK(double{y[i]} == doctest::Approx(expected[i]));
}

TEST_CASE("batch normalisation is one elementwise operator") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 2, 2});
  const op::BatchNormParameters p{g.constant("gamma", {2}), g.constant("beta", {2}), g.constant("mean", {2}),
                                  g.constant("variance", {2})};
  op::batch_norm(g, x, p, {.axis = 1, .epsilon = 0});
  CHECK(g.size() == 6);
  // Channel 0: (x - 1) / 2 * 3 + 10; channel 1: (x - 0) / 1 * 1 + 0.
  CHECK(evaluated(g, {{1, 5, 7, 8}, {3, 1}, {10, 0}, {1, 0}, {4, 1}}) == Values{10, 16, 7, 8});
}

TEST_CASE("reductions over some or all dimensions") {
  const Values x{1, 2, 3, 4, 5, 6};
  const auto reduced = [&](auto reduce) {
    ComputeGraph g;
    reduce(g, g.input("x", {2, 3}));
    return evaluated(g, {x});
  };
  CHECK(reduced([](auto& g, auto t) { op::sum(g, t); }) == Values{21});
  CHECK(reduced([](auto& g, auto t) { op::sum(g, t, {0}); }) == Values{5, 7, 9});
  CHECK(reduced([](auto& g, auto t) { op::max(g, t, {-1}); }) == Values{3, 6});
  CHECK(reduced([](auto& g, auto t) { op::min(g, t, {1}); }) == Values{1, 4});
  CHECK(reduced([](auto& g, auto t) { op::mean(g, t, {1}); }) == Values{2, 5});
  CHECK(double{reduced([](auto& g, auto t) { op::norm(g, t); })[0]} == doctest::Approx(std::sqrt(91.0)));
}

TEST_CASE("16-bit elements are summed, and normalised, in 32 bits") {
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16}) {
    ComputeGraph g;
    const Tensor x = g.input("x", {1, 4, 4, 6}, type);
    const Tensor row = g.constant("p", {6}, type);
    for (const Tensor& result :
         {op::softmax(g, x), op::layer_norm(g, x, row, row), op::batch_norm(g, x, {row, row, row, row}),
          op::avg_pool2d(g, x, {.padding = 1}), op::global_avg_pool2d(g, x), op::mean(g, x, {1}), op::norm(g, x, {1})})
      CHECK(result.type == type);
    CHECK(op::sum(g, x).type == ScalarType::Float32);
    for (TensorId id = 0; id < g.size(); ++id) {
      CAPTURE(g.op(id).name);
      if (g.op(id).combiner == Combiner::Sum) CHECK(g.op(id).type == ScalarType::Float32);
    }
    const Tensor normal = op::batch_norm(g, x, {row, row, row, row});
    CHECK(g.op(normal.id).body->op == Op::Cast);  // rounded once, at the end
  }
  ComputeGraph bytes;
  CHECK(op::sum(bytes, bytes.input("x", {4}, ScalarType::Int8)).type == ScalarType::Int32);
}

TEST_CASE("windows and parameters that do not fit are refused") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 4, 4, 6});
  const Tensor short_one = g.constant("p", {5});
  CHECK_REFUSES("kernel minus padding of dimension h is 0", op::max_pool2d(g, x, {.kernel = 2, .padding = 2}));
  CHECK_REFUSES("does not fit", op::avg_pool2d(g, x, {.kernel = 5}));
  CHECK_REFUSES("dimension 4 does not exist in a tensor of rank 4; give one from -4 to 3",
                op::softmax(g, x, {.axis = 4}));
  CHECK_REFUSES("must be 6", op::layer_norm(g, x, short_one, short_one));
  CHECK_REFUSES("must be 4", op::batch_norm(g, x, {short_one, short_one, short_one, short_one}, {.axis = 1}));
  CHECK_REFUSES("given twice", op::sum(g, x, {1, -3}));
  CHECK_REFUSES("give it rank 4, [n, c, h, w]", op::global_avg_pool2d(g, short_one, Layout::ChannelsFirst));
}

TEST_CASE("padding of whole numbers is the least there is, not an infinity that they lack") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 2, 2, 1}, ScalarType::Int8);
  op::max_pool2d(g, x, {.kernel = 2, .stride = 2, .padding = 1});
  CHECK(g.op(1).body->args[2]->value == -128);
  CHECK(g.op(1).body->args[2]->type == ScalarType::Int8);

  ComputeGraph truth;
  op::max_pool2d(truth, truth.input("x", {1, 2, 2, 1}, ScalarType::Bool), {.kernel = 2, .stride = 2, .padding = 1});
  CHECK(truth.op(1).body->args[2]->value == 0);
  ComputeGraph real;
  op::max_pool2d(real, real.input("x", {1, 2, 2, 1}), {.kernel = 2, .stride = 2, .padding = 1});
  CHECK(real.op(1).body->args[2]->value == static_cast<double>(-INFINITY));
}

TEST_CASE("formulas with fractions are refused among whole numbers, which would lose them") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 4, 4, 6}, ScalarType::Int8);
  const Tensor p = g.constant("p", {6});
  CHECK_REFUSES("the input holds int8", op::avg_pool2d(g, x));
  CHECK_REFUSES("cast it to float32 first", op::global_avg_pool2d(g, x));
  CHECK_REFUSES("the input holds int8", op::mean(g, x));
  CHECK_REFUSES("the input holds int8", op::norm(g, x));
  CHECK_REFUSES("the input holds int8", op::softmax(g, x));
  CHECK_REFUSES("the input holds int8", op::layer_norm(g, x, p, p));
  CHECK_REFUSES("the input holds int8", op::batch_norm(g, x, {p, p, p, p}));
  CHECK(g.size() == 2);  // nothing was added on the way
}
