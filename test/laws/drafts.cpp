// SPDX-License-Identifier: Apache-2.0
// What every draft owes, whatever it is: see drafts/concept.hpp.
#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/spaces/scheduled.hpp"

using namespace tunewright;

namespace {

struct BoundToThreads {
  void operator()(schedule::ScheduleBuilder& s) const {
    const auto parts = s.choose_tile(2, 1, 1);
    s.reorder(2, {0, parts[0], parts[1], 2});
    s.bind(2, s.fuse(2, {0, parts[0]}), schedule::LoopKind::BlockX);
    s.bind(2, parts[1], schedule::LoopKind::ThreadX);
  }
};

Task product_for(const Target& target) {
  return program::make_task("matmul", program::operators::matmul_graph({.m = 48, .n = 64, .k = 32}), target);
}

template <class Draft, class Space>
void check_laws(const Draft& draft, const Space& space, const Task& task) {
  static_assert(DraftModelFor<Draft, Space>);
  std::vector<schedule::Schedule> configs;
  Rng rng(3);
  while (configs.size() < 24) {
    if (auto config = space.sample(task, rng)) configs.push_back(*std::move(config));
  }
  schedule::Schedule broken = configs[0];
  broken.steps.push_back(schedule::ComputeLocation{99, {{schedule::Location::Kind::Root, 0, 0}}, 0});
  configs.push_back(broken);
  const std::span<const schedule::Schedule> all(configs);
  std::vector<float> score(all.size()), alone(all.size()), second(all.size());
  draft.score(space, task, all, score);
  for (std::size_t i = all.size(); i-- > 0;)  // neither company nor order matters
    draft.score(space, task, all.subspan(i, 1), std::span(alone).subspan(i, 1));
  CHECK(alone == score);
  std::thread other([&] { draft.score(space, task, all, second); });
  draft.score(space, task, all, alone);
  other.join();
  CHECK(alone == score);
  CHECK(second == score);
  CHECK(score.back() == -std::numeric_limits<float>::infinity());
  std::size_t ranked = 0;
  for (std::size_t i = 0; i + 1 < score.size(); ++i) ranked += score[i] > 0 ? 1 : 0;
  CHECK(ranked == 24);
  CHECK_THROWS_AS(draft.score(space, task, all, std::span(score).first(3)), std::invalid_argument);
}

}  // namespace

#define DRAFTS drafts::SymbolAnalyzer, drafts::Roofline

TEST_CASE_TEMPLATE("equal configurations score alike in any company, from any thread", Draft, DRAFTS) {
  check_laws(Draft{}, spaces::MultiLevelTiling{}, product_for({.threads = 2, .isa = Isa::Avx2}));
  check_laws(Draft{}, spaces::MultiLevelTiling{}, product_for(gpu_target("T4")));
  check_laws(Draft{}, spaces::Scheduled<BoundToThreads>{}, product_for(gpu_target("T4")));
}
