// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/primitives.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
namespace ansor = schedule::ansor;

namespace {

std::vector<float> row(const FeatureBatch& batch, std::size_t index) {
  const auto values = batch.row(index);
  return {values.begin(), values.end()};
}
// A row of 22 with a one at `kind`, counted from 1, and the numbers.
std::vector<float> expected(std::size_t kind, std::vector<float> numbers, std::size_t columns = 22) {
  std::vector<float> values(columns, 0.0F);
  if (kind > 0) values[kind - 1] = 1;
  std::copy(numbers.begin(), numbers.end(), values.begin() + 11);
  return values;
}

}  // namespace

TEST_CASE("a row holds the kind and the numbers of a step, by the table of the device") {
  const std::vector<ansor::Step> steps{ansor::ComputeInline{1},
                                       ansor::Split{2, 0, 64, {1, 4}},
                                       ansor::Annotate{2, 3, ansor::Annotation::Parallel},
                                       ansor::Pragma{2, 0, "auto_unroll_max_step$512"},
                                       ansor::CacheWrite{3, "local"},
                                       ansor::CacheRead{1, "shared", {4}},
                                       ansor::FollowFusedSplit{4, 0, {3, 2}, 1, true},
                                       ansor::Pragma{2, 0, "auto_unroll_max_step$7"}};
  FeatureBatch cpu(22);
  features::Primitives::cpu().describe(steps, cpu);
  REQUIRE(cpu.rows() == 8);
  CHECK(row(cpu, 0) == expected(1, {1}));
  CHECK(row(cpu, 1) == expected(6, {2, 0, 64, 1, 4, 1}));
  CHECK(row(cpu, 2) == expected(3, {2, 3, 3}));
  CHECK(row(cpu, 3) == expected(11, {2, 0, 3}));
  CHECK(row(cpu, 4) == expected(5, {3, 1}));
  CHECK(row(cpu, 5) == expected(0, {1, 1, 4}));           // no kind of the CPU table
  CHECK(row(cpu, 6) == expected(0, {4, 0, 3, 2, 1, 1}));  // likewise
  CHECK(row(cpu, 7) == expected(11, {2, 0, 0}));          // no token
  FeatureBatch gpu(20);
  features::Primitives::gpu().describe(steps, gpu);
  CHECK(row(gpu, 0) == expected(4, {1}, 20));
  CHECK(row(gpu, 3) == expected(10, {2, 0, 5}, 20));
  CHECK(row(gpu, 5) == expected(2, {1, 1, 4}, 20));
  CHECK(row(gpu, 6) == expected(6, {4, 0, 3, 2, 1, 1}, 20));
  CHECK(features::Primitives::cpu().schema().columns.size() == 22);
  CHECK(features::Primitives::gpu().schema().columns[5].name == "is_FFSP");
}

TEST_CASE("rows and programs that are too long are cut, short ones filled up if wanted") {
  std::vector<std::int32_t> order(30);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  const std::vector<ansor::Step> steps(3, ansor::Reorder{2, order});
  FeatureBatch cut(22);
  features::Primitives{.max_rows = 2}.describe(steps, cut);
  CHECK(cut.rows() == 2);
  CHECK(row(cut, 1) == expected(2, {2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  FeatureBatch filled(22);
  features::Primitives{.fill_up = true}.describe(steps, filled);
  CHECK(filled.rows() == 25);
  CHECK(row(filled, 24) == std::vector<float>(22, 0.0F));
  CHECK(filled.programs() == 1);
}

TEST_CASE("a task for the other kind of device is refused, as its schedules need the other table") {
  const spaces::MultiLevelTiling space;
  const std::vector<schedule::Schedule> none;
  const auto described = [&](const features::Primitives& primitives, DeviceKind kind) {
    Task task;
    task.target.kind = kind;
    return primitives.extract(space, task, std::span<const schedule::Schedule>(none)).columns();
  };
  CHECK(described(features::Primitives::cpu(), DeviceKind::Cpu) == 22);
  CHECK(described(features::Primitives::gpu(), DeviceKind::Gpu) == 20);
  CHECK_THROWS_WITH_AS((void)described(features::Primitives::cpu(), DeviceKind::Gpu),
                       doctest::Contains("table of CPUs for a task on a GPU; give features::Primitives::gpu()"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)described(features::Primitives::gpu(), DeviceKind::Cpu),
                       doctest::Contains("table of GPUs for a task on a CPU; give features::Primitives::cpu()"),
                       std::invalid_argument);
}

TEST_CASE("a batch of another width, and options without room, are refused") {
  FeatureBatch batch(20);
  CHECK_THROWS_WITH_AS(features::Primitives::cpu().describe({}, batch),
                       doctest::Contains("25 rows of 22 columns for a batch of 20"), std::invalid_argument);
  const features::Primitives no_rows{.max_rows = 0, .columns = 20}, narrow{.columns = 11};
  CHECK_THROWS_WITH_AS(no_rows.describe({}, batch), doctest::Contains("0 rows of 20 columns"), std::invalid_argument);
  FeatureBatch of_11(11);
  CHECK_THROWS_WITH_AS(narrow.describe({}, of_11), doctest::Contains("25 rows of 11 columns"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)narrow.schema(), doctest::Contains("25 rows of 11 columns"), std::invalid_argument);
}
