// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/graph.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
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

namespace {

/// The refusal of an operator "y" with this body over the axes i < 8 and k < 3, in a graph whose tensor 0, "x", has
/// eight elements.
template <class Body>
std::string refusal_of(const Body& body) {
  return refusal([&] {
    ComputeGraph graph;
    const Tensor x = graph.input("x", {8});
    graph.reduce("y", {{"i", 8}}, {{"k", 3}}, Combiner::Sum, [&](auto i, auto r) { return body(x, i[0], r[0]); });
  });
}
const std::string accepted = "nothing was thrown";

}  // namespace

TEST_CASE("a read outside of a tensor is refused with the tensor, the indices, the extent and the remedy") {
  CHECK(refusal_of([](auto x, auto i, auto) { return x(i); }) == accepted);
  CHECK(refusal_of([](auto x, auto i, auto) { return x(i + 1); }) ==
        "operator 'y': it reads tensor 0, 'x', at indices from 1 to 8 of dimension 0, whose extent is 8; read inside "
        "of it, or select the read by in_bounds(index, 8)");
  CHECK(contains(refusal_of([](auto x, auto i, auto k) { return x(i + k - 1); }), "at indices from -1 to 8"));
  CHECK(contains(refusal_of([](auto x, auto, auto) { return x(8); }), "at indices from 8 to 8"));
  ComputeGraph graph;
  const Tensor a = graph.input("a", {4, 2});
  CHECK(contains(refusal([&] { graph.compute("b", {{"i", 4}}, [&](auto i) { return a(i[0], i[0]); }); }),
                 "at indices from 0 to 3 of dimension 1, whose extent is 2"));
}

TEST_CASE("reads that the conditions of selects keep inside are taken") {
  const auto value = [](const IndexExpr& e) { return index_value(e); };
  // A window over padding, by the sum that is compared.
  CHECK(refusal_of([](auto x, auto i, auto k) { return select(in_bounds(i + k - 1, 8), x(i + k - 1), 0.0); }) ==
        accepted);
  // One comparison an end.
  CHECK(refusal_of([&](auto x, auto i, auto) { return select(value(i) < 5, x(i + 3), x(i - 5)); }) == accepted);
  CHECK(refusal_of([&](auto x, auto i, auto) {
          return select(logical_not(value(i) >= 5) && value(0) <= value(i), x(i + 3), 0.0);
        }) == accepted);
  // The other branch of alternatives: neither holds.
  CHECK(refusal_of([&](auto x, auto i, auto k) {
          return select(value(i + k) < value(1) || value(8) < value(i + k), 0.0, x(i + k - 1));
        }) == accepted);
  CHECK(refusal_of([&](auto x, auto i, auto) { return select(equal(value(i), value(2)), x(i + 5), 0.0); }) == accepted);
  // 2 i < 7 is i < 4.
  CHECK(refusal_of([&](auto x, auto i, auto) { return select(value(2 * i) < value(7), x(i + 4), 0.0); }) == accepted);
  // A quotient of what is compared, as in a transposed convolution.
  CHECK(refusal_of([&](auto x, auto i, auto k) {
          const auto range = [](Var var) { return Range{0, var == 0 ? 7 : 2}; };
          const IndexExpr place = 3 * i + k - 1;
          return select(in_bounds(place, 22), x(IndexExpr::quotient(place, 3, range)), 0.0);
        }) == accepted);
  // A branch that no values lead to.
  CHECK(refusal_of([&](auto x, auto i, auto) { return select(value(i) < 0, x(i + 100), 0.0); }) == accepted);
  // Numbers, of which none or all lead to a branch.
  CHECK(refusal_of([](auto x, auto, auto) { return select(in_bounds(IndexExpr(-1), 8), x(-1), 0.0); }) == accepted);
  CHECK(refusal_of([&](auto x, auto i, auto) { return select(value(7) < value(8), x(i), x(8)); }) == accepted);
}

TEST_CASE("reads that the conditions of selects do not keep inside are refused") {
  const auto value = [](const IndexExpr& e) { return index_value(e); };
  CHECK(contains(refusal_of([&](auto x, auto i, auto) { return select(value(i) < 6, x(i + 3), 0.0); }),
                 "at indices from 3 to 8"));
  CHECK(contains(refusal_of([&](auto x, auto i, auto) { return select(value(i) < 5, x(i + 3), x(i - 6)); }),
                 "at indices from -1 to 1"));
  // A condition holds in its own branch alone.
  CHECK(contains(refusal_of([&](auto x, auto i, auto) { return select(value(i) < 5, x(i + 3), 0.0) + x(i + 3); }),
                 "at indices from 3 to 10"));
  // Conditions are evaluated in any case.
  CHECK(contains(
      refusal_of([&](auto x, auto i, auto) { return select(value(i) < 5 && x(i + 3) < 1.0, Expr(1.0), Expr(0.0)); }),
      "at indices from 3 to 10"));
  // The other one of two alternatives may hold.
  CHECK(contains(
      refusal_of([&](auto x, auto i, auto k) { return select(value(i) < 5 || value(k) < value(1), x(i + 3), 0.0); }),
      "at indices from 3 to 10"));
  CHECK(contains(
      refusal_of([&](auto x, auto i, auto) { return select(value(i) < 5 && value(i) < 7, Expr(0.0), x(i + 3)); }),
      "at indices from 3 to 10"));
  // Numbers that compare so lead to the branch.
  CHECK(contains(refusal_of([&](auto x, auto, auto) { return select(value(-1) < value(0), x(-1), 0.0); }),
                 "at indices from -1 to -1"));
  // Elements may have any value.
  CHECK(contains(refusal_of([&](auto x, auto i, auto) { return select(x(i) < 1.0, x(i + 3), 0.0); }),
                 "at indices from 3 to 10"));
}

TEST_CASE("where an axis occurs twice, all values of few are tried") {
  // i - 4 (i div 8) is 0 to 7, then 4 to 11; intervals say -4 to 15.
  const auto refused = [](std::int64_t extent) {
    return refusal([&] {
      ComputeGraph graph;
      const Tensor x = graph.input("x", {extent});
      graph.compute("y", {{"i", 16}}, [&](auto i) {
        return x(i[0] - 4 * IndexExpr::quotient(i[0], 8, [](Var) { return Range{0, 15}; }));
      });
    });
  };
  CHECK(refused(12) == accepted);
  CHECK(contains(refused(11), "at indices from -4 to 15"));
  // 2 h + k >= 1 leads to (2 h + k - 1) div 2 >= 0, with 2^15 and with 2^17 values of h and k.
  const auto halved = [](std::int64_t rows) {
    return refusal([&] {
      ComputeGraph graph;
      const Tensor x = graph.input("x", {rows + 2});
      graph.compute("y", {{"h", rows}, {"k", 4}}, [&](auto i) {
        const IndexExpr place = 2 * i[0] + i[1] - 1;
        const auto range = [&](Var var) { return Range{0, var == 0 ? rows - 1 : 3}; };
        return select(index_value(place) >= 0, x(IndexExpr::quotient(place, 2, range)), 0.0);
      });
    });
  };
  CHECK(halved(1 << 13) == accepted);
  CHECK(contains(halved(1 << 15), "at indices from -1 to 32768"));
}

TEST_CASE("bodies of many levels are refused before they exhaust the stack") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4});
  const auto chain = [](Expr e, int levels) {
    while (levels-- > 1) e = -e;
    return e;
  };
  CHECK(contains(refusal([&] { (void)chain(x(0), 200000); }),
                 "an expression of 6001 levels was made, and at most 6000 are possible; combine many terms in halves"));
  CHECK(contains(refusal([&] { graph.compute("y", {{"i", 4}}, [&](auto i) { return chain(x(i[0]), 1001); }); }),
                 "operator 'y': its body has 1001 levels, and at most 1000 are possible"));
  CHECK(graph.compute("y", {{"i", 4}}, [&](auto i) { return chain(x(i[0]), 1000); }).id == 1);
  // Levels of an index count on from those of its read.
  const auto nested = [](const IndexExpr& inner, int levels) {
    IndexExpr e = inner;
    while (levels-- > 1)
      e = IndexExpr::from_term({1, IndexExpr::Kind::Quotient, 0, 2, std::make_shared<const IndexExpr>(e)});
    return e;
  };
  const auto with_index = [&](int levels) {
    return refusal([&] { graph.compute("z", {{"i", 4}}, [&](auto i) { return -x(nested(i[0], levels)); }); });
  };
  CHECK(with_index(999) == accepted);
  CHECK(contains(with_index(1000), "operator 'z': its body has 1001 levels"));
}

TEST_CASE("bodies that repeat what they share are refused where they get large") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4});
  const auto doubled = [](Expr e, int times) {
    while (times-- > 0) e = e + e;
    return e;
  };
  const std::string too_many = "operator 'y': its body has more than 262144 terms, of which shared ones count as often";
  CHECK(contains(refusal([&] { graph.compute("y", {{"i", 4}}, [&](auto i) { return doubled(x(i[0]), 30); }); }),
                 too_many));
  // 2^n reads of one term, and 2^n - 1 sums.
  CHECK(contains(refusal([&] { graph.compute("y", {{"i", 4}}, [&](auto i) { return doubled(x(i[0]), 17); }); }),
                 too_many));
  CHECK(refusal([&] { graph.compute("y", {{"i", 4}}, [&](auto i) { return doubled(x(i[0]), 16); }); }) == accepted);
  IndexExpr index = IndexExpr::variable(0);
  for (int n = 0; n < 30; ++n) {
    const auto shared = std::make_shared<const IndexExpr>(index);
    index = IndexExpr::from_term({1, IndexExpr::Kind::Quotient, 0, 3, shared}) +
            IndexExpr::from_term({1, IndexExpr::Kind::Remainder, 0, 2, shared});
  }
  CHECK(contains(refusal([&] { graph.compute("y", {{"i", 4}}, [&](auto) { return x(index); }); }), too_many));
}

TEST_CASE("many reads under many conditions are checked in limited time") {
  // 900 nested conditions on sums of their own, with a read in each: 900 * 900 comparisons at each of its two axes.
  ComputeGraph graph;
  const Tensor x = graph.input("x", {8});
  const auto body = [&](const IndexExpr& i, const IndexExpr& k) {
    Expr e = 0.0;
    for (int n = 900; n > 0; --n)
      e = select(index_value(i + n * k) < 2000 + n, e, select(in_bounds(i + k, 8), x(i + k), 0.0));
    return e;
  };
  CHECK(refusal([&] { graph.compute("y", {{"i", 8}, {"k", 3}}, [&](auto i) { return body(i[0], i[1]); }); }) ==
        accepted);
}

TEST_CASE("constants that their type does not hold are refused") {
  const auto refused = [](double value, ScalarType type) {
    return refusal([&] {
      ComputeGraph graph;
      graph.compute("y", {{"i", 4}}, [&](auto) { return tunewright::program::constant(value, type); });
    });
  };
  CHECK(contains(refused(128, ScalarType::Int8), "a constant of its body is 128, which is no int8; give a whole"));
  CHECK(contains(refused(-1, ScalarType::UInt8), "is -1, which is no uint8"));
  CHECK(contains(refused(0.5, ScalarType::Int32), "is 0.5, which is no int32"));
  CHECK(contains(refused(0x1p31, ScalarType::Int32), "which is no int32"));
  CHECK(contains(refused(0x1p63, ScalarType::Int64), "which is no int64"));
  CHECK(contains(refused(2, ScalarType::Bool), "is 2, which is no bool"));
  CHECK(contains(refused(std::numeric_limits<double>::infinity(), ScalarType::Int32), "is inf, which is no int32"));
  CHECK(contains(refused(std::numeric_limits<double>::quiet_NaN(), ScalarType::Int64), "nan, which is no int64"));
  for (const auto& [value, type] : {std::pair{-128.0, ScalarType::Int8},
                                    {255.0, ScalarType::UInt8},
                                    {-0x1p63, ScalarType::Int64},
                                    {1.0, ScalarType::Bool},
                                    {1e30, ScalarType::Float16},
                                    {std::numeric_limits<double>::infinity(), ScalarType::Float32}})
    CHECK(refused(value, type) == accepted);
}

TEST_CASE("indices with which arithmetic could overflow are refused") {
  const auto refused = [](std::int64_t coefficient, std::int64_t extent) {
    return refusal([&] {
      ComputeGraph graph;
      graph.compute("y", {{"i", extent}}, [&](auto i) { return index_value(coefficient * i[0] - 1); });
    });
  };
  // 2^51 * 3 + 1 and 2^51 * 4 + 1.
  CHECK(refused(std::int64_t{1} << 51, 4) == accepted);
  CHECK(
      refused(std::int64_t{1} << 51, 5) ==
      "operator 'y': its body has an index that adds up terms of more than 9007199254740992 without their signs; give "
      "smaller coefficients");
  // A coefficient counts at axes of one iteration, too.
  CHECK(contains(refused(std::int64_t{1} << 53, 1), "its body has an index that adds up"));
  CHECK(contains(refused(std::numeric_limits<std::int64_t>::min(), 1), "its body has an index that adds up"));
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4, std::int64_t{1} << 30});
  const auto from = [&](std::int64_t row) {
    return refusal([&] { graph.compute("y", {{"i", 1}}, [&](auto i) { return x(row * i[0], 0); }); });
  };
  CHECK(from(std::int64_t{1} << 23) == accepted);
  CHECK(contains(from(std::int64_t{1} << 24), "it reads tensor 0 at elements whose number adds up terms of more than"));
}

TEST_CASE("operations with another number of arguments than theirs are refused") {
  ComputeGraph graph;
  const auto with = [&](std::vector<Expr> args) {
    return refusal([&] {
      graph.add({.name = "o", .axes = {{"i", 4}}, .body = make_expr({.op = Op::Add, .args = std::move(args)})});
    });
  };
  CHECK(contains(with({Expr(1.0)}), "operator 'o': an operation of its body has 1 arguments; give it 2"));
  CHECK(contains(with({1.0, 1.0, 1.0}), "has 3 arguments; give it 2"));
}
