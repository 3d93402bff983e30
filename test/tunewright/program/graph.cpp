// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/graph.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/program/print.hpp"

namespace {

using namespace tunewright::program;
using tunewright::test::refusal;
using Ids = std::vector<TensorId>;

/// C = A * B, D = max(C, 0)
ComputeGraph matmul_relu(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& name = "C") {
  ComputeGraph graph;
  const Tensor a = graph.input("A", {m, k});
  const Tensor b = graph.constant("B", {k, n});
  const Tensor c = graph.reduce(name, {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::Sum,
                                [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  graph.compute("D", {{"i", m}, {"j", n}}, [&](auto i) { return max(c(i[0], i[1]), 0.0); });
  return graph;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a graph knows who reads what") {
  const ComputeGraph graph = matmul_relu(4, 3, 2);
  CHECK(graph.size() == 4);
  CHECK(graph.producers(2) == Ids{0, 1});
  CHECK(graph.consumers(0) == Ids{2});
  CHECK(graph.consumers(3).empty());
  CHECK(graph.outputs() == Ids{3});
  CHECK(graph.op(0).role == Role::Input);
  CHECK(graph.op(1).role == Role::Constant);
  CHECK(graph.op(2).rank() == 2);
  CHECK(graph.op(2).has_reduction());
  CHECK(graph.op(2).shape() == std::vector<std::int64_t>{4, 3});
  CHECK(graph.op(2).elements() == 12);
  CHECK(graph.tensor(3).shape == std::vector<std::int64_t>{4, 3});
}

TEST_CASE("an operator that reads a tensor twice is its reader once") {
  ComputeGraph graph;
  const Tensor a = graph.input("A", {4});
  graph.compute("square", {{"i", 4}}, [&](auto i) { return a(i[0]) * a(i[0]); });
  CHECK(graph.producers(1) == Ids{0});
  CHECK(graph.consumers(0) == Ids{1});
}

TEST_CASE("graphs print in index notation") {
  CHECK(to_text(matmul_relu(4, 3, 2)) ==
        "input    A[4, 2] float32\n"
        "constant B[2, 3] float32\n"
        "C[i, j] += A[i, k] * B[k, j]    i < 4, j < 3, k < 2\n"
        "D[i, j] = max(C[i, j], 0)    i < 4, j < 3\n");
}

TEST_CASE("the content hash is the same everywhere and forever, and ignores names") {
  // Journals are keyed by it: a change of this number orphans them.
  CHECK(stable_hash(matmul_relu(4, 3, 2)) == 11244298641171688828ULL);
  CHECK(stable_hash(matmul_relu(4, 3, 2, "another")) == stable_hash(matmul_relu(4, 3, 2)));
  CHECK(stable_hash(matmul_relu(4, 3, 2)) != stable_hash(matmul_relu(3, 4, 2)));
}

TEST_CASE("combiners start from their identity") {
  CHECK(identity(Combiner::Sum) == 0);
  CHECK(identity(Combiner::Product) == 1);
  CHECK(identity(Combiner::Max) == -std::numeric_limits<double>::infinity());
  CHECK(identity(Combiner::Min) == std::numeric_limits<double>::infinity());
}

TEST_CASE("a scalar result has no axes") {
  ComputeGraph graph;
  const Tensor a = graph.input("A", {4});
  const Tensor total = graph.reduce("total", {}, {{"k", 4}}, Combiner::Sum, [&](auto, auto r) { return a(r[0]); });
  CHECK(total.shape.empty());
  CHECK(graph.op(total.id).elements() == 1);
}

TEST_CASE("a body that uses an axis which the operator lacks is refused") {
  ComputeGraph g;
  const auto x = g.input("x", {4});
  CHECK_THROWS_WITH_AS(g.compute("y", {{"i", 4}}, [&](auto i) { return x(i[1]); }),
                       doctest::Contains("the body of operator 'y' uses spatial axis 1 of 1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(g.reduce("z", {{"i", 4}}, {{"k", 4}}, Combiner::Sum, [&](auto, auto r) { return x(r[2]); }),
                       doctest::Contains("the body of operator 'z' uses reduction axis 2 of 1"), std::invalid_argument);
  CHECK(g.size() == 1);
}

TEST_CASE("what cannot be an operator is refused with the value and the remedy") {
  ComputeGraph graph;
  const Tensor a = graph.input("A", {4, 2});
  CHECK(contains(refusal([&] { graph.input("Z", {3, 0}); }), "'Z': axis 'd1' has extent 0"));
  CHECK(contains(refusal([&] { graph.constant("Z", {-5}); }), "extent -5; extents must be at least 1"));
  CHECK(contains(refusal([&] { graph.input("Z", {std::int64_t{1} << 30, std::int64_t{1} << 24}); }),
                 "axis 'd1' has extent 16777216, which makes more than 2^53 iterations"));
  CHECK(ComputeGraph().input("Y", {std::int64_t{1} << 30, std::int64_t{1} << 23}).shape.size() == 2);
  CHECK(contains(refusal([&] { (void)a(0); }), "rank 2 was read with 1 indices"));
  CHECK(contains(
      refusal([&] { graph.compute("o", {{"i", 4}}, [](auto i) { return load(9, ScalarType::Float32, {i[0]}); }); }),
      "reads tensor 9 which is not in this graph"));
  CHECK(contains(
      refusal([&] { graph.compute("o", {{"i", 4}}, [](auto i) { return load(0, ScalarType::Float32, {i[0]}); }); }),
      "of rank 2 with 1 indices"));
  CHECK(contains(
      refusal([&] { graph.compute("o", {{"i", 4}}, [](auto i) { return load(0, ScalarType::Float64, {i[0], 0}); }); }),
      "of type float32 as float64"));
  CHECK(contains(refusal([&] { graph.compute("o", {{"i", 4}}, [&](auto) { return a(IndexExpr::variable(1), 0); }); }),
                 "uses variable 1 but it has 1 axes"));
  CHECK(contains(refusal([&] { graph.compute("o", {{"i", 4}}, [](auto) { return Expr(); }); }), "needs a body"));
  CHECK(contains(
      refusal([&] { graph.add({.name = "o", .type = ScalarType::Int8, .axes = {{"i", 4}}, .body = Expr(0.5)}); }),
      "its body is of type float32 and its tensor of type int8"));
  const Expr seven = tunewright::program::constant(7, ScalarType::Int32);
  const auto with = [&](tunewright::program::ExprNode node) {
    return refusal([&] {
      graph.add({.name = "o", .type = node.type, .axes = {{"i", 4}}, .body = tunewright::program::make_expr(node)});
    });
  };
  CHECK(
      contains(with({.op = tunewright::program::Op::Add, .args = {Expr(1.0), seven}}), "has arguments of other types"));
  CHECK(contains(with({.op = tunewright::program::Op::Select, .args = {seven, Expr(1.0), Expr(2.0)}}),
                 "take comparisons"));
  CHECK(contains(with({.op = tunewright::program::Op::Less, .args = {Expr(1.0), Expr(2.0)}}), "gives float32"));
  CHECK(contains(refusal([&] {
                   graph.reduce("o", {{"i", 4}}, {{"k", 2}}, Combiner::None,
                                [&](auto i, auto r) { return a(i[0], r[0]); });
                 }),
                 "a combiner go together"));
  Operator mixed{
      .name = "o", .axes = {{"k", 2, AxisKind::Reduction}, {"i", 4}}, .combiner = Combiner::Sum, .body = 1.0};
  CHECK(contains(refusal([&] { graph.add(mixed); }), "spatial axis 'i' follows a reduction axis"));
  CHECK(graph.size() == 1);
}
