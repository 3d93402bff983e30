// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/store_in_output.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/interpreted.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using schedule::ScheduleBuilder;
using Tensor = program::Tensor;

/// A target whose first-level cache holds 64 bytes, and whose last one `last_level_bytes`.
Target with_small_caches(std::uint64_t last_level_bytes = 1U << 20, Isa isa = Isa::Avx2) {
  Target target;
  target.isa = isa;
  target.threads = 2;
  target.l1_bytes = 64;
  target.l2_bytes = last_level_bytes;
  target.l3_bytes = 0;
  return target;
}

std::string moved_text(const loops::LoopNest& nest, const Target& target = with_small_caches()) {
  const loops::LoopNest moved = codegen::store_in_output(nest, target);
  CHECK(test::interpreted(moved) == test::interpreted(nest));
  return loops::to_string(moved);
}

bool moves(const loops::LoopNest& nest, const Target& target = with_small_caches()) {
  return moved_text(nest, target) != loops::to_string(nest);
}

/// A softmax of rows: all stages in a parallel loop over them, exponentials in vectors of `vector`, the result in
/// vectors of `result_vector`.
loops::LoopNest softmax(std::int64_t rows, std::int64_t columns, std::int64_t vector, std::int64_t result_vector) {
  ScheduleBuilder s(program::operators::softmax_graph({.rows = rows, .columns = columns}));
  const auto stage = [&](const char* name) { return s.stage(name); };
  const auto last = stage("softmax");
  s.vectorize(last, s.split(last, 1, {result_vector})[1]);
  s.parallel(last, 0);
  s.vectorize(stage("softmax_exp"), s.split(stage("softmax_exp"), 1, {vector})[1]);
  for (const char* name : {"softmax_sum", "softmax_exp", "softmax_max"}) s.compute_at(stage(name), last, 0);
  return loops::lower(s.schedule());
}

TEST_CASE("the exponentials of a softmax are stored where its result will be") {
  CHECK(moved_text(softmax(3, 32, 8, 8)) ==
        "kernel(data: float32[3, 32], out softmax: float32[3, 32])\n"
        "  for i0 in 0..3 parallel:\n"
        "    allocate softmax_max: float32[1] global at [i0]\n"
        "    allocate softmax_sum: float32[1] global at [i0]\n"
        "    softmax_max[0] = -inf\n"
        "    for k in 0..32 reduction:\n"
        "      softmax_max[0] max= data[i0, k]\n"
        "    for i1.0 in 0..4:\n"
        "      for i1.1 in 0..8 vectorized:\n"
        "        softmax[i0, 8*i1.0 + i1.1] = exp(data[i0, 8*i1.0 + i1.1] - softmax_max[0])\n"
        "    softmax_sum[0] = 0\n"
        "    for k in 0..32 reduction:\n"
        "      softmax_sum[0] += softmax[i0, k]\n"
        "    for i1.0 in 0..4:\n"
        "      for i1.1 in 0..8 vectorized:\n"
        "        softmax[i0, 8*i1.0 + i1.1] = softmax[i0, 8*i1.0 + i1.1] / softmax_sum[0]\n");
}

TEST_CASE("temporaries move if they exceed the first-level cache and the output does not outgrow the last one") {
  CHECK(moves(softmax(3, 17, 8, 8)));
  CHECK_FALSE(moves(softmax(3, 16, 8, 8)));                    // 64 bytes
  CHECK(moves(softmax(4, 32, 8, 8), with_small_caches(820)));  // 1,024 bytes of arguments, 1,025 allowed
  CHECK_FALSE(moves(softmax(5, 32, 8, 8), with_small_caches(820)));
}

TEST_CASE("rows of all lengths, in vectors that do not divide them, stay within the output") {
  for (std::int64_t columns = 25; columns <= 41; ++columns) {
    for (const std::int64_t vector : {1, 3, 8, 12}) {
      for (const std::int64_t result_vector : {1, 5, 8}) {
        CAPTURE(columns);
        CAPTURE(vector);
        CAPTURE(result_vector);
        CHECK(moves(softmax(2, columns, vector, result_vector)));
      }
    }
  }
}

TEST_CASE("temporaries stay where each tile of the result computes all of them again") {
  for (const std::int64_t columns : {30, 32}) {
    for (const bool parallel : {false, true}) {
      ScheduleBuilder s(program::operators::softmax_graph({.rows = 3, .columns = columns}));
      const auto last = s.stage("softmax");
      const auto tile = s.split(last, 1, {8})[0];
      for (const char* name : {"softmax_sum", "softmax_exp", "softmax_max"}) s.compute_at(s.stage(name), last, tile);
      if (parallel) s.parallel(last, tile);
      CHECK_FALSE(moves(loops::lower(s.schedule())));
    }
  }
}

/// t = 2 x, computed at the `at`-th loop of y = `result`(t, i, j), whose axes are split by `rows` and `columns`.
template <class Result>
loops::LoopNest elementwise(std::int64_t rows, std::int64_t columns, std::size_t at, const Result& result,
                            std::int64_t size = 24) {
  auto graph = std::make_shared<program::ComputeGraph>();
  const Tensor x = graph->input("x", {size, size});
  const Tensor t =
      graph->compute("t", {{"i", size}, {"j", size}}, [&](auto i) { return x(i[0], i[1]) * program::Expr(2.0); });
  const Tensor y = graph->compute("y", {{"i", size}, {"j", size}}, [&](auto i) { return result(t, i[0], i[1]); });
  ScheduleBuilder s(graph);
  const auto i = s.split(y.id, 0, {rows}), j = s.split(y.id, 1, {columns});
  const std::vector<schedule::IterId> order{i[0], j[0], i[1], j[1]};
  s.reorder(y.id, order);
  s.compute_at(t.id, y.id, order[at]);
  return loops::lower(s.schedule());
}

const auto plus_one = [](const Tensor& t, const IndexExpr& i, const IndexExpr& j) {
  return t(i, j) + program::Expr(1.0);
};

TEST_CASE("tiles move, those that do not divide the axes too") {
  for (const std::int64_t rows : {4, 5}) {
    for (const std::int64_t columns : {6, 7, 24}) {
      CAPTURE(rows);
      CAPTURE(columns);
      CHECK(moves(elementwise(rows, columns, 1, plus_one)));
      CHECK(moves(elementwise(rows, columns, 0, plus_one)));
    }
  }
}

TEST_CASE("temporaries stay where an element of the result depends on others") {
  CHECK_FALSE(moves(elementwise(24, 24, 0, [](const Tensor& t, const IndexExpr& i, const IndexExpr& j) {
    return t(j, i);  // transposed
  })));
  CHECK_FALSE(moves(elementwise(
      6, 24, 0, [](const Tensor& t, const IndexExpr& i, const IndexExpr& j) { return t(i, j) + t(i, IndexExpr(3)); })));
}

TEST_CASE("temporaries stay where their windows overlap or are read elsewhere") {
  auto graph = std::make_shared<program::ComputeGraph>();
  const Tensor x = graph->input("x", {26, 24});
  const Tensor t = graph->compute("t", {{"i", 26}, {"j", 24}}, [&](auto i) { return x(i[0], i[1]) * x(i[0], i[1]); });
  const Tensor pair = graph->compute("pair", {{"i", 24}, {"j", 24}},
                                     [&](auto i) { return t(i[0], i[1]) + t(i[0] + IndexExpr(2), i[1]); });
  const Tensor y =
      graph->compute("y", {{"i", 24}, {"j", 24}}, [&](auto i) { return pair(i[0], i[1]) * t(i[0], i[1]); });
  ScheduleBuilder s(graph);
  const auto rows = s.split(y.id, 0, {6});
  s.compute_at(pair.id, y.id, rows[0]);
  s.compute_at(t.id, y.id, rows[0]);  // rows of `t` that the next tile of `y` starts with are in both windows
  const std::string text = moved_text(loops::lower(s.schedule()));
  CHECK(text.find("allocate t:") != std::string::npos);
  CHECK(text.find("allocate pair:") == std::string::npos);
}

TEST_CASE("temporaries of the whole program stay") {
  auto graph = std::make_shared<program::ComputeGraph>();
  const Tensor x = graph->input("x", {64});
  const Tensor t = graph->compute("t", {{"i", 64}}, [&](auto i) { return x(i[0]) * x(i[0]); });
  graph->compute("y", {{"i", 64}}, [&](auto i) { return t(i[0]) + program::Expr(1.0); });
  CHECK_FALSE(moves(loops::lower(ScheduleBuilder(graph).schedule())));
}

TEST_CASE("kernels compute the same with temporaries in the output") {
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa > host_target().isa) continue;
    INFO(std::string(name(isa)));
    codegen::LlvmCompiler compiler(with_small_caches(1U << 20, isa), {.verify = true});
    for (const std::int64_t columns : {32, 61, 200})
      CHECK(test::compiled_error(softmax(5, columns, 24, 40), compiler) < 1e-5);
    CHECK(test::compiled_error(elementwise(5, 7, 1, plus_one), compiler) == 0);
  }
}

}  // namespace
