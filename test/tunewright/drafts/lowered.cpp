// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/lowered.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/tiled_products.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/schedule_summarizer.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

namespace {

bool uses_tensor_unit(const schedule::Schedule& candidate) {
  return std::any_of(candidate.steps.begin(), candidate.steps.end(),
                     [](const schedule::Step& s) { return std::holds_alternative<schedule::Tensorize>(s); });
}

}  // namespace

TEST_CASE("schedules score as their programs do, whatever was scored before") {
  for (const Target& target : {four_cores(), gpu_target("T4")}) {
    const Task task = program::make_task(
        "t", program::operators::matmul_graph({.m = 60, .n = 96, .k = 64, .type = program::ScalarType::Float16}),
        target);
    const spaces::MultiLevelTiling space;
    std::vector<schedule::Schedule> configs;
    bool tensor_units = false;
    for (Rng rng(3); configs.size() < 40;) {
      if (auto config = space.sample(task, rng)) configs.push_back(*std::move(config));
      tensor_units = tensor_units || uses_tensor_unit(configs.back());
    }
    CHECK(tensor_units == (target.kind == DeviceKind::Gpu));
    const auto check = [&](const auto& draft) {
      std::vector<float> score(configs.size()), again(configs.size());
      draft.score(space, task, std::span<const schedule::Schedule>(configs), score);
      auto latency_s = draft.for_target(target);
      for (std::size_t i = 0; i < configs.size(); ++i)
        CHECK(score[i] == static_cast<float>(1 / latency_s(loops::lower(configs[i]))));
      std::reverse(configs.begin(), configs.end());
      draft.score(space, task, std::span<const schedule::Schedule>(configs), again);
      std::reverse(again.begin(), again.end());
      CHECK(again == score);
    };
    check(SymbolAnalyzer{});
    check(SymbolAnalyzer{.form = SymbolAnalyzer::Form::Printed});
    check(SymbolAnalyzer{.form = SymbolAnalyzer::Form::Released});
    check(Roofline{});
  }
}

TEST_CASE("programs of 64 nested loops are read, those of more are refused") {
  // A sum in 24 loops inside the 40 of another one, and one more for rows.
  const auto nested = [](std::int64_t rows) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {rows});
    const auto inner = g->reduce("inner", {{"i", rows}}, {{"r", 4096}, {"s", 4096}}, program::Combiner::Sum,
                                 [&](auto i, auto) { return x(i[0]); });
    const auto outer = g->reduce("outer", {{"i", rows}}, {{"r", 1024}, {"s", 1024}, {"t", 1024}, {"u", 1024}},
                                 program::Combiner::Sum, [&](auto i, auto) { return inner(i[0]); });
    schedule::ScheduleBuilder s(g);
    for (const schedule::IterId r : {1U, 2U}) (void)s.split(inner.id, r, std::vector<std::int64_t>(11, 2));
    for (const schedule::IterId r : {1U, 2U, 3U, 4U}) (void)s.split(outer.id, r, std::vector<std::int64_t>(9, 2));
    s.compute_at(inner.id, outer.id, s.loops(outer.id).back());
    return s.schedule();
  };
  const schedule::Schedule at_most = nested(1), beyond = nested(2);
  CHECK(SymbolAnalyzer{}.latency_s(loops::lower(at_most), four_cores()) > 0);
  CHECK_THROWS_WITH_AS((void)SymbolAnalyzer{}.latency_s(loops::lower(beyond), four_cores()),
                       doctest::Contains("more than the 64 loops"), std::invalid_argument);
  loops::ScheduleSummarizer summarizer;
  REQUIRE(summarizer.summary(beyond) != nullptr);
  CHECK_THROWS_AS((void)CpuAnalysis(four_cores(), {}).cycles(*summarizer.summary(beyond)), std::invalid_argument);
}

TEST_CASE("a schedule of no program has the worst score") {
  const Task task =
      program::make_task("t", program::operators::matmul_graph({.m = 32, .n = 32, .k = 32}), four_cores());
  const std::vector<schedule::Schedule> nothing{schedule::Schedule{nullptr, {}}};
  std::vector<float> score{0};
  SymbolAnalyzer{}.score(spaces::MultiLevelTiling{}, task, std::span<const schedule::Schedule>(nothing), score);
  CHECK(score[0] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("a loop nest with an index of too many terms is refused by name of both numbers") {
  const auto graph = program::operators::matmul_graph({.m = 8192, .n = 2, .k = 2});
  const auto halved = [&](std::size_t times) {
    schedule::ScheduleBuilder s(graph);
    (void)s.split(s.stage("matmul"), 0, std::vector<std::int64_t>(times, 2));
    return s.schedule();
  };
  const Task task = program::make_task("t", graph, four_cores());
  CHECK(SymbolAnalyzer{}.latency_s(loops::lower(halved(11)), four_cores()) > 0);  // twelve loops
  CHECK_THROWS_WITH_AS((void)SymbolAnalyzer{}.latency_s(loops::lower(halved(12)), four_cores()),
                       doctest::Contains("a sum of 13 terms, and summaries hold at most 12"), loops::NoRoom);
  const std::vector<schedule::Schedule> both{halved(12), halved(11)};
  std::vector<float> score(2);
  SymbolAnalyzer{}.score(spaces::MultiLevelTiling{}, task, std::span<const schedule::Schedule>(both), score);
  CHECK(score[0] == -std::numeric_limits<float>::infinity());
  CHECK(score[1] > 0);
}
