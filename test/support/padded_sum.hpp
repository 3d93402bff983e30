// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/pad.hpp"

namespace tunewright::test {

/// y[i, c] = sum over r of padded[i + r] * w[r, c], where `padded` (tensor 2) is x between two zeros: 64 places i,
/// 8 channels c and 3 taps r. `y` is tensor 3.
inline std::shared_ptr<program::ComputeGraph> padded_sum_graph() {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("x", {64});
  const auto w = graph->input("w", {3, 8});
  const auto padded = program::operators::pad(*graph, x, {.before = {1}, .after = {1}, .name = "padded"});
  graph->reduce("y", {{"i", 64}, {"c", 8}}, {{"r", 3}}, program::Combiner::Sum,
                [&](auto i, auto r) { return padded(i[0] + r[0]) * w(r[0], i[1]); });
  return graph;
}

}  // namespace tunewright::test
