// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "support/workloads.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/features/dataflow.hpp"
#include "tunewright/features/hardware.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;

namespace {

using Space = spaces::MultiLevelTiling;
using Movements = features::Joined<features::PerStatement, features::Dataflow>;

static_assert(features::SummaryFeaturizerFor<features::PerStatement, Space>);
static_assert(features::SummaryFeaturizerFor<features::Dataflow, Space>);
static_assert(features::SummaryFeaturizerFor<Movements, Space>);
static_assert(!features::NestFeaturizerFor<features::Joined<features::PerStatement, features::Hardware>, Space>);

bool same_rows(const FeatureBatch& a, const FeatureBatch& b) {
  return std::equal(a.offsets().begin(), a.offsets().end(), b.offsets().begin(), b.offsets().end()) &&
         std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end());
}

}  // namespace

TEST_CASE("the rows of a summary are those of the lowered program") {
  Target cpu;
  cpu.threads = 4;
  cpu.isa = Isa::Avx2;
  cpu.l1_bytes = 32 << 10;
  cpu.l2_bytes = 1 << 20;
  cpu.l3_bytes = 32 << 20;
  std::size_t compared = 0;
  for (const Target& target : {cpu, gpu_target("A100")}) {
    const Space space;
    auto summarize = space.summarizer();
    auto describer = Movements{}.describer();
    for (const test::Workload& workload : test::workloads()) {
      Rng rng(7);
      const Task task = program::make_task(workload.name, workload.make(rng), target);
      std::optional<schedule::Schedule> candidate;
      for (int draw = 0; draw < 12; ++draw) {
        if (draw % 4 == 0 || !candidate) candidate = space.sample(task, rng);
        if (!candidate) continue;
        if (auto changed = space.mutate(task, *candidate, rng)) candidate = std::move(changed);
        const loops::NestSummary* summary = summarize(*candidate);
        if (summary == nullptr) continue;
        INFO(workload.name, ", draw ", draw);
        const std::size_t columns = Movements{}.schema().columns.size();
        FeatureBatch of_summary(columns), of_program(columns);
        describer.describe(*summary, task, of_summary);
        describer.describe(loops::lower(*candidate), task, of_program);
        REQUIRE(same_rows(of_summary, of_program));
        CHECK(same_rows(of_summary, Movements{}.extract(space, task, std::span(&*candidate, 1))));
        ++compared;
      }
    }
  }
  CHECK(compared > 400);
}
