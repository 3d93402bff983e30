// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/schedule_summarizer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/tiled_products.hpp"
#include "support/workloads.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/program_hash.hpp"
#include "tunewright/loops/summary_limits.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/spaces/utilisation.hpp"

using namespace tunewright;
using namespace tunewright::loops;

namespace {

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

std::string text(const IndexArena& arena, const StatementSummary& s) {
  std::string out = std::to_string(static_cast<int>(s.kind)) + " " + std::to_string(s.target) + " " + (*s.op)->name;
  for (const FlatIndex& value : s.axis_values) out += "\n  " + text(arena, value);
  return out + "\n";
}

/// All that a summary tells, one fact a line.
std::string text(const NestSummary& o) {
  std::string out = std::to_string(o.kernels) + " kernels\n";
  const auto number = [](auto value) { return std::to_string(value) + " "; };
  for (const std::int64_t extent : o.indices.extents) out += number(extent);
  out += "\n";
  for (const NestSummary::Step& step : o.steps()) out += number(static_cast<int>(step.event)) + number(step.of);
  out += "\n";
  for (const LoopSummary& l : o.loops)
    out += number(l.var) + number(l.extent) + std::string(schedule::name(l.kind)) + (l.reduction ? " sum " : " ") +
           number(l.unroll_limit) + "\n";
  for (const BufferSummary& b : o.buffers) {
    out += number(b.element_bytes) + number(static_cast<int>(b.scope)) + number(static_cast<int>(b.role)) +
           number(b.stages) + number(b.asynchronous) + number(b.elements);
    out += std::string(b.name) + " ";
    for (const PackedDimension& p : b.packing)
      out += "packed " + number(p.dimension) + number(p.divisor) + number(p.extent);
    for (const std::int64_t extent : b.shape) out += number(extent);
    for (const FlatIndex& origin : b.origin) out += "from " + text(o.indices, origin) + " ";
    out += "\n";
  }
  for (const StatementSummary& s : o.statements) {
    out += text(o.indices, s) + number(s.operations.all()) + number(s.operations.arithmetic) +
           number(s.operations.simple_fused()) + number(s.body_hash) + "\n";
    for (const LoadSummary& load : s.loads) {
      out += "  reads " + number(load.buffer);
      for (const program::IndexExpr& index : load.node->indices) out += std::to_string(index.hash()) + " ";
      out += "\n";
    }
  }
  for (const StatementSummary& fill : o.fills) out += "fill " + text(o.indices, fill);
  for (const BufferId buffer : o.buffer_of) out += number(buffer);
  return out + "last " + number(o.last_argument);
}

std::optional<loops::LoopNest> lowered(const schedule::Schedule& candidate) {
  try {
    return loops::lower(candidate);
  } catch (const schedule::ScheduleError&) {
    return std::nullopt;
  }
}

/// Judges by the limits of the target, or by tight ones that many programs exceed.
auto verdict_on(const auto& program, const Target& target, bool tight) {
  if (!tight) return exceeded_limit(program, target);
  if (target.kind == DeviceKind::Cpu)
    return exceeded_limit(program, target,
                          {.max_local_bytes = 4096,
                           .max_workspace_bytes = 1 << 14,
                           .max_unrolled_statements = 24,
                           .max_vector_extent = 16});
  return exceeded_limit(program, GpuLimits{.max_shared_bytes = 8 << 10,
                                           .max_threads = 256,
                                           .max_virtual_threads = 4,
                                           .max_local_bytes = 128,
                                           .max_workspace_bytes = 1 << 14,
                                           .max_unrolled_statements = 32,
                                           .max_kernel_statements = 96});
}

bool uses_tensor_unit(const schedule::Schedule& candidate) {
  return std::any_of(candidate.steps.begin(), candidate.steps.end(),
                     [](const schedule::Step& s) { return std::holds_alternative<schedule::Tensorize>(s); });
}

}  // namespace

TEST_CASE("the summary of a schedule's steps is that of its lowered program, and so are limits and utilisation") {
  std::size_t compared = 0, refused = 0;
  for (const Target& target : {four_cores(), gpu_target("A100")}) {
    std::size_t judged = 0, unknown = 0;
    std::set<std::string> limited;
    ScheduleSummarizer of_steps;
    NestSummarizer of_nests;
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
          const NestSummary* summary = of_steps.summary(*candidate);
          INFO(workload.name, " on ", target.name, ", draw ", draw);
          if (summary == nullptr) {
            CHECK((!nest || uses_tensor_unit(*candidate)));
            ++refused;
            continue;
          }
          REQUIRE(nest);
          const NestSummary& of_nest = of_nests.summary(*nest);
          REQUIRE(text(*summary) == text(of_nest));
          CHECK(program_hash(*summary) == program_hash(of_nest));
          ++compared;
          for (const bool tight : {false, true}) {
            const std::string_view exceeded = verdict_on(*nest, target, tight);
            const std::optional<std::string_view> verdict = verdict_on(*summary, target, tight);
            ++(verdict ? judged : unknown);
            if (!exceeded.empty()) limited.emplace(exceeded);
            if (verdict) CHECK(*verdict == exceeded);
          }
          CHECK(spaces::utilisation(*summary, target) == spaces::utilisation(*nest, target));
        }
      }
    }
    INFO(target.name, ": ", judged, " judged, ", limited.size(), " limits met, ", unknown, " unknown");
    CHECK(judged > 1000);
    CHECK(limited.size() >= 3);
    CHECK(unknown * 20 < judged);
  }
  CHECK(compared > 3000);
  CHECK(refused < compared / 10);
}

TEST_CASE("schedules that do not fit together, or are of no program, have no summary") {
  const Task task =
      program::make_task("t", program::operators::matmul_graph({.m = 32, .n = 32, .k = 32}), four_cores());
  const spaces::MultiLevelTiling space;
  Rng rng(1);
  schedule::Schedule good = *space.sample(task, rng), bad = good;
  for (schedule::Step& step : bad.steps)
    if (auto* split = std::get_if<schedule::Split>(&step)) split->factors[0] = 0;
  ScheduleSummarizer summarizer;
  CHECK(summarizer.summary(bad) == nullptr);
  CHECK(summarizer.summary(good) != nullptr);
  CHECK(summarizer.summary(bad) == nullptr);  // of a plan that is known
  CHECK(summarizer.summary(good) != nullptr);
  CHECK(summarizer.summary({nullptr, {}}) == nullptr);
}

TEST_CASE("a schedule with a fused loop of more than 2^53 iterations has no summary, as it cannot be lowered") {
  constexpr std::int64_t rows = std::int64_t{1} << 30, columns = std::int64_t{1} << 23;
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {rows, columns});
  g->compute("y", {{"i", rows}, {"j", columns}}, [&](auto i) { return x(i[0], i[1]); });
  const auto split_by = [&](std::int64_t factor) {
    return schedule::Schedule{g, {schedule::Split{1, 0, {factor}}, schedule::Fuse{1, {2, 3, 1}, 3, false}}};
  };
  ScheduleSummarizer summarizer;
  CHECK(summarizer.summary(split_by(rows / 2)) != nullptr);
  CHECK_FALSE(lowered(split_by(rows / 2 + 1)));  // 2 (2^29 + 1) 2^23
  CHECK(summarizer.summary(split_by(rows / 2 + 1)) == nullptr);
}

TEST_CASE("stages in a loop whose indices repeat in each other are summarised as far as they are lowered") {
  // An index i mod 7 + i mod 5 of i, which has n terms, has 2n + 2: the n-th stage in the loop begins at one of
  // 3 * 2^n - 2, of which 1024 are allowed.
  const auto nested = [](schedule::TensorId times) {
    auto g = std::make_shared<program::ComputeGraph>();
    program::Tensor last = g->input("x", {11});
    const auto range = [](auto) { return program::Range{0, 10}; };
    for (schedule::TensorId t = 0; t <= times; ++t) {
      const program::Tensor before = last;
      last = g->compute("t" + std::to_string(t), {{"i", 11}}, [&](auto i) {
        return before(program::IndexExpr::remainder(i[0], 7, range) + program::IndexExpr::remainder(i[0], 5, range));
      });
    }
    schedule::Schedule s{g, {}};
    for (schedule::TensorId t = 1; t <= times; ++t)
      s.steps.emplace_back(schedule::ComputeLocation{t, {{schedule::Location::Kind::At, times + 1, 0}}, 0});
    return s;
  };
  ScheduleSummarizer summarizer;
  CHECK(lowered(nested(8)));
  CHECK(summarizer.summary(nested(8)) != nullptr);
  for (const schedule::TensorId times : {9U, 50U}) {
    CAPTURE(times);
    CHECK_FALSE(lowered(nested(times)));
    CHECK(summarizer.summary(nested(times)) == nullptr);
  }
}

TEST_CASE("a tensor is arranged once, as lowering has it") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {8, 16});
  const auto y = g->compute("y", {{"i", 8}, {"j", 16}}, [&](auto i) { return x(i[0], i[1]) + x(i[0], i[1]); });
  g->compute("z", {{"i", 8}, {"j", 16}}, [&](auto i) { return y(i[0], i[1]) * y(i[0], i[1]); });
  const auto arranged_twice = [&](std::uint32_t first, std::uint32_t second) {
    schedule::Schedule s{g, {}};
    for (const std::uint32_t order : {first, second})
      s.steps.push_back(schedule::TransformLayout{y.id, {{0, 1}, {1, 0}}, {0}, order, 0});
    return s;
  };
  ScheduleSummarizer of_steps;
  NestSummarizer of_nests;
  for (const std::uint32_t second : {0U, 1U}) {  // the first leaves things as they are
    const loops::LoopNest nest = loops::lower(arranged_twice(0, second));
    const NestSummary* summary = of_steps.summary(arranged_twice(0, second));
    REQUIRE(summary != nullptr);
    CHECK(text(*summary) == text(of_nests.summary(nest)));
    CHECK_FALSE(lowered(arranged_twice(1, second)));
    CHECK(of_steps.summary(arranged_twice(1, second)) == nullptr);
  }
}

TEST_CASE("threads that a loop of one iteration shares with one of several are all busy, so its unroll limit holds") {
  using namespace schedule;
  // 128 elements: two blocks of 32 threads, which copy two elements each.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {128});
  g->compute("y", {{"i", 128}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  ScheduleBuilder s(g);
  const auto i = s.split(1, 0, {32, 2});
  s.bind(1, i[0], LoopKind::BlockX);
  s.bind(1, i[1], LoopKind::ThreadX);
  const TensorId copy = s.cache_read(x.id, 1, Scope::Shared);
  s.compute_at(copy, 1, i[1]);
  const auto parts = s.split(copy, 0, {32, 2});
  s.bind(copy, parts[0], LoopKind::ThreadX);
  s.bind(copy, parts[1], LoopKind::ThreadX);
  s.unroll_limit(copy, 16);
  ScheduleSummarizer of_steps;
  const NestSummary* summary = of_steps.summary(s.schedule());
  REQUIRE(summary != nullptr);
  const loops::LoopNest nest = loops::lower(s.schedule());
  NestSummarizer of_nests;
  CHECK(text(*summary) == text(of_nests.summary(nest)));
  CHECK(std::ranges::any_of(summary->loops, [](const LoopSummary& loop) { return loop.unroll_limit == 16; }));
}

TEST_CASE("flat expressions have room for so many terms") {
  IndexArena arena;
  FlatIndex sum;
  for (std::size_t v = 0; v < FlatIndex::max_terms; ++v) arena.add_variable(sum, static_cast<program::Var>(v), 1);
  FlatIndex one_more;
  arena.add_variable(one_more, static_cast<program::Var>(FlatIndex::max_terms), 1);
  CHECK_THROWS_AS(arena.add(sum, one_more), NoRoom);
}
