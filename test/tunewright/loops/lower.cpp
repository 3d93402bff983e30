// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/lower.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/interpreted.hpp"
#include "support/schedule_faults.hpp"
#include "tunewright/loops/explain.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using loops::LoopNest;
using schedule::LoopKind;
using schedule::ScheduleBuilder;
using test::interpreted;
using Shape = std::vector<std::int64_t>;
using Graph = std::shared_ptr<const program::ComputeGraph>;

/// Tensors: x 0, t 1 = 2 x, y 2 with y[i] = t[stride i] + t[stride i + 1] + t[stride i + 2].
Graph window_of_three(std::int64_t outputs, std::int64_t stride) {
  auto g = std::make_shared<program::ComputeGraph>();
  const std::int64_t inputs = stride * (outputs - 1) + 3;
  const auto x = g->input("x", {inputs});
  const auto t = g->compute("t", {{"p", inputs}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  g->compute("y", {{"i", outputs}}, [&](auto i) {
    const auto at = i[0] * stride;
    return t(at) + t(at + 1) + t(at + 2);
  });
  return g;
}

/// Tensors: A 0 [m, k], B 1 [k, n] constant, C 2.
Graph matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("A", {m, k});
  const auto b = g->constant("B", {k, n});
  g->reduce("C", {{"i", m}, {"j", n}}, {{"k", k}}, program::Combiner::Sum,
            [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  return g;
}

LoopNest lowered(const ScheduleBuilder& s) { return loops::lower(s.schedule()); }
std::string fault(const ScheduleBuilder& s) {
  return test::fault_of([&] { (void)lowered(s); });
}

const loops::Buffer& buffer(const LoopNest& nest, schedule::TensorId tensor) {
  return nest.buffers.at(nest.buffer_of.at(tensor));
}

/// All statements of a nest, in order.
std::vector<const loops::Statement*> statements(const loops::Body& body) {
  std::vector<const loops::Statement*> found;
  for (const loops::Node& node : body) {
    if (const auto* s = std::get_if<loops::Statement>(&node.content)) found.push_back(s);
    std::vector<const loops::Statement*> inner;
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) inner = statements(loop->body);
    if (const auto* branch = std::get_if<loops::Branch>(&node.content)) inner = statements(branch->then);
    found.insert(found.end(), inner.begin(), inner.end());
  }
  return found;
}

TEST_CASE("stages that are read twice are inlined in each other only while the expression is short") {
  // A load has its node and a term, a sum a node: two of n inlined stages have 6 * 2^n - 2, of which 2^12 are allowed.
  // They are as many if both loads are one node.
  const auto doubled = [](std::size_t times, bool one_node) {
    auto g = std::make_shared<program::ComputeGraph>();
    program::Tensor last = g->input("x", {4});
    for (std::size_t t = 0; t <= times; ++t) {
      const program::Tensor before = last;
      last = g->compute("t" + std::to_string(t), {{"i", 4}}, [&](auto i) {
        const program::Expr read = before(i[0]);
        return read + (one_node ? read : before(i[0]));
      });
    }
    ScheduleBuilder s(g);
    for (std::size_t t = 0; t < times; ++t) s.compute_inline(static_cast<schedule::TensorId>(t + 1));
    return s;
  };
  for (const bool one_node : {false, true}) {
    CHECK(fault(doubled(9, one_node)) == "nothing was thrown");
    CHECK(fault(doubled(10, one_node)) == "not_inlineable");
    CHECK(fault(doubled(40, one_node)) == "not_inlineable");  // 2^40 loads
  }
}

TEST_CASE("stages are computed in a loop only while the indices of what they read are short") {
  // An index i + i mod 3 of i, which has n terms, has 2n + 1: the n-th stage begins at one of 2^n - 1, of which 1024
  // are allowed.
  const auto nested = [](std::int64_t times) {
    auto g = std::make_shared<program::ComputeGraph>();
    program::Tensor last = g->input("x", {4 + 2 * times});
    for (std::int64_t t = 1; t <= times; ++t) {
      const program::Tensor before = last;
      const std::int64_t extent = 4 + 2 * (times - t);
      last = g->compute("t" + std::to_string(t), {{"i", extent}}, [&](auto i) {
        return before(i[0] +
                      program::IndexExpr::remainder(i[0], 3, [&](auto) { return program::Range{0, extent - 1}; }));
      });
    }
    ScheduleBuilder s(g);
    const auto output = static_cast<schedule::TensorId>(times);
    for (schedule::TensorId t = 1; t < output; ++t) s.compute_at(t, output, 0);
    return s;
  };
  CHECK(fault(nested(10)) == "nothing was thrown");
  CHECK(fault(nested(11)) == "bad_location");
  CHECK(fault(nested(50)) == "bad_location");  // 2^50 terms
}

TEST_CASE("a stage has at most 1024 loops, with those of the stages in which it is computed") {
  const auto with_axes = [](std::size_t count, bool in_each_other) {
    auto g = std::make_shared<program::ComputeGraph>();
    const std::vector<program::Axis> axes(count, {"i", 1});
    const program::Tensor x = g->input("x", {1});
    const program::Tensor y = g->compute("y", axes, [&](auto i) { return x(i[0]); });
    const std::vector<program::IndexExpr> first(count, 0);
    g->compute("z", axes, [&](auto) { return program::load(y.id, program::ScalarType::Float32, first); });
    ScheduleBuilder s(g);
    if (in_each_other) s.compute_at(1, 2, 0);
    return s;
  };
  CHECK(fault(with_axes(1024, false)) == "nothing was thrown");
  CHECK(fault(with_axes(1025, false)) == "unsupported");
  CHECK(fault(with_axes(512, true)) == "nothing was thrown");
  CHECK(fault(with_axes(513, true)) == "unsupported");
}

TEST_CASE("a fused loop has at most 2^53 iterations, as an operator has") {
  auto g = std::make_shared<program::ComputeGraph>();
  const program::Tensor x = g->input("x", {std::int64_t{1} << 30, std::int64_t{1} << 23});
  g->compute("y", {{"i", std::int64_t{1} << 30}, {"j", std::int64_t{1} << 23}}, [&](auto i) { return x(i[0], i[1]); });
  ScheduleBuilder whole(g);
  whole.fuse(1, {0, 1});
  CHECK(lowered(whole).variables.at(0).extent == std::int64_t{1} << 53);

  ScheduleBuilder larger(g);
  const auto parts = larger.split(1, 0, {(std::int64_t{1} << 29) + 1});  // 2 parts, which have 2^30 + 2 iterations
  larger.fuse(1, {parts[0], parts[1], 1});
  CHECK(fault(larger) == "bad_factor");
}

TEST_CASE("without steps: plain loops, the identity first") {
  const ScheduleBuilder s(matmul(2, 3, 4));
  CHECK(explain(s.schedule()) ==
        "kernel(A: float32[2, 4], B: float32[4, 3], out C: float32[2, 3])\n"
        "  for i in 0..2:\n"
        "    for j in 0..3:\n"
        "      C[i, j] = 0\n"
        "      for k in 0..4 reduction:\n"
        "        C[i, j] += A[i, k] * B[k, j]\n");
}

TEST_CASE("loops of one iteration vanish") {
  const ScheduleBuilder s(matmul(1, 3, 1));
  const LoopNest nest = lowered(s);
  CHECK(nest.variables.size() == 1);
  CHECK(interpreted(nest) == std::vector<double>{1, 2, 3});
}

TEST_CASE("a producer inside a loop computes the window its reader needs there") {
  ScheduleBuilder s(window_of_three(12, 1));
  const auto i = s.split(2, 0, {4});
  s.compute_at(1, 2, i[0]);
  const LoopNest nest = lowered(s);
  CHECK(buffer(nest, 1).shape == Shape{6});  // 4 outputs read 4 + 2 neighbours
  CHECK(loops::to_string(nest) ==
        "kernel(x: float32[14], out y: float32[12])\n"
        "  for i.0 in 0..3:\n"
        "    allocate t: float32[6] global at [4*i.0]\n"
        "    for p in 0..6:\n"
        "      t[p] = x[4*i.0 + p] * 2\n"
        "    for i.1 in 0..4:\n"
        "      y[4*i.0 + i.1] = (t[i.1] + t[i.1 + 1]) + t[i.1 + 2]\n");
  CHECK(interpreted(nest).front() == 2.0 * (1 + 2 + 3));
  CHECK(interpreted(nest).back() == 2.0 * (12 + 13 + 14));
}

TEST_CASE("strides widen windows") {
  ScheduleBuilder s(window_of_three(12, 2));
  const auto i = s.split(2, 0, {4});
  s.compute_at(1, 2, i[0]);
  const LoopNest nest = lowered(s);
  CHECK(buffer(nest, 1).shape == Shape{2 * 3 + 3});
  CHECK(buffer(nest, 1).origin[0] == 8 * program::IndexExpr::variable(0));
  CHECK(interpreted(nest)[1] == 2.0 * (3 + 4 + 5));
}

TEST_CASE("a window that is the whole tensor starts at zero") {
  ScheduleBuilder s(window_of_three(4, 1));
  const auto i = s.split(2, 0, {4});
  s.compute_at(1, 2, i[0]);  // one iteration: i.0 is gone
  CHECK(buffer(lowered(s), 1).shape == Shape{6});
  CHECK(interpreted(lowered(s)).size() == 4);
}

TEST_CASE("splits divide the window, so outer tile loops of an attached stage vanish") {
  ScheduleBuilder s(window_of_three(12, 1));
  const auto i = s.split(2, 0, {4});
  const auto p = s.split(1, 0, {3});
  s.compute_at(1, 2, i[0]);
  LoopNest nest = lowered(s);  // 6 = 2 x 3 of the window, not 5 x 3 of the tensor
  CHECK(nest.variables.size() == 4);
  CHECK(statements(nest.body)[0]->guards.empty());
  ScheduleBuilder larger(window_of_three(12, 1));
  const auto j = larger.split(2, 0, {4});
  larger.split(1, 0, {16});
  larger.compute_at(1, 2, j[0]);
  nest = lowered(larger);  // a factor of 16 shrinks to 6
  CHECK(nest.variables.size() == 3);
  CHECK(buffer(nest, 1).shape == Shape{6});
  (void)p;
}

TEST_CASE("imperfect tiles are guarded where their values reach the end") {
  ScheduleBuilder s(matmul(7, 3, 4));
  s.split(2, 0, {4});  // 2 x 4: one idle row
  const LoopNest nest = lowered(s);
  for (const loops::Statement* statement : statements(nest.body)) {
    REQUIRE(statement->guards.size() == 1);
    CHECK(statement->guards[0].extent == 7);
    CHECK(statement->guards[0].axis == 0);
    CHECK(statement->guards[0].above);
    CHECK_FALSE(statement->guards[0].below);
    CHECK_FALSE(statement->may_overcompute);
  }
  CHECK(interpreted(nest) == interpreted(lowered(ScheduleBuilder(matmul(7, 3, 4)))));
}

TEST_CASE("an imperfect reduction guards the update, not the identity") {
  ScheduleBuilder s(matmul(2, 3, 7));
  s.split(2, 2, {4});
  const LoopNest nest = lowered(s);
  const auto all = statements(nest.body);
  REQUIRE(all.size() == 2);
  CHECK(all[0]->kind == loops::Statement::Kind::Initialise);
  CHECK(all[0]->guards.empty());
  CHECK(all[1]->guards.size() == 1);
  CHECK(interpreted(nest) == interpreted(lowered(ScheduleBuilder(matmul(2, 3, 7)))));
}

TEST_CASE("the idle rest of an inner split stays out of the neighbouring part") {
  const std::vector<double> expected = interpreted(lowered(ScheduleBuilder(matmul(8, 2, 8))));
  SUBCASE("of a reduction: nothing counts twice") {
    ScheduleBuilder s(matmul(8, 2, 8));
    const auto k = s.split(2, 2, {4});
    s.split(2, k[1], {3});  // 4 as 2 x 3
    const LoopNest nest = lowered(s);
    REQUIRE(statements(nest.body)[1]->guards.size() >= 1);
    CHECK(statements(nest.body)[1]->guards.back().axis == loops::Guard::no_axis);
    CHECK(statements(nest.body)[0]->guards.empty());
    CHECK(interpreted(nest) == expected);
  }
  SUBCASE("of a spatial axis: a finished neighbour is not set to zero again") {
    ScheduleBuilder s(matmul(8, 2, 8));
    const auto i = s.split(2, 0, {4});
    const auto inner = s.split(2, i[1], {3});
    s.reorder(2, {inner[0], i[0], inner[1]});
    CHECK(interpreted(lowered(s)) == expected);
  }
  SUBCASE("of a fused loop") {
    ScheduleBuilder s(matmul(8, 2, 8));
    const auto both = s.fuse(2, {0, 1});
    s.split(2, both, {5});  // 16 as 4 x 5
    CHECK(interpreted(lowered(s)) == expected);
  }
  SUBCASE("in rfactor") {
    ScheduleBuilder s(matmul(8, 2, 8));
    const auto k = s.split(2, 2, {4});
    const auto inner = s.split(2, k[1], {3});
    s.rfactor(2, inner[1]);
    CHECK(interpreted(lowered(s)) == expected);
  }
}

TEST_CASE("cached results are tiles of their own; rows of them are kept apart") {
  ScheduleBuilder s(matmul(8, 256, 4));
  const auto cache = s.cache_write(2);
  const auto i = s.split(2, 0, {2});
  const auto j = s.split(2, 1, {128});
  s.reorder(2, {i[0], j[0], i[1], j[1]});
  s.compute_at(cache, 2, j[0]);
  LoopNest nest = lowered(s);
  // 128 floats are 512 bytes: a cache line (16 floats) more lies between rows.
  CHECK(buffer(nest, cache).shape == Shape{2, 144});
  CHECK(statements(nest.body)[0]->may_overcompute);
  CHECK(interpreted(nest) == interpreted(lowered(ScheduleBuilder(matmul(8, 256, 4)))));
  ScheduleBuilder narrow(matmul(8, 256, 4));
  const auto small = narrow.cache_write(2);
  const auto nj = narrow.split(2, 1, {64});
  narrow.compute_at(small, 2, nj[0]);
  CHECK(buffer(lowered(narrow), small).shape == Shape{1, 64});
}

TEST_CASE("constants are packed in the order of the loops that read them") {
  ScheduleBuilder s(matmul(8, 32, 6));
  const auto j = s.split(2, 1, {16});
  s.reorder(2, {j[0], 0, 2, j[1]});
  s.pack(1, 2);
  const LoopNest nest = lowered(s);  // loops: j.0 2, i 8, k 6, j.1 16
  using Piece = loops::PackedDimension;
  CHECK(buffer(nest, 1).packing == std::vector<Piece>{{1, 16, 2}, {0, 1, 6}, {1, 1, 16}});
  CHECK(buffer(nest, 1).physical_shape() == Shape{2, 6, 16});

  ScheduleBuilder rest(matmul(8, 30, 6));  // the last tile is filled up
  const auto r = rest.split(2, 1, {16});
  rest.reorder(2, {r[0], 0, 2, r[1]});
  rest.pack(1, 2);
  CHECK(buffer(lowered(rest), 1).physical_shape() == Shape{2, 6, 16});
}

TEST_CASE("a temporary is stored with its dimensions in another order, and rows apart") {
  using schedule::TransformLayout;
  const auto copied = [](std::uint32_t order, std::uint32_t padding) {
    ScheduleBuilder s(matmul(8, 32, 6));
    const auto copy = s.cache_read(0, 2);
    s.append(TransformLayout{copy, {{0, 1}, {1, 0}}, {0, 4}, order, padding});
    return buffer(lowered(s), copy).physical_shape();
  };
  CHECK(copied(0, 0) == Shape{8, 6});
  CHECK(copied(0, 1) == Shape{8, 10});
  CHECK(copied(1, 0) == Shape{6, 8});
  CHECK(copied(1, 1) == Shape{6, 12});

  ScheduleBuilder output(matmul(8, 32, 6));
  output.append(TransformLayout{2, {{1, 0}}, {0}, 0, 0});
  CHECK(fault(output) == "not_packable");
  ScheduleBuilder twice(matmul(8, 32, 6));
  const auto copy = twice.cache_read(0, 2);
  twice.pack(copy, 2);
  twice.append(TransformLayout{copy, {{1, 0}}, {0}, 0, 0});
  CHECK(fault(twice) == "not_packable");
}

TEST_CASE("a fused loop takes part in packing like the loops it is made of") {
  ScheduleBuilder s(matmul(8, 32, 6));
  const auto i = s.split(2, 0, {4});
  const auto j = s.split(2, 1, {16});
  s.reorder(2, {i[0], j[0], 2, i[1], j[1]});
  s.fuse(2, {i[0], j[0]});
  s.pack(1, 2);
  using Piece = loops::PackedDimension;
  CHECK(buffer(lowered(s), 1).packing == std::vector<Piece>{{1, 16, 2}, {0, 1, 6}, {1, 1, 16}});
}

TEST_CASE("a dimension that is no mixed-radix number of loops stays whole") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {8});
  const auto w = g->constant("w", {9, 4});
  g->compute("y", {{"i", 8}, {"j", 2}}, [&](auto i) { return x(i[0]) * w(i[0] + 1, 2 * i[1]); });
  ScheduleBuilder s(g);
  s.pack(1, 2);
  using Piece = loops::PackedDimension;
  CHECK(buffer(lowered(s), 1).packing == std::vector<Piece>{{0, 1, 9}, {1, 1, 4}});
}

TEST_CASE("an element that a body reads twice is packed as if it were read once") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("a", {8, 6});
  const auto b = g->constant("b", {32, 6});
  g->reduce("distance", {{"i", 8}, {"j", 32}}, {{"k", 6}}, program::Combiner::Sum, [&](auto i, auto r) {
    const program::Expr difference = a(i[0], r[0]) - b(i[1], r[0]);
    return difference * difference;
  });
  ScheduleBuilder s(g);
  const auto j = s.split(2, 1, {16});
  s.reorder(2, {j[0], 0, 2, j[1]});
  s.pack(1, 2);
  using Piece = loops::PackedDimension;
  CHECK(buffer(lowered(s), 1).packing == std::vector<Piece>{{0, 16, 2}, {1, 1, 6}, {0, 1, 16}});
}

TEST_CASE("what cannot be packed") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto w = g->constant("w", {8});
  const auto y = g->compute("y", {{"i", 7}}, [&](auto i) { return w(i[0]) + w(i[0] + 1); });
  g->compute("z", {{"i", 7}}, [&](auto i) { return y(i[0]) + program::Expr(1.0); });
  ScheduleBuilder twice(g);
  twice.pack(0, 1);
  CHECK(fault(twice) == "not_packable");
  ScheduleBuilder another(g);
  another.pack(0, 2);
  CHECK(fault(another) == "not_packable");
  ScheduleBuilder output(g);
  output.pack(2, 2);
  CHECK(fault(output) == "not_packable");
  ScheduleBuilder inlined(g);
  inlined.pack(1, 2);
  inlined.compute_inline(1);
  CHECK(fault(inlined) == "nothing was thrown");  // nothing is stored, so nothing is packed
}

TEST_CASE("chains of inlined stages end in their last reader") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {6});
  const auto a = g->compute("a", {{"i", 6}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  const auto b = g->compute("b", {{"i", 5}}, [&](auto i) { return a(i[0]) * a(i[0] + 1); });
  g->compute("c", {{"i", 5}}, [&](auto i) { return b(4 - i[0]) + program::Expr(1.0); });
  ScheduleBuilder s(g);
  s.compute_inline(1);
  s.compute_inline(2);
  const LoopNest nest = lowered(s);
  CHECK(nest.buffers.size() == 2);
  CHECK(nest.buffer_of[1] == LoopNest::no_buffer);
  CHECK(interpreted(nest) == std::vector<double>{6 * 7 + 1, 5 * 6 + 1, 4 * 5 + 1, 3 * 4 + 1, 2 * 3 + 1});
}

TEST_CASE("places where a stage cannot be computed") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {8});
  const auto a = g->compute("a", {{"i", 8}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  const auto b = g->compute("b", {{"i", 8}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  const auto c = g->compute("c", {{"i", 8}}, [&](auto i) { return a(i[0]) + b(i[0]); });
  g->compute("d", {{"i", 8}}, [&](auto i) { return c(i[0]) + a(i[0]); });
  const auto place = [&](const std::function<void(ScheduleBuilder&)>& steps) {
    ScheduleBuilder s(g);
    steps(s);
    return fault(s);
  };
  CHECK(place([](auto& s) { s.compute_at(1, 3, 0); }) == "bad_location");  // d reads a as well
  CHECK(place([](auto& s) { s.compute_at(2, 1, 0); }) == "bad_location");  // before its reader, which is c
  CHECK(place([](auto& s) { s.compute_at(1, 2, 0); }) == "bad_location");  // after it, but b does not read a
  CHECK(place([](auto& s) { s.compute_at(2, 3, 0), s.split(3, 0, {2}); }) == "bad_location");  // the loop is gone
  CHECK(place([](auto& s) { s.compute_at(2, 3, 0), s.compute_inline(3); }) == "bad_location");
  CHECK(place([](auto& s) { s.compute_at(2, 3, 0); }) == "nothing was thrown");
  CHECK(place([](auto& s) { s.compute_at(3, 4, 0), s.compute_at(2, 3, 0), s.compute_at(1, 4, 0); }) ==
        "nothing was thrown");
  CHECK(place([](auto& s) {
          const auto i = s.split(4, 0, {2});
          s.compute_at(3, 4, i[0]);
          s.compute_at(1, 4, i[1]);  // c reads a one loop further out
        }) == "bad_location");
}

TEST_CASE("a stage in another one's loops is not parallel itself") {
  ScheduleBuilder s(window_of_three(12, 1));
  const auto i = s.split(2, 0, {4});
  s.parallel(2, i[0]);
  s.parallel(1, 0);
  s.compute_at(1, 2, i[0]);
  const std::string text = loops::to_string(lowered(s));
  CHECK(text.find("for i.0 in 0..3 parallel") != std::string::npos);
  CHECK(text.find("for p in 0..6:") != std::string::npos);
}

TEST_CASE("a window that reaches outside the tensor is guarded below as well") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {8});
  const auto t = g->compute("t", {{"p", 8}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  g->compute("y", {{"i", 10}},
             [&](auto i) { return program::select(program::in_bounds(i[0] - 1, 8), t(i[0] - 1), program::Expr(0.0)); });
  ScheduleBuilder s(g);
  const auto i = s.split(2, 0, {5});
  s.compute_at(1, 2, i[0]);
  const LoopNest nest = lowered(s);
  const auto& guards = statements(nest.body)[0]->guards;
  REQUIRE(guards.size() == 1);
  CHECK(guards[0].below);
  CHECK(guards[0].above);
  CHECK(interpreted(nest) == std::vector<double>{0, 2, 3, 4, 5, 6, 7, 8, 9, 0});
}

TEST_CASE("the unroll limit sits on the outermost loop of its stage") {
  ScheduleBuilder s(matmul(2, 3, 4));
  s.unroll_limit(2, 16);
  CHECK(std::get<loops::Loop>(lowered(s).body[0].content).unroll_limit == 16);
}

}  // namespace
