// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/device.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "support/nest_builder.hpp"
#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using loops::LoopNest;
using schedule::LoopKind;
using schedule::ScheduleBuilder;

LoopNest device(const ScheduleBuilder& s) { return loops::to_device(loops::lower(s.schedule())); }

TEST_CASE("a tiled matrix product: copies once for all virtual threads, two barriers a step") {
  // A block of 2 x 2 threads computes 4 x 2: each thread a row of 1 for each of 2 virtual threads.
  const auto s = test::tiled_on_gpu(program::operators::matmul_graph({.m = 8, .n = 4, .k = 4}), "matmul",
                                    {{2, 2, 1, 1}, {1, 2, 1, 1}}, {{2, 1}}, {"A", "B"});
  const std::string expected =
      "kernel(A: float32[8, 4], B: float32[4, 4], out matmul: float32[8, 4])\n"
      "  for i.0@j.0 in 0..4 block_x:\n"
      "    for i.2@j.2 in 0..4 thread_x:\n"
      "      allocate matmul.local: float32[1, 1] local at [2*i.1@j.1 + 4*(i.0@j.0 div 2) + i.2@j.2 div 2, "
      "2*(i.0@j.0 mod 2) + i.2@j.2 mod 2] for each i.1@j.1\n"
      "      for i.1@j.1 in 0..2 unrolled:\n"
      "        matmul.local[0, 0] = 0\n"
      "      for k.0 in 0..2 reduction:\n"
      "        allocate A.shared: float32[4, 2] shared at [4*(i.0@j.0 div 2), 2*k.0]\n"
      "        allocate B.shared: float32[2, 2] shared at [2*k.0, 2*(i.0@j.0 mod 2)]\n"
      "        barrier\n"  // the step before may still read
      "        for d0@d1.0.0 in 0..2:\n"
      "          A.shared[2*d0@d1.0.0 + i.2@j.2 div 2, i.2@j.2 mod 2] = "
      "A[2*d0@d1.0.0 + 4*(i.0@j.0 div 2) + i.2@j.2 div 2, 2*k.0 + i.2@j.2 mod 2]\n"
      "        B.shared[i.2@j.2 div 2, i.2@j.2 mod 2] = "
      "B[2*k.0 + i.2@j.2 div 2, 2*(i.0@j.0 mod 2) + i.2@j.2 mod 2]\n"
      "        barrier\n"
      "        for k.1 in 0..2 reduction:\n"
      "          for i.1@j.1 in 0..2 unrolled:\n"
      "            matmul.local[0, 0] += A.shared[2*i.1@j.1 + i.2@j.2 div 2, k.1] * B.shared[k.1, i.2@j.2 "
      "mod 2]\n"
      "      for i.1@j.1 in 0..2 unrolled:\n"
      "        matmul[2*i.1@j.1 + 4*(i.0@j.0 div 2) + i.2@j.2 div 2, 2*(i.0@j.0 mod 2) + i.2@j.2 mod 2] = "
      "matmul.local[0, 0]\n";
  CHECK(loops::to_string(device(s)) == expected);
}

TEST_CASE("a reduction by threads: a share each, then combined") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = 4, .k = 70}));
  const auto k = s.split(2, 2, {32});
  s.bind(2, k[1], LoopKind::ThreadX);
  s.bind(2, s.fuse(2, {0, 1}), LoopKind::BlockX);
  CHECK(loops::to_string(device(s)) ==
        "kernel(A: float32[4, 70], B: float32[70, 4], out matmul: float32[4, 4])\n"
        "  for i@j in 0..16 block_x:\n"
        "    for k.1 in 0..32 thread_x:\n"
        "      allocate matmul.partial: float32[1, 1] local at [i@j div 4, i@j mod 4]\n"
        "      matmul.partial[0, 0] = 0\n"
        "      for k.0 in 0..3 reduction:\n"
        "        matmul.partial[0, 0] += A[i@j div 4, 32*k.0 + k.1] * B[32*k.0 + k.1, i@j mod 4]  where "
        "32*k.0 + k.1 < 70\n"
        "      matmul[i@j div 4, i@j mod 4] = sum over thread_x of matmul.partial[0, 0]\n");
}

TEST_CASE("loops over threads one after the other become one, with a condition where one is shorter") {
  // t: 18 elements a block by 16 threads in 2 rounds, y: 16 by 8 threads.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {66});
  const auto t = g->compute("t", {{"p", 66}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  g->compute("y", {{"i", 64}}, [&](auto i) { return t(i[0]) + t(i[0] + 2); });
  ScheduleBuilder s(g);
  const auto i = s.split(2, 0, {8, 2});
  s.bind(2, i[0], LoopKind::BlockX);
  s.bind(2, i[1], LoopKind::ThreadX);
  const auto p = s.split(1, 0, {16});
  s.reorder(1, {p[1], p[0]});
  s.bind(1, p[1], LoopKind::ThreadX);
  s.compute_at(1, 2, i[0]);
  CHECK(loops::to_string(device(s)) ==
        "kernel(x: float32[66], out y: float32[64])\n"
        "  for i.0 in 0..4 block_x:\n"
        "    for p.1 in 0..16 thread_x:\n"
        "      allocate t: float32[32] shared at [16*i.0]\n"
        "      for p.0 in 0..2:\n"
        "        t[p.1 + 16*p.0] = x[16*i.0 + p.1 + 16*p.0] * 2  where 16*i.0 + p.1 + 16*p.0 < 66\n"
        "      barrier\n"
        "      if p.1 < 8:\n"
        "        for i.2 in 0..2:\n"
        "          y[16*i.0 + i.2 + 2*p.1] = t[i.2 + 2*p.1] + t[i.2 + 2*p.1 + 2]\n");
}

TEST_CASE("what may be unrolled stays so when the loop that says it goes away") {
  auto s = test::tiled_on_gpu(program::operators::matmul_graph({.m = 8, .n = 8, .k = 4}), "matmul",
                              {{2, 2, 1, 2}, {1, 2, 1, 1}}, {{2, 1}}, {"A", "B"});
  s.unroll_limit(s.stage("matmul"), 64);
  const std::string text = loops::to_string(device(s));
  CHECK(text.find("thread_x unroll") == std::string::npos);
  // The last loop, within that over virtual threads, stores the tile.
  CHECK(text.find("for i.1@j.1 in 0..2 unrolled:\n        for i.3 in 0..2 unroll<=64:\n          matmul[") !=
        std::string::npos);
}

/// Tensors: x 0, t 1 = 2 x, y 2 = t + 1, each of 8 elements.
program::ComputeGraph chain() {
  program::ComputeGraph g;
  const auto x = g.input("x", {8});
  const auto t = g.compute("t", {{"p", 8}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  g.compute("y", {{"i", 8}}, [&](auto i) { return t(i[0]) + program::Expr(1.0); });
  return g;
}

using loops::IndexExpr;
using loops::Statement;
using test::NestBuilder;

/// block_x b of 1 { allocate t in `scope`; thread_x p of 8: t[p] = ..; thread_x i of 8: y[i] = .. t[read(i)] .. }
LoopNest two_loops_over_threads(const program::ComputeGraph& g, loops::Scope scope,
                                const IndexExpr& written_shift = 0) {
  NestBuilder b(g);
  const auto block = b.var("b", 1), p = b.var("p", 8), i = b.var("i", 8);
  const auto t = b.temporary(1, {16}, {0}, scope);
  const auto write = b.statement(Statement::Kind::Assign, 1, {IndexExpr::variable(p) + written_shift});
  const auto read = b.statement(Statement::Kind::Assign, 2, {IndexExpr::variable(i)});
  b.nest.body = {
      b.loop(block, LoopKind::BlockX,
             {loops::Allocate{t}, b.loop(p, LoopKind::ThreadX, {write}), b.loop(i, LoopKind::ThreadX, {read})})};
  return b.nest;
}

std::string refusal(const LoopNest& nest) {
  try {
    (void)loops::to_device(nest);
  } catch (const loops::DeviceFormError& error) {
    return error.what();
  }
  return "none";
}

int barriers(const LoopNest& nest) {
  int count = 0;
  loops::device::visit_nodes<loops::Barrier>(nest.body, [&](const loops::Barrier&) { ++count; });
  return count;
}

TEST_CASE("memory of a thread is read by that thread, memory of a block by all after a barrier") {
  const auto g = chain();
  CHECK(refusal(two_loops_over_threads(g, loops::Scope::Local)) == "none");
  CHECK(refusal(two_loops_over_threads(g, loops::Scope::Local, 1)) ==
        "kernel 'kernel': 't' is local to a thread but read by others; keep it in shared memory");
  CHECK(barriers(loops::to_device(two_loops_over_threads(g, loops::Scope::Shared))) == 0);
  CHECK(barriers(loops::to_device(two_loops_over_threads(g, loops::Scope::Shared, 1))) == 1);
}

TEST_CASE("what all threads would do alike is done by one, in memory they share") {
  const auto g = chain();
  NestBuilder b(g);
  const auto block = b.var("b", 1), p = b.var("p", 8), i = b.var("i", 8);
  const auto t = b.temporary(1, {8}, {0}, loops::Scope::Shared);
  const auto write = b.statement(Statement::Kind::Assign, 1, {IndexExpr::variable(p)});
  const auto read = b.statement(Statement::Kind::Assign, 2, {IndexExpr::variable(i)});
  const auto nest_with = [&](loops::Scope scope) {
    b.nest.buffers[t].scope = scope;
    b.nest.body = {
        b.loop(block, LoopKind::BlockX,
               {loops::Allocate{t}, b.loop(p, LoopKind::Serial, {write}), b.loop(i, LoopKind::ThreadX, {read})})};
    return loops::to_string(loops::to_device(b.nest));
  };
  CHECK(nest_with(loops::Scope::Shared)
            .find("      if i < 1:\n        for p in 0..8:\n          t[p] = x[p] * 2\n"
                  "      barrier\n      y[i] = t[i] + 1\n") != std::string::npos);
  CHECK(nest_with(loops::Scope::Local)
            .find("      for p in 0..8:\n        t[p] = x[p] * 2\n"
                  "      y[i] = t[i] + 1\n") != std::string::npos);
}

TEST_CASE("buffers that differ by virtual thread have a copy for each, whatever they are filled with") {
  // Each of 2 x 3 virtual threads keeps one element of t: copies for both, in the order of the loops.
  program::ComputeGraph g;
  const auto x = g.input("x", {6});
  const auto t = g.compute("t", {{"p", 6}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  g.compute("y", {{"i", 6}}, [&](auto i) { return t(i[0]) + program::Expr(1.0); });
  NestBuilder b(g);
  const auto v = b.var("v", 2), w = b.var("w", 3), tx = b.var("t", 1);
  const IndexExpr at = 3 * IndexExpr::variable(v) + IndexExpr::variable(w);
  const auto tile = b.temporary(1, {1}, {at}, loops::Scope::Local);
  b.nest.body = {b.loop(v, LoopKind::VirtualThread,
                        {b.loop(w, LoopKind::VirtualThread,
                                {b.loop(tx, LoopKind::ThreadX,
                                        {loops::Allocate{tile}, b.statement(Statement::Kind::Assign, 1, {at}),
                                         b.statement(Statement::Kind::Assign, 2, {at})})})})};
  const LoopNest nest = loops::to_device(b.nest);
  using Copies = std::vector<loops::CopySelector>;
  CHECK(nest.buffers[tile].private_to == Copies{{v, 2}, {w, 3}});
  CHECK(nest.buffers[tile].physical_shape() == std::vector<std::int64_t>{2, 3, 1});
  CHECK(loops::element_offset(nest, nest.buffers[tile], {at}) == at);
  CHECK(nest.buffers[tile].bytes() == 6 * 4);
}

TEST_CASE("what is no GPU program is refused, by name") {
  const auto g = chain();
  SUBCASE("loops over blocks or threads inside of serial ones") {
    for (const LoopKind kind : {LoopKind::BlockX, LoopKind::ThreadX}) {
      NestBuilder b(g);
      b.nest.body = {loops::Allocate{b.temporary(1)}};
      const auto o = b.var("o", 2), p = b.var("p", 4);
      const auto store = b.statement(Statement::Kind::Assign, 1, {4 * IndexExpr::variable(o) + IndexExpr::variable(p)});
      b.nest.body.push_back(b.loop(o, LoopKind::Serial, {b.loop(p, kind, {store})}));
      CHECK(refusal(b.nest) == "kernel 'kernel': loop 'p' is bound to " + std::string(loops::name(kind)) +
                                   " inside of other loops or beside other work; make it outermost");
    }
  }
  SUBCASE("one index twice, one inside of the other") {
    NestBuilder b(g);
    b.nest.body = {loops::Allocate{b.temporary(1)}};
    const auto o = b.var("o", 2), p = b.var("p", 4);
    const auto store = b.statement(Statement::Kind::Assign, 1, {4 * IndexExpr::variable(o) + IndexExpr::variable(p)});
    for (const LoopKind kind : {LoopKind::BlockX, LoopKind::ThreadX}) {
      loops::Body body = b.nest.body;
      body.push_back(b.loop(o, kind, {b.loop(p, kind, {store})}));
      LoopNest nest = b.nest;
      nest.body = std::move(body);
      CHECK(refusal(nest) ==
            "kernel 'kernel': loop 'p' is bound to " + std::string(loops::name(kind)) + " as is one around it");
    }
  }
  SUBCASE("parallel loops") {
    NestBuilder b(g);
    const auto p = b.var("p", 8);
    b.nest.body = {loops::Allocate{b.temporary(1)},
                   b.loop(p, LoopKind::Parallel, {b.statement(Statement::Kind::Assign, 1, {IndexExpr::variable(p)})})};
    CHECK(refusal(b.nest) ==
          "kernel 'kernel': loop 'p' is parallel, which only CPUs have; bind it to blocks or threads");
  }
  SUBCASE("shared memory that several kernels use") {
    NestBuilder b(g);
    const auto p = b.var("p", 8);
    b.nest.body = {loops::Allocate{b.temporary(1, {8}, {0}, loops::Scope::Shared)},
                   b.loop(p, LoopKind::BlockX, {b.statement(Statement::Kind::Assign, 1, {IndexExpr::variable(p)})})};
    CHECK(refusal(b.nest) == "'t' is shared memory outside of kernels; compute it in a loop over blocks");
  }
  SUBCASE("a barrier that some threads would not come to") {
    NestBuilder b(g);
    const auto p = b.var("p", 8);
    const auto tile = b.temporary(1, {8}, {0}, loops::Scope::Shared);
    const IndexExpr thread = IndexExpr::variable(p);
    b.nest.body = {b.loop(p, LoopKind::ThreadX,
                          {loops::Allocate{tile}, loops::Branch{{{thread, 4}},
                                                                {b.statement(Statement::Kind::Assign, 1, {3 - thread}),
                                                                 b.statement(Statement::Kind::Assign, 2, {thread})},
                                                                {}}})};
    CHECK(refusal(b.nest) == "kernel 'kernel': 't' is passed between threads where only some of them run");
  }
  SUBCASE("a variable that is not declared") {
    NestBuilder b(g);
    b.nest.body = {b.loop(7, LoopKind::ThreadX, {})};
    CHECK_THROWS_AS((void)loops::to_device(b.nest), std::invalid_argument);
  }
}

TEST_CASE("kernels of a nest: launch, memory, and what each thread runs") {
  const auto s = test::tiled_on_gpu(program::operators::matmul_graph({.m = 64, .n = 48, .k = 32}), "matmul",
                                    {{2, 4, 1, 2}, {1, 4, 2, 2}}, {{2, 4}}, {"A", "B"});
  const LoopNest nest = device(s);
  const auto kernels = loops::device_kernels(nest);
  REQUIRE(kernels.size() == 1);
  const loops::DeviceKernel& kernel = kernels[0];
  CHECK(kernel.blocks() == 4 * 3);
  CHECK(kernel.threads() == 16);
  CHECK(kernel.bound.size() == 2);
  CHECK(kernel.thread_index[0] == kernel.bound[1]->var);
  CHECK_FALSE(kernel.thread_index[1]);
  CHECK(kernel.shared.size() == 2);
  CHECK(kernel.shared_bytes == (16 * 8 + 8 * 16) * 4);
  CHECK(kernel.local_bytes == 2 * (2 * 4) * 4);  // a tile for each of two virtual threads
  CHECK(kernel.body.data() == kernel.bound[1]->body.data());
  CHECK_THROWS_WITH_AS((void)loops::device_kernels(loops::lower(s.schedule())), doctest::Contains("to_device first"),
                       loops::DeviceFormError);
}

}  // namespace
