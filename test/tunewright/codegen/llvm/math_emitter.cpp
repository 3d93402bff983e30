// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/llvm/math_emitter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/emulated_program.hpp"
#include "support/nest_builder.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"

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

double exp_without_denormals(double x) {
  const double exact = std::exp(x);
  return exact < static_cast<double>(std::numeric_limits<float>::min()) ? 0 : exact;
}

struct Function {
  Expr (*body)(const Expr& x);
  double (*exact)(double x);
  double below;  ///< what the worst error is, in units in the last place
};
const std::array functions{
    Function{[](const Expr& x) { return exp(x); }, exp_without_denormals, 2},
    Function{[](const Expr& x) { return log(x); }, [](double x) { return std::log(x); }, 2},
    Function{[](const Expr& x) { return tanh(x); }, [](double x) { return std::tanh(x); }, 2},
    Function{[](const Expr& x) { return erf(x); }, [](double x) { return std::erf(x); }, 2.5},
    Function{[](const Expr& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, 0.5000001},
    Function{[](const Expr& x) { return abs(-x); }, [](double x) { return std::fabs(x); }, 1e-9},
};

/// All functions of the samples: an output each.
codegen::Kernel kernel_of_functions(Isa isa, loops::LoopKind kind) {
  const auto n = static_cast<std::int64_t>(samples().size());
  program::ComputeGraph g;
  const auto x = g.input("x", {n});
  for (std::size_t f = 0; f < functions.size(); ++f)
    g.compute("y" + std::to_string(f), {{"i", n}}, [&](auto i) { return functions[f].body(x(i[0])); });
  Target t;
  t.isa = isa;
  return codegen::compile(test::plain_nest(g, kind), t);
}

void check_functions(const std::vector<std::vector<double>>& arguments) {
  REQUIRE(arguments.size() == 1 + functions.size());
  for (std::size_t f = 0; f < functions.size(); ++f) {
    double worst = 0;
    for (std::size_t i = 0; i < arguments[0].size(); ++i) {
      const auto input = static_cast<double>(static_cast<float>(arguments[0][i]));
      const double error = ulps(arguments[1 + f][i], functions[f].exact(input));
      if (error > 4) CHECK_MESSAGE(error <= 4, "function ", f, " of ", input, " gave ", arguments[1 + f][i]);
      worst = std::max(worst, error);
    }
    CHECK_MESSAGE(worst < functions[f].below, "function ", f);
  }
}

std::vector<std::vector<double>> arguments_of_functions() {
  std::vector<std::vector<double>> arguments(1 + functions.size(), std::vector<double>(samples().size()));
  arguments[0] = samples();
  return arguments;
}

TEST_CASE("functions are accurate to a few units in the last place, with C's special cases") {
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (!contains(host_target().isa, isa)) continue;
    for (const loops::LoopKind kind : {loops::LoopKind::Serial, loops::LoopKind::Vectorized}) {
      INFO(std::string(name(isa)), " ", std::string(loops::name(kind)));
      std::vector<std::vector<double>> arguments = arguments_of_functions();
      REQUIRE(test::run_kernel(kernel_of_functions(isa, kind), arguments));
      check_functions(arguments);
    }
  }
}

TEST_CASE("functions are as accurate on 64-bit ARM") {
  if (!test::can_emulate_aarch64()) {
    MESSAGE(test::why_not_emulated);
    return;
  }
  test::EmulatedProgram program;
  for (const loops::LoopKind kind : {loops::LoopKind::Serial, loops::LoopKind::Vectorized})
    program.add(kernel_of_functions(Isa::Neon, kind), arguments_of_functions());
  for (const test::EmulatedProgram::Case& ran : program.run(1)) {
    REQUIRE(ran.intact);
    check_functions(ran.arguments);
  }
}

TEST_CASE("double functions are the C library's") {
  const auto n = static_cast<std::int64_t>(samples().size());
  program::ComputeGraph g;
  const auto x = g.input("x", {n}, ScalarType::Float64);
  g.compute("y", {{"i", n}}, [&](auto i) { return exp(x(i[0])) + log(x(i[0])) + tanh(x(i[0])) + erf(x(i[0])); });
  for (const loops::LoopKind kind : {loops::LoopKind::Serial, loops::LoopKind::Vectorized}) {
    std::vector<std::vector<double>> arguments{samples(), std::vector<double>(samples().size())};
    REQUIRE(test::run_kernel(codegen::compile(test::plain_nest(g, kind), host_target().with_threads(1)), arguments));
    for (std::size_t i = 0; i < arguments[0].size(); ++i) {
      const double v = arguments[0][i];
      const double exact = std::exp(v) + std::log(v) + std::tanh(v) + std::erf(v);
      CHECK((arguments[1][i] == exact || (std::isnan(arguments[1][i]) && std::isnan(exact))));
    }
  }
}

}  // namespace
