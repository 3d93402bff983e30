// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/schedule_outliner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

namespace {

Target cpu() {
  Target target;
  target.name = "four cores";
  target.threads = 4;
  target.isa = Isa::Avx2;
  target.l1_bytes = 32 << 10;
  target.l2_bytes = 1 << 20;
  target.l3_bytes = 32 << 20;
  return target;
}

std::string text(const IndexArena& arena, const FlatIndex& e) {
  std::string out = std::to_string(e.constant);
  for (const FlatIndex::Term& t : e.terms()) {
    out += " + " + std::to_string(t.coefficient) + "*";
    if (t.kind == FlatIndex::Kind::Variable)
      out += "v" + std::to_string(t.of);
    else
      out += "(" + text(arena, arena.numerator(t)) + (t.kind == FlatIndex::Kind::Quotient ? ") div " : ") mod ") +
             std::to_string(t.divisor);
  }
  return out;
}

/// All that drafts read, one fact a line.
std::string text(const Outline& o) {
  std::string out = std::to_string(o.kernels) + " kernels\n";
  const auto number = [](auto value) { return std::to_string(value) + " "; };
  for (const std::int64_t extent : o.indices.extents) out += number(extent);
  out += "\n";
  for (const Outline::Step& step : o.steps()) out += number(static_cast<int>(step.event)) + number(step.of);
  out += "\n";
  for (const OutlineLoop& l : o.loops)
    out += number(l.var) + number(l.extent) + std::string(schedule::name(l.kind)) + (l.reduction ? " sum " : " ") +
           number(l.unroll_limit) + "\n";
  for (const OutlineBuffer& b : o.buffers) {
    out += number(b.element_bytes) + number(static_cast<int>(b.scope)) + number(static_cast<int>(b.role)) +
           number(b.stages) + number(b.asynchronous) + number(b.elements);
    if (b.packed)
      out += "packed " + number(b.innermost.dimension) + number(b.innermost.divisor) + number(b.innermost.extent);
    for (const std::int64_t extent : b.shape) out += number(extent);
    out += "\n";
  }
  for (const OutlineStatement& s : o.statements) {
    out += number(static_cast<int>(s.kind)) + number(s.target) + number(s.operations.all()) +
           number(s.operations.arithmetic) + number(s.operations.simple_fused()) + "\n";
    for (const FlatIndex& value : s.axis_values) out += "  " + text(o.indices, value) + "\n";
    for (const OutlineLoad& load : s.loads) {
      out += "  reads " + number(load.buffer);
      for (const program::IndexExpr& index : load.node->indices) out += std::to_string(index.hash()) + " ";
      out += "\n";
    }
  }
  return out;
}

std::optional<loops::LoopNest> lowered(const schedule::Schedule& candidate) {
  try {
    return loops::lower(candidate);
  } catch (const schedule::ScheduleError&) {
    return std::nullopt;
  }
}

bool uses_tensor_unit(const schedule::Schedule& candidate) {
  return std::any_of(candidate.steps.begin(), candidate.steps.end(),
                     [](const schedule::Step& s) { return std::holds_alternative<schedule::Tensorize>(s); });
}

}  // namespace

TEST_CASE("what drafts read of a schedule's steps is what they read of its lowered program") {
  std::size_t compared = 0, refused = 0;
  for (const Target& target : {cpu(), gpu_target("A100")}) {
    ScheduleOutliner of_steps;
    NestOutliner of_nests;
    const spaces::MultiLevelTiling space;
    for (const test::Workload& workload : test::workloads()) {
      Rng rng(7);
      for (int instance = 0; instance < 3; ++instance) {
        const Task task = program::make_task(workload.name, workload.make(rng), target);
        std::optional<schedule::Schedule> candidate;
        for (int draw = 0; draw < 24; ++draw) {
          // Half are mutations of mutations, which need not fit the device, or together.
          if (draw % 4 == 0 || !candidate) candidate = space.sample(task, rng);
          if (!candidate) continue;
          if (draw % 2 == 1)
            if (auto changed = space.mutate(task, *candidate, rng)) candidate = std::move(changed);
          const std::optional<loops::LoopNest> nest = lowered(*candidate);
          const Outline* outline = of_steps.outline(*candidate);
          INFO(workload.name, " on ", target.name, ", draw ", draw);
          if (outline == nullptr) {
            CHECK((!nest || uses_tensor_unit(*candidate)));
            ++refused;
            continue;
          }
          REQUIRE(nest);
          const std::string expected = text(of_nests.outline(*nest));
          REQUIRE(text(*outline) == expected);
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 3000);
  CHECK(refused < compared / 10);
}

TEST_CASE("schedules score as their programs do, whatever was scored before") {
  for (const Target& target : {cpu(), gpu_target("T4")}) {
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

TEST_CASE("schedules that do not fit together have no outline and the worst score") {
  const Task task = program::make_task("t", program::operators::matmul_graph({.m = 32, .n = 32, .k = 32}), cpu());
  const spaces::MultiLevelTiling space;
  Rng rng(1);
  schedule::Schedule good = *space.sample(task, rng), bad = good;
  for (schedule::Step& step : bad.steps)
    if (auto* split = std::get_if<schedule::Split>(&step)) split->factors[0] = 0;
  ScheduleOutliner outliner;
  CHECK(outliner.outline(bad) == nullptr);
  CHECK(outliner.outline(good) != nullptr);
  CHECK(outliner.outline(bad) == nullptr);  // of a plan that is known
  CHECK(outliner.outline(good) != nullptr);
  const std::vector<schedule::Schedule> both{bad, good};
  std::vector<float> score(2);
  SymbolAnalyzer{}.score(space, task, std::span<const schedule::Schedule>(both), score);
  CHECK(score[0] == -std::numeric_limits<float>::infinity());
  CHECK(score[1] > 0);
}

TEST_CASE("a tensor is arranged once, as lowering has it") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {8, 16});
  const auto y = g->compute("y", {{"i", 8}, {"j", 16}}, [&](auto i) { return x(i[0], i[1]) + x(i[0], i[1]); });
  g->compute("z", {{"i", 8}, {"j", 16}}, [&](auto i) { return y(i[0], i[1]) * y(i[0], i[1]); });
  const auto arranged_twice = [&](std::uint32_t first, std::uint32_t second) {
    schedule::Schedule s{g, {}};
    for (const std::uint32_t order : {first, second})
      s.steps.push_back(schedule::Arrange{y.id, {{0, 1}, {1, 0}}, {0}, order, 0});
    return s;
  };
  ScheduleOutliner of_steps;
  NestOutliner of_nests;
  for (const std::uint32_t second : {0U, 1U}) {  // the first leaves things as they are
    const loops::LoopNest nest = loops::lower(arranged_twice(0, second));
    const Outline* outline = of_steps.outline(arranged_twice(0, second));
    REQUIRE(outline != nullptr);
    CHECK(text(*outline) == text(of_nests.outline(nest)));
    CHECK_FALSE(lowered(arranged_twice(1, second)));
    CHECK(of_steps.outline(arranged_twice(1, second)) == nullptr);
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
  CHECK(SymbolAnalyzer{}.latency_s(loops::lower(at_most), cpu()) > 0);
  CHECK_THROWS_WITH_AS((void)SymbolAnalyzer{}.latency_s(loops::lower(beyond), cpu()),
                       doctest::Contains("more than the 64 loops"), std::invalid_argument);
  ScheduleOutliner outliner;
  REQUIRE(outliner.outline(beyond) != nullptr);
  CHECK_THROWS_AS((void)CpuAnalysis().cycles(*outliner.outline(beyond), cpu(), {}), std::invalid_argument);
}

TEST_CASE("a schedule of no program has the worst score") {
  const Task task = program::make_task("t", program::operators::matmul_graph({.m = 32, .n = 32, .k = 32}), cpu());
  const std::vector<schedule::Schedule> nothing{schedule::Schedule{nullptr, {}}};
  CHECK(ScheduleOutliner().outline(nothing[0]) == nullptr);
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
  const Task task = program::make_task("t", graph, cpu());
  CHECK(SymbolAnalyzer{}.latency_s(loops::lower(halved(11)), cpu()) > 0);  // twelve loops
  CHECK_THROWS_WITH_AS((void)SymbolAnalyzer{}.latency_s(loops::lower(halved(12)), cpu()),
                       doctest::Contains("a sum of 13 terms, and drafts read at most 12"), NoRoom);
  const std::vector<schedule::Schedule> both{halved(12), halved(11)};
  std::vector<float> score(2);
  SymbolAnalyzer{}.score(spaces::MultiLevelTiling{}, task, std::span<const schedule::Schedule>(both), score);
  CHECK(score[0] == -std::numeric_limits<float>::infinity());
  CHECK(score[1] > 0);
}

TEST_CASE("flat expressions have room for so many terms") {
  IndexArena arena;
  FlatIndex sum;
  for (std::size_t v = 0; v < FlatIndex::max_terms; ++v) {
    FlatIndex variable;
    variable.set_variable(static_cast<program::Var>(v));
    arena.add(sum, variable);
  }
  FlatIndex one_more;
  one_more.set_variable(static_cast<program::Var>(FlatIndex::max_terms));
  CHECK_THROWS_AS(arena.add(sum, one_more), NoRoom);
}
