// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/trim_reductions.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/count.hpp"
#include "support/interpreted.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using schedule::ScheduleBuilder;
using test::interpreted;

/// A product of 2 rows and 2 columns whose `terms` are added in `lanes`, in loops of `inner` vectors.
loops::LoopNest in_lanes(std::int64_t terms, std::int64_t lanes, std::int64_t inner = 1) {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 2, .n = 2, .k = terms}));
  const program::TensorId partial = s.rfactor(2, s.split(2, 2, {lanes})[1]);
  const auto k = s.split(partial, 3, {inner});
  s.reorder(partial, {0, k[0], 1, k[1], 2});
  s.vectorize(partial, 2);
  return loops::lower(s.schedule());
}

TEST_CASE("the last vector of a factored sum has a loop of its own") {
  const loops::LoopNest plain = in_lanes(10, 4);  // 4 + 4 + 2
  const loops::LoopNest trimmed = loops::trim_reductions(plain);
  const std::string text = loops::to_string(trimmed);
  CHECK(text.find("    for k.0.0 in 0..2 reduction:\n"
                  "      for j in 0..2:\n"
                  "        for k.1 in 0..4 vectorized:\n"
                  "          matmul.rf[i, j, k.1] += A[i, k.1 + 4*k.0.0] * B[k.1 + 4*k.0.0, j]\n"
                  "    for k.0.0 in 0..1 reduction:\n") != std::string::npos);
  CHECK(test::count(text, "select") == 1);
  CHECK(interpreted(trimmed) == interpreted(plain));
}

TEST_CASE("lanes that divide the terms, and terms that all lie in the first vector, leave the nest as it is") {
  for (const std::int64_t terms : {8, 3}) {
    const loops::LoopNest plain = in_lanes(terms, 4);
    CHECK(loops::to_string(loops::trim_reductions(plain)) == loops::to_string(plain));
  }
}

TEST_CASE("of a sum in two loops, the last iteration of the outer one is divided along the inner one") {
  const loops::LoopNest plain = in_lanes(30, 4, 3);  // two times 3 vectors; one vector and a half of three
  const std::string text = loops::to_string(loops::trim_reductions(plain));
  CHECK(test::count(text, "+=") == 4);  // two iterations, the whole vector of the third, the rest, and the lanes
  CHECK(test::count(text, "select") == 1);
  CHECK(interpreted(loops::trim_reductions(plain)) == interpreted(plain));
}

TEST_CASE("every number of terms in every number of lanes computes what the plain nest does") {
  for (std::int64_t terms = 1; terms <= 19; ++terms) {
    for (const std::int64_t lanes : {2, 3, 4}) {
      for (const std::int64_t inner : {1, 2, 3}) {
        CAPTURE(terms);
        CAPTURE(lanes);
        CAPTURE(inner);
        const loops::LoopNest plain = in_lanes(terms, lanes, inner);
        CHECK(interpreted(loops::trim_reductions(plain)) == interpreted(plain));
        CHECK(interpreted(loops::prepare_for_codegen(plain, 64)) == interpreted(plain));
      }
    }
  }
}

TEST_CASE("a loop that has nothing to do with the last terms may have any number of iterations") {
  // 21 terms in lanes of 16, beside a loop of 2^40.
  const std::int64_t many = std::int64_t{1} << 40;
  const auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("x", {21});
  graph->reduce("y", {}, {{"j", many}, {"k", 21}}, program::Combiner::Sum, [&](auto, auto k) { return x(k[1]); });
  ScheduleBuilder s(graph);
  s.rfactor(1, s.split(1, 1, {16})[1]);
  const std::string text = loops::to_string(loops::trim_reductions(loops::lower(s.schedule())));
  // The first vector has a loop of its own, with the loop over j around it.
  CHECK(test::count(text, "in 0..1099511627776 reduction") == 2);
  CHECK(test::count(text, "in 0..1 reduction") == 2);
  CHECK(test::count(text, "select") == 1);
}

TEST_CASE("reductions with other combiners are trimmed, too") {
  using program::Combiner;
  for (const Combiner combiner : {Combiner::Product, Combiner::Max, Combiner::Min}) {
    for (const std::int64_t terms : {3, 8, 10, 17}) {
      CAPTURE(combiner);
      CAPTURE(terms);
      const auto g = std::make_shared<program::ComputeGraph>();
      const auto x = g->input("x", {2, terms});
      const auto reduced =
          g->reduce("reduced", {{"i", 2}}, {{"k", terms}}, combiner, [&](auto i, auto k) { return x(i[0], k[0]); });
      ScheduleBuilder s(g);
      const program::TensorId partial = s.rfactor(reduced.id, s.split(reduced.id, 1, {4})[1]);
      s.reorder(partial, {0, 2, 1});
      s.vectorize(partial, 1);
      const loops::LoopNest plain = loops::lower(s.schedule());
      const loops::LoopNest trimmed = loops::trim_reductions(plain);
      CHECK(interpreted(trimmed) == interpreted(plain));
      CHECK(interpreted(loops::prepare_for_codegen(plain, 64)) == interpreted(plain));
      const std::size_t divided = terms > 4 && terms % 4 != 0 ? 1 : 0;
      CHECK(test::count(loops::to_string(trimmed), "vectorized") ==
            test::count(loops::to_string(plain), "vectorized") + divided);
      CHECK(test::count(loops::to_string(trimmed), "select") == divided);
    }
  }
}

TEST_CASE("padding of a convolution is not at the end of its sums") {
  ScheduleBuilder s(program::operators::conv2d_graph(
      {.height = 5, .width = 8, .in_channels = 2, .out_channels = 4, .kernel = 3, .stride = 1, .padding = 1}));
  const program::TensorId conv = s.stage("conv2d");
  for (program::TensorId id = 0; id < conv; ++id)
    if (!s.state().stages[id].is_source()) s.compute_inline(id);
  const loops::LoopNest plain = loops::lower(s.schedule());
  CHECK(loops::to_string(loops::trim_reductions(plain)) == loops::to_string(plain));
}

TEST_CASE("operations are those of a term, not of the selection of the last ones") {
  const auto simple = [](const loops::LoopNest& nest) {
    std::vector<double> updates;
    loops::for_each_statement(nest.body, [&](const loops::Statement& s) {
      if (s.kind == loops::Statement::Kind::Update) updates.push_back(loops::operations(s).simple_fused());
    });
    return updates;
  };
  CHECK(simple(in_lanes(10, 4)) == std::vector<double>{1, 1});  // multiply-adds, and the sum of the lanes
  CHECK(simple(in_lanes(10, 4)) == simple(in_lanes(8, 4)));
}

}  // namespace
