// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/llvm.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "support/nest_builder.hpp"
#include "support/run_kernel.hpp"

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

/// Compiles for every instruction set this machine can run.
template <class F>
void for_each_isa(const F& f) {
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa == Isa::Avx2 && !__builtin_cpu_supports("avx2")) continue;
    if (isa == Isa::Avx512 && !__builtin_cpu_supports("avx512f")) continue;
    INFO("isa ", std::string(name(isa)));
    codegen::LlvmCompiler compiler(target(isa), {.verify = true});
    f(compiler);
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

}  // namespace
