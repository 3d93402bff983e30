// SPDX-License-Identifier: Apache-2.0
#include "tunewright/reference/evaluate.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/reference/evaluate_at.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/reference/xtensor.hpp"

using namespace tunewright;
using namespace tunewright::program;
namespace op = tunewright::program::operators;
using reference::Array;
using reference::evaluate;
using reference::evaluate_at;
using reference::random_inputs;
using reference::sample_points;
using reference::Tensors;
using reference::to_xtensor;

namespace {

const IndexExpr i = IndexExpr::variable(0);

/// Evaluates `body` of x[i] for each value.
std::vector<double> mapped(const std::vector<double>& x, ScalarType type, const auto& body) {
  ComputeGraph graph;
  const Tensor t = graph.input("x", {static_cast<std::int64_t>(x.size())}, type);
  graph.compute("y", {{"i", t.shape[0]}}, [&](auto axis) { return body(t(axis[0])); });
  Tensors tensors{Array(type, t.shape), Array()};
  for (std::size_t e = 0; e < x.size(); ++e) tensors[0].set(e, x[e]);
  const Array y = evaluate(graph, std::move(tensors))[1];
  std::vector<double> values;
  for (std::size_t e = 0; e < y.size(); ++e) values.push_back(y.get(e));
  return values;
}

}  // namespace

TEST_CASE("arrays convert on the way in and know their type") {
  Array a(ScalarType::Int32, {2, 3});
  CHECK(a.size() == 6);
  CHECK(a.size_in_bytes() == 24);
  CHECK(a.type() == ScalarType::Int32);
  a.set(5, -2.75);
  CHECK(a.get(5) == -2);
  CHECK(a.elements<std::int32_t>()[5] == -2);
  CHECK(static_cast<const std::int32_t*>(a.data())[5] == -2);
  CHECK(a == a);
  CHECK_FALSE(a == Array(ScalarType::Int32, {2, 3}));
  CHECK_THROWS_WITH_AS((void)a.elements<float>(), "an array of int32 was asked for as another type; use its own",
                       std::invalid_argument);
  Array half(ScalarType::Float16, {2});
  half.set(1, 0.1);
  CHECK(half.size_in_bytes() == 4);
  CHECK(half.get(1) == 0x1.998p-4);
  CHECK(half.elements<Half>()[1].bits == 0x2e66);
  Array byte(ScalarType::UInt8, {2});
  byte.set(0, -1);
  CHECK(byte.type() == ScalarType::UInt8);
  CHECK(byte.elements<std::uint8_t>()[0] == 255);
  CHECK_FALSE(byte == Array(ScalarType::Bool, {2}));
}

TEST_CASE("each scalar operation") {
  const auto f32 = ScalarType::Float32;
  using Values = std::vector<double>;
  CHECK(mapped({-2, 3}, f32, [](Expr x) { return -x; }) == Values{2, -3});
  CHECK(mapped({-2, 3}, f32, [](Expr x) { return abs(x); }) == Values{2, 3});
  CHECK(mapped({0}, f32, [](Expr x) { return exp(x); }) == Values{1});
  CHECK(mapped({1}, f32, [](Expr x) { return log(x); }) == Values{0});
  CHECK(mapped({9}, f32, [](Expr x) { return sqrt(x); }) == Values{3});
  CHECK(mapped({0}, f32, [](Expr x) { return tanh(x); }) == Values{0});
  CHECK(mapped({0}, f32, [](Expr x) { return erf(x); }) == Values{0});
  CHECK(mapped({5}, f32, [](Expr x) { return x - 2 + x * 3 - x / 4; }) == Values{16.75});
  CHECK(mapped({-2, 3}, f32, [](Expr x) { return min(x, 1.0) + max(x, 1.0); }) == Values{-1, 4});
  // Where one is NaN, the second counts.
  CHECK(mapped({-4, 9}, f32, [](Expr x) { return max(sqrt(x), 1.0) + min(sqrt(x), 2.0); }) == Values{3, 5});
  CHECK(std::isnan(mapped({-4}, f32, [](Expr x) { return max(Expr(1.0), sqrt(x)); }).at(0)));
  CHECK(std::isnan(mapped({-4}, f32, [](Expr x) { return min(Expr(1.0), sqrt(x)); }).at(0)));
  CHECK(mapped({-7, 7}, ScalarType::Int32, [](Expr x) { return x / 2; }) == Values{-3, 3});
  CHECK(mapped({-1.5, 1.5}, f32, [](Expr x) { return cast(x, ScalarType::Int64); }) == Values{-1, 1});
  const auto truth = [](Expr condition) { return select(std::move(condition), 1.0, 0.0); };
  CHECK(mapped({1, 2, 3}, f32, [&](Expr x) { return truth(x < 2.0); }) == Values{1, 0, 0});
  CHECK(mapped({1, 2, 3}, f32, [&](Expr x) { return truth(x <= 2.0); }) == Values{1, 1, 0});
  CHECK(mapped({1, 2, 3}, f32, [&](Expr x) { return truth(equal(x, 2.0)); }) == Values{0, 1, 0});
  CHECK(mapped({1, 2, 3}, f32, [&](Expr x) { return truth(x > 1.0 && x < 3.0); }) == Values{0, 1, 0});
  CHECK(mapped({1, 2, 3}, f32, [&](Expr x) { return truth(x < 2.0 || x > 2.0); }) == Values{1, 0, 1});
  CHECK(mapped({1, 2, 3}, f32, [&](Expr x) { return truth(logical_not(x < 2.0)); }) == Values{0, 1, 1});
  CHECK(mapped({0, 1}, ScalarType::Bool, [](Expr x) { return x; }) == Values{0, 1});
}

TEST_CASE("operations of narrow types are rounded, or wrap around, one by one") {
  using Values = std::vector<double>;
  // 2048 + 1 is a tie that goes to 2048, which 1 then leaves: in float32 the result would be 1 + 2048 - 2048 = 1.
  CHECK(mapped({1, 3}, ScalarType::Float16, [](Expr x) { return x + 2048.0 - 2048.0; }) == Values{0, 4});
  CHECK(mapped({1, 3}, ScalarType::BFloat16, [](Expr x) { return x + 256.0 - 256.0; }) == Values{0, 4});
  CHECK(mapped({300}, ScalarType::Float16, [](Expr x) { return x * x; }) ==
        Values{std::numeric_limits<double>::infinity()});
  CHECK(mapped({100, -100}, ScalarType::Int8, [](Expr x) { return x + x; }) == Values{-56, 56});
  CHECK(mapped({200, 255}, ScalarType::UInt8, [](Expr x) { return x + 100; }) == Values{44, 99});
  CHECK(mapped({-128}, ScalarType::Int8, [](Expr x) { return -x; }) == Values{-128});
  CHECK(mapped({-128}, ScalarType::Int8, [](Expr x) { return x / -1; }) == Values{-128});
  CHECK(mapped({65536}, ScalarType::Int32, [](Expr x) { return x * x; }) == Values{0});
  CHECK(mapped({-300, 0.9, 300}, ScalarType::Float32, [](Expr x) { return cast(x, ScalarType::Int8); }) ==
        Values{-128, 0, 127});
  // 0.1 as float16 is 1639/2^14, so ten of it are a little less than one, and the sum rounds to it.
  CHECK(mapped({10}, ScalarType::Float16, [](Expr x) { return x * 0.1; }) == Values{1});
}

TEST_CASE("functions of integers are computed in float64 and converted like casts") {
  using Values = std::vector<double>;
  CHECK(mapped({1, 6, -6}, ScalarType::Int8, [](Expr x) { return exp(x); }) == Values{2, 127, 0});
  CHECK(mapped({0, 1}, ScalarType::UInt8, [](Expr x) { return log(x); }) == Values{0, 0});
  CHECK(mapped({30}, ScalarType::Int32, [](Expr x) { return exp(x); }) == Values{2147483647});
  CHECK(mapped({-1, 8}, ScalarType::Int32, [](Expr x) { return sqrt(x); }) == Values{0, 2});
  CHECK(mapped({0}, ScalarType::Int32, [](Expr x) { return log(x); }) == Values{-0x1p31});
  CHECK(mapped({1}, ScalarType::Int64, [](Expr x) { return exp(x) * 2; }) == Values{4});
  CHECK(mapped({-1, 40}, ScalarType::Int64, [](Expr x) { return tanh(x) + erf(x) * 2; }) == Values{0, 3});
}

TEST_CASE("results of Booleans are true unless they are zero, as in the interpreter") {
  const auto graph = std::make_shared<ComputeGraph>();
  const Tensor x = graph->input("x", {2, 256}, ScalarType::Bool);
  const auto number = [](Expr truth) { return cast(std::move(truth), ScalarType::Int32); };
  const std::vector<Axis> four{{"i", 2}, {"k", 2}};
  const Tensor any =
      graph->reduce("any", {{"i", 2}}, {{"k", 256}}, Combiner::Sum, [&](auto a, auto k) { return x(a[0], k[0]); });
  const Tensor in_rows =
      graph->reduce("in_rows", {{"k", 256}}, {{"i", 2}}, Combiner::Sum, [&](auto k, auto a) { return x(a[0], k[0]); });
  graph->compute("any_number", {{"i", 2}}, [&](auto a) { return number(any(a[0])); });
  graph->compute("row_number", {{"k", 256}}, [&](auto k) { return number(in_rows(k[0])); });
  graph->compute("twice", four, [&](auto a) { return number(x(a[0], a[1]) + x(a[0], a[1])); });
  graph->compute("less", four, [&](auto a) { return number(x(a[0], a[1]) + x(a[0], a[1]) - x(a[0], a[1])); });
  graph->compute("negative", four, [&](auto a) { return number(-x(a[0], a[1])); });
  graph->compute("differ", four, [&](auto a) { return number(x(a[0], a[1]) - x(a[0], a[1] + 1)); });
  graph->compute("both", four, [&](auto a) { return number(x(a[0], a[1]) * x(a[0], a[1] + 1)); });
  Tensors inputs(graph->size());
  inputs[x.id] = Array(ScalarType::Bool, x.shape);
  for (std::size_t e = 0; e < 512; ++e) inputs[x.id].set(e, e < 256 || e % 2 == 1 ? 1 : 0);  // all, and 0 1 0 1 ..

  const auto values_of = [](const Array& array) {
    std::vector<double> values;
    for (std::size_t e = 0; e < array.size(); ++e) values.push_back(array.get(e));
    return values;
  };
  const std::vector<std::vector<double>> expected{{1, 1},  // any_number: of 256 and of 128 that are true
                                                  std::vector<double>(256, 1),  // row_number: of two or of one
                                                  {1, 1, 0, 1},                 // twice
                                                  {0, 0, 0, 0},                 // less: 1 + 1 is 1
                                                  {1, 1, 0, 1},                 // negative
                                                  {0, 0, 1, 1},                 // differ: 1 - 1, 0 - 1 and 1 - 0
                                                  {1, 1, 0, 0}};                // both
  const Tensors all = evaluate(*graph, inputs);
  CHECK(values_of(all[any.id]) == std::vector<double>{1, 1});
  CHECK(evaluate_at(*graph, inputs, any.id + 2, std::vector<std::int64_t>{0}) == std::vector<double>{1});
  const loops::LoopNest nest = loops::lower(schedule::Schedule{graph, {}});
  std::vector<std::vector<double>> arguments;
  for (const loops::BufferId id : nest.arguments) {
    const loops::Buffer& buffer = nest.buffers[id];
    arguments.push_back(buffer.role == loops::BufferRole::Output
                            ? std::vector<double>(static_cast<std::size_t>(buffer.elements()))
                            : values_of(inputs[buffer.tensor]));
  }
  loops::interpret(nest, arguments);
  std::size_t outputs = 0;
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const loops::Buffer& buffer = nest.buffers[nest.arguments[a]];
    if (buffer.role != loops::BufferRole::Output) continue;
    ++outputs;
    CAPTURE(buffer.name);
    CHECK(values_of(all[buffer.tensor]) == expected.at(buffer.tensor - in_rows.id - 1));
    CHECK(arguments[a] == expected.at(buffer.tensor - in_rows.id - 1));
  }
  CHECK(outputs == expected.size());
}

TEST_CASE("products of bytes are summed in int32, those of 16-bit numbers in float32") {
  const auto evaluated = [](const auto& graph, const std::vector<double>& a, const std::vector<double>& b) {
    Tensors tensors(3);
    for (TensorId id = 0; id < 2; ++id) {
      tensors[id] = Array(graph->op(id).type, graph->op(id).shape());
      for (std::size_t e = 0; e < tensors[id].size(); ++e) tensors[id].set(e, (id == 0 ? a : b)[e]);
    }
    return evaluate(*graph, std::move(tensors))[2];
  };
  const auto bytes = op::matmul_graph({.m = 1, .n = 1, .k = 2, .type = ScalarType::UInt8, .type_b = ScalarType::Int8});
  const Array sum = evaluated(bytes, {255, 255}, {-128, -128});
  CHECK(sum.type() == ScalarType::Int32);
  CHECK(sum.get(0) == -65280);
  const auto halves = op::matmul_graph({.m = 1, .n = 1, .k = 2, .type = ScalarType::Float16});
  CHECK(evaluated(halves, {1, 2048}, {1, 1}).get(0) == 2049);
  const auto narrow =
      op::matmul_graph({.m = 1, .n = 1, .k = 2, .type = ScalarType::Float16, .accumulator = ScalarType::Float16});
  CHECK(evaluated(narrow, {1, 2048}, {1, 1}).get(0) == 2048);
}

TEST_CASE("float32 sums are accumulated in double and rounded once") {
  // 1 + 4096 * 2^-24 is lost term by term in float32.
  const std::int64_t n = 4097;
  ComputeGraph graph;
  op::sum(graph, graph.input("x", {n}));
  Tensors tensors{Array(ScalarType::Float32, {n}), Array()};
  for (std::size_t e = 0; e < 4097; ++e) tensors[0].set(e, e == 0 ? 1.0 : 0x1.0p-24);
  CHECK(evaluate(graph, std::move(tensors))[1].get(0) == 1.0 + 4096 * 0x1.0p-24);
}

TEST_CASE("combiners, with the longest axis in any place") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {2, 3, 2});
  for (const Combiner combiner : {Combiner::Sum, Combiner::Product, Combiner::Max, Combiner::Min}) {
    graph.reduce("r", {{"j", 3}}, {{"i", 2}, {"k", 2}}, combiner, [&](auto s, auto r) { return x(r[0], s[0], r[1]); });
  }
  Tensors tensors(5);
  tensors[0] = Array(ScalarType::Float32, {2, 3, 2});
  for (std::size_t e = 0; e < 12; ++e) tensors[0].set(e, static_cast<double>(e) - 1);
  tensors = evaluate(graph, std::move(tensors));
  // j = 0 sees -1, 0, 5, 6; j = 1 sees 1, 2, 7, 8; j = 2 sees 3, 4, 9, 10.
  CHECK(to_xtensor<float>(tensors[1]) == xt::xarray<float>({10, 18, 26}));
  CHECK(to_xtensor<float>(tensors[2]) == xt::xarray<float>({0, 112, 1080}));
  CHECK(to_xtensor<float>(tensors[3]) == xt::xarray<float>({6, 8, 10}));
  CHECK(to_xtensor<float>(tensors[4]) == xt::xarray<float>({-1, 1, 3}));
}

TEST_CASE("the branch of a select that is not taken is not read, nested ones included") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4});
  const Tensor y = graph.compute("y", {{"i", 12}}, [&](auto a) {
    const Expr v = index_value(a[0]);
    return select(v < 4, x(a[0]), select(v < 8, x(a[0] - 4) * 10, x(a[0] - 8) * 100));
  });
  Tensors tensors{Array(ScalarType::Float32, {4}), Array()};
  for (std::size_t e = 0; e < 4; ++e) tensors[0].set(e, static_cast<double>(e) + 1);
  const Tensors all = evaluate(graph, tensors);
  CHECK(to_xtensor<float>(all[y.id]) == xt::xarray<float>({1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400}));
}

TEST_CASE("quotients and remainders in accesses, on rows longer than a block") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {700});
  const auto range_of = [](Var) { return Range{0, 699}; };
  graph.compute("y", {{"i", 700}}, [&](auto a) {
    return x(IndexExpr::remainder(a[0], 7, range_of) * 100 + IndexExpr::quotient(a[0], 7, range_of));
  });
  Tensors tensors{Array(ScalarType::Float32, {700}), Array()};
  for (std::size_t e = 0; e < 700; ++e) tensors[0].set(e, static_cast<double>(e));
  const Array y = evaluate(graph, std::move(tensors))[1];
  bool right = true;
  for (std::size_t e = 0; e < 700; ++e) right = right && y.get(e) == static_cast<double>(e % 7 * 100 + e / 7);
  CHECK(right);
}

TEST_CASE("double and float32 tensors mix by casting") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {1});
  const Tensor y = graph.input("y", {1}, ScalarType::Float64);
  const Tensor z = op::add(graph, x, y);
  CHECK(z.type == ScalarType::Float64);
  Tensors tensors{Array(ScalarType::Float32, {1}), Array(ScalarType::Float64, {1}), Array()};
  tensors[0].set(0, 0.1);
  tensors[1].set(0, 0.1);
  CHECK(evaluate(graph, std::move(tensors))[2].get(0) == static_cast<double>(0.1F) + 0.1);
}

TEST_CASE("the number of threads does not change the result") {
  ComputeGraph graph;
  const Tensor a = graph.input("a", {37, 53});
  op::softmax(graph, op::matmul(graph, a, a, {.transpose_b = true}));
  const Tensors inputs = random_inputs(graph, Rng(3));
  const Tensors one = evaluate(graph, inputs, {.threads = 1});
  const Tensors three = evaluate(graph, inputs, {.threads = 3});
  CHECK(one == three);
}

TEST_CASE("inputs that do not belong to the graph are refused") {
  ComputeGraph graph;
  op::relu(graph, graph.input("x", {2, 3}));
  CHECK_THROWS_WITH_AS((void)evaluate(graph, Tensors(1)),
                       "1 arrays were given for a graph of 2 tensors; give one a tensor, as random_inputs does",
                       std::invalid_argument);
  CHECK_THROWS_AS((void)evaluate(graph, {Array(ScalarType::Float32, {3, 2}), Array()}), std::invalid_argument);
  CHECK_THROWS_AS((void)evaluate(graph, {Array(ScalarType::Float64, {2, 3}), Array()}), std::invalid_argument);
  const std::vector<std::int64_t> outside{6};
  const Tensors inputs = random_inputs(graph, Rng(1));
  CHECK_THROWS_WITH_AS((void)evaluate_at(graph, inputs, 1, outside),
                       "element 6 was asked for of tensor 1, which has 6; give row-major numbers",
                       std::invalid_argument);
  CHECK_THROWS_AS((void)evaluate_at(graph, inputs, 2, {}), std::invalid_argument);
}

TEST_CASE("sampled elements equal those of a whole evaluation, through chains of reductions") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {40, 30});
  const Tensor w = graph.constant("w", {30, 50});
  const Tensor padded = op::pad(graph, x, {.before = {1, 0}, .after = {1, 0}});
  const Tensor product = op::matmul(graph, padded, w);
  const Tensor soft = op::softmax(graph, product, {.axis = 0});
  const Tensor shifted = graph.compute("shifted", {{"i", 42}, {"j", 50}}, [&](auto a) {
    return select(index_value(a[0]) < 41, soft(a[0] + 1, a[1]), soft(0, a[1]));
  });
  const Tensor squared = op::matmul(graph, shifted, shifted, {.transpose_b = true});
  op::relu(graph, squared);
  const Tensors inputs = random_inputs(graph, Rng(5));
  const Tensors all = evaluate(graph, inputs);
  for (const Tensor& t : {product, soft, shifted, squared}) {
    for (const std::size_t count : {3U, 40U, 1000U, 5000U}) {
      const std::vector<std::int64_t> points = sample_points(t.shape, count, Rng(count));
      const std::vector<double> values = evaluate_at(graph, inputs, t.id, points, {.threads = 2});
      bool equal = values.size() == points.size();
      for (std::size_t p = 0; p < points.size(); ++p) {
        const double whole = all[t.id].get(static_cast<std::size_t>(points[p]));
        equal = equal && std::abs(values[p] - whole) <= 1e-6 * std::abs(whole);
      }
      CAPTURE(t.id);
      CAPTURE(count);
      CHECK(equal);
    }
  }
  CHECK(evaluate_at(graph, inputs, x.id, std::vector<std::int64_t>{7})[0] == inputs[0].get(7));
}

TEST_CASE("sampled elements read along an axis that only tells whether they read at all") {
  // sums[p, q] = 16 p + q; of the four terms of y[i], only that of the row p = i div 16 is inside, at 16 p + (i - 16 p).
  ComputeGraph graph;
  const Tensor a = graph.input("a", {4, 16, 3});
  const Tensor sums = graph.reduce("sums", {{"p", 4}, {"q", 16}}, {{"r", 3}}, Combiner::Sum,
                                   [&](auto s, auto r) { return a(s[0], s[1], r[0]); });
  const Tensor y = graph.reduce("y", {{"i", 64}}, {{"k", 4}}, Combiner::Sum, [&](auto s, auto k) {
    const IndexExpr column = s[0] - 16 * k[0];
    return select(in_bounds(column, 16), sums(k[0], column), 0.0);
  });
  Tensors inputs(graph.size());
  inputs[a.id] = Array(ScalarType::Float32, a.shape);
  for (std::size_t e = 0; e < 64; ++e) inputs[a.id].set(3 * e + e % 3, static_cast<double>(e));
  const Tensors all = evaluate(graph, inputs);
  for (std::int64_t point = 0; point < 64; ++point) {
    CAPTURE(point);
    CHECK(all[y.id].get(static_cast<std::size_t>(point)) == static_cast<double>(point));
    CHECK(evaluate_at(graph, inputs, y.id, std::vector{point}) == std::vector{static_cast<double>(point)});
  }
  CHECK(evaluate_at(graph, inputs, y.id, std::vector<std::int64_t>{3, 20, 40}) == std::vector<double>{3, 20, 40});
}

TEST_CASE("a few dot products of a large matrix product cost only themselves") {
  // All of it would be 8.6e9 multiplications.
  const auto graph = op::matmul_graph({.m = 2048, .n = 2048, .k = 2048});
  Tensors inputs = random_inputs(*graph, Rng(1));
  const std::vector<std::int64_t> points{0, 2048 * 2048 - 1};
  const std::vector<double> values = evaluate_at(*graph, inputs, 2, points);
  double corner = 0;
  for (std::size_t k = 0; k < 2048; ++k) corner += inputs[0].get(2047 * 2048 + k) * inputs[1].get(k * 2048 + 2047);
  CHECK(values[1] == doctest::Approx(corner));
}
