// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/llvm/math_emitter.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/nest_builder.hpp"
#include "support/run_kernel.hpp"

namespace {

using namespace tunewright;
using program::Expr;
using program::ScalarType;

/// Distance in units in the last place of the exact result, as a float.
double ulps(double got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  const auto rounded = static_cast<float>(exact);
  if (static_cast<double>(rounded) == got) return 0;
  if (std::isinf(rounded) || std::isinf(got) || std::isnan(got)) return 1e9;
  const float next = std::nextafter(std::fabs(rounded), std::numeric_limits<float>::infinity());
  return std::fabs(got - exact) / static_cast<double>(next - std::fabs(rounded));
}

std::vector<double> samples() {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> x{0.0,    -0.0,   infinity,      -infinity, std::numeric_limits<double>::quiet_NaN(),
                        1e-45,  -1e-45, 1.1754944e-38, 3.4e38,    -3.4e38,
                        88.7,   88.73,  -87.3,         -100,      -103.9,
                        -104.5, 1.0,    -1.0,          0.625,     4.0,
                        9.1};
  std::uint32_t bits = 0;
  for (int i = 0; i < 4000; ++i) {  // every magnitude
    bits += 1073699U;
    float f = 0;
    std::memcpy(&f, &bits, sizeof f);
    x.push_back(static_cast<double>(f));
  }
  for (int i = -3000; i < 3000; ++i) x.push_back(static_cast<double>(static_cast<float>(i) * 0.0037F));
  return x;
}

template <class F, class G>
double worst_ulps(const F& body, const G& exact, Isa isa, loops::LoopKind kind, ScalarType type = ScalarType::Float32) {
  const std::vector<double> x = samples();
  const auto n = static_cast<std::int64_t>(x.size());
  program::ComputeGraph g;
  const auto in = g.input("x", {n}, type);
  g.compute("y", {{"i", n}}, [&](auto i) { return body(in(i[0])); });
  Target t;
  t.isa = isa;
  std::vector<std::vector<double>> arguments{x, std::vector<double>(x.size())};
  REQUIRE(test::run_kernel(codegen::compile(test::plain_nest(g, kind), t), arguments));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double input = type == ScalarType::Float32 ? static_cast<double>(static_cast<float>(x[i])) : x[i];
    const double got = arguments[1][i];
    const bool same = got == exact(input) || (std::isnan(got) && std::isnan(exact(input)));
    const double error = type == ScalarType::Float32 ? ulps(got, exact(input)) : same ? 0 : 1e9;
    CAPTURE(input);
    CAPTURE(got);
    if (error > 4) CHECK(error <= 4);
    worst = std::max(worst, error);
  }
  return worst;
}

TEST_CASE("functions are accurate to a few units in the last place, with C's special cases") {
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa == Isa::Avx2 && !__builtin_cpu_supports("avx2")) continue;
    if (isa == Isa::Avx512 && !__builtin_cpu_supports("avx512f")) continue;
    for (const loops::LoopKind kind : {loops::LoopKind::Serial, loops::LoopKind::Vectorized}) {
      INFO(std::string(name(isa)), " ", std::string(loops::name(kind)));
      CHECK(worst_ulps([](const Expr& x) { return exp(x); }, [](double x) { return std::exp(x); }, isa, kind) < 2);
      CHECK(worst_ulps([](const Expr& x) { return log(x); }, [](double x) { return std::log(x); }, isa, kind) < 2);
      CHECK(worst_ulps([](const Expr& x) { return tanh(x); }, [](double x) { return std::tanh(x); }, isa, kind) < 2);
      CHECK(worst_ulps([](const Expr& x) { return erf(x); }, [](double x) { return std::erf(x); }, isa, kind) < 2.5);
      CHECK(worst_ulps([](const Expr& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, isa, kind) <= 0.5);
      CHECK(worst_ulps([](const Expr& x) { return abs(-x); }, [](double x) { return std::fabs(x); }, isa, kind) == 0);
    }
  }
}

TEST_CASE("double functions are the C library's") {
  for (const loops::LoopKind kind : {loops::LoopKind::Serial, loops::LoopKind::Vectorized}) {
    CHECK(worst_ulps([](const Expr& x) { return exp(x) + log(x) + tanh(x) + erf(x); },
                     [](double x) { return std::exp(x) + std::log(x) + std::tanh(x) + std::erf(x); }, Isa::Sse42, kind,
                     ScalarType::Float64) == 0);
  }
}

}  // namespace
