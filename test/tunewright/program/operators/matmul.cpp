// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/operators/matmul.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "../../../support/evaluated.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/print.hpp"

using namespace tunewright::program;
namespace op = tunewright::program::operators;
using tunewright::test::evaluated;
using Values = std::vector<float>;

TEST_CASE("matmul in all four transpositions") {
  // [1 2 3; 4 5 6] * [1 0; 2 1; 0 3] = [5 11; 14 23]
  const Values a{1, 2, 3, 4, 5, 6};
  const Values a_transposed{1, 4, 2, 5, 3, 6};
  const Values b{1, 0, 2, 1, 0, 3};
  const Values b_transposed{1, 2, 0, 0, 1, 3};
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const auto graph = op::matmul_graph({.m = 2, .n = 2, .k = 3, .transpose_a = ta, .transpose_b = tb});
      CHECK(evaluated(*graph, {ta ? a_transposed : a, tb ? b_transposed : b}) == Values{5, 11, 14, 23});
    }
  }
  CHECK(to_text(*op::matmul_graph({.m = 2, .n = 2, .k = 3, .transpose_b = true, .constant_b = true})) ==
        "input    A[2, 3] float32\n"
        "constant B[2, 3] float32\n"
        "matmul[i, j] += A[i, k] * B[j, k]    i < 2, j < 2, k < 3\n");
}

TEST_CASE("matmul in double") {
  const auto graph = op::matmul_graph({.m = 2, .n = 2, .k = 2, .type = ScalarType::Float64});
  CHECK(graph->op(2).type == ScalarType::Float64);
}

TEST_CASE("batch_matmul multiplies each pair of matrices") {
  const auto graph = op::batch_matmul_graph({.batch = 2, .m = 1, .n = 2, .k = 2});
  // [1 2] * [1 2; 3 4] = [7 10];  [-1 1] * [0 1; 1 1] = [1 0]
  CHECK(evaluated(*graph, {{1, 2, -1, 1}, {1, 2, 3, 4, 0, 1, 1, 1}}) == Values{7, 10, 1, 0});
  const auto transposed =
      op::batch_matmul_graph({.batch = 2, .m = 1, .n = 2, .k = 2, .transpose_a = true, .transpose_b = true});
  CHECK(evaluated(*transposed, {{1, 2, -1, 1}, {1, 3, 2, 4, 0, 1, 1, 1}}) == Values{7, 10, 1, 0});
}

TEST_CASE("dense adds its bias as an operator of its own") {
  const auto graph = op::dense_graph({.batch = 2, .in = 2, .out = 1});
  CHECK(graph->size() == 5);
  CHECK(graph->op(1).role == Role::Constant);
  CHECK(evaluated(*graph, {{1, 2, 3, 4}, {10, 1}, {0.5F}}) == Values{12.5F, 34.5F});
  CHECK(op::dense_graph({.batch = 2, .in = 2, .out = 1, .bias = false})->size() == 3);
}

TEST_CASE("products have the accumulator's type, whatever the elements have") {
  const auto type = [](ScalarType a, std::optional<ScalarType> b, std::optional<ScalarType> accumulator = {}) {
    return op::matmul_graph({.type = a, .type_b = b, .accumulator = accumulator})->op(2).type;
  };
  CHECK(type(ScalarType::Float16, {}) == ScalarType::Float32);
  CHECK(type(ScalarType::BFloat16, {}) == ScalarType::Float32);
  CHECK(type(ScalarType::Int8, {}) == ScalarType::Int32);
  CHECK(type(ScalarType::UInt8, ScalarType::Int8) == ScalarType::Int32);
  CHECK(type(ScalarType::Float16, {}, ScalarType::Float16) == ScalarType::Float16);
  CHECK(type(ScalarType::Int8, {}, ScalarType::Int64) == ScalarType::Int64);
  const auto dense = op::dense_graph({.batch = 2, .in = 3, .out = 4, .type = ScalarType::Int8});
  CHECK(dense->op(2).type == ScalarType::Int32);  // the bias
  CHECK(dense->op(4).type == ScalarType::Int32);
  CHECK(op::batch_matmul_graph({.type = ScalarType::UInt8, .type_b = ScalarType::Int8})->op(2).type ==
        ScalarType::Int32);
  CHECK(op::conv2d_graph({.height = 3, .width = 3, .kernel = 3, .type = ScalarType::BFloat16})->op(2).type ==
        ScalarType::Float32);
  CHECK(to_text(*op::matmul_graph({.m = 2, .n = 2, .k = 3, .type = ScalarType::BFloat16}), 2) ==
        "matmul[i, j] += float32(A[i, k]) * float32(B[k, j])    i < 2, j < 2, k < 3");
  CHECK_REFUSES("types int8 and float32", (void)type(ScalarType::Int8, ScalarType::Float32));
  CHECK_REFUSES(
      "products of float16 and float16 cannot be summed in int32, which does not hold their values; ask for "
      "float32",
      (void)type(ScalarType::Float16, {}, ScalarType::Int32));
  CHECK_REFUSES("ask for int32", (void)type(ScalarType::UInt8, ScalarType::Int8, ScalarType::Int8));
  CHECK_REFUSES("ask for int32", (void)type(ScalarType::Int32, {}, ScalarType::Float16));
  CHECK_REFUSES("ask for int64", (void)type(ScalarType::Int64, {}, ScalarType::Float32));
  CHECK_REFUSES("ask for float32", (void)type(ScalarType::BFloat16, {}, ScalarType::Float16));
  CHECK(type(ScalarType::Int32, {}, ScalarType::Float64) == ScalarType::Float64);
}

TEST_CASE("matrices that do not fit are refused") {
  ComputeGraph g;
  const Tensor a = g.input("A", {2, 3});
  const Tensor b = g.input("B", {4, 5});
  const Tensor d = g.input("D", {3, 5}, ScalarType::Float64);
  const Tensor batch = g.input("X", {2, 3, 4});
  CHECK_REFUSES("k of b is 4 but must be 3", op::matmul(g, a, b));
  CHECK_REFUSES("types float32 and float64", op::matmul(g, a, d));
  CHECK_REFUSES("operand a has shape [2, 3, 4]; give it rank 2, [m, k]", op::matmul(g, batch, b));
  CHECK_REFUSES("matmul: m is 0; give at least 1", (void)op::matmul_graph({.m = 0, .n = 2, .k = 3}));
  CHECK_REFUSES("matmul: k is -3", (void)op::matmul_graph({.m = 1, .n = 2, .k = -3}));
  CHECK_REFUSES("softmax: columns is 0", (void)op::softmax_graph({.columns = 0}));
  CHECK_REFUSES("dense: out is 0", (void)op::dense_graph({.out = 0}));
  CHECK_REFUSES("batch_matmul: batch is -1", (void)op::batch_matmul_graph({.batch = -1}));
  CHECK_REFUSES("k of b is 3 but must be 4", op::batch_matmul(g, batch, batch));
  CHECK_REFUSES("batch of b is 3", op::batch_matmul(g, batch, g.input("Y", {3, 4, 1})));
  CHECK_REFUSES("length of the bias is 2 but must be 5", op::dense(g, b, g.input("W", {5, 5}), g.input("b", {2})));
}
