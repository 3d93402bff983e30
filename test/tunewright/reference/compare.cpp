// SPDX-License-Identifier: Apache-2.0
#include "tunewright/reference/compare.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/reference/evaluate_at.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/reference/xtensor.hpp"

using namespace tunewright;
using namespace tunewright::program;
namespace op = tunewright::program::operators;
using reference::Array;
using reference::compare;
using reference::Comparison;
using reference::random_inputs;
using reference::sample_points;
using reference::Tensors;

namespace {
Array array(const std::vector<double>& values) {
  Array a(ScalarType::Float32, {2, static_cast<std::int64_t>(values.size() / 2)});
  for (std::size_t e = 0; e < values.size(); ++e) a.set(e, values[e]);
  return a;
}
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("the worst element is reported with its place and both values") {
  const Comparison c =
      compare(array({1, 2, 3, 4, 7, 6}), array({1, 2, 3.5, 4, 5, 6}), {.absolute = 0.1, .relative = 0});
  CHECK_FALSE(c.passed);
  CHECK(c.mismatches == 2);
  CHECK(c.worst == doctest::Approx(20));
  CHECK(c.worst_index() == std::vector<std::int64_t>{1, 1});
  CHECK(c.actual == 7);
  CHECK(c.expected == 5);
  CHECK(c.text() == "2 elements differ, worst [1, 1]: got 7, expected 5");
}

TEST_CASE("numbers of the report tell apart what differs, and are no longer than that") {
  CHECK(compare(array({0.1, 1}), array({0.25, 1})).text() == "1 elements differ, worst [0, 0]: got 0.1, expected 0.25");
  Array precise(ScalarType::Float64, {1}), other = precise;
  precise.set(0, 1);
  other.set(0, 1 - 0x1p-40);
  CHECK(compare(other, precise, {0, 0}).text() == "1 elements differ, worst [0]: got 0.9999999999990905, expected 1");
}

TEST_CASE("absolute and relative tolerance add up") {
  const Array expected = array({100, 100});
  CHECK(compare(array({101, 100}), expected, {.absolute = 0.1, .relative = 0.01}).passed);
  CHECK_FALSE(compare(array({101.2, 100}), expected, {.absolute = 0.1, .relative = 0.01}).passed);
  CHECK(compare(expected, expected, {0, 0}).passed);
  CHECK_FALSE(compare(array({100, 101}), expected, {0, 0}).passed);
}

TEST_CASE("NaN equals NaN only, and an infinity itself only") {
  CHECK(compare(array({not_a_number, infinite}), array({not_a_number, infinite})).passed);
  CHECK(compare(array({not_a_number, 1}), array({1, 1})).mismatches == 1);
  CHECK(compare(array({1, 1}), array({not_a_number, 1})).mismatches == 1);
  CHECK(compare(array({1, -infinite}), array({1, infinite})).mismatches == 1);
  CHECK(compare(array({1e30, 1}), array({infinite, 1})).mismatches == 1);
  CHECK(compare(array({infinite, 1}), array({1e30, 1})).mismatches == 1);
}

TEST_CASE("sampled comparison reports the place in the whole tensor") {
  const std::vector<std::int64_t> points{0, 5};
  const std::vector<double> expected{1, 9};
  const Comparison c = compare_at(array({1, 2, 3, 4, 5, 6}), points, expected);
  CHECK(c.mismatches == 1);
  CHECK(c.worst_index() == std::vector<std::int64_t>{1, 2});
  const std::vector<double> one{1};
  CHECK_THROWS_AS((void)compare_at(array({1, 2}), points, one), std::invalid_argument);
}

TEST_CASE("different shapes are refused") {
  CHECK_THROWS_WITH_AS((void)compare(array({1, 2}), array({1, 2, 3, 4})),
                       "arrays of 2 and 4 elements were compared; give both the same shape", std::invalid_argument);
}

TEST_CASE(
    "tolerances grow with the length of the sums behind a tensor, and pass float32 arithmetic in another "
    "order") {
  const auto graph = op::matmul_graph({.m = 8, .n = 8, .k = 1000});
  const reference::Tolerance tolerance = reference::tolerance_for(*graph, 2);
  CHECK(tolerance.absolute == doctest::Approx(1.19209e-7 * (32 + 4000)));
  Tensors tensors = reference::evaluate(*graph, random_inputs(*graph, Rng(1)));
  const auto a = reference::to_xtensor<float>(tensors[0]);
  const auto b = reference::to_xtensor<float>(tensors[1]);
  Array single(ScalarType::Float32, {8, 8});
  Array incomplete(ScalarType::Float32, {8, 8});
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      float sum = 0;
      for (std::size_t k = 1000; k-- > 0;) sum += a(i, k) * b(k, j);
      single.set(i * 8 + j, static_cast<double>(sum));
      incomplete.set(i * 8 + j, static_cast<double>(sum - a(i, 999) * b(999, j)));
    }
  }
  const Comparison c = compare(single, tensors[2], tolerance);
  CHECK(c.passed);
  CHECK(c.worst < 0.2);
  CHECK(compare(incomplete, tensors[2], tolerance).mismatches > 50);
  ComputeGraph integers;
  op::sum(integers, integers.input("x", {5}, ScalarType::Int32));
  CHECK(reference::tolerance_for(integers, 1).absolute == 0);
}

TEST_CASE("tolerances of 16-bit types count the roundings to them alone") {
  const auto bound = [](const ComputeGraph& graph, TensorId id) {
    return reference::tolerance_for(graph, id).absolute;
  };
  const double single = 1.19209e-7 * (32 + 4 * 100);
  // Inputs are what they are, and their products are summed in float32.
  const auto wide = op::matmul_graph({.m = 2, .n = 2, .k = 100, .type = ScalarType::Float16});
  CHECK(bound(*wide, 2) == doctest::Approx(single));
  // Rounded at each of 100 steps, and once for the product.
  const auto narrow =
      op::matmul_graph({.m = 2, .n = 2, .k = 100, .type = ScalarType::Float16, .accumulator = ScalarType::Float16});
  CHECK(bound(*narrow, 2) == doctest::Approx(0x1p-10 * 4 * 102).epsilon(1e-3));
  // A result rounded to bfloat16, summed again in float32.
  ComputeGraph chain;
  const Tensor a = chain.input("a", {4, 25}, ScalarType::BFloat16);
  const Tensor b = chain.input("b", {25, 16}, ScalarType::BFloat16);
  const Tensor c = chain.input("c", {16, 2}, ScalarType::BFloat16);
  const Tensor rounded = op::cast(chain, op::matmul(chain, a, b), ScalarType::BFloat16);
  CHECK(bound(chain, rounded.id) == doctest::Approx(0x1p-7 * 4 * 2).epsilon(0.01));
  const Tensor result = op::matmul(chain, rounded, c);
  CHECK(bound(chain, result.id) == doctest::Approx(0x1p-7 * 4 * 2 * 4).epsilon(0.01));
  // Picking values is exact.
  ComputeGraph picked;
  CHECK(bound(picked, op::relu(picked, picked.input("x", {4}, ScalarType::Float16)).id) == 0);
}

TEST_CASE("bytes take all their values, 16-bit inputs hold numbers of their type") {
  ComputeGraph graph;
  graph.input("s", {64, 64}, ScalarType::Int8);
  graph.input("u", {64, 64}, ScalarType::UInt8);
  graph.input("b", {64, 64}, ScalarType::BFloat16);
  const Tensors inputs = random_inputs(graph, Rng(3));
  const auto range = [&](TensorId id) {
    std::pair<double, double> ends{inputs[id].get(0), inputs[id].get(0)};
    for (std::size_t e = 0; e < inputs[id].size(); ++e)
      ends = {std::min(ends.first, inputs[id].get(e)), std::max(ends.second, inputs[id].get(e))};
    return ends;
  };
  CHECK(range(0) == std::pair{-128.0, 127.0});
  CHECK(range(1) == std::pair{0.0, 255.0});
  CHECK(range(2).first >= -1);
  CHECK(range(2).second <= 1);
}

TEST_CASE("inputs are a function of graph and seed, in range, with exact values among them") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {64, 64});
  graph.input("y", {64, 64});
  graph.input("n", {100}, ScalarType::Int32);
  op::relu(graph, x);
  const Tensors one = random_inputs(graph, Rng(7));
  CHECK(one == random_inputs(graph, Rng(7)));
  CHECK_FALSE(one[0] == random_inputs(graph, Rng(8))[0]);
  CHECK_FALSE(one[0] == one[1]);
  const auto values = one[0].elements<float>();
  CHECK(*std::min_element(values.begin(), values.end()) >= -1);
  CHECK(*std::max_element(values.begin(), values.end()) <= 1);
  const auto exact =
      std::count_if(values.begin(), values.end(), [](float v) { return v == 0 || v == 1 || v == -1 || v == 0.5F; });
  CHECK(exact > 4096 / 32);
  CHECK(exact < 4096 / 8);
  const auto integers = one[2].elements<std::int32_t>();
  CHECK(*std::min_element(integers.begin(), integers.end()) == -8);
  CHECK(*std::max_element(integers.begin(), integers.end()) == 8);
}

TEST_CASE("variances and denominators are positive") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {8});
  const Tensor p = graph.constant("p", {8});
  const Tensor variance = graph.constant("variance", {8});
  const Tensor d = graph.input("d", {8});
  op::divide(graph, op::batch_norm(graph, x, {p, p, p, variance}), d);
  const Tensors inputs = random_inputs(graph, Rng(1));
  for (const Tensor& t : {variance, d}) {
    const auto values = inputs[t.id].elements<float>();
    CHECK(*std::min_element(values.begin(), values.end()) >= 0.5F);
    CHECK(*std::max_element(values.begin(), values.end()) <= 2);
  }
  const auto free = inputs[x.id].elements<float>();
  CHECK(*std::min_element(free.begin(), free.end()) < 0);
}

TEST_CASE("samples are sorted, distinct, and hold all corners; small tensors are taken whole") {
  const std::vector<std::int64_t> points = sample_points({100, 70, 30}, 500, Rng(1));
  CHECK(points.size() > 300);
  CHECK(points.size() <= 500);
  CHECK(std::is_sorted(points.begin(), points.end()));
  CHECK(std::adjacent_find(points.begin(), points.end()) == points.end());
  for (const std::int64_t i : {0, 99}) {
    for (const std::int64_t j : {0, 69}) {
      for (const std::int64_t k : {0, 29}) {
        CHECK(std::binary_search(points.begin(), points.end(), (i * 70 + j) * 30 + k));
      }
    }
  }
  CHECK(points == sample_points({100, 70, 30}, 500, Rng(1)));
  CHECK(sample_points({3, 4}, 12, Rng(1)).size() == 12);
  CHECK(sample_points({}, 4, Rng(1)) == std::vector<std::int64_t>{0});
  CHECK(sample_points({1000000}, 100, Rng(1)).back() == 999999);
}
