// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/operators/elementwise.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "../../../support/evaluated.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/print.hpp"

using namespace tunewright::program;
namespace op = tunewright::program::operators;
using tunewright::test::evaluated;
using Values = std::vector<float>;

namespace {
template <class F>
Values mapped(const Values& x, const F& f) {
  ComputeGraph g;
  f(g, g.input("x", {static_cast<std::int64_t>(x.size())}));
  return evaluated(g, {x});
}
template <class F>
double mapped(double x, const F& f) {
  return double{mapped(Values{static_cast<float>(x)}, f)[0]};
}
}  // namespace

TEST_CASE("dimensions of one element are read like others, so that what follows can be fused") {
  ComputeGraph g;
  const Tensor a = g.input("a", {1, 3});
  const Tensor b = op::add(g, a, g.input("b", {1, 3}));
  CHECK(reads_elementwise(g.op(b.id), g.op(a.id), a.id));
  const Tensor c = op::add(g, a, g.input("c", {2, 3}));
  CHECK_FALSE(reads_elementwise(g.op(c.id), g.op(a.id), a.id));
}

TEST_CASE("activation functions at known points") {
  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) at 1: tanh(0.797885 * 1.044715) = tanh(0.833562) = 0.682384
  CHECK(mapped(1, [](auto& g, auto t) { op::gelu_tanh(g, t); }) == doctest::Approx(0.841192).epsilon(1e-5));
  CHECK(mapped({-2, 0, 3}, [](auto& g, auto t) { op::relu(g, t); }) == Values{0, 0, 3});
  CHECK(mapped({-2, 5, 9}, [](auto& g, auto t) { op::clip(g, t, 0, 6); }) == Values{0, 5, 6});
  CHECK(mapped({-2, 5}, [](auto& g, auto t) { op::scale(g, t, 0.5); }) == Values{-1, 2.5F});
  CHECK(mapped(0, [](auto& g, auto t) { op::sigmoid(g, t); }) == 0.5);
  CHECK(mapped(std::log(3.0), [](auto& g, auto t) { op::sigmoid(g, t); }) == doctest::Approx(0.75));
  CHECK(mapped(std::log(3.0), [](auto& g, auto t) { op::silu(g, t); }) == doctest::Approx(0.75 * std::log(3.0)));
  CHECK(mapped(0.5, [](auto& g, auto t) { op::tanh(g, t); }) == doctest::Approx(0.46211716));
  CHECK(mapped(1, [](auto& g, auto t) { op::exp(g, t); }) == doctest::Approx(2.71828183));
  CHECK(mapped(9, [](auto& g, auto t) { op::sqrt(g, t); }) == 3);
  // The normal distribution function at 1 is 0.841344746.
  CHECK(mapped(1, [](auto& g, auto t) { op::gelu(g, t); }) == doctest::Approx(0.841344746));
  CHECK(mapped(-1, [](auto& g, auto t) { op::gelu(g, t); }) == doctest::Approx(0.841344746 - 1));
}

TEST_CASE("binary operators broadcast from the last dimension") {
  const auto combined = [](std::vector<std::int64_t> a, std::vector<std::int64_t> b, const Values& x, const Values& y,
                           auto f) {
    ComputeGraph g;
    const Tensor first = g.input("a", a);
    f(g, first, g.input("b", b));
    return evaluated(g, {x, y});
  };
  const auto add = [](auto& g, auto a, auto b) { op::add(g, a, b); };
  CHECK(combined({2, 2}, {2}, {1, 2, 3, 4}, {10, 20}, add) == Values{11, 22, 13, 24});
  CHECK(combined({2, 1}, {1, 3}, {1, 2}, {10, 20, 30}, add) == Values{11, 21, 31, 12, 22, 32});
  CHECK(combined({}, {2}, {5}, {1, 2}, add) == Values{6, 7});
  CHECK(combined({2}, {2}, {1, 5}, {4, 2}, [](auto& g, auto a, auto b) { op::subtract(g, a, b); }) == Values{-3, 3});
  CHECK(combined({2}, {2}, {1, 5}, {4, 2}, [](auto& g, auto a, auto b) { op::multiply(g, a, b); }) == Values{4, 10});
  CHECK(combined({2}, {2}, {1, 5}, {4, 2}, [](auto& g, auto a, auto b) { op::divide(g, a, b); }) ==
        Values{0.25F, 2.5F});
  CHECK(combined({2}, {2}, {1, 5}, {4, 2}, [](auto& g, auto a, auto b) { op::maximum(g, a, b); }) == Values{4, 5});
  CHECK(combined({2}, {2}, {1, 5}, {4, 2}, [](auto& g, auto a, auto b) { op::minimum(g, a, b); }) == Values{1, 2});
}

TEST_CASE("a bias is added along its channels") {
  ComputeGraph g;
  const Tensor x = g.input("x", {2, 2});
  op::bias_add(g, x, g.constant("b", {2}), 0);
  CHECK(evaluated(g, {{1, 2, 3, 4}, {10, 20}}) == Values{11, 12, 23, 24});
}

TEST_CASE("casts to integers drop the fraction") {
  CHECK(mapped({-1.5F, 2.75F}, [](auto& g, auto t) { op::cast(g, t, ScalarType::Int32); }) == Values{-1, 2});
}

TEST_CASE("padding surrounds and leaves alone what needs none") {
  ComputeGraph g;
  const Tensor x = g.input("x", {2, 2});
  CHECK(op::pad(g, x, {.before = {0, 0}, .after = {0, 0}}).id == x.id);
  op::pad(g, x, {.before = {1, 0}, .after = {0, 2}, .value = 7});
  CHECK(evaluated(g, {{1, 2, 3, 4}}) == Values{7, 7, 7, 7, 1, 2, 7, 7, 3, 4, 7, 7});
  // Only the sides that can be outside are asked about.
  CHECK(to_text(g, 1) == "pad[i0, i1] = 1 <= i0 and i1 <= 1 ? x[i0 - 1, i1] : 7    i0 < 3, i1 < 4");
}

TEST_CASE("transpose, reshape and concat move elements") {
  const Values six{1, 2, 3, 4, 5, 6};
  ComputeGraph t;
  op::transpose(t, t.input("x", {2, 3}));
  CHECK(evaluated(t, {six}) == Values{1, 4, 2, 5, 3, 6});
  ComputeGraph p;
  const Tensor y = op::transpose(p, p.input("x", {1, 2, 3}), {-1, 0, 1});
  CHECK(y.shape == std::vector<std::int64_t>{3, 1, 2});
  CHECK(evaluated(p, {six}) == Values{1, 4, 2, 5, 3, 6});
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{6}, {3, 2}, {1, 2, 1, 3}}) {
    ComputeGraph r;
    op::reshape(r, r.input("x", {2, 3}), shape);
    CHECK(evaluated(r, {six}) == six);
  }
  ComputeGraph c;
  op::concat(c, {c.input("a", {2, 1}), c.input("b", {2, 2}), c.input("c", {2, 1})});
  CHECK(evaluated(c, {{1, 2}, {3, 4, 5, 6}, {7, 8}}) == Values{1, 3, 4, 7, 2, 5, 6, 8});
  ComputeGraph rows;
  op::concat(rows, {rows.input("a", {1, 2}), rows.input("b", {2, 2})}, 0);
  CHECK(evaluated(rows, {{1, 2}, {3, 4, 5, 6}}) == six);
}

TEST_CASE("splitting or merging a dimension costs no division where none is needed") {
  ComputeGraph g;
  op::reshape(g, g.input("x", {4, 6}), {2, 2, 6});
  CHECK(to_text(g, 1) == "reshape[i0, i1, i2] = x[2*i0 + i1, i2]    i0 < 2, i1 < 2, i2 < 6");
}

TEST_CASE("shapes that do not fit are refused") {
  ComputeGraph g;
  const Tensor x = g.input("x", {2, 3});
  const Tensor y = g.input("y", {2, 4});
  CHECK_REFUSES("shapes [2, 3] and [2, 4] do not broadcast", op::add(g, x, y));
  CHECK_REFUSES("length of the bias is 3 but must be 2", op::bias_add(g, x, g.input("b", {3}), 0));
  CHECK_REFUSES("bounds 1e-09 and 0 are in the wrong order", op::clip(g, x, 1e-9, 0));
  CHECK_REFUSES("padding after dimension 1 is -1", op::pad(g, x, {.before = {0, 0}, .after = {0, -1}}));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK_REFUSES("give at most 2147483648", op::pad(g, x, {.before = {most, 0}, .after = {most, 0}}));
  CHECK_REFUSES("1 amounts before and 2 after", op::pad(g, x, {.before = {0}, .after = {0, 0}}));
  CHECK_REFUSES("shape [2, 3] has 6 elements but [4, 2] has 8", op::reshape(g, x, {4, 2}));
  constexpr std::int64_t huge = std::int64_t{1} << 32;
  CHECK_REFUSES("give extents of at least 1 whose product is 6", op::reshape(g, x, {huge, huge, 6}));
  CHECK_REFUSES("dimension 0 is given twice", op::transpose(g, x, {0, 0}));
  CHECK_REFUSES("an order of 1 dimensions", op::transpose(g, x, {0}));
  CHECK_REFUSES("part 1 has shape [2, 4], the first one [2, 3]", op::concat(g, {x, y}, 0));
  CHECK_REFUSES("no tensors were given", op::concat(g, {}));
}

TEST_CASE("formulas and numbers with fractions are refused among whole numbers, which would lose them") {
  ComputeGraph g;
  const Tensor x = g.input("x", {2, 3}, ScalarType::Int32);
  CHECK_REFUSES("the input holds int32", op::gelu(g, x));
  CHECK_REFUSES("the input holds int32", op::gelu_tanh(g, x));
  CHECK_REFUSES("the input holds int32", op::sigmoid(g, x));
  CHECK_REFUSES("the input holds int32", op::silu(g, x));
  CHECK_REFUSES("the input holds int32", op::tanh(g, x));
  CHECK_REFUSES("the input holds int32", op::exp(g, x));
  CHECK_REFUSES("cast it to float32 first", op::sqrt(g, x));
  CHECK_REFUSES("the factor is 0.5", op::scale(g, x, 0.5));
  CHECK_REFUSES("the lower bound is 0.5", op::clip(g, x, 0.5, 6));
  CHECK_REFUSES("the upper bound is 6.5", op::clip(g, x, 0, 6.5));
  CHECK_REFUSES("the padding value is 0.5", op::pad(g, x, {.before = {1, 0}, .after = {0, 0}, .value = 0.5}));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK_REFUSES("the factor is inf", op::scale(g, x, infinity));
  CHECK(g.size() == 1);
  op::scale(g, x, 2);  // whole numbers stay what they are
  op::clip(g, x, 0, 6);
  CHECK(g.size() == 3);
}

TEST_CASE("whole numbers that a type does not hold are refused; bounds beyond its ends are the ends") {
  ComputeGraph g;
  const Tensor x = g.input("x", {2}, ScalarType::Int8);
  const Tensor u = g.input("u", {2}, ScalarType::UInt8);
  CHECK_REFUSES("the factor is 300, no int8", op::scale(g, x, 300));
  CHECK_REFUSES("the factor is -1, no uint8", op::scale(g, u, -1));
  CHECK_REFUSES("the padding value is -1, no uint8", op::pad(g, u, {.before = {1}, .after = {0}, .value = -1}));
  CHECK(g.size() == 2);
  op::scale(g, x, -128);
  op::pad(g, u, {.before = {1}, .after = {0}, .value = 255});
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(op::clip(g, x, 0, 300).type == ScalarType::Int8);
  CHECK(g.op(4).body->args[1]->value == 127);
  op::clip(g, u, -infinity, 7);
  CHECK(g.op(5).body->args[0]->args[1]->value == 0);
  op::clip(g, g.input("f", {2}), -infinity, infinity);
  CHECK(g.op(7).body->args[1]->value == infinity);  // floating point has infinities
  const auto clipped = [](double low, double high) {
    ComputeGraph one;
    op::clip(one, one.input("x", {2}, ScalarType::Int8), low, high);
    return stable_hash(one);
  };
  CHECK(clipped(-1000, 300) == clipped(-128, 127));  // one task
  CHECK(clipped(-infinity, infinity) == clipped(-128, 127));
  CHECK(clipped(-127, 127) != clipped(-128, 127));
}
