// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/streamed_stores.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/run_kernel.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;

/// A target whose caches hold 1 KiB.
Target with_small_caches(Isa isa) {
  Target target;
  target.isa = isa;
  target.threads = 1;
  target.l2_bytes = 512;
  target.l3_bytes = 1024;
  return target;
}

/// c = a + b in vectors of `vector` elements; `then` may add operators that read c.
template <class Then>
loops::LoopNest sum_of(std::int64_t rows, std::int64_t columns, std::int64_t vector, const Then& then) {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto a = graph->input("a", {rows, columns}), b = graph->input("b", {rows, columns});
  const auto c =
      graph->compute("c", {{"i", rows}, {"j", columns}}, [&](auto i) { return a(i[0], i[1]) + b(i[0], i[1]); });
  then(*graph, c);
  schedule::ScheduleBuilder s(graph);
  s.vectorize(c.id, s.split(c.id, 1, {vector})[1]);
  s.parallel(c.id, 0);
  return loops::lower(s.schedule());
}
loops::LoopNest sum_of(std::int64_t rows, std::int64_t columns, std::int64_t vector) {
  return sum_of(rows, columns, vector, [](auto&, const auto&) {});
}

bool streams_output(const loops::LoopNest& nest, const Target& target) {
  const std::vector<bool> streamed = codegen::streamed_buffers(nest, target);
  return streamed[nest.arguments.back()];
}

TEST_CASE("outputs that outgrow the caches are streamed, unless something reads or adds to them") {
  const Target target = with_small_caches(Isa::Avx2);
  CHECK(streams_output(sum_of(8, 16, 16), target));        // 512 bytes, half of the cache, of 1,536 in all
  CHECK_FALSE(streams_output(sum_of(7, 16, 16), target));  // 448
  CHECK_FALSE(streams_output(sum_of(8, 16, 16), with_small_caches(Isa::Neon)));

  // Half of the cache, and its whole in all: much of the output stays there.
  const auto copy_of = [](std::int64_t rows) {
    auto graph = std::make_shared<program::ComputeGraph>();
    const auto a = graph->input("a", {rows, 16});
    graph->compute("b", {{"i", rows}, {"j", 16}}, [&](auto i) { return a(i[0], i[1]) * 2; });
    return loops::lower(schedule::ScheduleBuilder(graph).schedule());
  };
  CHECK_FALSE(streams_output(copy_of(8), target));
  CHECK_FALSE(streams_output(copy_of(10), target));  // 1,280 bytes, a quarter more than the cache
  CHECK(streams_output(copy_of(11), target));

  const loops::LoopNest read = sum_of(32, 16, 16, [](auto& graph, const auto& c) {
    graph.compute("d", {{"i", 32}}, [&](auto i) { return c(i[0], IndexExpr(3)); });
  });
  CHECK_FALSE(streams_output(read, target));

  auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("x", {512, 4});
  graph->reduce("sums", {{"i", 512}}, {{"k", 4}}, program::Combiner::Sum,
                [&](auto i, auto r) { return x(i[0], r[0]); });
  CHECK_FALSE(streams_output(loops::lower(schedule::ScheduleBuilder(graph).schedule()), target));
}

TEST_CASE("whole lines: the vector is contiguous, and it and every other step are multiples of 64 bytes") {
  const IndexExpr i = IndexExpr::variable(0), v = IndexExpr::variable(1);
  CHECK(codegen::writes_whole_lines(64 * i + v, 1, 16, 4));
  CHECK(codegen::writes_whole_lines(48 * i + v + 16, 1, 32, 4));
  CHECK(codegen::writes_whole_lines(8 * i + v, 1, 8, 8));
  CHECK_FALSE(codegen::writes_whole_lines(64 * i + v, 1, 8, 4));   // half a line
  CHECK_FALSE(codegen::writes_whole_lines(60 * i + v, 1, 16, 4));  // rows start within lines
  CHECK_FALSE(codegen::writes_whole_lines(64 * i + v + 8, 1, 16, 4));
  CHECK_FALSE(codegen::writes_whole_lines(64 * i + 2 * v, 1, 16, 4));  // every other element
  const auto range_of = [](loops::Var) { return program::Range{0, 15}; };
  CHECK_FALSE(codegen::writes_whole_lines(v + 64 * IndexExpr::quotient(v, 3, range_of), 1, 16, 4));
}

TEST_CASE("kernels bypass the caches where they may, and compute the same") {
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa > host_target().isa) continue;
    INFO(std::string(name(isa)));
    codegen::LlvmCompiler compiler(with_small_caches(isa), {.verify = true});
    const auto bypasses = [&](const loops::LoopNest& nest) {
      CHECK(test::compiled_error(nest, compiler) == 0);
      const std::string text = compiler.to_assembly(nest);
      const bool stores = text.find("movntp") != std::string::npos;
      CHECK(stores == (text.find("sfence") != std::string::npos));
      return stores;
    };
    CHECK(bypasses(sum_of(20, 64, 16)));
    CHECK(bypasses(sum_of(20, 96, 32)));
    CHECK_FALSE(bypasses(sum_of(20, 64, 8)));
    CHECK_FALSE(bypasses(sum_of(20, 60, 16)));  // a tile beyond the end of each row
    CHECK_FALSE(bypasses(sum_of(1, 64, 16)));
  }
}

}  // namespace
