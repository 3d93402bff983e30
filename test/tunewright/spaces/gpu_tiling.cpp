// SPDX-License-Identifier: Apache-2.0
// Sketches for GPUs: how many there are, what each contains, and that candidates can be drawn for every operator.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using program::ComputeGraph;
using schedule::LoopKind;
using schedule::Scope;
using spaces::MultiLevelTiling;

template <class Fill>
Task task_of(const Fill& fill, const char* device = "V100") {
  auto g = std::make_shared<ComputeGraph>();
  fill(*g);
  return program::make_task("test", std::move(g), gpu_target(device));
}
Task matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  return task_of([=](auto& g) { ops::matmul(g, g.input("A", {m, k}), g.constant("B", {k, n})); });
}

/// Steps of kind `S` that meet `condition`.
template <class S, class Condition>
std::ptrdiff_t count(const schedule::Schedule& sketch, const Condition& condition) {
  return std::count_if(sketch.steps.begin(), sketch.steps.end(), [&](const schedule::Step& step) {
    const auto* s = std::get_if<S>(&step);
    return s != nullptr && condition(*s);
  });
}
template <class S>
std::ptrdiff_t count(const schedule::Schedule& sketch) {
  return count<S>(sketch, [](const S&) { return true; });
}
std::ptrdiff_t bound(const schedule::Schedule& sketch, LoopKind kind) {
  return count<schedule::Annotate>(sketch, [&](const schedule::Annotate& a) { return a.kind == kind; });
}
using Counts = std::vector<std::ptrdiff_t>;
template <class Count>
Counts each(const std::vector<schedule::Schedule>& sketches, const Count& of) {
  Counts all;
  for (const auto& sketch : sketches) all.push_back(of(sketch));
  std::sort(all.begin(), all.end());
  return all;
}
const auto kernels = [](const auto& sketch) { return bound(sketch, LoopKind::BlockX); };
const auto factored = [](const auto& sketch) { return count<schedule::Rfactor>(sketch); };

TEST_CASE("matmul: tiles of five and three levels, sums in registers, operands fetched by all threads") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(matmul(1024, 1024, 1024));
  REQUIRE(sketches.size() == 1);
  const schedule::Schedule& sketch = sketches[0];
  using schedule::Split;
  CHECK(count<Split>(sketch, [](const Split& s) { return s.factors.size() == 4 && s.max_innermost == 64; }) == 2);
  CHECK(count<Split>(sketch, [](const Split& s) { return s.factors.size() == 2; }) == 1);
  CHECK(count<Split>(sketch, [](const Split& s) { return s.inner == LoopKind::Vectorized && s.max_innermost == 4; }) ==
        2);
  CHECK(count<schedule::CacheWrite>(sketch, [](const auto& s) { return s.scope == Scope::Local; }) == 1);
  CHECK(count<schedule::CacheRead>(sketch, [](const auto& s) { return s.scope == Scope::Shared; }) == 2);
  CHECK(count<schedule::FollowSplit>(sketch, [](const auto& s) { return s.parts == 3; }) == 2);
  CHECK(count<schedule::FollowFusedSplit>(sketch,
                                          [](const auto& s) { return s.level == 1 && s.sources.size() == 2; }) == 2);
  CHECK(bound(sketch, LoopKind::BlockX) == 1);
  CHECK(bound(sketch, LoopKind::VirtualThread) == 1);
  CHECK(bound(sketch, LoopKind::ThreadX) == 3);  // of the tile and of two fetches
  CHECK(count<schedule::UnrollLimit>(
            sketch, [](const auto& s) { return s.choices == std::vector<std::int64_t>{0, 16, 64, 512, 1024}; }) == 1);
}

TEST_CASE("how far fetches run ahead is a choice, asynchronously from compute capability 8.0 on") {
  const MultiLevelTiling space;
  const auto choices = [&](const char* device) {
    const auto& sketches = space.sketches(
        task_of([](auto& g) { ops::matmul(g, g.input("A", {256, 256}), g.constant("B", {256, 256})); }, device));
    REQUIRE(sketches.size() == 1);
    std::vector<schedule::Pipelining> found;
    for (const schedule::Step& step : sketches[0].steps) {
      if (const auto* pipeline = std::get_if<schedule::Pipeline>(&step)) {
        CHECK(found.empty());
        CHECK(pipeline->selected == 0);
        found = pipeline->choices;
      }
    }
    return found;
  };
  using Choices = std::vector<schedule::Pipelining>;
  CHECK(choices("T4") == Choices{{1, false}, {2, false}});
  CHECK(choices("V100") == Choices{{1, false}, {2, false}});
  CHECK(choices("A100") == Choices{{1, false}, {2, false}, {2, true}, {3, true}, {4, true}});
  CHECK(count<schedule::Pipeline>(
            space.sketches(task_of([](auto& g) { ops::relu(g, g.input("x", {256, 256})); }))[0]) == 0);
}

TEST_CASE("all ways of pipelining are drawn and mutated to; schedules without the step decode, too") {
  const MultiLevelTiling space;
  const Task task =
      task_of([](auto& g) { ops::matmul(g, g.input("A", {512, 512}), g.constant("B", {512, 512})); }, "A100");
  const auto selected = [](const schedule::Schedule& config) {
    for (const schedule::Step& step : config.steps) {
      if (const auto* pipeline = std::get_if<schedule::Pipeline>(&step)) return pipeline->selected;
    }
    return 99U;
  };
  std::vector<int> drawn(5, 0);
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const auto config = space.sample(task, rng);
    REQUIRE(config.has_value());
    ++drawn[selected(*config)];
    const auto mutant = space.mutate(task, *config, rng);
    changed += mutant && selected(*mutant) != selected(*config);
  }
  CHECK(*std::min_element(drawn.begin(), drawn.end()) > 0);
  CHECK(changed > 0);
  Rng rng(1);
  schedule::Schedule plain = *space.sample(task, rng);
  std::erase_if(plain.steps, [](const auto& step) { return std::holds_alternative<schedule::Pipeline>(step); });
  const auto decoded = space.decode(task, space.encode(plain));
  REQUIRE(decoded.has_value());
  CHECK(decoded->steps == plain.steps);
  CHECK(selected(*decoded) == 99);
}

TEST_CASE("rows of whatever is fetched to shared memory may be kept apart, with and without tensor units") {
  const MultiLevelTiling space;
  std::vector<test::Workload> workloads = test::workloads();
  workloads.push_back({"product_for_tensor_units", [](Rng&) {
                         return ops::matmul_graph({.m = 64, .n = 48, .k = 80, .type = program::ScalarType::Float16});
                       }});
  std::size_t fetched = 0;
  for (const test::Workload& workload : workloads) {
    Rng rng(3);
    const Task task = program::make_task(workload.name, workload.make(rng), gpu_target("A100"));
    for (schedule::Schedule sketch : space.sketches(task)) {
      const auto arranged = [&](std::uint32_t padding) {
        for (schedule::Step& step : sketch.steps) {
          auto* layout = std::get_if<schedule::TransformLayout>(&step);
          if (layout != nullptr && layout->paddings.size() > 1) layout->padding = padding;
        }
        return loops::lower(sketch);
      };
      const loops::LoopNest adjoining = arranged(0), apart = arranged(1);
      for (std::size_t b = 0; b < apart.buffers.size(); ++b) {
        const loops::Buffer& buffer = apart.buffers[b];
        if (buffer.scope != Scope::Shared || buffer.name.find(".shared") == std::string::npos ||
            buffer.shape.size() < 2)
          continue;
        CHECK_MESSAGE(buffer.elements() > adjoining.buffers[b].elements(), workload.name, ": ", buffer.name);
        ++fetched;
      }
    }
  }
  CHECK(fetched >= 20);
}

TEST_CASE("matmul + bias + relu: the reader takes the place of the write cache") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of([](auto& g) {
    const auto y = ops::matmul(g, g.input("A", {512, 512}), g.constant("B", {512, 512}));
    ops::relu(g, ops::bias_add(g, y, g.constant("bias", {512})));
  }));
  REQUIRE(sketches.size() == 1);
  CHECK(count<schedule::CacheWrite>(sketches[0]) == 0);
  CHECK(kernels(sketches[0]) == 1);
}

TEST_CASE("few results of a long reduction: also in chunks that blocks of their own reduce") {
  const MultiLevelTiling space;
  // 64 * 64 results are one block of work for 80 multiprocessors.
  const auto& sketches = space.sketches(matmul(64, 64, 8192));
  CHECK(each(sketches, factored) == Counts{0, 1});
  CHECK(each(sketches, kernels) == Counts{1, 2});
  // A block works on one chunk: no choice for that axis; what it writes is contiguous.
  CHECK(each(sketches, [](const auto& sketch) {
          return count<schedule::Split>(sketch,
                                        [](const auto& s) { return s.factors.size() == 4 && s.max_innermost >= 0; });
        }) == Counts{2, 2});
  CHECK(each(sketches, [](const auto& sketch) {
          return count<schedule::TransformLayout>(
              sketch, [](const auto& s) { return s.orders == std::vector<std::vector<std::uint32_t>>{{2, 0, 1}}; });
        }) == Counts{0, 1});
  CHECK(space.sketches(matmul(4096, 4096, 8192)).size() == 1);
}

TEST_CASE("padding is computed while it is fetched") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of(
      [](auto& g) { ops::conv2d(g, g.input("x", {1, 56, 56, 64}), g.constant("w", {3, 3, 64, 64}), {.padding = 1}); }));
  REQUIRE(sketches.size() == 1);
  CHECK(count<schedule::CacheRead>(sketches[0]) == 2);
  CHECK(count<schedule::ComputeLocation>(
            sketches[0], [](const auto& s) { return s.choices[0].kind == schedule::Location::Kind::Inline; }) == 1);
  CHECK(count<schedule::Split>(sketches[0], [](const auto& s) { return s.factors.size() == 4; }) == 4);
}

TEST_CASE("an operand at a quotient of loops is not fetched: the channels of a grouped convolution") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of(
      [](auto& g) { ops::conv2d(g, g.input("x", {1, 28, 28, 64}), g.constant("w", {3, 3, 8, 64}), {.groups = 8}); }));
  REQUIRE(sketches.size() == 1);
  CHECK(count<schedule::CacheRead>(sketches[0]) == 1);
}

TEST_CASE("softmax over many rows: one to three kernels, each reduction in a thread or shared by threads") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of([](auto& g) { ops::softmax(g, g.input("x", {512, 128})); }));
  // Where the threads that need a row share both its reductions there is one kernel; a maximum that two kernels need is
  // a kernel of its own.
  CHECK(each(sketches, kernels) == Counts{1, 2, 3, 3});
}

TEST_CASE("a mean over rows: the scale is computed where the sum is") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of([](auto& g) { ops::mean(g, g.input("x", {256, 512}), {1}); }));
  CHECK(each(sketches, kernels) == Counts{1, 1});
}

TEST_CASE("a full reduction: shared by the threads of one block, or in chunks") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of([](auto& g) { ops::sum(g, g.input("x", {1024, 1024}), {0, 1}); }));
  CHECK(each(sketches, factored) == Counts{0, 1, 1});
  CHECK(space.sketches(task_of([](auto& g) { ops::sum(g, g.input("x", {3, 4}), {0, 1}); })).size() == 1);
}

TEST_CASE("elementwise operators are one kernel of vectors; odd rows have no vectors") {
  const MultiLevelTiling space;
  const auto vectors = [&](std::int64_t columns) {
    const auto& sketches = space.sketches(task_of([=](auto& g) {
      ops::gelu(g, ops::tanh(g, ops::add(g, g.input("x", {64, columns}), g.input("y", {64, columns}))));
    }));
    REQUIRE(sketches.size() == 1);
    CHECK(kernels(sketches[0]) == 1);
    return count<schedule::Split>(sketches[0], [](const auto& s) { return s.inner == LoopKind::Vectorized; });
  };
  CHECK(vectors(96) == 1);
  CHECK(vectors(97) == 0);
}

TEST_CASE("candidates for every operator, on two devices") {
  const MultiLevelTiling space;
  for (const char* device : {"V100", "H100"}) {
    for (const test::Workload& workload : test::workloads()) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Rng rng(seed);
        const Task task = program::make_task(workload.name, workload.make(rng), gpu_target(device));
        auto config = space.sample(task, rng);
        REQUIRE_MESSAGE(config.has_value(), workload.name, " ", seed, " on ", device);
        CHECK(space.feasible(task, *config));
        for (int i = 0; i < 3; ++i) {
          const auto changed = space.mutate(task, *config, rng);
          if (!changed || !space.feasible(task, *changed)) continue;
          CHECK(changed->steps != config->steps);
          config = changed;
        }
        const auto again = space.decode(task, space.encode(*config));
        REQUIRE(again.has_value());
        CHECK(again->steps == config->steps);
      }
    }
  }
}

TEST_CASE("a product that is read at other points as well is not computed in its reader's threads") {
  // The copy is inlined, so `add` alone reads the product, at two points.
  const Task twice = task_of([](auto& g) {
    const auto product = ops::matmul(g, g.input("A", {64, 64}), g.constant("B", {64, 64}));
    ops::add(g, product, ops::transpose(g, product));
  });
  const Task with_column = task_of([](auto& g) {
    const auto product = ops::matmul(g, g.input("A", {64, 64}), g.constant("B", {64, 1024}));
    ops::subtract(g, product, ops::slice(g, product, {.dimension = 1, .begin = 0, .extent = 1}));
  });
  const MultiLevelTiling space;
  Rng rng(1);
  for (const Task& task : {twice, with_column}) {
    for (const schedule::Schedule& sketch : space.sketches(task)) CHECK(kernels(sketch) == 2);
    const auto config = space.sample(task, rng);
    REQUIRE(config.has_value());
    CHECK(space.feasible(task, *config));
  }
}

TEST_CASE("bad input: a GPU without limits") {
  const MultiLevelTiling space;
  Task task = matmul(64, 64, 64);
  task.target = Target{};
  task.target.name = "mine";
  task.target.kind = DeviceKind::Gpu;
  CHECK_THROWS_WITH_AS((void)space.sketches(task), doctest::Contains("'mine' lacks threads per block"),
                       std::invalid_argument);
}

TEST_CASE("a candidate beyond a limit: the limit by name") {
  const MultiLevelTiling space;
  const Task task = matmul(4096, 4096, 4096);
  const auto why = [&](std::vector<std::int64_t> rows, std::vector<std::int64_t> columns,
                       std::vector<std::int64_t> depth) {
    schedule::Schedule config = space.sketches(task)[0];
    for (schedule::Step& step : config.steps) {
      auto* split = std::get_if<schedule::Split>(&step);
      if (split == nullptr || split->inner != LoopKind::Serial) continue;
      split->factors = split->factors.size() == 2 ? depth : split->iter == 0 ? rows : columns;
    }
    return std::string(space.why_infeasible(task, config));
  };
  CHECK(why({1, 16, 1, 4}, {1, 16, 1, 4}, {1, 16}).empty());
  CHECK(why({1, 64, 1, 4}, {1, 32, 1, 1}, {1, 16}) == "too many threads");
  CHECK(why({4, 8, 1, 1}, {4, 8, 1, 1}, {1, 16}) == "too many virtual threads");
  // 64 rows and 64 columns, 256 deep, four bytes each: 128 KiB where a V100 has 96.
  CHECK(why({1, 16, 1, 4}, {1, 16, 1, 4}, {4, 64}) == "too much shared memory");
  CHECK(why({1, 8, 1, 64}, {1, 8, 1, 64}, {1, 1}) == "local buffers too large");
}

}  // namespace
