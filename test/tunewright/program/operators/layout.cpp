// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/operators/layout.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/evaluated.hpp"
#include "tunewright/program/graph_json.hpp"
#include "tunewright/program/operators/elementwise.hpp"

using namespace tunewright::program;
namespace op = tunewright::program::operators;
using tunewright::test::evaluated;
using Values = std::vector<float>;

TEST_CASE("slices take elements of one dimension at equal distances") {
  ComputeGraph rows;
  op::slice(rows, rows.input("x", {4, 2}), {.begin = 1, .extent = 2, .step = 2});
  CHECK(evaluated(rows, {{0, 1, 2, 3, 4, 5, 6, 7}}) == Values{2, 3, 6, 7});
  ComputeGraph columns;
  op::slice(columns, columns.input("x", {2, 3}), {.dimension = -1, .begin = 1, .extent = 2});
  CHECK(evaluated(columns, {{0, 1, 2, 3, 4, 5}}) == Values{1, 2, 4, 5});
}

TEST_CASE("parts that are not inside a tensor are refused") {
  ComputeGraph g;
  const Tensor x = g.input("x", {4, 2});
  CHECK_REFUSES("3 elements from 0, 2 apart, reach beyond the 4 of dimension 0",
                op::slice(g, x, {.extent = 3, .step = 2}));
  CHECK_REFUSES("1 elements from 4", op::slice(g, x, {.begin = 4}));
  CHECK_REFUSES("begin is -1", op::slice(g, x, {.begin = -1}));
  CHECK_REFUSES("extent is 0", op::slice(g, x, {.extent = 0}));
  CHECK_REFUSES("step is 0", op::slice(g, x, {.step = 0}));
  CHECK_REFUSES("dimension 2 does not exist", op::slice(g, x, {.dimension = 2}));
}

TEST_CASE("broadcasts repeat along dimensions of one element") {
  ComputeGraph g;
  op::broadcast(g, g.input("x", {2, 1}), {2, 2, 3});
  CHECK(evaluated(g, {{1, 2}}) == Values{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  const Tensor x = g.input("y", {2, 3});
  CHECK_REFUSES("shape [2, 3] cannot be stretched to [2, 4]", op::broadcast(g, x, {2, 4}));
  CHECK_REFUSES("shape [2, 3] cannot be stretched to [3]", op::broadcast(g, x, {3}));
}

TEST_CASE("any number of tensors is concatenated, and read back from JSON") {
  for (const std::size_t count : {1, 2, 3, 64, 65, 512}) {
    CAPTURE(count);
    ComputeGraph g;
    std::vector<Tensor> parts;
    std::vector<Values> elements;
    Values all;
    for (std::size_t p = 0; p < count; ++p) {
      elements.emplace_back(1 + p % 2, static_cast<float>(p));
      all.insert(all.end(), elements[p].begin(), elements[p].end());
      parts.push_back(g.input("part" + std::to_string(p), {static_cast<std::int64_t>(elements[p].size())}));
    }
    op::concat(g, parts);
    CHECK(evaluated(g, elements) == all);
    CHECK(stable_hash(graph_from_json(to_json(g))) == stable_hash(g));
  }
}

TEST_CASE("reshapes are told from what changes the order of elements") {
  ComputeGraph g;
  const Tensor x = g.input("x", {4, 6});
  CHECK(op::is_reshape(g, op::reshape(g, x, {2, 2, 6}).id));
  CHECK(op::is_reshape(g, op::reshape(g, x, {24}).id));
  CHECK(op::is_reshape(g, op::reshape(g, x, {1, 3, 8}).id));
  CHECK(op::is_reshape(g, op::reshape(g, op::reshape(g, x, {3, 8}), {8, 3}).id));
  CHECK_FALSE(op::is_reshape(g, x.id));
  CHECK_FALSE(op::is_reshape(g, op::transpose(g, x).id));
  CHECK_FALSE(op::is_reshape(g, op::transpose(g, op::reshape(g, x, {4, 6, 1}), {1, 0, 2}).id));
  CHECK_FALSE(op::is_reshape(g, op::slice(g, x, {.extent = 2}).id));
  CHECK_FALSE(op::is_reshape(g, op::relu(g, x).id));
  CHECK_FALSE(op::is_reshape(g, op::cast(g, x, ScalarType::Float64).id));
}
