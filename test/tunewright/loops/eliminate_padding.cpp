// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/eliminate_padding.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/transposed_conv2d.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using schedule::ScheduleBuilder;

/// y[i] = sum over r of x[i + r - 1] * w[r], where x has three elements and zeros around. Tensors: x, w, padded, y.
std::shared_ptr<const program::ComputeGraph> smoothing(program::Combiner combiner = program::Combiner::Sum) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {3});
  const auto w = g->input("w", {3});
  const auto padded = ops::pad(*g, x, {.before = {1}, .after = {1}, .name = "padded"});
  g->reduce("y", {{"i", 3}}, {{"r", 3}}, combiner, [&](auto i, auto r) { return padded(i[0] + r[0]) * w(r[0]); });
  return g;
}
constexpr program::TensorId padded = 2;
constexpr program::TensorId y = 3;

using Values = std::vector<double>;

Values run(const loops::LoopNest& nest, Values x, Values w) {
  std::vector<Values> arguments{std::move(x), std::move(w), Values(3)};
  loops::interpret(nest, arguments);
  return arguments.back();
}

TEST_CASE("a factor that is padding becomes guards of the term") {
  ScheduleBuilder s(smoothing());
  s.compute_inline(padded);
  const loops::LoopNest nest = loops::eliminate_padding(loops::lower(s.schedule()));
  CHECK(loops::to_string(nest) ==
        "kernel(x: float32[3], w: float32[3], out y: float32[3])\n"
        "  for i in 0..3:\n"
        "    y[i] = 0\n"
        "    for r in 0..3 reduction:\n"
        "      y[i] += x[i + r - 1] * w[r]  if 0 <= i + r - 1 and 0 <= -i - r + 3\n");
  // 0 + 100 * 1 + 1000 * 2, 10 * 1 + 100 * 2 + 1000 * 3, 10 * 2 + 100 * 3 + 0
  CHECK(run(nest, {1, 2, 3}, {10, 100, 1000}) == Values{2100, 3210, 320});
}

TEST_CASE("what is left out does not matter, not even if it is no number") {
  ScheduleBuilder s(smoothing());
  s.compute_inline(padded);
  const loops::LoopNest plain = loops::lower(s.schedule());
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(run(plain, {1, 2, 3}, {infinity, 1, 1})[0]));  // 0 * infinity
  CHECK(run(loops::eliminate_padding(plain), {1, 2, 3}, {infinity, 1, 1}) == Values{3, infinity, infinity});
}

/// y[i] = the combination over r of x[i + r - 1], where x has three elements and `outside` around. Tensors: x, padded, y.
loops::LoopNest window(program::Combiner combiner, double outside,
                       program::ScalarType type = program::ScalarType::Float32) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {3}, type);
  const auto around = ops::pad(*g, x, {.before = {1}, .after = {1}, .value = outside, .name = "padded"});
  g->reduce("y", {{"i", 3}}, {{"r", 3}}, combiner, [&](auto i, auto r) { return around(i[0] + r[0]); });
  ScheduleBuilder s(g);
  s.compute_inline(1);
  return loops::lower(s.schedule());
}

TEST_CASE("a window that is padded with the identity of its reduction becomes guards of the term") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto skipped = [](const loops::LoopNest& nest) { return loops::eliminate_padding(nest); };
  CHECK(loops::to_string(skipped(window(program::Combiner::Max, -infinity))) ==
        "kernel(x: float32[3], out y: float32[3])\n"
        "  for i in 0..3:\n"
        "    y[i] = -inf\n"
        "    for r in 0..3 reduction:\n"
        "      y[i] max= x[i + r - 1]  if 0 <= i + r - 1 and 0 <= -i - r + 3\n");
  struct Case {
    program::Combiner combiner;
    double outside;
    program::ScalarType type;
    Values expected;
  };
  for (const Case& c : {Case{program::Combiner::Max, -infinity, program::ScalarType::Float32, {-2, -2, -4}},
                        Case{program::Combiner::Max, -128, program::ScalarType::Int8, {-2, -2, -4}},
                        Case{program::Combiner::Min, infinity, program::ScalarType::Float32, {-7, -7, -7}},
                        Case{program::Combiner::Product, 1, program::ScalarType::Float32, {14, -56, 28}},
                        Case{program::Combiner::Sum, 0, program::ScalarType::Float32, {-9, -13, -11}}}) {
    const loops::LoopNest plain = window(c.combiner, c.outside, c.type), nest = skipped(plain);
    CHECK(loops::to_string(nest).find("select") == std::string::npos);
    for (const loops::LoopNest* each : {&plain, &nest}) {
      std::vector<Values> arguments{{-2, -7, -4}, Values(3)};
      loops::interpret(*each, arguments);
      CHECK(arguments.back() == c.expected);
    }
  }
}

TEST_CASE("a window that is padded with another value is read as it is") {
  for (const auto& [combiner, outside] :
       {std::pair{program::Combiner::Max, 0.0}, std::pair{program::Combiner::Max, 1e300},
        std::pair{program::Combiner::Min, 0.0}, std::pair{program::Combiner::Product, 0.0},
        std::pair{program::Combiner::Sum, 1.0}}) {
    const loops::LoopNest nest = window(combiner, outside, program::ScalarType::Float64);
    CHECK(loops::to_string(loops::eliminate_padding(nest)) == loops::to_string(nest));
  }
}

TEST_CASE("guards that the lanes of a vector do not share stay a select; so do maxima of zeros") {
  ScheduleBuilder lanes(smoothing());
  lanes.compute_inline(padded);
  lanes.reorder(y, {1, 0});
  lanes.vectorize(y, 0);
  ScheduleBuilder largest(smoothing(program::Combiner::Max));
  largest.compute_inline(padded);
  for (const ScheduleBuilder* s : {&lanes, &largest}) {
    const loops::LoopNest nest = loops::lower(s->schedule());
    CHECK(loops::to_string(loops::eliminate_padding(nest)) == loops::to_string(nest));
  }
}

TEST_CASE("a padded tensor that is stored is read as it is") {
  const loops::LoopNest nest = loops::lower(ScheduleBuilder(smoothing()).schedule());
  CHECK(loops::to_string(loops::eliminate_padding(nest)) == loops::to_string(nest));
}

TEST_CASE("guards that differ between the iterations of a reduction do not cut it in two") {
  ScheduleBuilder s(smoothing());
  s.compute_inline(padded);
  s.reorder(y, {1, 0});
  s.unroll(y, 0);  // all of y in registers: terms with r = 0 and r = 2 each lack one of three
  const loops::LoopNest skipped = loops::eliminate_padding(loops::lower(s.schedule()));
  CHECK(loops::to_string(loops::partition(skipped)) == loops::to_string(skipped));
}

TEST_CASE("tiles away from the border run without guards") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1, 8, 8, 1});
  ops::conv2d(*g, x, g->constant("w", {3, 3, 1, 1}), {.padding = 1});
  ScheduleBuilder s(g);
  s.compute_inline(padded);
  const loops::LoopNest nest = loops::partition(loops::eliminate_padding(loops::lower(s.schedule())));
  const std::string text = loops::to_string(nest);
  CHECK(text.find("if 0 <= h - 1 and 0 <= -h + 6 and 0 <= w - 1 and 0 <= -w + 6:") != std::string::npos);
}

/// The kernel of `graph` with all paddings inside of what reads them, before and after their zeros are left out.
struct Padded {
  explicit Padded(std::shared_ptr<const program::ComputeGraph> g) : graph(std::move(g)) {
    ScheduleBuilder s(graph);
    for (program::TensorId id = 0; id < graph->size(); ++id) {
      const program::Operator& op = graph->op(id);
      if (op.role == program::Role::Computed && !op.has_reduction()) s.compute_inline(id);
    }
    plain = loops::lower(s.schedule());
    skipped = loops::eliminate_padding(plain);
  }

  [[nodiscard]] bool changed() const { return loops::to_string(skipped) != loops::to_string(plain); }

  /// Whether `nest` gives on random inputs what the reference does.
  [[nodiscard]] bool right(const loops::LoopNest& nest) const {
    const reference::Tensors inputs = reference::random_inputs(*graph, Rng(7));
    std::vector<Values> arguments;
    for (const loops::BufferId id : nest.arguments) {
      const loops::Buffer& buffer = nest.buffers[id];
      Values& values = arguments.emplace_back(static_cast<std::size_t>(buffer.elements()));
      if (buffer.role == loops::BufferRole::Output) continue;
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = inputs[buffer.tensor].get(i);
    }
    loops::interpret(nest, arguments);
    const program::TensorId output = nest.buffers[nest.arguments.back()].tensor;
    reference::Array actual(graph->op(output).type, graph->op(output).shape());
    for (std::size_t i = 0; i < actual.size(); ++i) actual.set(i, arguments.back()[i]);
    const auto compared = reference::compare(actual, reference::evaluate(*graph, inputs)[output],
                                             reference::tolerance_for(*graph, output));
    INFO(compared.text());
    CHECK(compared.passed);
    return compared.passed;
  }
  /// Whether sums without their zeros are right, whole and with guards hoisted.
  [[nodiscard]] bool right() const { return right(skipped) && right(loops::partition(skipped)); }

  std::shared_ptr<const program::ComputeGraph> graph;
  loops::LoopNest plain, skipped;
};

TEST_CASE("strided and dilated convolutions of odd shapes compute what the reference does") {
  for (const std::int64_t stride : {1, 2, 3}) {
    for (const std::int64_t dilation : {1, 2, 3}) {
      for (const std::int64_t padding : {1, 2, 5}) {
        INFO("stride ", stride, ", dilation ", dilation, ", padding ", padding);
        auto g = std::make_shared<program::ComputeGraph>();
        const auto x = g->input("x", {1, 7, 9, 2});
        ops::conv2d(*g, x, g->constant("w", {3, 2, 2, 3}),
                    {.stride = stride, .padding = padding, .dilation = dilation});
        const Padded conv(g);
        CHECK(conv.changed());
        CHECK(conv.right());
      }
    }
  }
}

TEST_CASE("a strided and dilated read is guarded by the place it reads") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {5});
  const auto w = g->constant("w", {3});
  const auto wide = ops::pad(*g, x, {.before = {2}, .after = {2}});
  g->reduce("y", {{"i", 3}}, {{"r", 3}}, program::Combiner::Sum,
            [&](auto i, auto r) { return wide(2 * i[0] + 2 * r[0]) * w(r[0]); });
  const Padded conv(g);
  CHECK(loops::to_string(conv.skipped).find("if 0 <= 2*i + 2*r - 2 and 0 <= -2*i - 2*r + 6") != std::string::npos);
  CHECK(conv.right());
}

TEST_CASE("conversions around a padded factor are looked through") {
  using program::ScalarType;
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Int8, ScalarType::UInt8}) {
    INFO(std::string(program::name(type)));
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {1, 5, 6, 3}, type);
    ops::conv2d(*g, x, g->constant("w", {3, 3, 3, 2}, type), {.stride = 2, .padding = 1, .dilation = 2});
    const Padded conv(g);  // float32 or int32 sums of products of casts
    CHECK(conv.changed());
    CHECK(loops::to_string(conv.skipped).find("select") == std::string::npos);
    CHECK(conv.right());
  }
}

TEST_CASE("both factors of a term may be padding") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = ops::pad(*g, g->input("x", {4}), {.before = {2}, .after = {1}});
  const auto w = ops::pad(*g, g->input("w", {3}), {.before = {1}, .after = {2}});
  g->reduce("y", {{"i", 2}}, {{"r", 6}}, program::Combiner::Sum,
            [&](auto i, auto r) { return x(i[0] + r[0]) * w(r[0]); });
  const Padded product(g);
  const std::string text = loops::to_string(product.skipped);
  CHECK(text.find("select") == std::string::npos);
  CHECK(text.find("0 <= i + r - 2") != std::string::npos);
  CHECK(text.find("0 <= r - 1") != std::string::npos);
  CHECK(product.right());
}

TEST_CASE("a condition by equality stays a select, what is padded beside it does not") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1, 4, 5, 2});
  ops::transposed_conv2d(*g, x, g->constant("w", {3, 3, 2, 3}), {.stride = 2, .padding = 1});
  const Padded spread(g);  // zeros between the elements: remainder == 0
  CHECK_FALSE(spread.changed());
  CHECK(spread.right());

  auto mixed = std::make_shared<program::ComputeGraph>();
  const auto a = mixed->input("a", {5});
  const auto b = ops::pad(*mixed, mixed->input("b", {5}), {.before = {1}, .after = {0}});
  mixed->reduce("y", {{"i", 2}}, {{"r", 5}}, program::Combiner::Sum, [&](auto i, auto r) {
    using program::index_value;
    return select(program::equal(index_value(i[0]), index_value(r[0])), a(r[0]), 0.0) * b(i[0] + r[0]);
  });
  const Padded both(mixed);
  CHECK(both.changed());
  CHECK(loops::to_string(both.skipped).find("select") != std::string::npos);
  CHECK(both.right());
}

}  // namespace
