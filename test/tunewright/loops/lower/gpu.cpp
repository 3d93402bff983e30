// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "support/schedule_faults.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using loops::LoopNest;
using schedule::LoopKind;
using schedule::ScheduleBuilder;
using schedule::Scope;
using Shape = std::vector<std::int64_t>;

ScheduleBuilder tiled(std::int64_t m, std::int64_t n, std::int64_t k, const test::Tile& rows, const test::Tile& columns,
                      const test::Tile& reduction, std::int64_t vector = 1) {
  return test::tiled_on_gpu(program::operators::matmul_graph({.m = m, .n = n, .k = k}), "matmul", {rows, columns},
                            {reduction}, {"A", "B"}, vector);
}

const loops::Buffer& buffer(const LoopNest& nest, const std::string& name) {
  for (const loops::Buffer& b : nest.buffers) {
    if (b.name == name) return b;
  }
  FAIL("no buffer is called " << name);
  return nest.buffers[0];
}

/// Loops bound to an index or of virtual threads, with the names of those around: "block_x vthread thread_x".
void bound_paths(const loops::Body& body, const std::string& around, std::vector<std::string>& paths) {
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      const bool bound = schedule::is_hardware_index(loop->kind) || loop->kind == LoopKind::VirtualThread;
      std::string here = around;
      if (bound) paths.push_back(here += " " + std::string(loops::name(loop->kind)));
      bound_paths(loop->body, here, paths);
    }
    if (const auto* branch = std::get_if<loops::Branch>(&node.content)) bound_paths(branch->then, around, paths);
  }
}
std::vector<std::string> bound_paths(const LoopNest& nest) {
  std::vector<std::string> paths;
  bound_paths(nest.body, "", paths);
  return paths;
}

TEST_CASE("a copy for all threads runs on the threads around it") {
  // Rows: 4 blocks x 2 virtual threads x 4 threads x 2; columns: 4 blocks x 4 threads x 4; 4 steps of k = 8.
  const LoopNest nest = loops::lower(tiled(64, 64, 32, {2, 4, 1, 2}, {1, 4, 2, 2}, {2, 4}, 2).schedule());
  CHECK(bound_paths(nest) == std::vector<std::string>{" block_x", " block_x vthread", " block_x vthread thread_x"});
  // A block computes 16 x 16 and reads 16 x 8 of A at a time, 128 elements: 4 rounds of 16 threads with 2 each.
  CHECK(buffer(nest, "A.shared").shape == Shape{16, 8});
  CHECK(buffer(nest, "B.shared").shape == Shape{8, 16});
  CHECK(buffer(nest, "matmul.local").shape == Shape{2, 4});
  const std::string text = loops::to_string(nest);
  CHECK(text.find("          for d0@d1.0.0 in 0..4:\n            for d0@d1.1 in 0..2 vectorized:\n"
                  "              A.shared[4*d0@d1.0.0 + i.2@j.2 div 4, d0@d1.1 + 2*(i.2@j.2 mod 4)] =") !=
        std::string::npos);
}

TEST_CASE("threads without work in a small copy are idle") {
  // 8 threads; the tile of A is 2 x 2, that of B is 2 x 4.
  const LoopNest nest = loops::lower(tiled(6, 8, 6, {1, 2, 1, 1}, {1, 4, 1, 1}, {1, 2}).schedule());
  CHECK(buffer(nest, "A.shared").shape == Shape{2, 2});  // as tight as were it copied by 4 threads
  const std::string text = loops::to_string(nest);
  CHECK(text.find("        if i.2@j.2 < 4:\n          A.shared[i.2@j.2 div 2, i.2@j.2 mod 2] = A[") !=
        std::string::npos);
  CHECK(text.find("        B.shared[i.2@j.2 div 4, i.2@j.2 mod 4] = B[") != std::string::npos);
}

TEST_CASE("a copy of one element is one thread's") {
  const LoopNest nest = loops::lower(tiled(4, 8, 3, {1, 1, 1, 1}, {1, 4, 1, 1}, {1, 1}).schedule());
  CHECK(buffer(nest, "A.shared").shape == Shape{1, 1});
  CHECK(loops::to_string(nest).find("        if i.2@j.2 < 1:\n          A.shared[0, 0] = A[") != std::string::npos);
}

TEST_CASE("all threads fill shared memory where some lie beyond the tensor") {
  // 7 x 5 by blocks of 4 x 4: no condition may keep a thread from its part of the copies.
  const LoopNest nest = loops::lower(tiled(7, 5, 6, {1, 4, 1, 1}, {1, 4, 1, 1}, {1, 2}).schedule());
  CHECK(loops::to_string(nest).find("if i.0@j.0") == std::string::npos);
}

TEST_CASE("more iterations than there are threads are refused") {
  schedule::Schedule few = tiled(6, 8, 6, {1, 2, 1, 1}, {1, 4, 1, 1}, {1, 2}).schedule();
  for (schedule::Step& step : few.steps) {  // 12 instead of 8 threads for tiles of 4 and 8 elements
    if (auto* split = std::get_if<schedule::FollowFusedSplit>(&step))
      step = schedule::Split{split->stage, split->iter, {12}, 0, -1, LoopKind::Serial};
  }
  CHECK(test::fault_of([&] { (void)loops::lower(few); }) == "nothing was thrown");
  ScheduleBuilder wide = tiled(6, 8, 6, {1, 2, 1, 1}, {1, 4, 1, 1}, {1, 6});
  const auto whole = wide.stage("B.shared");
  wide.bind(whole, wide.loops(whole)[1], LoopKind::Serial);
  wide.bind(whole, wide.fuse(whole, {wide.loops(whole)[0], wide.loops(whole)[1]}), LoopKind::ThreadX);
  CHECK(test::fault_of([&] { (void)loops::lower(wide.schedule()); }) == "bad_annotation");  // 24 on 8 threads
}

TEST_CASE("two loops of a stage on one index are refused") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = 4, .k = 4}));
  s.bind(2, 0, LoopKind::ThreadX);
  s.bind(2, 1, LoopKind::ThreadX);
  CHECK(test::fault_of([&] { (void)loops::lower(s.schedule()); }) == "bad_annotation");
  ScheduleBuilder one(program::operators::matmul_graph({.m = 1, .n = 4, .k = 4}));
  one.bind(2, 0, LoopKind::ThreadX);
  one.bind(2, 1, LoopKind::ThreadX);
  CHECK(loops::lower(one.schedule()).body.size() == 1);
}

TEST_CASE("what a thread keeps for itself is computed by that thread, whatever it was bound to") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {64});
  const auto t = g->compute("t", {{"p", 64}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  g->compute("y", {{"i", 62}}, [&](auto i) { return t(i[0]) + t(i[0] + 1) + t(i[0] + 2); });
  ScheduleBuilder s(g);
  test::bind_whole(s, 1, 16);
  test::bind_whole(s, 2, 16);
  CHECK(bound_paths(loops::lower(s.schedule())) ==
        std::vector<std::string>{" block_x", " block_x thread_x", " block_x", " block_x thread_x"});
  s.compute_at(1, 2, s.loops(2)[1]);
  const LoopNest in_thread = loops::lower(s.schedule());
  CHECK(bound_paths(in_thread) == std::vector<std::string>{" block_x", " block_x thread_x"});
  CHECK(buffer(in_thread, "t").scope == Scope::Local);
  CHECK(buffer(in_thread, "t").shape == Shape{3});

  // In the loop of the blocks it is the block's, and its threads share it.
  ScheduleBuilder in_block(s.schedule().graph);
  test::bind_whole(in_block, 1, 16);
  test::bind_whole(in_block, 2, 16);
  in_block.compute_at(1, 2, in_block.loops(2)[0]);
  const LoopNest nest = loops::lower(in_block.schedule());
  CHECK(bound_paths(nest) == std::vector<std::string>{" block_x", " block_x thread_x", " block_x thread_x"});
  CHECK(buffer(nest, "t").scope == Scope::Shared);
  CHECK(buffer(nest, "t").shape == Shape{18});  // two rounds of 16 threads, guarded beyond the window
}

}  // namespace
