// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedule/ansor/from_schedule.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tunewright/data/auto_scheduler_log/replay.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
namespace ansor = schedule::ansor;

TEST_CASE("a schedule of ours reads like the steps of a log, and back") {
  const auto graph = program::operators::matmul_graph({.m = 8, .n = 12, .k = 6});
  schedule::ScheduleBuilder s(graph);
  const auto copy = s.stage("matmul");
  const auto cache = s.cache_write(copy);
  const auto i = s.split(cache, 0, {2, 2});
  const auto j = s.split(cache, 1, {4});
  s.reorder(cache, {i[0], j[0], i[1], 2, j[1], i[2]});
  const auto ci = s.follow_split(copy, 0, 1, 1);
  const auto fused = s.fuse(copy, {ci[0], ci[1]});
  s.compute_at(cache, copy, fused);
  s.parallel(copy, fused);
  s.unroll_limit(cache, 16);
  const std::vector<ansor::Step> expected{ansor::CacheWrite{2, "local"},
                                          ansor::Split{2, 0, 8, {2, 2}},
                                          ansor::Split{2, 3, 12, {4}},
                                          ansor::Reorder{2, {0, 3, 1, 5, 4, 2}},
                                          ansor::FollowSplit{3, 0, 1, 1},
                                          ansor::Fuse{3, {0, 1}},
                                          ansor::ComputeAt{2, 3, 0},
                                          ansor::Annotate{3, 0, ansor::Annotation::Parallel},
                                          ansor::Pragma{2, 0, "auto_unroll_max_step$16"}};
  CHECK(ansor::from_schedule(s.schedule()) == expected);
  CHECK(ansor::from_schedule(data::ansor::to_schedule(graph, expected)) == expected);
}

TEST_CASE("caches for reading and factored reductions number the stages behind them anew") {
  const auto graph = program::operators::matmul_graph({.m = 8, .n = 12, .k = 6});
  schedule::ScheduleBuilder s(graph);
  const auto copy = s.stage("matmul");
  s.cache_read(s.stage("A"), copy, schedule::Scope::Shared);
  const auto k = s.split(copy, 2, {3});
  const auto partial = s.rfactor(copy, k[1]);
  s.annotate(partial, 2, schedule::LoopKind::Unrolled);
  const std::vector<ansor::Step> expected{ansor::CacheRead{0, "shared", {2}}, ansor::Split{3, 2, 6, {3}},
                                          ansor::Rfactor{3, 3, 2}, ansor::Annotate{3, 2, ansor::Annotation::Unroll}};
  CHECK(ansor::from_schedule(s.schedule()) == expected);
  CHECK(ansor::from_schedule(data::ansor::to_schedule(graph, expected)) == expected);
}

TEST_CASE("a split that follows several ones names their steps in the log") {
  const auto graph = program::operators::matmul_graph({.m = 8, .n = 12, .k = 6});
  schedule::ScheduleBuilder s(graph);
  const auto product = s.stage("matmul");
  const auto tile = s.cache_read(0, product, schedule::Scope::Shared);
  s.pack(tile, product);  // has no counterpart: the log's numbers are one less from here on
  s.split(product, 0, {2, 2});
  s.split(product, 1, {3, 1});
  s.follow_fused_split(tile, 0, {2, 3}, 0);
  const std::vector<ansor::Step> expected{ansor::CacheRead{0, "shared", {2}}, ansor::Split{3, 0, 8, {2, 2}},
                                          ansor::Split{3, 3, 12, {3, 1}},
                                          ansor::FollowFusedSplit{1, 0, {1, 2}, 0, true}};
  CHECK(ansor::from_schedule(s.schedule()) == expected);
  CHECK(ansor::from_schedule(data::ansor::to_schedule(graph, expected)) == expected);
}

TEST_CASE("a factor that logs do not hold is refused") {
  const auto graph = std::make_shared<program::ComputeGraph>();
  graph->compute("y", {{"i", std::int64_t{1} << 33}}, [](auto) { return program::Expr(1.0); });
  const auto steps = [&](std::int64_t factor) {
    schedule::ScheduleBuilder s(graph);
    s.split(0, 0, {factor});
    return ansor::from_schedule(s.schedule());
  };
  CHECK(steps((std::int64_t{1} << 31) - 1) ==
        std::vector<ansor::Step>{ansor::Split{0, 0, std::int64_t{1} << 33, {2147483647}}});
  CHECK_THROWS_WITH_AS((void)steps(std::int64_t{1} << 31),
                       "bad_factor: a loop of stage 'y' is split by 2147483648, and lengths in logs are below 2^31; "
                       "split it by several smaller factors",
                       schedule::ScheduleError);
}
