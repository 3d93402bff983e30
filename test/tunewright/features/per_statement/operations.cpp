// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/per_statement/operations.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace {

using namespace tunewright;
using namespace tunewright::features::per_statement;
using program::Expr;
using program::Op;
using program::ScalarType;

std::shared_ptr<const program::Operator> with_body(Expr body) {
  auto op = std::make_shared<program::Operator>();
  op->body = std::move(body);
  return op;
}

TEST_CASE("each operation has its column") {
  CHECK(column_of(Op::Subtract, ScalarType::Float64) == FloatAddSub);
  CHECK(column_of(Op::Negate, ScalarType::Int32) == IntAddSub);
  CHECK(column_of(Op::Divide, ScalarType::Float32) == FloatDivMod);
  CHECK(column_of(Op::Max, ScalarType::Float32) == FloatCompare);
  CHECK(column_of(Op::Less, ScalarType::Bool) == IntCompare);
  CHECK(column_of(Op::Erf, ScalarType::Float32) == FloatMath);
  CHECK(column_of(Op::And, ScalarType::Bool) == BoolOps);
  CHECK(column_of(Op::Select, ScalarType::Float32) == SelectOps);
  CHECK_FALSE(column_of(Op::Cast, ScalarType::Float32));
  CHECK_FALSE(column_of(Op::Load, ScalarType::Float32));
  CHECK(column_of(program::Combiner::Product, ScalarType::Float32) == FloatMul);
  CHECK(column_of(program::Combiner::Min, ScalarType::Int32) == IntCompare);
  CHECK_FALSE(column_of(program::Combiner::None, ScalarType::Float32));
}

TEST_CASE("a value used twice counts once") {
  const Expr x = program::load(0, ScalarType::Float32, {});
  const Expr squared = x * x;
  OperationTable table;
  const Operations& found = table.of(with_body(squared + program::exp(squared)));
  CHECK(found.counts[FloatMul] == 1);
  CHECK(found.counts[FloatAddSub] == 1);
  CHECK(found.counts[FloatMath] == 1);
  CHECK(found.loads.size() == 1);
}

TEST_CASE("a body that a step has rebuilt counts as before") {
  const Expr x = program::load(0, ScalarType::Float32, {});
  const Expr squared = x * x;
  const Expr cached = program::rewrite(squared + program::exp(squared), [](const Expr& node) -> Expr {
    return node->op == Op::Load ? program::load(1, node->type, node->indices) : Expr();
  });
  OperationTable table;
  const Operations& found = table.of(with_body(cached));
  CHECK(found.counts[FloatMul] == 1);
  CHECK(found.loads.size() == 1);
}

TEST_CASE("deeply shared bodies take linear time") {
  Expr value = program::load(0, ScalarType::Float32, {});
  for (int i = 0; i < 60; ++i) value = value + value;
  CHECK(OperationTable().of(with_body(value)).counts[FloatAddSub] == 60);
}

TEST_CASE("more operators than are remembered") {
  OperationTable table;
  for (int i = 1; i <= 100; ++i) {
    Expr value = program::load(0, ScalarType::Float32, {});
    for (int n = 0; n < i; ++n) value = program::sqrt(value);
    CHECK(table.of(with_body(value)).counts[FloatMath] == i);
  }
}

TEST_CASE("loads and positions in the order of evaluation") {
  const Expr first = program::load(3, ScalarType::Float32, {});
  const Expr second = program::load(1, ScalarType::Float32, {});
  const Expr position = program::index_value(program::IndexExpr::variable(0));
  OperationTable table;
  const Operations& found =
      table.of(with_body(program::select(position < program::index_value(program::IndexExpr(4)), first, second)));
  REQUIRE(found.loads.size() == 2);
  CHECK(found.loads[0]->tensor == 3);
  CHECK(found.loads[1]->tensor == 1);
  CHECK(found.positions.size() == 2);
  CHECK(found.counts[IntCompare] == 1);
  CHECK(found.counts[SelectOps] == 1);
}

}  // namespace
