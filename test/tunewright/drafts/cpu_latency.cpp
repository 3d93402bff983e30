// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/cpu_latency.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>

#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using namespace tunewright::drafts;
using schedule::ScheduleBuilder;

namespace {

/// One core with AVX2, 32 KB and 1 MB of cache.
Target core() {
  Target target;
  target.isa = Isa::Avx2;
  return target;
}

std::shared_ptr<const program::ComputeGraph> plus_one(std::int64_t elements) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {elements});
  g->compute("y", {{"i", elements}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  return g;
}

loops::LoopNest scheduled(const std::shared_ptr<const program::ComputeGraph>& graph,
                          const std::function<void(ScheduleBuilder&)>& steps) {
  ScheduleBuilder s(graph);
  steps(s);
  return loops::lower(s.schedule());
}

double cycles(const loops::LoopNest& nest, const Target& target) {
  return CpuAnalysis().cycles(nest, target, {});
}

}  // namespace

TEST_CASE("one elementwise loop by hand") {
  const loops::LoopNest nest =
      scheduled(plus_one(1024), [](ScheduleBuilder& s) { s.vectorize(1, s.split(1, 0, {8})[1]); });
  // 128 times a vector: addition and load at half a cycle, a store; 8192 bytes from each level; 128 steps.
  const double pipes = 128 * (0.5 + 0.5 + 1), l1 = 8192 / 32.0, l2 = 8192 / 16.0, memory = 8192 / 8.0;
  CHECK(cycles(nest, core()) == doctest::Approx(memory + (pipes + l1 + l2) / 4 + 128 * 2));
}

TEST_CASE("a register tile by hand") {
  const auto graph = program::operators::matmul_graph({.m = 4, .n = 16, .k = 256});
  const loops::LoopNest nest = scheduled(graph, [](ScheduleBuilder& s) {
    s.reorder(2, {2, 0, 1});
    s.unroll(2, 0);
    s.vectorize(2, 1);
  });
  // 8 accumulators: 8 multiply-adds, 4 elements of A and 2 vectors of B are loaded, nothing is stored.
  const double pipes = 256 * (8 / 2.0 + 6 / 2.0), bytes = 4.0 * (4 * 256 + 256 * 16 + 4 * 16);
  CHECK(cycles(nest, core()) == doctest::Approx(bytes / 8 + (pipes + bytes / 32 + bytes / 16) / 4 + 256 * 2));
}

TEST_CASE("what does not fit a cache is fetched again") {
  // 64 rows of 64 KB are read whole for each of 8 columns, and pass no 32 KB; 4 MB pass no 1 MB.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("a", {64, 16384});
  g->reduce("sum", {{"j", 8}}, {{"i", 64}, {"k", 16384}}, program::Combiner::Sum,
            [&](auto, auto r) { return a(r[0], r[1]); });
  const loops::LoopNest nest = loops::lower(ScheduleBuilder(g).schedule());
  const Roof roof = CpuAnalysis().roof(nest, core());
  CHECK(roof.memory_bytes == doctest::Approx(8.0 * 64 * 65536).epsilon(0.01));
  Target large = core();
  large.l3_bytes = 64 << 20;
  CHECK(CpuAnalysis().roof(nest, large).memory_bytes == doctest::Approx(64.0 * 65536).epsilon(0.01));
}

TEST_CASE("threads share a parallel loop, and the longest share counts") {
  const auto graph = plus_one(1 << 20);
  const auto nest = [&](std::int64_t parts) {
    return scheduled(graph, [&](ScheduleBuilder& s) {
      const auto outer = s.split(1, 0, {(1 << 20) / parts});
      s.parallel(1, outer[0]);
      s.vectorize(1, s.split(1, outer[1], {8})[1]);
    });
  };
  Target many = core().with_threads(4);
  many.l3_bytes = 64 << 20;
  const SymbolAnalyzer analyzer;
  CHECK(analyzer.latency_s(nest(4), many) < analyzer.latency_s(nest(5), many));
  CHECK(analyzer.latency_s(nest(8), many) < analyzer.latency_s(nest(5), many));
  // A roofline knows no threads: 2^21 floats at 8 bytes a cycle of 2.5 GHz.
  CHECK(Roofline{}.latency_s(nest(4), many) == doctest::Approx(4.0 * (1 << 21) / 8 / 2.5e9));
}
