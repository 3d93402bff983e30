// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/program_hash.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/loops/schedule_summarizer.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
using namespace tunewright::loops;
using schedule::Annotate;
using schedule::Fuse;
using schedule::LoopKind;
using schedule::Reorder;
using schedule::Split;
using schedule::UnrollLimit;

namespace {

std::uint64_t hash_of(const schedule::Schedule& candidate) {
  ScheduleSummarizer summarizer;
  const NestSummary* summary = summarizer.summary(candidate);
  REQUIRE(summary != nullptr);
  return program_hash(*summary);
}

/// C(i, j) += A(i, k) B(k, j), both tiled twice: i0 j0 i1 j1 k i2 j2, the first `fused` of them as one loop.
schedule::Schedule tiled(std::vector<std::int64_t> rows, std::vector<std::int64_t> columns, std::uint32_t fused,
                         std::int64_t unroll_limit = 16) {
  static const auto graph = program::operators::matmul_graph({.m = 64, .n = 32, .k = 8});
  return {graph,
          {Split{2, 0, std::move(rows), 64, 64, LoopKind::Serial},
           Split{2, 1, std::move(columns), 32, 64, LoopKind::Serial}, Reorder{2, {3, 6, 4, 7, 2, 5, 8}},
           Fuse{2, {3, 6, 4}, fused, true}, UnrollLimit{2, {unroll_limit}, 0}}};
}

}  // namespace

TEST_CASE("steps that lead to the same loops are one program, any other loop is another") {
  const std::uint64_t plain = hash_of(tiled({4, 4}, {4, 8}, 1));
  CHECK(hash_of(tiled({4, 4}, {4, 8}, 1)) == plain);
  // 32 / (4 * 8) = 1: j0 is no loop, and fusing it into i0 changes nothing. Neither does i1, which is one.
  CHECK(hash_of(tiled({4, 4}, {4, 8}, 2)) == plain);
  CHECK(hash_of(tiled({4, 4}, {4, 8}, 3)) != plain);
  CHECK(hash_of(tiled({1, 4}, {2, 8}, 2)) == hash_of(tiled({1, 4}, {2, 8}, 3)));
  CHECK(hash_of(tiled({1, 4}, {2, 8}, 1)) != hash_of(tiled({1, 4}, {2, 8}, 2)));
  CHECK(hash_of(tiled({4, 4}, {2, 8}, 1)) != plain);
  CHECK(hash_of(tiled({2, 4}, {4, 8}, 1)) != plain);
  CHECK(hash_of(tiled({4, 4}, {4, 8}, 1, 64)) != plain);
  schedule::Schedule vectorized = tiled({4, 4}, {4, 8}, 1);
  vectorized.steps.insert(vectorized.steps.begin() + 3, Annotate{2, 8, LoopKind::Vectorized});
  CHECK(hash_of(vectorized) != plain);
}

TEST_CASE("programs with the same loops and accesses differ in what they compute") {
  const auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {64});
  const auto t = g->compute("t", {{"i", 64}}, [&](auto i) { return tanh(x(i[0])); });
  const auto e = g->compute("e", {{"i", 64}}, [&](auto i) { return exp(x(i[0])); });
  g->compute("z", {{"i", 64}}, [&](auto i) { return x(i[0]) + t(i[0]) + e(i[0]); });
  const auto inlined = [&](program::TensorId id) {
    schedule::ScheduleBuilder s(g);
    s.compute_inline(id);
    return hash_of(s.schedule());
  };
  CHECK(inlined(t.id) == inlined(t.id));
  CHECK(inlined(t.id) != inlined(e.id));
}

TEST_CASE("a factored sum differs by the terms that its parts add up, not by parts of one iteration") {
  const auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {8, 4, 4});
  g->reduce("kernel", {{"i", 8}}, {{"kh", 4}, {"kw", 4}}, program::Combiner::Sum,
            [&](auto i, auto k) { return x(i[0], k[0], k[1]); });
  const auto factored = [&](schedule::IterId axis) {
    schedule::ScheduleBuilder s(g);
    s.rfactor(1, axis);
    return hash_of(s.schedule());
  };
  CHECK(factored(1) != factored(2));  // kh or kw: a row of partial results for each i, of four terms each

  const auto line = std::make_shared<program::ComputeGraph>();
  const auto y = line->input("y", {8, 16});
  line->reduce("sum", {{"i", 8}}, {{"k", 16}}, program::Combiner::Sum, [&](auto i, auto k) { return y(i[0], k[0]); });
  const auto factored_part = [&](std::int64_t inner, std::size_t part) {
    schedule::ScheduleBuilder s(line);
    s.rfactor(1, s.split(1, 1, {inner})[part]);
    return hash_of(s.schedule());
  };
  CHECK(factored_part(4, 0) != factored_part(4, 1));   // four neighbours at a time, or each fourth
  CHECK(factored_part(1, 0) == factored_part(16, 1));  // k is one loop
}

TEST_CASE("a square cache with permuted axes is another program") {
  const auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {8, 8});
  g->compute("y", {{"i", 8}, {"j", 8}}, [&](auto i) { return x(i[0], i[1]) + program::Expr(1.0); });
  const auto cached = [&](std::vector<schedule::IterId> axes) {
    schedule::ScheduleBuilder s(g);
    s.permute_axes(s.cache_write(1), std::move(axes));
    return hash_of(s.schedule());
  };
  CHECK(cached({0, 1}) != cached({1, 0}));
}

TEST_CASE("random schedules with one hash have the same features") {
  Target cores;
  cores.isa = Isa::Avx2;
  cores.threads = 4;
  std::size_t several = 0, programs = 0;
  Rng rng(5);
  for (const Target& target : {cores, gpu_target("A100")}) {
    for (const test::Workload& workload : test::workloads()) {
      const Task task = program::make_task(workload.name, workload.make(rng), target);
      const spaces::MultiLevelTiling space;
      ScheduleSummarizer summarizer;
      std::map<std::uint64_t, schedule::Schedule> first;
      std::vector<schedule::Schedule> ones, others;
      for (int draw = 0; draw < 60; ++draw) {
        std::optional<schedule::Schedule> drawn = space.sample(task, rng);
        if (!drawn) continue;
        ++programs;
        const NestSummary* summary = summarizer.summary(*drawn);
        if (summary == nullptr) continue;
        const auto [known, is_new] = first.try_emplace(program_hash(*summary), *drawn);
        CHECK(space.key(*drawn) == known->first);
        if (is_new || known->second.steps == drawn->steps) continue;
        ones.push_back(known->second);
        others.push_back(*drawn);
      }
      several += ones.size();
      const FeatureBatch x = features::PerStatement{}.extract(space, task, std::span<const schedule::Schedule>(ones));
      const FeatureBatch y = features::PerStatement{}.extract(space, task, std::span<const schedule::Schedule>(others));
      CAPTURE(workload.name);
      CHECK(std::ranges::equal(x.values(), y.values()));
    }
  }
  CHECK(programs > 1000);
  CHECK(several > 100);
}
