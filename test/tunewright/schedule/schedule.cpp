// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedule/schedule.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/schedule_faults.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::schedule;
using Iters = std::vector<IterId>;

std::shared_ptr<const program::ComputeGraph> matmul_relu() {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("A", {12, 7});
  const auto b = g->constant("B", {7, 10});
  program::operators::relu(*g, program::operators::matmul(*g, a, b));
  return g;
}

TEST_CASE("a builder records what it applies, and replay leads to the same state") {
  ScheduleBuilder s(matmul_relu());
  const TensorId c = s.stage("matmul");
  const TensorId d = s.stage("relu");
  CHECK(c == 2);
  const std::uint32_t step = s.next_step();
  CHECK(step == 0);
  const Iters i = s.split(c, 0, {2, 3});
  CHECK(i == Iters{3, 4, 5});
  const Iters di = s.follow_split(d, 0, step, 1);
  CHECK(di == Iters{2, 3});
  s.reorder(c, {i[0], 1, i[1], 2, i[2]});
  const IterId outer = s.choose_fuse(c, {i[0], 1});
  CHECK(outer == 6);
  s.parallel(d, di[0]);
  s.unroll(c, i[2]);
  s.unroll_limit(c, 16);
  s.compute_at(c, d, di[0]);
  s.pack(1, c);
  CHECK(s.schedule().steps.size() == 9);
  CHECK(s.loops(c) == Iters{6, 1, 4, 2, 5});
  const State again = replay(s.schedule());
  CHECK(again.stages[c].order == s.state().stages[c].order);
  CHECK(again.stages[c].location == Location{Location::Kind::At, d, di[0]});
  CHECK(again.stages[c].unroll_limit == 16);
  CHECK(s.schedule() == Schedule(s.schedule()));
}

TEST_CASE("a fused split moves with the splits it follows") {
  ScheduleBuilder s(matmul_relu());
  const TensorId copy = s.cache_read(0, 2, Scope::Shared);
  s.split(2, 0, {2, 3});
  s.split(2, 1, {1, 5});
  const Iters threads = s.follow_fused_split(copy, 0, {1, 2}, 1);
  CHECK(s.extents_at_root(copy)[threads[1]] == 12);  // 15 of the 12 rows
  Schedule other = s.schedule();
  std::get<Split>(other.steps[1]).factors = {3, 2};
  const State state = replay(other);
  CHECK(state.factors_of_step(3)[0] == 2 * 5);
  CHECK(stable_hash(other.steps) != stable_hash(s.schedule().steps));
}

TEST_CASE("a choice carries its domain") {
  ScheduleBuilder s(matmul_relu());
  s.choose_tile(2, 1, 2, 32, LoopKind::Vectorized);
  CHECK(s.schedule().steps[0] == Step(Split{2, 1, {1, 1}, 10, 32, LoopKind::Vectorized}));
  s.split(2, 0, {4});
  CHECK(std::get<Split>(s.schedule().steps[1]).extent == 12);
  CHECK(std::get<Split>(s.schedule().steps[1]).max_innermost == -1);
  s.choose_tile(2, 6, 1);  // i.0 of 12 split by 4: extent 3
  CHECK(std::get<Split>(s.schedule().steps[2]).extent == 3);
}

TEST_CASE("stages made on the way have the next numbers") {
  ScheduleBuilder s(matmul_relu());
  const TensorId cache = s.cache_write(2);
  CHECK(cache == 4);
  CHECK(s.cache_read(0, cache) == 5);
  CHECK(s.stage("matmul.local") == cache);
  const TensorId partial = s.rfactor(cache, 2);
  CHECK(partial == 6);
  CHECK(s.state().order == std::vector<TensorId>{0, 1, 5, 6, 4, 2, 3});
}

TEST_CASE("misuse is refused at the call") {
  ScheduleBuilder s(matmul_relu());
  CHECK(test::refusal([&] { (void)s.stage("Z"); }) ==
        "unknown_stage: no tensor is called 'Z'; there are 'A', 'B', 'matmul', 'relu'");
  CHECK(test::fault_of([&] { s.split(11, 0, {2}); }) == "unknown_stage");
  CHECK(test::fault_of([&] { s.choose_tile(2, 40, 2); }) == "unknown_iterator");
  CHECK(test::fault_of([&] { s.choose_tile(0, 0, 2); }) == "unknown_stage");
  CHECK(test::fault_of([&] { s.fuse(2, {}); }) == "bad_choice");
  CHECK(s.schedule().steps.empty());
}

TEST_CASE("without a program there is nothing to schedule") {
  CHECK_THROWS_WITH_AS(ScheduleBuilder(nullptr), doctest::Contains("has no program"), std::invalid_argument);
  CHECK_THROWS_AS((void)replay(Schedule{}), std::invalid_argument);
}

TEST_CASE("replay names the step that is illegal") {
  const Schedule wrong{matmul_relu(), {Split{2, 0, {2}}, Split{2, 0, {2}}}};
  CHECK_THROWS_WITH_AS((void)replay(wrong), doctest::Contains("step 1: "), ScheduleError);
  CHECK(test::fault_of([&] { (void)replay(wrong); }) == "unknown_iterator");
}

TEST_CASE("the hash tells every decision apart, and only content counts") {
  const std::vector<Step> steps{Split{2, 0, {2, 3}, 12, 64, LoopKind::Unrolled}, Fuse{2, {3, 4}, 1, true},
                                UnrollLimit{2, {0, 16}, 0}, Tensorize{2, 0, "x"}};
  const std::uint64_t hash = stable_hash(steps);
  CHECK(hash == stable_hash(std::vector<Step>(steps)));
  std::vector<std::vector<Step>> others(6, steps);
  std::get<Split>(others[0][0]).factors = {3, 2};
  std::get<Split>(others[1][0]).inner = LoopKind::Vectorized;
  std::get<Fuse>(others[2][1]).count = 2;
  std::get<UnrollLimit>(others[3][2]).selected = 1;
  others[4].pop_back();
  std::get<Tensorize>(others[5][3]).intrinsic = "y";
  for (const std::vector<Step>& other : others) CHECK(stable_hash(other) != hash);
  // Not a matter of where one list ends and the next begins.
  CHECK(stable_hash({Step(Reorder{2, {1, 2}})}) != stable_hash({Step(Reorder{2, {1}}), Step(Reorder{2, {}})}));
}

}  // namespace
