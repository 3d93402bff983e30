// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/device/pipelines.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/fixed_inputs.hpp"
#include "support/gpu_schedules.hpp"
#include "support/nest_builder.hpp"
#include "support/schedule_faults.hpp"
#include "support/tensor_schedules.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/loops/simt.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using loops::Barrier;
using loops::Body;
using loops::CommitCopies;
using loops::IndexExpr;
using loops::LoopKind;
using loops::LoopNest;
using loops::Node;
using loops::Statement;
using loops::WaitForCopies;
using schedule::Pipelining;
using schedule::ScheduleBuilder;

using test::outputs;

LoopNest device(const ScheduleBuilder& s) { return loops::to_device(loops::lower(s.schedule())); }

/// Whether a GPU schedule computes what the plain loops do.
void check(const ScheduleBuilder& s) {
  const auto plain = loops::lower(schedule::Schedule{s.schedule().graph, {}});
  const LoopNest nest = device(s);
  CAPTURE(loops::to_string(nest));
  CHECK(outputs(nest, loops::run_simt) == outputs(plain, loops::interpret));
}

/// Lets the copies to shared memory of a stage tiled by `tiled_on_gpu` run ahead.
ScheduleBuilder pipelined(ScheduleBuilder s, const char* stage, Pipelining how) {
  const schedule::TensorId tiled = s.stage(stage);
  for (const schedule::Stage& copy : s.state().stages) {
    if (copy.scope != schedule::Scope::Shared) continue;
    s.pipeline(tiled, copy.location.iter, how);
    break;
  }
  return s;
}
/// 13 x 11 products of rows of `k`, by blocks of 16 threads and steps of 4.
ScheduleBuilder matmul(std::int64_t k, Pipelining how, std::int64_t vector = 2) {
  return pipelined(test::tiled_on_gpu(program::operators::matmul_graph({.m = 13, .n = 11, .k = k}), "matmul",
                                      {{2, 4, 1, 2}, {1, 4, 1, 2}}, {{2, 2}}, {"A", "B"}, vector),
                   "matmul.local", how);
}

template <class Content>
std::size_t count(const Body& body) {
  std::size_t n = 0;
  loops::device::visit_nodes<Content>(body, [&n](const Content&) { ++n; });
  return n;
}
/// Takes the first node of kind `Content` out of `body`.
template <class Content>
bool drop(Body& body) {
  for (auto node = body.begin(); node != body.end(); ++node) {
    if (std::holds_alternative<Content>(node->content)) {
      body.erase(node);
      return true;
    }
    auto* loop = std::get_if<loops::Loop>(&node->content);
    if (loop != nullptr && drop<Content>(loop->body)) return true;
  }
  return false;
}

TEST_CASE("copies that run ahead change no result") {
  for (const Pipelining how : {Pipelining{2, false}, {3, false}, {2, true}, {3, true}, {4, true}}) {
    CAPTURE(how.depth);
    CAPTURE(how.asynchronous);
    for (const std::int64_t k : {1, 4, 5, 8, 9, 17, 30}) {  // from one tile on, whole and not
      CAPTURE(k);
      check(matmul(k, how));
    }
    check(matmul(18, how, 4));
    // One thread a block: nothing to wait for but copies.
    check(pipelined(test::tiled_on_gpu(program::operators::matmul_graph({.m = 3, .n = 3, .k = 5}), "matmul",
                                       {{1, 1, 1, 1}, {1, 1, 1, 1}}, {{1, 1}}, {"A", "B"}),
                    "matmul.local", how));
  }
}

TEST_CASE("the loops of a reduction run as one, with padding in the copy") {
  const auto graph = program::operators::conv2d_graph(
      {.batch = 1, .height = 5, .width = 6, .in_channels = 3, .out_channels = 5, .kernel = 3, .padding = 1});
  for (const Pipelining how : {Pipelining{2, false}, {2, true}, {3, true}}) {
    // Kernel rows, kernel columns, channels; the copies are computed in the innermost loop of the three.
    ScheduleBuilder s = test::tiled_on_gpu(graph, "conv2d", {{1, 1, 1, 1}, {1, 2, 1, 1}, {2, 1, 1, 3}, {1, 4, 1, 1}},
                                           {{1, 1}, {1, 1}, {1, 2}}, {});
    const schedule::TensorId tiled = s.stage("conv2d.local");
    const schedule::IterId innermost = s.loops(tiled)[14];
    REQUIRE(schedule::iterator_name(s.state().stages[tiled], innermost).find(".0") != std::string::npos);
    s.compute_inline(s.stage("conv2d_pad"));
    for (const char* operand : {"conv2d_pad", "weight"}) {
      const auto copy = s.cache_read(s.stage(operand), tiled, schedule::Scope::Shared);
      s.compute_at(copy, tiled, innermost);
      const auto parts = s.split(copy, s.fuse(copy, std::vector<schedule::IterId>(s.loops(copy))), {8});
      s.bind(copy, parts[1], LoopKind::ThreadX);
    }
    s.pipeline(tiled, innermost, how);
    check(s);
    const LoopNest nest = device(s);
    CHECK(loops::to_string(nest).find("@") != std::string::npos);
    std::int64_t longest = 0;
    loops::device::visit_nodes<loops::Loop>(nest.body, [&](const loops::Loop& loop) {
      if (loop.reduction && count<Barrier>(loop.body) > 0) longest = std::max(longest, nest.variables[loop.var].extent);
    });
    CHECK(longest == 18);  // 3 * 3 * 2
  }
}

TEST_CASE("a loop inside one that fetches ahead may do so itself") {
  for (const auto& [outer, inner] : std::vector<std::pair<Pipelining, Pipelining>>{
           {{2, false}, {2, false}}, {{3, true}, {2, true}}, {{2, true}, {3, true}}, {{3, true}, {2, false}}}) {
    for (const std::int64_t k : {9, 17, 30}) {  // from two tiles on
      CAPTURE(k);
      ScheduleBuilder s = test::tiled_on_gpu(program::operators::matmul_graph({.m = 13, .n = 11, .k = k}), "matmul",
                                             {{2, 4, 1, 2}, {1, 4, 1, 2}}, {{4, 2}}, {"A"}, 2);
      const schedule::TensorId tiled = s.stage("matmul.local");
      const schedule::IterId k_0 = s.loops(tiled)[6], k_1 = s.loops(tiled)[7];
      const schedule::TensorId copy = s.cache_read(s.stage("B"), tiled, schedule::Scope::Shared);
      s.compute_at(copy, tiled, k_1);
      const auto parts = s.split(copy, s.fuse(copy, std::vector<schedule::IterId>(s.loops(copy))), {16});
      s.bind(copy, parts[1], LoopKind::ThreadX);
      s.pipeline(tiled, k_0, outer);
      s.pipeline(tiled, k_1, inner);
      check(s);
      // One wait in each loop that copies asynchronously, and registers where threads copy.
      const LoopNest nest = device(s);
      CHECK(count<WaitForCopies>(nest.body) == (outer.asynchronous ? 1U : 0U) + (inner.asynchronous ? 1U : 0U));
      if (!inner.asynchronous) CHECK(loops::to_string(nest).find("B.shared.next") != std::string::npos);
    }
  }
}

TEST_CASE("one barrier an iteration, and a wait that leaves what is fetched further ahead") {
  const LoopNest plain = device(matmul(30, {1, false}));
  CHECK(count<Barrier>(plain.body) == 2);
  const LoopNest twice = device(matmul(30, {2, false}));
  CHECK(count<Barrier>(twice.body) == 1);
  CHECK(count<CommitCopies>(twice.body) == 0);
  const LoopNest thrice = device(matmul(30, {3, true}));
  CHECK(count<Barrier>(thrice.body) == 1);
  CHECK(count<CommitCopies>(thrice.body) == 2);  // ahead of the loop and in it
  std::vector<std::uint32_t> under_way;
  loops::device::visit_nodes<WaitForCopies>(thrice.body,
                                            [&](const WaitForCopies& wait) { under_way.push_back(wait.under_way); });
  CHECK(under_way == std::vector<std::uint32_t>{1});
  // Through registers: as many loads as stores, the latter after what is computed.
  const std::string text = loops::to_string(twice);
  const std::size_t computed = text.find(" += ");
  REQUIRE(computed != std::string::npos);
  CHECK(text.find("A.shared.next[0, 0] = A[") < computed);
  CHECK(text.find("= A.shared.next[0, 0]") > computed);
  CHECK(text.find("= A.shared.next[0, 0]") != std::string::npos);
  CHECK(text.find("A.shared<(k.0 + 1) mod 2>") > computed);
}

TEST_CASE("products of warp groups run on beside the wait for the next tile; those of warps do not") {
  const auto graph =
      program::operators::matmul_graph({.m = 128, .n = 64, .k = 128, .type = program::ScalarType::Float16});
  const auto text = [&](const char* instruction, unsigned depth, bool asynchronous) {
    ScheduleBuilder s = test::tensorized_matmul(graph, instruction, {{2, 1}, {1, 1}, 2});
    if (depth > 1)
      s.pipeline(s.stage("matmul.accumulator"), s.state().stages[s.stage("A.shared")].location.iter,
                 {depth, asynchronous});
    return loops::to_string(device(s));
  };
  const auto contains = [](const std::string& all, const std::string& part) {
    return all.find(part) != std::string::npos;
  };
  const std::string wait = "wait for products but those of 1 loops\n          barrier\n          if ";
  for (const unsigned depth : {2U, 4U}) {
    const std::string groups = text("wgmma_fp16_n64", depth, true);
    CAPTURE(groups);
    CHECK(contains(groups, wait));
    CHECK(contains(groups, "\n        wait for products\n"));
  }
  CHECK(contains(text("wgmma_fp16_n64", 2, false), wait));
  CHECK_FALSE(contains(text("wgmma_fp16_n64", 1, false), "wait for products"));
  CHECK_FALSE(contains(text("mma_fp16", 4, true), "wait for products"));
}

TEST_CASE("shared memory is counted as often as tiles are kept, before and after") {
  const auto shared_bytes = [](const LoopNest& nest) {
    return loops::device_kernels(loops::to_device(nest))[0].shared_bytes;
  };
  constexpr std::int64_t tiles = (13 * 4 + 4 * 8) * 4;  // all rows of A and 8 columns of B
  const auto lowered = [](std::int64_t k, Pipelining how) { return loops::lower(matmul(k, how).schedule()); };
  CHECK(shared_bytes(lowered(30, {1, false})) == tiles);
  CHECK(shared_bytes(lowered(30, {2, false})) == 2 * tiles);
  CHECK(shared_bytes(lowered(30, {4, true})) == 4 * tiles);
  CHECK(shared_bytes(lowered(7, {4, true})) == 2 * tiles);  // there are two tiles
  CHECK(shared_bytes(lowered(4, {4, true})) == tiles);
  loops::GpuLimits limits;
  limits.max_shared_bytes = 3 * tiles;
  CHECK(loops::exceeded_limit(lowered(30, {3, true}), limits).empty());
  CHECK(loops::exceeded_limit(lowered(30, {4, true}), limits) == "too much shared memory");
  CHECK(loops::exceeded_limit(loops::to_device(lowered(30, {4, true})), limits) == "too much shared memory");
}

TEST_CASE("a device that does not copy by itself is told by name") {
  Target target;
  target.kind = DeviceKind::Gpu;
  target.architecture = "sm_75";
  const LoopNest ahead = loops::lower(matmul(30, {2, true}).schedule());
  CHECK(loops::exceeded_limit(ahead, target) == "asynchronous copies before compute capability 8.0");
  CHECK(loops::exceeded_limit(loops::lower(matmul(30, {2, false}).schedule()), target).empty());
  for (const char* newer : {"sm_80", "sm_90a", "sm_103"}) {
    target.architecture = newer;
    CHECK(loops::exceeded_limit(ahead, target).empty());
  }
}

TEST_CASE("a missing wait or barrier is found") {
  const auto fault_without = [](LoopNest nest, const auto& spoil) {
    REQUIRE(spoil(nest.body));
    try {
      (void)outputs(nest, loops::run_simt);
    } catch (const loops::InterpretError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was found");
  };
  for (const std::uint32_t depth : {2U, 3U}) {
    const LoopNest nest = device(matmul(30, {depth, true}));
    CHECK(fault_without(nest, drop<WaitForCopies>).find("is copying; wait for its copies first") != std::string::npos);
    // Thread 0 comes first and finds what others have not copied yet.
    CHECK(fault_without(nest, drop<Barrier>).find("before it is written") != std::string::npos);
    // Waiting for one group less than it takes.
    const auto wait_less = [](Body& body) {
      loops::device::visit_nodes<WaitForCopies>(body, [](WaitForCopies& wait) { ++wait.under_way; });
      return true;
    };
    CHECK(fault_without(nest, wait_less).find("is copying") != std::string::npos);
    // Copies that belong to no group are never waited for.
    CHECK(fault_without(nest, drop<CommitCopies>).find("is copying") != std::string::npos);
  }
  CHECK(fault_without(device(matmul(30, {2, false})), drop<Barrier>).find("before it is written") != std::string::npos);
}

TEST_CASE("an asynchronous copy is there for its own thread after the wait, for others after a barrier too") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {4});
  const auto y = g->compute("y", {{"i", 4}}, [&](auto i) { return x(i[0]); });
  g->compute("z", {{"i", 4}}, [&](auto i) { return y(i[0]); });
  const auto run = [&](bool wait, bool barrier, bool mirrored) {
    test::NestBuilder b(*g);
    const loops::Var block = b.var("block", 1), thread = b.var("thread", 4);
    const loops::BufferId shared = b.temporary(1, {4}, {IndexExpr(0)}, loops::Scope::Shared);
    const IndexExpr i = IndexExpr::variable(thread), mirror = IndexExpr(3) - i;
    Statement copy = b.statement(Statement::Kind::Assign, 1, {i});
    copy.asynchronous = true;
    Body body{loops::Allocate{shared}, copy, CommitCopies{}};
    if (wait) body.push_back(WaitForCopies{0});
    if (barrier) body.push_back(Barrier{});
    body.push_back(b.statement(Statement::Kind::Assign, 2, {mirrored ? mirror : i}));
    b.nest.body = {b.loop(block, LoopKind::BlockX, {b.loop(thread, LoopKind::ThreadX, body)})};
    return outputs(b.nest, loops::run_simt);
  };
  CHECK(run(true, true, true) == run(true, false, false));
  CHECK_THROWS_AS((void)run(true, false, true), loops::InterpretError);
  CHECK_THROWS_AS((void)run(false, true, true), loops::InterpretError);
  CHECK_THROWS_AS((void)run(false, false, false), loops::InterpretError);
}

TEST_CASE("loops that cannot run ahead are refused") {
  const auto fault = [](const auto& spoil) {
    ScheduleBuilder s = matmul(30, {1, false});
    spoil(s, s.stage("matmul.local"), s.state().stages[s.stage("A.shared")].location.iter);
    return test::fault_of([&] { (void)loops::lower(s.schedule()); });
  };
  CHECK(fault([](auto& s, auto stage, auto iter) {
          s.pipeline(stage, iter, {2, false});
          s.unroll(stage, iter);
        }) == "bad_annotation");
  CHECK(fault([](auto& s, auto stage, auto iter) {
          s.pipeline(stage, iter, {2, false});
          s.split(stage, iter, {2});
        }) == "bad_location");

  ScheduleBuilder factored(program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}));
  const schedule::IterId inner = factored.split(2, 2, {4})[1];
  factored.pipeline(2, inner, {2, false});
  factored.rfactor(2, inner);  // and the stage has fewer iterators
  CHECK_THROWS_WITH_AS((void)loops::lower(factored.schedule()),
                       doctest::Contains("cannot run ahead in iterator 4 of stage 'matmul', which is no serial loop"),
                       schedule::ScheduleError);

  LoopNest nest = loops::lower(matmul(30, {2, false}).schedule());
  loops::device::visit_nodes<loops::Loop>(nest.body, [](loops::Loop& loop) {
    if (loop.reduction && loop.kind == LoopKind::Serial) loop.kind = LoopKind::Unrolled;
  });
  CHECK_THROWS_WITH_AS((void)loops::to_device(nest), doctest::Contains("stands in no serial loop"),
                       loops::DeviceFormError);
  LoopNest different = loops::lower(matmul(30, {2, false}).schedule());
  for (loops::Buffer& buffer : different.buffers) {
    if (buffer.name == "A.shared") buffer.stages = 3;
  }
  CHECK_THROWS_WITH_AS((void)loops::to_device(different), doctest::Contains("pipeline a loop once"),
                       loops::DeviceFormError);
  CHECK_THROWS_AS((void)outputs(device(matmul(30, {2, true})), loops::interpret), loops::InterpretError);
}

}  // namespace
