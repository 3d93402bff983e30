// SPDX-License-Identifier: Apache-2.0
// Compiled conversions and operations of every number type give exactly what the types mean.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/emulated_program.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/loops/lower.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::program;

constexpr std::int64_t count = 150;  // some vectors and a rest
constexpr std::array numbers{ScalarType::Int32,   ScalarType::Int64,    ScalarType::Float32, ScalarType::Float64,
                             ScalarType::Float16, ScalarType::BFloat16, ScalarType::Int8,    ScalarType::UInt8};
constexpr double infinite = std::numeric_limits<double>::infinity();

/// Numbers at which roundings, overflows and conversions change what they do, then random ones of all magnitudes.
std::vector<double> values_of(ScalarType type, std::uint64_t seed) {
  std::vector<double> values{0.0, -0.0, -1, 1, 127.9, 128, -128.9, -129, 255.5, 256};
  if (is_float(type)) {
    for (const double v : {65504.0,
                           65519.99,
                           65520.0,
                           0x1p-24,
                           0x1p-25,
                           0x1.8p-25,
                           0x1p-14,
                           1e30,
                           infinite,
                           1 + 0x1p-11,
                           1 + 0x3p-11,
                           1 + 0x1p-8,
                           1 + 0x3p-8,
                           1 + 0x1p-8 + 0x1p-40,
                           1 + 0x1p-11 + 0x1p-40,
                           0x1p31,
                           -0x1p31 - 1,
                           0x1.fffp127,
                           3e38,
                           1e-40,
                           1e-45}) {
      values.push_back(v);
      values.push_back(-v);
    }
    values.push_back(std::numeric_limits<double>::quiet_NaN());
  } else if (type != ScalarType::Int64) {
    values.push_back(lowest(type));
    values.push_back(highest(type));
  }
  Rng rng(seed);
  while (values.size() < static_cast<std::size_t>(count)) {
    const double magnitude = is_float(type) ? static_cast<double>(rng.below(80)) - 40 : 24;
    values.push_back((2 * rng.uniform() - 1) * std::exp2(magnitude));
  }
  for (double& v : values) v = is_float(type) ? rounded(v, type) : converted(v, ScalarType::Float64, type);
  return values;
}

/// An operator over `count` elements, on numbers where it is hard.
struct Example {
  std::string what;
  ComputeGraph graph;
  std::vector<std::vector<double>> inputs;
};

/// Casts between all types.
std::vector<Example> casts() {
  std::vector<Example> all;
  for (const ScalarType from : numbers) {
    for (const ScalarType to : numbers) {
      if (from == to) continue;
      std::vector<double> given = values_of(from, 1);
      // Doubles stand for int64 here, exactly up to 2^53 only.
      if (to == ScalarType::Int64)
        std::replace_if(given.begin(), given.end(), [](double v) { return std::fabs(v) > 0x1p53; }, 7.0);
      ComputeGraph graph;
      const Tensor x = graph.input("x", {count}, from);
      graph.compute("y", {{"i", count}}, [&](auto i) { return cast(x(i[0]), to); });
      all.push_back({std::string(name(from)) + " to " + std::string(name(to)), std::move(graph), {std::move(given)}});
    }
  }
  return all;
}

/// Operations of narrow types and integers.
std::vector<Example> operations() {
  using Body = Expr (*)(const Expr&, const Expr&);
  const std::array<Body, 6> bodies{
      [](const Expr& a, const Expr& b) { return a + b; },
      [](const Expr& a, const Expr& b) { return a * b - a; },
      [](const Expr& a, const Expr& b) { return a / b; },
      [](const Expr& a, const Expr& b) { return max(-a, abs(b)); },
      [](const Expr& a, const Expr& b) { return select(a <= b, min(a, b), a + 1); },
      [](const Expr& a, const Expr& b) { return select(equal(a, b), a, a * a); },
  };
  std::vector<Example> all;
  for (const ScalarType type :
       {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Int8, ScalarType::UInt8, ScalarType::Int32}) {
    std::vector<double> a = values_of(type, 2);
    std::vector<double> b = values_of(type, 3);
    std::reverse(b.begin(),
                 b.begin() + count / 2);  // special numbers meet random ones, and the least meets -1
    a[0] = lowest(type);
    b[0] = rounded(-1, type);
    if (!is_float(type)) std::replace(b.begin(), b.end(), 0.0, 3.0);
    for (std::size_t body = 0; body < bodies.size(); ++body) {
      ComputeGraph graph;
      const Tensor x = graph.input("x", {count}, type);
      const Tensor y = graph.input("y", {count}, type);
      graph.compute("z", {{"i", count}}, [&](auto i) { return bodies[body](x(i[0]), y(i[0])); });
      all.push_back({std::string(name(type)) + " " + std::to_string(body), std::move(graph), {a, b}});
    }
  }
  return all;
}

/// Functions of whole numbers, whose results all types hold.
std::vector<Example> functions() {
  using Function = Expr (*)(Expr);
  constexpr std::array<std::pair<const char*, Function>, 5> named{
      {{"exp", exp}, {"log", log}, {"sqrt", sqrt}, {"tanh", tanh}, {"erf", erf}}};
  std::vector<double> small;
  for (std::int64_t i = 0; i < count; ++i) small.push_back(1 + static_cast<double>(i % 4));
  std::vector<Example> all;
  for (const ScalarType type : {ScalarType::Int32, ScalarType::Int64, ScalarType::Int8, ScalarType::UInt8}) {
    for (const auto& [name_of_function, function] : named) {
      ComputeGraph graph;
      const Tensor x = graph.input("x", {count}, type);
      graph.compute("y", {{"i", count}}, [&, f = function](auto i) { return f(x(i[0])); });
      all.push_back({name_of_function + (" of " + std::string(name(type))), std::move(graph), {small}});
    }
  }
  return all;
}

loops::LoopNest nest_of(const Example& example, bool vectorised) {
  const auto output = static_cast<TensorId>(example.graph.size() - 1);
  schedule::Schedule config{std::make_shared<const ComputeGraph>(example.graph), {}};
  if (vectorised) config.steps.push_back(schedule::Annotate{output, 0, schedule::LoopKind::Vectorized});
  return loops::lower(config);
}

std::vector<std::vector<double>> arguments_of(const Example& example) {
  std::vector<std::vector<double>> arguments = example.inputs;
  arguments.emplace_back(static_cast<std::size_t>(count));
  return arguments;
}

/// Elements of the output in which what a kernel computed differs from what the interpreter does.
std::size_t differing(const Example& example, const loops::LoopNest& nest, const std::vector<double>& computed) {
  const std::vector<double> expected = test::interpreted(nest, arguments_of(example)).back();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong += !(computed[i] == expected[i] || (std::isnan(computed[i]) && std::isnan(expected[i])));
  return wrong;
}

std::vector<Isa> available() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (contains(host_target().isa, isa)) all.push_back(isa);
  }
  return all;
}

void check_on_host(const std::vector<Example>& examples) {
  for (const Isa isa : available()) {
    codegen::LlvmCompiler compiler(host_target().with_isa(isa).with_threads(1), {.verify = true});
    for (const Example& example : examples) {
      for (const bool vectorised : {false, true}) {
        const loops::LoopNest nest = nest_of(example, vectorised);
        std::vector<std::vector<double>> arguments = arguments_of(example);
        REQUIRE(test::run_kernel(compiler.compile(nest), arguments));
        CHECK_MESSAGE(differing(example, nest, arguments.back()) == 0, name(isa), " ", example.what);
      }
    }
  }
}

}  // namespace

TEST_CASE("casts between all types, scalar and vectorised, on every instruction set") { check_on_host(casts()); }

TEST_CASE("operations of narrow types and integers, scalar and vectorised, on every instruction set") {
  check_on_host(operations());
}

TEST_CASE("functions of whole numbers, scalar and vectorised, on every instruction set") { check_on_host(functions()); }

TEST_CASE("casts and operations, scalar and vectorised, on 64-bit ARM") {
  if (!test::can_emulate_aarch64()) {
    MESSAGE(test::why_not_emulated);
    return;
  }
  std::vector<Example> examples = casts();
  for (Example& operation : operations()) examples.push_back(std::move(operation));
  codegen::LlvmCompiler compiler(Target{.isa = Isa::Neon}, {.verify = true});
  test::EmulatedProgram program;
  std::vector<std::pair<const Example*, loops::LoopNest>> origins;
  for (const Example& example : examples) {
    for (const bool vectorised : {false, true}) {
      origins.emplace_back(&example, nest_of(example, vectorised));
      program.add(compiler.compile(origins.back().second), arguments_of(example));
    }
  }
  std::size_t n = 0;
  for (const test::EmulatedProgram::Case& ran : program.run(1)) {
    const auto& [example, nest] = origins[n++];
    REQUIRE(ran.intact);
    CHECK_MESSAGE(differing(*example, nest, ran.arguments.back()) == 0, example->what);
  }
}

TEST_CASE("sums in float16 are rounded at every step, and integer sums wrap around") {
  // 2048 + 1 is no float16: after 2048 ones the sum stays.
  for (const Isa isa : available()) {
    codegen::LlvmCompiler compiler(host_target().with_isa(isa).with_threads(1), {.verify = true});
    for (const auto& [type, expected] : {std::pair{ScalarType::Float16, 2048.0},
                                         {ScalarType::BFloat16, 256.0},
                                         {ScalarType::Int8, -72.0},
                                         {ScalarType::UInt8, 184.0}}) {
      ComputeGraph graph;
      const Tensor x = graph.input("x", {3000}, type);
      graph.reduce("sum", {{"i", 1}}, {{"k", 3000}}, Combiner::Sum, [&](auto, auto r) { return x(r[0]); });
      const loops::LoopNest nest = loops::lower(schedule::Schedule{std::make_shared<const ComputeGraph>(graph), {}});
      std::vector<std::vector<double>> arguments{std::vector<double>(3000, 1.0), {0.0}};
      REQUIRE(test::run_kernel(compiler.compile(nest), arguments));
      CHECK_MESSAGE(arguments[1][0] == expected, name(isa), " ", name(type));
      CHECK(test::interpreted(nest, {std::vector<double>(3000, 1.0), {0.0}})[1][0] == expected);
    }
  }
}
