// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/operators/attention.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "support/evaluated.hpp"
#include "tunewright/program/operators/layout.hpp"

using namespace tunewright::program;
namespace op = tunewright::program::operators;
using tunewright::test::evaluated;
using Values = std::vector<float>;

TEST_CASE("scores are products of the heads of queries and keys") {
  ComputeGraph g;
  // One sequence of two tokens; channels: two heads of one query each, then their keys.
  const Tensor x = g.input("x", {1, 2, 4});
  op::attention_scores(g, x, {2, 1}, x, {2, 1, 2});
  // Queries of head 0: 1, 5; keys: 3, 7. Of head 1: 2, 6 and 4, 8.
  CHECK(evaluated(g, {{1, 2, 3, 4, 5, 6, 7, 8}}) == Values{3, 7, 15, 35, 8, 16, 24, 48});
}

TEST_CASE("values are summed by weight, heads side by side") {
  ComputeGraph g;
  const Tensor weight = g.input("weight", {1, 2, 1, 2});
  op::attention_values(g, weight, g.input("value", {1, 2, 5}), {2, 2, 1});
  // Head 0 reads channels 1 and 2, head 1 channels 3 and 4.
  CHECK(evaluated(g, {{1, 10, 2, 3}, {0, 1, 2, 3, 4, 0, 5, 6, 7, 8}}) == Values{51, 62, 27, 32});
}

TEST_CASE("the causal mask shows the last row all columns") {
  ComputeGraph g;
  op::causal_mask(g, g.input("x", {1, 1, 2, 3}));
  CHECK(evaluated(g, {{1, 2, 3, 4, 5, 6}}) == Values{1, 2, -1e30F, 4, 5, 6});
}

TEST_CASE("attention of tensors that do not fit together is refused") {
  ComputeGraph g;
  const Tensor x = g.input("x", {1, 2, 4});
  const Tensor two = g.input("two", {2, 2, 4});
  const Tensor weight = g.input("weight", {1, 2, 2, 2});
  CHECK_REFUSES("2 heads of 2 from channel 1 reach beyond the 4 channels of the key",
                op::attention_scores(g, x, {2, 2}, x, {2, 2, 1}));
  CHECK_REFUSES("number of heads of the key is 1 but must be 2", op::attention_scores(g, x, {2, 2}, x, {1, 2}));
  CHECK_REFUSES("head_size of the key", op::attention_scores(g, x, {2, 2}, x, {2, 1}));
  CHECK_REFUSES("batch of the key is 2", op::attention_scores(g, x, {2, 2}, two, {2, 2}));
  CHECK_REFUSES("head_size is 0", op::attention_scores(g, x, {2, 0}, x, {2, 0}));
  CHECK_REFUSES("number of heads is 4294967296; give at most",
                op::attention_scores(g, x, {std::int64_t{1} << 32, std::int64_t{1} << 32}, x, {1, 1}));
  CHECK_REFUSES("begin of the heads is -1", op::attention_scores(g, x, {1, 1, -1}, x, {1, 1}));
  CHECK_REFUSES("query has shape", op::attention_scores(g, weight, {2, 2}, x, {2, 2}));
  CHECK_REFUSES("number of heads is 1", op::attention_values(g, weight, x, {1, 2}));
  CHECK_REFUSES("batch of the value is 2", op::attention_values(g, weight, two, {2, 2}));
  CHECK_REFUSES("tokens of the value is 3", op::attention_values(g, weight, g.input("v", {1, 3, 4}), {2, 2}));
  CHECK_REFUSES("columns minus rows is -1", op::causal_mask(g, g.input("tall", {1, 1, 3, 2})));
  CHECK_REFUSES("rank 4", op::causal_mask(g, x));
}
