// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/llvm.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/count.hpp"
#include "support/nest_builder.hpp"
#include "support/reference_arguments.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Statement;
using program::Combiner;
using program::Expr;
using program::ScalarType;

Target target(Isa isa, unsigned threads = 2) {
  Target t;
  t.isa = isa;
  t.threads = threads;
  return t;
}

const codegen::CompileOptions options{.verify = true, .plan = {.max_unrolled_instances = 200}};

/// Compiles for every instruction set this machine can run.
template <class F>
void for_each_isa(const F& f) {
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa == Isa::Avx2 && !__builtin_cpu_supports("avx2")) continue;
    if (isa == Isa::Avx512 && !__builtin_cpu_supports("avx512f")) continue;
    INFO("isa ", std::string(name(isa)));
    static codegen::LlvmCompiler compilers[] = {codegen::LlvmCompiler(target(Isa::Sse42), options),
                                                codegen::LlvmCompiler(target(Isa::Avx2), options),
                                                codegen::LlvmCompiler(target(Isa::Avx512), options)};
    f(compilers[static_cast<std::size_t>(isa)]);
  }
}

void check_all_kinds(const program::ComputeGraph& g, double tolerance = 1e-6) {
  for_each_isa([&](codegen::LlvmCompiler& compiler) {
    for (const LoopKind innermost : {LoopKind::Serial, LoopKind::Vectorized, LoopKind::Unrolled}) {
      for (const LoopKind outermost : {LoopKind::Serial, LoopKind::Parallel}) {
        INFO(std::string(loops::name(innermost)), " in ", std::string(loops::name(outermost)));
        CHECK(test::compiled_error(test::plain_nest(g, innermost, outermost), compiler) <= tolerance);
      }
    }
  });
}

program::ComputeGraph matmul(std::int64_t m, std::int64_t n, std::int64_t k, ScalarType type = ScalarType::Float32) {
  program::ComputeGraph g;
  const auto a = g.input("A", {m, k}, type);
  const auto b = g.input("B", {k, n}, type);
  g.reduce("C", {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::Sum,
           [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  return g;
}

TEST_CASE("elementwise, broadcast and transposed reads") {
  program::ComputeGraph g;
  const auto x = g.input("x", {5, 37});
  const auto row = g.input("row", {37});
  const auto column = g.input("column", {5});
  const auto t = g.input("t", {37, 5});
  g.compute("y", {{"i", 5}, {"j", 37}}, [&](auto i) {
    return max(x(i[0], i[1]) * row(i[1]) + column(i[0]), t(i[1], i[0])) - x(i[0], 36 - i[1]) / (row(2) + Expr(30.0));
  });
  check_all_kinds(g);
}

TEST_CASE("matmul of odd shapes in every type") {
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64, ScalarType::Int32, ScalarType::Int64}) {
    INFO(std::string(program::name(type)));
    check_all_kinds(matmul(3, 29, 7, type));
  }
}

TEST_CASE("random schedules with tiles that do not divide") {
  program::ComputeGraph plain = matmul(13, 37, 11);
  program::ComputeGraph cached = matmul(7, 45, 9);
  const auto c = cached.tensor(2);
  cached.compute("D", {{"i", 7}, {"j", 45}}, [&](auto i) { return max(c(i[0], i[1]), 0.0); });
  program::ComputeGraph conv;  // 3 x 3, padding 1, stride 2 along w
  const auto x = conv.input("x", {6, 9, 5});
  const auto w = conv.input("w", {3, 3, 5, 21});
  const auto y = conv.reduce(
      "y", {{"h", 6}, {"w", 5}, {"o", 21}}, {{"kh", 3}, {"kw", 3}, {"c", 5}}, Combiner::Sum, [&](auto i, auto r) {
        const IndexExpr h = i[0] + r[0] - 1;
        const IndexExpr v = 2 * i[1] + r[1] - 1;
        return select(in_bounds(h, 6) && in_bounds(v, 9), x(h, v, r[2]), 0.0) * w(r[0], r[1], r[2], i[2]);
      });
  program::ComputeGraph conv_cached = conv;
  conv_cached.compute("z", {{"h", 6}, {"w", 5}, {"o", 21}}, [&](auto i) { return y(i[0], i[1], i[2]) + Expr(1.0); });
  program::ComputeGraph nchw;  // the vectorised axis is the padded one
  const auto p = nchw.input("p", {3, 9, 17});
  nchw.reduce("m", {{"c", 3}, {"h", 5}, {"w", 9}}, {{"kh", 3}, {"kw", 3}}, Combiner::Max, [&](auto i, auto r) {
    const IndexExpr h = 2 * i[1] + r[0] - 1;
    const IndexExpr v = 2 * i[2] + r[1] - 1;
    return select(in_bounds(h, 9) && in_bounds(v, 17), p(i[0], h, v), -100.0);
  });
  static constexpr std::uint64_t rounds = 20;
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    INFO("seed ", seed);
    const auto run = [&](const program::ComputeGraph& g, bool with_tile) {
      const loops::LoopNest nest = test::random_nest(g, with_tile, seed);
      INFO(loops::to_string(nest));
      const auto arguments = test::sample_arguments(nest);
      const auto expected = test::interpreted(nest, arguments);
      for_each_isa([&](codegen::LlvmCompiler& compiler) {
        CHECK(test::compiled_error(nest, compiler, arguments, expected) < 1e-5);
      });
    };
    run(plain, false);
    run(cached, true);
    run(conv, false);
    run(conv_cached, true);
    run(nchw, false);
  }
}

/// The only reduction of a nest.
const Statement* update_of(const loops::Body& body) {
  for (const loops::Node& node : body) {
    if (const auto* s = std::get_if<Statement>(&node.content); s != nullptr && s->kind == Statement::Kind::Update)
      return s;
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      if (const Statement* found = update_of(loop->body)) return found;
    }
  }
  return nullptr;
}

// Terms that padding makes zero are skipped, so coordinates beyond an axis cannot be clamped to its last: what a
// clamped coordinate reads is not what the guard of the term is about.
TEST_CASE("padded, strided and dilated convolutions in tiles that do not divide are the reference's") {
  struct Case {
    std::int64_t height, width, in, out, stride, padding, dilation;
  };
  for (const Case& c : {Case{7, 9, 3, 5, 2, 1, 1}, Case{11, 8, 2, 17, 2, 2, 2}, Case{9, 13, 1, 33, 1, 3, 2},
                        Case{13, 7, 2, 19, 3, 4, 3}}) {
    INFO("stride ", c.stride, ", padding ", c.padding, ", dilation ", c.dilation);
    namespace ops = program::operators;
    auto graph = std::make_shared<program::ComputeGraph>();
    const auto x = graph->input("x", {1, c.height, c.width, c.in});
    const auto y = ops::conv2d(*graph, x, graph->constant("w", {3, 3, c.in, c.out}),
                               {.stride = c.stride, .padding = c.padding, .dilation = c.dilation});
    const auto z = ops::relu(*graph, y);
    const reference::Tensors inputs = reference::random_inputs(*graph, Rng(5));
    const reference::Array expected = reference::evaluate(*graph, inputs)[z.id];

    for (const bool rows_vary : {true, false}) {  // the innermost loop inside of reductions or outside
      schedule::ScheduleBuilder s(graph);
      s.compute_inline(y.id - 1);
      const auto h = s.split(z.id, 1, {2}), w = s.split(z.id, 2, {4}), o = s.split(z.id, 3, {16});
      s.reorder(z.id, {0, h[0], w[0], o[0], h[1], w[1], o[1]});
      s.vectorize(z.id, o[1]);
      s.compute_at(y.id, z.id, o[0]);
      if (rows_vary)
        s.reorder(y.id, {0, 4, 5, 6, 1, 2, 3});  // reductions, then a register tile
      else
        s.reorder(y.id, {0, 1, 2, 4, 5, 6, 3});
      if (rows_vary) s.unroll(y.id, 1);
      s.unroll(y.id, 2);
      s.vectorize(y.id, 3);
      const loops::LoopNest nest = loops::lower(s.schedule());
      INFO(loops::to_string(nest));
      const loops::LoopNest skipped = loops::eliminate_padding(nest);
      const auto& guards = update_of(skipped.body)->guards;
      const auto skips = [](const loops::Guard& guard) { return guard.axis == loops::Guard::padding; };
      REQUIRE(std::any_of(guards.begin(), guards.end(), skips));
      REQUIRE_FALSE(std::all_of(guards.begin(), guards.end(), skips));
      for_each_isa([&](codegen::LlvmCompiler& compiler) {
        const codegen::Kernel kernel = compiler.compile(nest);
        auto arguments = test::arguments_for(kernel, inputs);
        CHECK(test::run_kernel(kernel, arguments));
        for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
          const loops::Buffer& layout = kernel.buffers[b].layout;
          if (layout.role != loops::BufferRole::Output) continue;
          reference::Array actual(layout.type, layout.shape);
          for (std::size_t i = 0; i < actual.size(); ++i) actual.set(i, arguments[b][i]);
          const auto compared = reference::compare(actual, expected, reference::tolerance_for(*graph, z.id));
          CHECK_MESSAGE(compared.passed, compared.text());
        }
      });
    }
  }
}

/// A matmul with a local tile of 4 x 2 vectors: initialise, reduce, copy out, all in registers.
loops::LoopNest tiled_matmul(const program::ComputeGraph& g, LoopKind rows, std::int64_t columns) {
  test::NestBuilder b(g);
  const std::int64_t tiles = g.op(0).axes[0].extent / 4;
  const auto io = b.var("io", tiles), k = b.var("k", g.op(0).axes[1].extent);
  const IndexExpr origin = 4 * IndexExpr::variable(io);
  const auto tile = b.temporary(2, {4, columns}, {origin, 0}, loops::Scope::Local);
  const auto nest_of = [&](Statement::Kind kind, program::TensorId id, bool reduces) {
    const auto ii = b.var("ii", 4), j = b.var("j", columns);
    std::vector<IndexExpr> axes{origin + IndexExpr::variable(ii), IndexExpr::variable(j)};
    if (kind != Statement::Kind::Assign) axes.push_back(reduces ? IndexExpr::variable(k) : IndexExpr(0));
    return b.loop(ii, rows, {b.loop(j, LoopKind::Vectorized, {b.statement(kind, id, axes)})});
  };
  b.nest.body = {b.loop(io, LoopKind::Serial,
                        {loops::Allocate{tile}, nest_of(Statement::Kind::Initialise, 2, false),
                         b.loop(k, LoopKind::Serial, {nest_of(Statement::Kind::Update, 2, true)}, true),
                         nest_of(Statement::Kind::Assign, 3, false)})};
  return b.nest;
}

program::ComputeGraph matmul_and_copy(std::int64_t m, std::int64_t n, std::int64_t k) {
  program::ComputeGraph g = matmul(m, n, k);
  const auto c = g.tensor(2);
  g.compute("D", {{"i", m}, {"j", n}}, [&](auto i) { return c(i[0], i[1]); });
  return g;
}

TEST_CASE("a register tile stays in registers") {
  const auto g = matmul_and_copy(8, 32, 64);
  codegen::LlvmCompiler compiler(target(Isa::Avx512));
  const loops::LoopNest nest = tiled_matmul(g, LoopKind::Unrolled, 32);
  const std::string ir = compiler.to_llvm_ir(nest);
  CHECK(test::count(ir, "alloca") == 0);
  CHECK(test::count(ir, "store <16 x float>") == 8);       // the copy, once an element
  CHECK(test::count(ir, "= load <16 x float>") == 4 * 2);  // a row of B, once an iteration, of which a step has four
  CHECK(test::count(ir, "= load float") == 4 * 4);         // a column of A
  const std::string assembly = compiler.to_assembly(nest);
  CHECK(test::count(assembly, "vfmadd") == 4 * 8);
  if (__builtin_cpu_supports("avx512f")) CHECK(test::compiled_error(nest, compiler) < 1e-6);
}

TEST_CASE("what does not fit registers stays in memory and is right") {
  const auto g = matmul_and_copy(8, 600, 3);
  for_each_isa([&](codegen::LlvmCompiler& compiler) {
    CHECK(test::compiled_error(tiled_matmul(g, LoopKind::Unrolled, 600), compiler) < 1e-6);
    CHECK(test::compiled_error(tiled_matmul(g, LoopKind::Serial, 600), compiler) < 1e-6);
  });
}

TEST_CASE("vectors of an instruction set's width") {
  const auto g = matmul_and_copy(4, 16, 4);
  const loops::LoopNest nest = tiled_matmul(g, LoopKind::Unrolled, 16);
  CHECK(test::count(codegen::LlvmCompiler(target(Isa::Avx512)).to_assembly(nest), "%zmm") > 0);
  const std::string avx2 = codegen::LlvmCompiler(target(Isa::Avx2)).to_assembly(nest);
  CHECK(test::count(avx2, "%zmm") == 0);
  CHECK(test::count(avx2, "%ymm") > 0);
  const std::string sse = codegen::LlvmCompiler(target(Isa::Sse42)).to_assembly(nest);
  CHECK(test::count(sse, "%ymm") == 0);
  CHECK(test::count(sse, "vfmadd") == 0);
}

TEST_CASE("a vectorised reduction of any number of vectors, alone and inside another reduction") {
  for (const std::int64_t extent : {3, 16, 32, 40, 67, 100}) {
    INFO("extent ", extent);
    for (const Combiner combiner : {Combiner::Sum, Combiner::Max}) {
      auto graph = std::make_shared<program::ComputeGraph>();
      const auto x = graph->input("x", {5, 3, extent});
      graph->reduce("one", {{"i", 5}, {"o", 3}}, {{"k", extent}}, combiner,
                    [&](auto i, auto r) { return x(i[0], i[1], r[0]); });
      graph->reduce("two", {{"i", 5}}, {{"o", 3}, {"k", extent}}, combiner,
                    [&](auto i, auto r) { return x(i[0], r[0], r[1]); });
      schedule::ScheduleBuilder s(graph);
      s.vectorize(1, 2);
      s.vectorize(2, 2);
      const loops::LoopNest nest = loops::lower(s.schedule());
      for_each_isa([&](codegen::LlvmCompiler& compiler) { CHECK(test::compiled_error(nest, compiler) < 1e-5); });
    }
  }
}

TEST_CASE("compilation is deterministic") {
  const loops::LoopNest nest = tiled_matmul(matmul_and_copy(8, 40, 5), LoopKind::Unrolled, 40);
  codegen::LlvmCompiler one(target(Isa::Avx2)), other(target(Isa::Avx2));
  const auto code = one.compile(nest).object;
  CHECK(*code == *other.compile(nest).object);
  codegen::LlvmCompiler moved = std::move(one);
  CHECK(*code == *moved.compile(nest).object);
  CHECK(moved.identity() == other.identity());
}

TEST_CASE("loops of GPUs and parallel loops inside each other run one after the other") {
  const auto g = matmul_and_copy(12, 20, 3);
  loops::LoopNest nest = tiled_matmul(g, LoopKind::ThreadX, 20);
  std::get<loops::Loop>(nest.body[0].content).kind = LoopKind::BlockX;
  codegen::LlvmCompiler compiler(target(Isa::Sse42), options);
  CHECK(test::compiled_error(nest, compiler) < 1e-6);
  nest = test::plain_nest(g, LoopKind::Parallel, LoopKind::Parallel);
  CHECK(test::compiled_error(nest, compiler) < 1e-6);
}

TEST_CASE("a parallel loop knows the loops and storage around it") {
  const auto g = matmul_and_copy(6, 20, 3);
  test::NestBuilder b(g);
  const auto i = b.var("i", 6), j = b.var("j", 20), k = b.var("k", 3), jc = b.var("jc", 20);
  const auto row = b.temporary(2, {1, 20}, {IndexExpr::variable(i), 0});
  const std::vector<IndexExpr> axes{IndexExpr::variable(i), IndexExpr::variable(j), IndexExpr::variable(k)};
  b.nest.body = {
      b.loop(i, LoopKind::Serial,
             {loops::Allocate{row},
              b.loop(j, LoopKind::Parallel,
                     {b.statement(Statement::Kind::Initialise, 2, axes),
                      b.loop(k, LoopKind::Serial, {b.statement(Statement::Kind::Update, 2, axes)}, true)}),
              b.loop(jc, LoopKind::Parallel,
                     {b.statement(Statement::Kind::Assign, 3, {IndexExpr::variable(i), IndexExpr::variable(jc)})})})};
  codegen::LlvmCompiler compiler(target(Isa::Sse42), options);
  CHECK(test::compiled_error(b.nest, compiler) < 1e-6);
}

TEST_CASE("bool, integer and mixed types; logic; powers of infinity") {
  program::ComputeGraph g;
  const auto x = g.input("x", {40});
  const auto n = g.input("n", {40}, ScalarType::Int32);
  const auto b = g.compute("b", {{"i", 40}}, [&](auto i) {
    return (x(i[0]) < Expr(0.5) && program::logical_not(n(i[0]) <= program::constant(3, ScalarType::Int32))) ||
           program::equal(x(i[0]), Expr(1.0));
  });
  g.compute("d", {{"i", 40}}, [&](auto i) {
    return select(b(i[0]), cast(n(i[0]) / program::constant(3, ScalarType::Int32), ScalarType::Float64),
                  cast(-abs(x(i[0])), ScalarType::Float64)) +
           cast(program::index_value(7 * i[0] - 3), ScalarType::Float64);
  });
  g.reduce("all", {{"one", 1}}, {{"i", 40}}, Combiner::Min,
           [&](auto, auto r) { return n(r[0]) * program::constant(2, ScalarType::Int32); });
  check_all_kinds(g, 0);
}

TEST_CASE("what is read only where a condition holds, by both an And and an Or of one expression") {
  program::ComputeGraph g;
  const auto p = g.input("p", {40}, ScalarType::Bool), q = g.input("q", {40}, ScalarType::Bool);
  const auto m = g.input("m", {40}, ScalarType::Bool);
  for (const bool and_first : {true, false}) {
    g.compute(and_first ? "and_or" : "or_and", {{"i", 40}}, [&](auto i) {
      const Expr before = select(program::index_value(1) <= program::index_value(i[0]), m(i[0] - 1),
                                 program::constant(0, ScalarType::Bool));
      const Expr both = select(p(i[0]) && before, 1.0, 0.0), any = select(q(i[0]) || before, 2.0, 0.0);
      return and_first ? both + any : any + both;
    });
  }
  check_all_kinds(g, 0);
}

TEST_CASE("a maximum or minimum with NaN is its second operand") {
  program::ComputeGraph g;
  const auto x = g.input("x", {41});
  const auto root = g.compute("root", {{"i", 41}},
                              [&](auto i) { return sqrt(cast(program::index_value(i[0] - 20), ScalarType::Float32)); });
  g.compute("y", {{"i", 41}}, [&](auto i) { return max(root(i[0]), x(i[0])) + min(root(i[0]), x(i[0])); });
  check_all_kinds(g, 0);
}

TEST_CASE("quotients and remainders of vectorised loops") {
  program::ComputeGraph g;
  const auto x = g.input("x", {5, 12});
  g.compute("y", {{"i", 60}}, [&](auto i) {
    const auto range = [](program::Var) { return program::Range{0, 59}; };
    return x(IndexExpr::quotient(i[0], 12, range), IndexExpr::remainder(i[0], 12, range)) +
           x(IndexExpr::remainder(i[0], 5, range), IndexExpr::quotient(i[0], 5, range));
  });
  check_all_kinds(g);
}

TEST_CASE("quotients and remainders of a reduction that takes several iterations a step, and one that is left") {
  program::ComputeGraph g;
  const auto x = g.input("x", {5, 3});
  g.reduce("y", {{"i", 2}}, {{"k", 13}}, Combiner::Sum, [&](auto i, auto k) {
    const auto range = [](program::Var) { return program::Range{0, 14}; };
    const IndexExpr at = i[0] + k[0];
    return x(IndexExpr::quotient(at, 3, range), IndexExpr::remainder(at, 3, range));
  });
  check_all_kinds(g);
}

/// Whether kernels of a schedule compute what the interpreter does, for every instruction set.
void check_schedule(const schedule::ScheduleBuilder& s) {
  const loops::LoopNest nest = loops::lower(s.schedule());
  INFO(loops::to_string(nest));
  for_each_isa([&](codegen::LlvmCompiler& compiler) { CHECK(test::compiled_error(nest, compiler) < 1e-6); });
}

TEST_CASE("unrolled copies of a loop around a temporary use one place on the stack") {
  // A column of t for each column of the result, of which two are unrolled: both are addressed by the loop over rows.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("A", {16, 8});
  const auto t = g->compute("T", {{"i", 16}, {"j", 8}}, [&](auto i) { return a(i[0], i[1]) * Expr(2.0); });
  g->compute("C", {{"i", 16}, {"j", 8}}, [&](auto i) { return t(i[0], i[1]) + t(15 - i[0], i[1]); });
  schedule::ScheduleBuilder s(g);
  s.reorder(2, {1, 0});
  s.unroll(2, 1);
  s.compute_at(1, 2, 1);
  check_schedule(s);
  const loops::LoopNest nest = loops::lower(s.schedule());
  CHECK_NOTHROW((void)codegen::LlvmCompiler(target(Isa::Sse42), {.max_stack_bytes = 64}).compile(nest));
}

TEST_CASE("splits within a tile that do not divide leave rows of the next tile alone") {
  // 11 rows in 6 pairs of pairs: the last pair would reach into the rows of the next tile.
  for (const bool tile_outermost : {false, true}) {
    CAPTURE(tile_outermost);
    schedule::ScheduleBuilder s(std::make_shared<const program::ComputeGraph>(matmul(22, 16, 8)));
    const auto i = s.split(2, 0, {11});
    const auto p = s.split(2, i[1], {2, 2});
    if (tile_outermost)
      s.reorder(2, {i[0], p[0], 2, p[1], p[2], 1});
    else
      s.reorder(2, {p[0], i[0], 2, p[1], p[2], 1});
    s.unroll(2, p[1]);
    s.unroll(2, p[2]);
    s.vectorize(2, 1);
    check_schedule(s);
  }
}

TEST_CASE("vectors within a part of a row that does not divide it leave the next part alone") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("A", {4, 128});
  const auto t = g->compute("T", {{"i", 4}, {"j", 128}}, [&](auto i) { return a(i[0], i[1]) * Expr(2.0); });
  g->compute("C", {{"i", 4}, {"j", 128}}, [&](auto i) { return t(i[0], i[1]) + Expr(1.0); });
  schedule::ScheduleBuilder s(g);
  s.compute_at(1, 2, 0);
  const auto j = s.split(1, 1, {64});
  const auto v = s.split(1, j[1], {24});
  s.reorder(1, {0, v[0], j[0], v[1]});
  s.vectorize(1, v[1]);
  check_schedule(s);
}

TEST_CASE("a sum of Booleans is true if one of them is") {
  program::ComputeGraph g;
  const auto x = g.input("x", {6, 40});
  const auto small = g.compute("small", {{"i", 6}, {"j", 40}}, [&](auto i) { return x(i[0], i[1]) < Expr(0.8); });
  const auto any =
      g.reduce("any", {{"i", 6}}, {{"j", 40}}, Combiner::Sum, [&](auto i, auto r) { return small(i[0], r[0]); });
  g.compute("both", {{"i", 6}}, [&](auto i) { return any(i[0]) + any(5 - i[0]); });
  check_all_kinds(g, 0);
}

TEST_CASE("what cannot be compiled is named") {
  const auto g = matmul_and_copy(8, 32, 4);
  loops::LoopNest nest = tiled_matmul(g, LoopKind::Unrolled, 32);
  CHECK_THROWS_WITH_AS((void)codegen::LlvmCompiler(target(Isa::Sse42), {.max_stack_bytes = 100}).compile(nest),
                       "temporary 'C' of 512 bytes brings the stack of a thread to 512; at most 100 fit: "
                       "compute it further inside, "
                       "in smaller tiles, or at the top level",
                       codegen::Unsupported);
  nest.body.push_back(loops::Barrier{});
  CHECK_THROWS_AS((void)codegen::compile(nest, target(Isa::Sse42)), codegen::Unsupported);
  // Each thread would fill a copy of its own, and read what the others were to fill.
  schedule::ScheduleBuilder shared(std::make_shared<const program::ComputeGraph>(matmul(8, 8, 4)));
  shared.bind(2, 0, LoopKind::BlockX);
  shared.bind(2, 1, LoopKind::ThreadX);
  shared.cache_read(1, 2, schedule::Scope::Shared);
  shared.bind(3, 1, LoopKind::ThreadX);
  shared.compute_at(3, 2, 1);
  CHECK_THROWS_WITH_AS((void)codegen::compile(loops::lower(shared.schedule()), target(Isa::Sse42)),
                       "buffer 'B.shared' is filled by all threads of a block; kernels for CPUs have no thread blocks",
                       codegen::Unsupported);
  Target gpu;
  gpu.kind = DeviceKind::Gpu;
  CHECK_THROWS_AS(codegen::LlvmCompiler{gpu}, std::invalid_argument);
}

TEST_CASE("kernels from IR text, loading and its errors") {
  codegen::LlvmCompiler compiler(target(Isa::Sse42));
  const std::string text =
      "define void @store42(ptr %buffers, ptr %runtime) {\n  %p = load ptr, ptr %buffers\n  store i32 42, "
      "ptr %p\n  ret void\n}\n";
  const codegen::Kernel kernel = compiler.compile_ir_text(text, "store42", {});
  codegen::KernelLoader loader;
  codegen::LoadedKernel kept;
  {
    const codegen::LoadedKernel first = loader.load(kernel), second = loader.load(kernel);
    CHECK(static_cast<bool>(first.function() != second.function()));
    kept = second;
  }
  int value = 0;
  void* buffers[] = {&value};
  kept(buffers, nullptr);
  CHECK(value == 42);
  CHECK_THROWS_AS((void)compiler.compile_ir_text("define void @", "x", {}), std::invalid_argument);
  CHECK_THROWS_AS((void)compiler.compile_ir_text(text, "other", {}), std::invalid_argument);
  CHECK_THROWS_AS((void)loader.load({}), std::invalid_argument);
  codegen::Kernel wrong = kernel;
  wrong.symbol = "other";
  CHECK_THROWS_AS((void)loader.load(wrong), std::runtime_error);
  wrong.object = std::make_shared<const std::vector<char>>(64, 'x');
  CHECK_THROWS_AS((void)loader.load(wrong), std::runtime_error);
  CHECK(static_cast<bool>(loader.load(kernel)));
}

}  // namespace
