// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/llvm.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "support/nest_builder.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/loops/print.hpp"

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
    static codegen::LlvmCompiler compilers[] = {codegen::LlvmCompiler(target(Isa::Sse42), options), codegen::LlvmCompiler(target(Isa::Avx2), options),
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
  g.reduce("C", {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::Sum, [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
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
  const auto y = conv.reduce("y", {{"h", 6}, {"w", 5}, {"o", 21}}, {{"kh", 3}, {"kw", 3}, {"c", 5}}, Combiner::Sum, [&](auto i, auto r) {
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

}  // namespace
