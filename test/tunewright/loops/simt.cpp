// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/simt.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/fixed_inputs.hpp"
#include "support/gpu_schedules.hpp"
#include "support/nest_builder.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/softmax.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopKind;
using loops::LoopNest;
using loops::Statement;
using schedule::ScheduleBuilder;
using schedule::Scope;

using test::outputs;

LoopNest device(const ScheduleBuilder& s) { return loops::to_device(loops::lower(s.schedule())); }

/// Whether a GPU schedule computes what the plain loops do.
void check(const ScheduleBuilder& s) {
  const auto plain = loops::lower(schedule::Schedule{s.schedule().graph, {}});
  CHECK(outputs(device(s), loops::run_simt) == outputs(plain, loops::interpret));
}

TEST_CASE("elementwise, with a block that is not full") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {7, 9});
  g->compute("y", {{"i", 7}, {"j", 9}}, [&](auto i) { return x(i[0], i[1]) * program::Expr(2.0); });
  ScheduleBuilder s(g);
  test::bind_whole(s, 1, 16);
  check(s);
}

TEST_CASE("tiled matrix products with shared copies, even and odd") {
  check(test::tiled_on_gpu(program::operators::matmul_graph({.m = 16, .n = 16, .k = 8}), "matmul",
                           {{2, 2, 1, 2}, {1, 4, 2, 1}}, {{2, 2}}, {"A", "B"}, 2));
  check(test::tiled_on_gpu(program::operators::matmul_graph({.m = 13, .n = 11, .k = 7}), "matmul",
                           {{2, 2, 1, 2}, {1, 4, 1, 1}}, {{2, 2}}, {"A", "B"}, 4));
  check(test::tiled_on_gpu(program::operators::matmul_graph({.m = 5, .n = 1, .k = 9}), "matmul",
                           {{1, 3, 1, 1}, {1, 1, 1, 1}}, {{1, 3}},
                           {"A", "B"}));  // one thread of the last block is idle
  check(test::tiled_on_gpu(program::operators::matmul_graph({.m = 3, .n = 3, .k = 3}), "matmul",
                           {{1, 1, 1, 1}, {1, 1, 1, 1}}, {{1, 1}}, {"A", "B"}));  // one thread a block
}

TEST_CASE("a convolution with its padding in the shared copy, or in a kernel of its own") {
  const auto graph = program::operators::conv2d_graph(
      {.batch = 1, .height = 5, .width = 6, .in_channels = 3, .out_channels = 5, .kernel = 3, .padding = 1});
  for (const bool inlined : {true, false}) {
    CAPTURE(inlined);
    ScheduleBuilder s = test::tiled_on_gpu(graph, "conv2d", {{1, 1, 1, 1}, {1, 2, 1, 1}, {2, 1, 1, 3}, {1, 4, 1, 1}},
                                           {{1, 3}, {1, 1}, {1, 2}}, {"conv2d_pad", "weight"});
    const schedule::TensorId pad = s.stage("conv2d_pad");
    if (inlined) {
      s.compute_inline(pad);
    } else {
      test::bind_whole(s, pad, 32);
    }
    CHECK(loops::device_kernels(device(s)).size() == (inlined ? 1 : 2));
    check(s);
  }
}

/// Tensors: x 0, y 1 with y[i] = sum over k of x[i, k].
std::shared_ptr<const program::ComputeGraph> row_sums(std::int64_t rows, std::int64_t columns) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {rows, columns});
  g->reduce("y", {{"i", rows}}, {{"k", columns}}, program::Combiner::Sum,
            [&](auto i, auto r) { return x(i[0], r[0]); });
  return g;
}

TEST_CASE("reductions by threads") {
  SUBCASE("a block a row") {
    ScheduleBuilder s(row_sums(5, 70));
    const auto k = s.split(1, 1, {32});
    s.bind(1, k[1], LoopKind::ThreadX);
    s.bind(1, 0, LoopKind::BlockX);
    check(s);
  }
  SUBCASE("several rows a block, several rows a thread") {
    ScheduleBuilder s(row_sums(13, 20));
    const auto i = s.split(1, 0, {3, 2});
    const auto k = s.split(1, 1, {8});
    s.reorder(1, {i[0], i[1], k[0], k[1], i[2]});
    s.bind(1, i[0], LoopKind::BlockX);
    s.bind(1, i[1], LoopKind::ThreadY);
    s.bind(1, k[1], LoopKind::ThreadX);
    const LoopNest nest = device(s);
    const auto kernels = loops::device_kernels(nest);
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0].grid == std::array<std::int64_t, 3>{3, 1, 1});
    CHECK(kernels[0].block == std::array<std::int64_t, 3>{8, 3, 1});
    CHECK(kernels[0].local_bytes == 2 * 4);  // shares of two rows
    CHECK(kernels[0].combination_bytes == 0);
    check(s);
  }
  SUBCASE("everything to one number, by two indices of threads") {
    ScheduleBuilder s(row_sums(1, 150));
    const auto k = s.split(1, 1, {6, 8});
    s.bind(1, k[1], LoopKind::ThreadY);
    s.bind(1, k[2], LoopKind::ThreadX);
    s.bind(1, 0, LoopKind::BlockX);
    const LoopNest nest = device(s);
    const auto kernels = loops::device_kernels(nest);
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0].blocks() == 1);
    CHECK(kernels[0].combination_bytes == 6 * 8 * 4);  // beyond a warp
    check(s);
  }
  SUBCASE("nothing bound to blocks") {
    ScheduleBuilder s(row_sums(1, 9));
    s.bind(1, 1, LoopKind::ThreadX);
    CHECK(loops::device_kernels(device(s)).size() == 1);
    check(s);
  }
  SUBCASE("a factored reduction, each part by a thread") {
    ScheduleBuilder s(row_sums(6, 50));
    const auto k = s.split(1, 1, {16});
    const schedule::TensorId partial = s.rfactor(1, k[1]);
    s.bind(1, 0, LoopKind::BlockX);
    s.bind(1, 1, LoopKind::ThreadX);
    s.compute_at(partial, 1, 1);
    check(s);
  }
}

/// Rows of softmax in one kernel: each row a block, maximum and sum by its threads.
ScheduleBuilder softmax_in_a_block(std::int64_t rows, std::int64_t columns, std::int64_t threads) {
  ScheduleBuilder s(program::operators::softmax_graph({.rows = rows, .columns = columns}));
  const schedule::TensorId result = s.stage("softmax"), powers = s.stage("softmax_exp");
  const auto bind_last = [&](schedule::TensorId stage) {
    const auto parts = s.split(stage, 1, {threads});
    s.bind(stage, parts[1], LoopKind::ThreadX);
  };
  s.bind(result, 0, LoopKind::BlockX);
  const auto columns_of_result = s.split(result, 1, {threads});
  s.reorder(result, {columns_of_result[1], columns_of_result[0]});
  s.bind(result, columns_of_result[1], LoopKind::ThreadX);
  for (const char* name : {"softmax_max", "softmax_sum"}) {
    bind_last(s.stage(name));
    s.compute_at(s.stage(name), result, 0);
  }
  const auto parts = s.split(powers, 1, {threads});
  s.reorder(powers, {parts[1], parts[0]});
  s.bind(powers, parts[1], LoopKind::ThreadX);
  s.compute_at(powers, result, 0);
  return s;
}

TEST_CASE("stages of one block pass data in shared memory") {
  for (const auto& [columns, threads] : {std::pair{32, 8}, {29, 8}, {5, 8}}) {
    const ScheduleBuilder s = softmax_in_a_block(3, columns, threads);
    const LoopNest nest = device(s);
    CHECK(loops::device_kernels(nest).size() == 1);
    const auto plain = loops::lower(schedule::Schedule{s.schedule().graph, {}});
    const auto expected = outputs(plain, loops::interpret);
    const auto found = outputs(nest, loops::run_simt);
    for (std::size_t e = 0; e < expected.size(); ++e) CHECK(found[e] == doctest::Approx(expected[e]).epsilon(1e-5));
  }
}

TEST_CASE("each thread computes whole sums inside another stage's loop over threads") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {4, 32});
  const auto sum =
      g->reduce("sum", {{"i", 4}}, {{"k", 32}}, program::Combiner::Sum, [&](auto i, auto r) { return x(i[0], r[0]); });
  g->compute("y", {{"i", 4}, {"k", 32}}, [&](auto i) { return x(i[0], i[1]) * sum(i[0]); });
  ScheduleBuilder s(g);
  s.cache_write(1, Scope::Shared);
  s.compute_inline(1);
  s.bind(2, 0, LoopKind::BlockX);
  s.bind(2, 1, LoopKind::ThreadX);
  s.compute_at(3, 2, 1);
  s.bind(3, 1, LoopKind::ThreadX);
  check(s);
}

TEST_CASE("threads beyond a loop over fewer take no part in what they combine") {
  // Sums for 4 values of j by 4 of the 8 threads that have a row of y, each by 32 threads in x.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {2, 4, 6, 64});
  const auto z = g->input("z", {2, 8, 6});
  const auto sum = g->reduce("sum", {{"b", 2}, {"i", 4}, {"j", 6}}, {{"k", 64}}, program::Combiner::Sum,
                             [&](auto i, auto r) { return x(i[0], i[1], i[2], r[0]); });
  g->compute("y", {{"b", 2}, {"m", 8}, {"j", 6}}, [&](auto i) {
    const auto range = [](program::Var) { return program::Range{0, 7}; };
    return z(i[0], i[1], i[2]) + sum(i[0], program::IndexExpr::remainder(i[1], 4, range), i[2]);
  });
  ScheduleBuilder s(g);
  s.bind(3, 0, LoopKind::BlockX);
  s.bind(3, 1, LoopKind::ThreadY);
  s.compute_at(2, 3, 0);
  s.bind(2, 1, LoopKind::ThreadY);
  s.bind(2, s.split(2, 3, {32})[1], LoopKind::ThreadX);
  check(s);
}

// What is no program for a GPU.

/// `nest` without its barrier number `which`; -1: without any.
LoopNest without_barrier(LoopNest nest, int which) {
  int number = 0;
  const std::function<void(loops::Body&)> remove = [&](loops::Body& body) {
    loops::Body kept;
    for (loops::Node& node : body) {
      if (auto* loop = std::get_if<loops::Loop>(&node.content)) remove(loop->body);
      if (std::holds_alternative<loops::Barrier>(node.content) && (which < 0 || number++ == which)) continue;
      kept.push_back(std::move(node));
    }
    body = std::move(kept);
  };
  remove(nest.body);
  return nest;
}

std::string error(const LoopNest& nest) {
  try {
    (void)outputs(nest, loops::run_simt);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "none";
}

TEST_CASE("every barrier is needed") {
  const auto tiled = test::tiled_on_gpu(program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}), "matmul",
                                        {{2, 2, 1, 1}, {1, 4, 1, 1}}, {{2, 2}}, {"A", "B"});
  for (const ScheduleBuilder& s : {tiled, softmax_in_a_block(2, 12, 4)}) {
    const LoopNest nest = device(s);
    CHECK(error(nest) == "none");
    int barriers = 0;
    loops::device::visit_nodes<loops::Barrier>(nest.body, [&](const loops::Barrier&) { ++barriers; });
    CHECK(barriers >= 2);
    for (int b = 0; b < barriers; ++b) CHECK(error(without_barrier(nest, b)) != "none");
  }
}

TEST_CASE("a step of one iteration needs one barrier, and threads that keep to themselves none") {
  const auto once = test::tiled_on_gpu(program::operators::matmul_graph({.m = 8, .n = 8, .k = 4}), "matmul",
                                       {{2, 2, 1, 1}, {1, 4, 1, 1}}, {{2, 2}}, {"A", "B"});
  const auto barriers = [](const LoopNest& nest) {
    int count = 0;
    loops::device::visit_nodes<loops::Barrier>(nest.body, [&](const loops::Barrier&) { ++count; });
    return count;
  };
  CHECK(barriers(device(once)) == 1);
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {64});
  const auto t = g->compute("t", {{"p", 64}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  g->compute("y", {{"i", 64}}, [&](auto i) { return t(i[0]) + program::Expr(1.0); });
  ScheduleBuilder own(g);
  test::bind_whole(own, 1, 16);
  test::bind_whole(own, 2, 16);
  own.compute_at(1, 2, own.loops(2)[0]);  // t is shared, but each thread reads what it wrote
  CHECK(barriers(device(own)) == 0);
  check(own);
}

TEST_CASE("races are found, with the threads and the element") {
  const auto tiled = test::tiled_on_gpu(program::operators::matmul_graph({.m = 2, .n = 2, .k = 4}), "matmul",
                                        {{1, 2, 1, 1}, {1, 2, 1, 1}}, {{1, 2}}, {"A", "B"});
  // The copies of the next step overtake what others still read of this one.
  CHECK(error(without_barrier(device(tiled), 0))
            .find(".shared' which other threads have read since the last barrier at i.0@j.0 = 0, i.2@j.2 = 0, "
                  "k.0 = 1") != std::string::npos);
  // All threads of a block, and all blocks, write one element.
  program::ComputeGraph g;
  const auto x = g.input("x", {4});
  g.compute("y", {{"i", 1}}, [&](auto i) { return x(i[0]); });
  for (const LoopKind kind : {LoopKind::ThreadX, LoopKind::BlockX}) {
    test::NestBuilder b(g);
    const auto v = b.var("v", 4);
    b.nest.body = {b.loop(v, kind, {b.statement(Statement::Kind::Assign, 1, {0})})};
    CHECK(error(b.nest) ==
          "operator 'y' writes element 0 of 'y' which thread 0 has written since the last barrier at v = 1");
  }
}

TEST_CASE("barriers that only some threads come to, and accesses outside, are errors") {
  program::ComputeGraph g;
  const auto x = g.input("x", {4});
  g.compute("y", {{"i", 4}}, [&](auto i) { return x(i[0]); });
  test::NestBuilder b(g);
  const auto t = b.var("t", 4);
  const IndexExpr i = IndexExpr::variable(t);
  const auto store = b.statement(Statement::Kind::Assign, 1, {i});
  b.nest.body = {b.loop(t, LoopKind::ThreadX, {store, loops::Branch{{{i, 2}}, {loops::Barrier{}}, {}}})};
  CHECK(error(b.nest) == "loop nest 'kernel' has a barrier where only some threads of a block run");
  b.nest.body = {b.loop(t, LoopKind::ThreadX, {b.statement(Statement::Kind::Assign, 1, {i + 1})})};
  CHECK(error(b.nest) == "operator 'y' reads 'x' outside its window: index 4 of dimension 0 with extent 4 at t = 3");
}

TEST_CASE("a nest in another form and wrong arguments are refused") {
  ScheduleBuilder s(row_sums(4, 4));
  s.parallel(1, 0);
  CHECK(error(loops::lower(s.schedule())) ==
        "loop 'i' of 'kernel' is parallel inside of other work; bring the nest into device form with "
        "loops::to_device first");
  const LoopNest nest = loops::to_device(loops::lower(ScheduleBuilder(row_sums(4, 4)).schedule()));
  std::vector<std::vector<double>> arguments{std::vector<double>(16), std::vector<double>(3)};
  CHECK_THROWS_WITH_AS(loops::run_simt(nest, arguments), "argument 'y' has 3 elements; its layout holds 4",
                       std::invalid_argument);
}

}  // namespace
