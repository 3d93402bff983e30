// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/expr.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/program/print.hpp"

namespace {

using namespace tunewright::program;

std::string text(const Expr& e) {
  return to_text(
      e, [](TensorId id) { return std::string(1, "AB"[id]); }, [](Var v) { return std::string(1, "ijk"[v]); });
}
std::uint64_t hash(const Expr& e) {
  tunewright::StableHash h;
  add_to_hash(h, e);
  return h.value();
}
const IndexExpr i = IndexExpr::variable(0);
const IndexExpr j = IndexExpr::variable(1);
Expr read(TensorId tensor) { return load(tensor, ScalarType::Float32, {i, j}); }

}  // namespace

TEST_CASE("scalar types know their size and kind") {
  CHECK(size_in_bytes(ScalarType::Float64) == 8);
  CHECK(size_in_bytes(ScalarType::Bool) == 1);
  CHECK(name(ScalarType::Float32) == "float32");
  CHECK(is_float(ScalarType::Float32));
  CHECK_FALSE(is_float(ScalarType::Int64));
}

TEST_CASE("a number takes the type of the other operand, otherwise the smaller type is widened") {
  const Expr wide = load(0, ScalarType::Float64, {i});
  CHECK((wide * 2)->type == ScalarType::Float64);
  CHECK((2 * wide)->args[0]->type == ScalarType::Float64);
  CHECK((read(0) + wide)->type == ScalarType::Float64);
  CHECK((read(0) + wide)->args[0]->op == Op::Cast);
  CHECK((index_value(i) + 1)->type == ScalarType::Int64);
  CHECK((read(0) < 1.0)->type == ScalarType::Bool);
  CHECK(select(read(0) < 1.0, 0.0, wide)->type == ScalarType::Float64);
  CHECK_THROWS_WITH_AS((void)select(read(0), 0.0, wide),
                       "select: the condition is a float32; give a comparison, such as x > 0.0", std::invalid_argument);
  CHECK(cast(wide, ScalarType::Float64).get() == wide.get());
  CHECK(cast(Expr(1.5), ScalarType::Float64)->op == Op::Constant);
  CHECK(cast(Expr(-1.5), ScalarType::Int32)->value == -1);
}

TEST_CASE("an empty expression can be told from one that is there") {
  const Expr nothing;
  CHECK(!nothing);
  CHECK_FALSE(!read(0));
  const bool flag = true;
  CHECK((read(0) && flag));
  CHECK(logical_not(read(0) < 1.0)->op == Op::Not);
}

TEST_CASE("expressions print with the parentheses they need and no others") {
  CHECK(text(read(0) * (read(1) + 1)) == "A[i, j] * (B[i, j] + 1)");
  CHECK(text(read(0) - (read(1) - 1)) == "A[i, j] - (B[i, j] - 1)");
  CHECK(text(read(0) - read(1) - 1) == "A[i, j] - B[i, j] - 1");
  CHECK(text(max(read(0), 0.0)) == "max(A[i, j], 0)");
  CHECK(text(select(in_bounds(i - 1, 4), load(0, ScalarType::Float32, {i - 1}), 0.0)) ==
        "0 <= (i - 1) and (i - 1) < 4 ? A[i - 1] : 0");
  CHECK(text(-exp(read(0))) == "-exp(A[i, j])");
  CHECK(text(cast(index_value(i), ScalarType::Float32)) == "float32(i)");
}

TEST_CASE("constants print with the digits that their type has") {
  const auto constant_text = [](double value, ScalarType type) { return text(constant(value, type)); };
  using enum ScalarType;
  for (const ScalarType type : {Float32, Float16, BFloat16}) {
    CHECK(constant_text(0.1, type) == "0.1");
    CHECK(constant_text(0.70710678118654752440, type) == "0.70710677");
  }
  CHECK(constant_text(static_cast<double>(0.1F), Float32) == "0.1");
  CHECK(constant_text(0.1, Float64) == "0.1");
  CHECK(constant_text(0.70710678118654752440, Float64) == "0.7071067811865476");
  CHECK(constant_text(2147483647, Int32) == "2147483647");
  CHECK(constant_text(-1e300, Float64) == "-1e+300");
  CHECK(constant_text(std::numeric_limits<double>::infinity(), Float32) == "inf");
  CHECK(text(read(0) * 0.1) == "A[i, j] * 0.1");
}

TEST_CASE("rewriting replaces nodes bottom-up and shares what it leaves alone") {
  const Expr kept = exp(read(1));
  const Expr e = read(0) + kept;
  const Expr changed = rewrite(e, [](const Expr& node) -> Expr {
    if (node->op == Op::Load && node->tensor == 0) return constant(3, node->type);
    return {};
  });
  CHECK(text(changed) == "3 + exp(B[i, j])");
  CHECK(changed->args[1].get() == kept.get());
  const Expr unchanged = rewrite(e, [](const Expr&) { return Expr(); });
  CHECK(unchanged.get() == e.get());
}

TEST_CASE("rewriting keeps shared what it changes, too") {
  const Expr squared = read(0) * read(0);
  int calls = 0;
  const Expr changed = rewrite(squared + exp(squared), [&](const Expr& node) -> Expr {
    ++calls;
    return node->op == Op::Load ? read(1) : Expr();
  });
  CHECK(text(changed) == "B[i, j] * B[i, j] + exp(B[i, j] * B[i, j])");
  CHECK(changed->args[0].get() == changed->args[1]->args[0].get());
  CHECK(calls == 5);  // two loads, a product, a function and a sum
}

TEST_CASE("distinct parts are told apart by content") {
  DistinctParts parts;
  std::vector<Op> seen;
  const auto note = [&](const ExprNode& node) { seen.push_back(node.op); };
  const Expr first = exp(read(0)) * exp(read(0)), second = exp(read(0)) - read(1);
  parts.visit(first, note);
  CHECK(seen == std::vector{Op::Load, Op::Exp, Op::Multiply});
  parts.visit(second, note);
  CHECK(seen == std::vector{Op::Load, Op::Exp, Op::Multiply, Op::Load, Op::Subtract});
  Expr deep = read(0);
  for (int n = 0; n < 60; ++n) deep = deep + deep;
  seen.clear();
  DistinctParts().visit(deep, note);
  CHECK(seen.size() == 61);
}

TEST_CASE("index substitution reaches loads and index values") {
  const Expr e = load(0, ScalarType::Float32, {i * 4 + j, j}) * cast(index_value(j + 1), ScalarType::Float32);
  const Expr replaced = substitute_indices(
      e, [](Var v) { return v == 1 ? IndexExpr::variable(2) + 1 : IndexExpr::variable(v); },
      [](Var) { return Range{0, 9}; });
  CHECK(text(replaced) == "A[4*i + k + 1, k + 1] * float32((k + 2))");
}

TEST_CASE("the hash tells expressions apart by content, not by address") {
  CHECK(hash(read(0) + read(1)) == hash(read(0) + read(1)));
  CHECK(hash(read(0) + read(1)) != hash(read(1) + read(0)));
  CHECK(hash(read(0) * 2) != hash(read(0) * 3));
  CHECK(hash(load(0, ScalarType::Float32, {i})) != hash(load(0, ScalarType::Float32, {j})));
  CHECK(hash(min(read(0), read(1))) != hash(max(read(0), read(1))));
}
