// SPDX-License-Identifier: Apache-2.0
// What every filter owes, whatever it is: see filters/concept.hpp.
#include "tunewright/filters/concept.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/toy_space.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/filters/all.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/filters/none.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/models/linear.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/decisions.hpp"
#include "tunewright/spaces/scheduled.hpp"

using namespace tunewright;

namespace {

using Learned = filters::LearnedValidity<models::Linear, toy::Features>;
using Both = filters::All<filters::StaticLimits, Learned>;
using Fine = filters::All<filters::None, filters::StaticLimits>;

/// Learns its threshold, and lets many through to be proved wrong.
struct Careful : Learned {
  Careful() {
    most_lost = 0.05;
    explored_share = 0.3;
  }
};

/// Every configuration of the toy space whose unroll exponent is `unroll`, and what measuring them gives: programs of
/// depth below 2 fail.
std::vector<toy::Tiles> all_with(int unroll) {
  std::vector<toy::Tiles> pool;
  for (int i = 0; i < 512; ++i) pool.push_back({i % 8, i / 8 % 8, i / 64, unroll});
  return pool;
}
std::vector<Outcome> measured(const std::vector<toy::Tiles>& configs) {
  std::vector<Outcome> outcomes;
  for (const toy::Tiles& tiles : configs) {
    outcomes.push_back(toy::outcome(tiles));
    if (tiles[2] < 2) outcomes.back().result = Failure{Fault::RunError, "too shallow"};
  }
  return outcomes;
}

template <class Filter>
Filter taught() {
  Filter filter{};
  if constexpr (LearningFilterFor<Filter, toy::Space>) {
    const auto configs = all_with(3);
    const auto outcomes = measured(configs);
    filter.learn(toy::Space{}, toy::task(), std::span(configs).first(200), std::span(outcomes).first(200));
    filter.learn(toy::Space{}, toy::task(), std::span(configs).subspan(200), std::span(outcomes).subspan(200));
  }
  return filter;
}

template <class Filter>
Kept keep(const Filter& filter, std::span<const toy::Tiles> pool) {
  return filter.keep(toy::Space{}, toy::task(), pool);
}
bool same(const Kept& a, const Kept& b) { return a.indices == b.indices && a.rejected == b.rejected; }

std::size_t counted(const ReasonCounts& rejected) {
  std::size_t sum = 0;
  for (const auto& [reason, count] : rejected) {
    CHECK_FALSE(reason.empty());
    sum += count;
  }
  return sum;
}

}  // namespace

#define FILTERS filters::None, filters::StaticLimits, Learned, Careful, Both, Fine

TEST_CASE_TEMPLATE("positions are kept in order, and each candidate that is not has a reason", Filter, FILTERS) {
  static_assert(FilterFor<Filter, toy::Space>);
  const auto pool = all_with(5);
  for (const Filter& filter : {Filter{}, taught<Filter>()}) {
    const Kept kept = keep(filter, pool);
    CHECK(std::ranges::is_sorted(kept.indices));
    CHECK(std::ranges::adjacent_find(kept.indices) == kept.indices.end());
    CHECK_NOTHROW(check_kept(kept, pool.size()));
    CHECK(kept.indices.size() + counted(kept.rejected) == pool.size());
    CHECK(keep(filter, {}).indices.empty());
    CHECK(keep(filter, {}).rejected.empty());
  }
}

TEST_CASE_TEMPLATE("what rejects anything, rejects some here and not all", Filter, filters::StaticLimits, Learned,
                   Careful, Both, Fine) {
  const Kept kept = keep(taught<Filter>(), all_with(5));
  CHECK(kept.indices.size() > 50);
  CHECK(kept.indices.size() < 500);
}

TEST_CASE_TEMPLATE("a verdict does not depend on the rest of the pool", Filter, FILTERS) {
  const Filter filter = taught<Filter>();
  auto pool = all_with(5);
  const Kept together = keep(filter, pool);
  std::vector<std::size_t> one_by_one;
  ReasonCounts reasons;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    const Kept alone = keep(filter, std::span(pool).subspan(i, 1));
    if (!alone.indices.empty()) one_by_one.push_back(i);
    add_counts(reasons, alone.rejected);
  }
  CHECK(one_by_one == together.indices);
  CHECK(reasons == together.rejected);
  std::ranges::reverse(pool);
  std::vector<std::size_t> reversed = keep(filter, pool).indices;
  for (std::size_t& index : reversed) index = pool.size() - 1 - index;
  std::ranges::reverse(reversed);
  CHECK(reversed == together.indices);
}

TEST_CASE_TEMPLATE("equal filters give equal verdicts, from any thread", Filter, FILTERS) {
  const auto pool = all_with(5);
  const Filter filter = taught<Filter>();
  const Kept expected = keep(taught<Filter>(), pool);
  Kept there;
  std::thread other([&] { there = keep(filter, pool); });
  const Kept here = keep(filter, pool);
  other.join();
  CHECK(same(here, expected));
  CHECK(same(there, expected));
  Filter copy = filter;
  if constexpr (LearningFilterFor<Filter, toy::Space>) {
    const auto more = all_with(1);
    copy.learn(toy::Space{}, toy::task(), std::span<const toy::Tiles>(more), std::vector<Outcome>(more.size()));
  }
  CHECK(same(keep(filter, pool), expected));
}

TEST_CASE_TEMPLATE("any batch may be learned from: none, one, only failures, only successes, the same again", Filter,
                   Learned, Careful, Both) {
  static_assert(LearningFilterFor<Filter, toy::Space>);
  const auto pool = all_with(5);
  Filter filter{};
  const auto learn = [&](const std::vector<toy::Tiles>& configs, const std::vector<Outcome>& outcomes) {
    CHECK_NOTHROW(filter.learn(toy::Space{}, toy::task(), std::span<const toy::Tiles>(configs),
                               std::span<const Outcome>(outcomes)));
    const Kept kept = keep(filter, pool);
    CHECK(kept.indices.size() + counted(kept.rejected) == pool.size());
  };
  learn({}, {});
  learn({{1, 1, 1, 1}}, measured({{1, 1, 1, 1}}));
  const auto many = all_with(2);
  std::vector<Outcome> outcomes(many.size());
  for (Outcome& outcome : outcomes) outcome.result = Failure{Fault::RunError, ""};
  learn(many, outcomes);
  learn(many, measured(many));
  const auto others = all_with(6);
  for (Outcome& outcome : outcomes) outcome.result = Timing{.repeats = {Seconds(1)}, .median = Seconds(1)};
  learn(others, outcomes);
}

namespace {

/// One thread an iteration of the rows, each with a copy of the columns it reads: many exceed what a block may have.
struct BoundRows {
  void operator()(schedule::ScheduleBuilder& s) const {
    const auto rows = s.choose_tile(2, 0, 1);
    s.cache_read(0, 2, schedule::Scope::Shared);
    s.bind(2, rows[0], schedule::LoopKind::BlockX);
    s.bind(2, rows[1], schedule::LoopKind::ThreadX);
  }
};

}  // namespace

TEST_CASE("a filter of programs gives the reason under which it counts their configurations") {
  using Space = spaces::Scheduled<BoundRows>;
  static_assert(ProgramFilterFor<filters::StaticLimits, Space>);
  static_assert(!ProgramFilterFor<filters::StaticLimits, toy::Space>);
  const Space space{.max_tries = 1};
  Target target = gpu_target("T4");
  target.max_threads_per_block = 8;
  const Task task =
      program::make_task("matmul", program::operators::matmul_graph({.m = 512, .n = 64, .k = 32}), target);
  std::vector<schedule::Schedule> pool;
  Rng rng(2);
  const schedule::Schedule& sketch = space.sketches(task)[0];
  for (int i = 0; i < 40; ++i) {
    pool.push_back(sketch);
    spaces::decisions::draw_all(pool.back().steps, gpu_target("T4"), rng);
  }
  const filters::StaticLimits filter;
  ReasonCounts reasons;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    const std::string reason = filter.why_rejected(space, task, space.lower(task, pool[i]));
    if (reason.empty())
      kept.push_back(i);
    else
      ++reasons[reason];
  }
  const Kept expected = filter.keep(space, task, std::span<const schedule::Schedule>(pool));
  CHECK(kept == expected.indices);
  CHECK(reasons == expected.rejected);
  CHECK(kept.size() > 0);
  CHECK(reasons.size() > 0);
}
