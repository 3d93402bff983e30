// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/dataflow.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
using features::Dataflow;
namespace dataflow = features::dataflow;
namespace per_statement = features::per_statement;

namespace {

FeatureBatch described(const loops::LoopNest& nest, const Target& target, dataflow::Describer describer) {
  FeatureBatch batch(dataflow::columns);
  Task task;
  task.target = target;
  describer.describe(nest, task, batch);
  return batch;
}

constexpr std::size_t of_buffer(per_statement::BufferColumn column) {
  return dataflow::FirstOfBuffer + static_cast<std::size_t>(column);
}
double unlogged(float value) { return std::exp2(static_cast<double>(value)) - 1; }

}  // namespace

TEST_CASE("the rows of a tiled product on a GPU follow its operands to the result and out again") {
  const auto graph = program::operators::matmul_graph({.m = 128, .n = 64, .k = 32});
  auto s = test::tiled_on_gpu(graph, "matmul", {{1, 8, 2, 1}, {1, 8, 1, 2}}, {{4, 2}}, {"A", "B"});
  const FeatureBatch batch = described(loops::lower(s.schedule()), gpu_target("A100"), dataflow::Describer());
  REQUIRE(batch.rows() == dataflow::rows);
  // Blocks 8 * 4 of 64 threads; a thread has 2 * 2 elements, a step of k copies 16 * 8 and 8 * 16.
  const double products = 128.0 * 64 * 32;
  constexpr std::array location{2, 0, 1, 0, 1, 1, 1, 2, 2, 0};  // 20101112 and 20 in the paper's words
  constexpr std::array access{1, 0, 1, 0, 1, 0, 0, 2, 0, 1};    // read, write, both
  const double copied = 8 * 4 * 4 * (16.0 * 8);
  const std::array<double, dataflow::rows> runs{128.0 * 64, copied,   copied,   copied,     copied,
                                                products,   products, products, 128.0 * 64, 128.0 * 64};
  const std::array<double, dataflow::rows> allocated{4 * 4,      4 * 128 * 32, 4 * 16 * 8, 4 * 32 * 64, 4 * 8 * 16,
                                                     4 * 8 * 16, 4 * 16 * 8,   4 * 4,      4 * 4,       4 * 128 * 64};
  for (std::size_t r = 0; r < dataflow::rows; ++r) {
    CAPTURE(r);
    const auto row = batch.row(r);
    for (int kind = 0; kind < 3; ++kind) {
      CHECK(row[dataflow::InGlobalMemory + static_cast<std::size_t>(kind)] == (location[r] == kind ? 1 : 0));
      CHECK(row[of_buffer(per_statement::AccessRead) + static_cast<std::size_t>(kind)] == (access[r] == kind ? 1 : 0));
    }
    CHECK(unlogged(row[of_buffer(per_statement::Bytes)]) == doctest::Approx(4 * runs[r]));
    CHECK(unlogged(row[dataflow::AllocationBytes]) == doctest::Approx(allocated[r]));
    const bool computes = r >= dataflow::SecondOperand && r <= dataflow::Result;
    CHECK(unlogged(row[dataflow::FloatOperations]) == doctest::Approx(computes ? 2 * products : 0));
  }
}

TEST_CASE("eight rows, and operations squared, as the released code has them") {
  const auto graph = program::operators::matmul_graph({.m = 16, .n = 16, .k = 8});
  auto s = test::tiled_on_gpu(graph, "matmul", {{1, 4, 2, 1}, {1, 4, 1, 2}}, {{2, 2}}, {"A", "B"});
  const loops::LoopNest nest = loops::lower(s.schedule());
  const Dataflow code{.store_rows = false, .squared_operations = true};
  const FeatureBatch batch = described(nest, gpu_target("T4"), code.describer());
  CHECK(batch.rows() == dataflow::rows_without_store);
  CHECK(unlogged(batch.row(dataflow::Result)[dataflow::FloatOperations]) == doctest::Approx(2 * 2048.0 * 2048));
  CHECK(code.schema().name != Dataflow{}.schema().name);
  CHECK(Dataflow{}.schema().columns.size() == dataflow::columns);
}

TEST_CASE("copies that the device makes by itself are told apart where a column more is asked for") {
  const auto graph = program::operators::matmul_graph({.m = 16, .n = 16, .k = 8});
  const auto of = [&](schedule::Pipelining pipelining) {
    auto s = test::tiled_on_gpu(graph, "matmul", {{1, 4, 2, 1}, {1, 4, 1, 2}}, {{2, 2}}, {"A"});
    const schedule::Location at = s.state().stages[s.stage("A.shared")].location;
    s.pipeline(at.stage, at.iter, pipelining);
    return loops::lower(s.schedule());
  };
  const Dataflow with{.asynchronous_copies = true};
  CHECK(with.schema().columns.size() == 24);
  CHECK(with.schema().columns.back().name == "asynchronous");
  CHECK(with.schema().name != Dataflow{}.schema().name);
  FeatureBatch batch(24);
  Task task;
  task.target = gpu_target("A100");
  auto describer = with.describer();
  for (const schedule::Pipelining& pipelining :
       {schedule::Pipelining{1, false}, schedule::Pipelining{2, false}, schedule::Pipelining{2, true}})
    describer.describe(of(pipelining), task, batch);
  for (std::size_t r = 0; r < dataflow::rows; ++r) {
    CAPTURE(r);
    for (std::size_t p = 0; p < 3; ++p) {
      const bool alone = p == 2 && r == dataflow::FirstCopy;
      CHECK(batch.row(p * dataflow::rows + r)[dataflow::CopiedByItself] == (alone ? 1 : 0));
    }
    // Nothing else differs between the last two.
    for (std::size_t c = 0; c < dataflow::columns; ++c)
      CHECK(batch.row(dataflow::rows + r)[c] == batch.row(2 * dataflow::rows + r)[c]);
  }
  FeatureBatch narrow(23);
  CHECK_THROWS_AS(describer.describe(of({1, false}), task, narrow), std::invalid_argument);
}

TEST_CASE("what is not copied has no rows of a copy; what reduces nothing has none at all") {
  const auto graph = program::operators::matmul_graph({.m = 16, .n = 16, .k = 8});
  const FeatureBatch plain =
      described(loops::lower(schedule::ScheduleBuilder(graph).schedule()), Target{}, dataflow::Describer());
  const auto is_zero = [&](const FeatureBatch& batch, std::size_t r) {
    for (const float value : batch.row(r))
      if (value != 0) return false;
    return true;
  };
  for (const auto row : {dataflow::FirstSource, dataflow::FirstCopy, dataflow::SecondSource, dataflow::SecondCopy,
                         dataflow::StoredResult, dataflow::Store})
    CHECK(is_zero(plain, row));
  for (const auto row : {dataflow::Start, dataflow::FirstOperand, dataflow::SecondOperand, dataflow::Result})
    CHECK(plain.row(row)[dataflow::InGlobalMemory] == 1);

  program::ComputeGraph g;
  program::operators::relu(g, g.input("x", {32}));
  const auto shared = std::make_shared<const program::ComputeGraph>(g);
  const FeatureBatch elementwise =
      described(loops::lower(schedule::ScheduleBuilder(shared).schedule()), Target{}, dataflow::Describer());
  REQUIRE(elementwise.rows() == dataflow::rows);
  for (std::size_t r = 0; r < dataflow::rows; ++r) CHECK(is_zero(elementwise, r));
}

TEST_CASE("a product of single numbers, which needs no loop, has rows") {
  const auto graph = program::operators::matmul_graph({.m = 1, .n = 1, .k = 1});
  const loops::LoopNest nest = loops::lower(schedule::ScheduleBuilder(graph).schedule());
  REQUIRE(nest.variables.empty());
  const FeatureBatch batch = described(nest, Target{}, dataflow::Describer());
  CHECK(unlogged(batch.row(dataflow::Result)[dataflow::FloatOperations]) == doctest::Approx(2));
  for (const auto row : {dataflow::Start, dataflow::FirstOperand, dataflow::SecondOperand, dataflow::Result}) {
    CHECK(batch.row(row)[dataflow::InGlobalMemory] == 1);
    CHECK(unlogged(batch.row(row)[dataflow::AllocationBytes]) == doctest::Approx(4));
  }
}

TEST_CASE("a tile of an operand takes the place of shared memory on a CPU") {
  const auto graph = program::operators::matmul_graph({.m = 32, .n = 32, .k = 32});
  schedule::ScheduleBuilder s(graph);
  const auto i = s.split(2, 0, {8});
  const auto copy = s.cache_read(0, 2);
  s.compute_at(copy, 2, i[0]);
  const FeatureBatch batch = described(loops::lower(s.schedule()), Target{}, dataflow::Describer());
  CHECK(batch.row(dataflow::FirstSource)[dataflow::InGlobalMemory] == 1);
  CHECK(batch.row(dataflow::FirstCopy)[dataflow::InSharedMemory] == 1);
  CHECK(batch.row(dataflow::FirstOperand)[dataflow::InSharedMemory] == 1);
  CHECK(batch.row(dataflow::SecondOperand)[dataflow::InGlobalMemory] == 1);
  CHECK(unlogged(batch.row(dataflow::FirstCopy)[dataflow::AllocationBytes]) == doctest::Approx(4 * 8 * 32));
}

TEST_CASE("joined to rows of statements, from one lowering, they are what either gives alone") {
  using Both = features::Joined<features::PerStatement, Dataflow>;
  static_assert(FeaturizerFor<Dataflow, spaces::MultiLevelTiling>);
  static_assert(features::NestFeaturizerFor<Dataflow, spaces::MultiLevelTiling>);
  const Task task = program::make_task("product", program::operators::matmul_graph({.m = 32, .n = 32, .k = 32}),
                                       {.threads = 2, .isa = Isa::Avx2});
  const spaces::MultiLevelTiling space;
  std::vector<schedule::Schedule> configs;
  for (Rng rng(1); configs.size() < 4;)
    if (auto config = space.sample(task, rng)) configs.push_back(*std::move(config));
  configs[1].steps.push_back(schedule::ComputeLocation{99, {{schedule::Location::Kind::Root, 0, 0}}, 0});
  const std::span<const schedule::Schedule> all(configs);
  const FeatureBatch together = Both{}.extract(space, task, all);
  const FeatureBatch apart =
      Both::join({features::PerStatement{}.extract(space, task, all), Dataflow{}.extract(space, task, all)});
  CHECK(std::equal(together.values().begin(), together.values().end(), apart.values().begin(), apart.values().end()));
  CHECK(
      std::equal(together.offsets().begin(), together.offsets().end(), apart.offsets().begin(), apart.offsets().end()));
  CHECK(together.columns() == 1 + 164 + 23);
  CHECK(together.program(1).empty());
  CHECK(!together.program(2).empty());
}

TEST_CASE("a batch of another width is refused") {
  FeatureBatch narrow(3);
  CHECK_THROWS_AS(dataflow::Describer().describe(loops::LoopNest{}, Task{}, narrow), std::invalid_argument);
}
