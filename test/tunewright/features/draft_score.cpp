// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/draft_score.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/tiled_products.hpp"
#include "support/toy_space.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/measurers/function.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/session.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/spaces/scheduled.hpp"

using namespace tunewright;
using Score = features::DraftScore<drafts::SymbolAnalyzer>;
using Space = spaces::Scheduled<TiledOnCpu>;

static_assert(FeaturizerFor<Score, Space> && features::NestFeaturizerFor<Score, Space>);
static_assert(features::SummaryFeaturizerFor<Score, spaces::MultiLevelTiling>);
static_assert(OneRowFeaturizer<Score> && EndsWithEstimate<Score>);
static_assert(EndsWithEstimate<features::Joined<features::PerStatement, Score>>);
static_assert(!EndsWithEstimate<features::Joined<Score, features::PerStatement>>);

TEST_CASE("the logarithm of what the draft says") {
  const Space space{};
  const Score featurizer{};
  const Task small = small_product({.threads = 2, .isa = Isa::Avx2});
  const Task on_one = small_product({.threads = 1, .isa = Isa::Avx2});
  std::vector<schedule::Schedule> configs;
  for (Rng rng(3); configs.size() < 6;)
    if (auto config = space.sample(small, rng)) configs.push_back(*std::move(config));
  // One describer, of two tasks in turn.
  auto describer = featurizer.describer();
  for (const schedule::Schedule& config : configs) {
    for (const Task* task : {&small, &on_one}) {
      std::vector<float> score(1);
      featurizer.draft.score(space, *task, std::span(&config, 1), score);
      FeatureBatch described(1);
      describer.describe(space.lower(*task, config), *task, described);
      CHECK(described.program(0)[0] == std::log2(score[0]));
      CHECK(featurizer.extract(space, *task, std::span(&config, 1)).program(0)[0] == std::log2(score[0]));
    }
  }
}

namespace {

struct RejectsAll {
  [[nodiscard]] auto score_of(const Task&) const {
    return [](const loops::LoopNest&) { return -std::numeric_limits<float>::infinity(); };
  }
  template <SearchSpace S>
  void score(const S&, const Task&, std::span<const config_t<S>>, std::span<float> score) const {
    for (float& one : score) one = -std::numeric_limits<float>::infinity();
  }
};

}  // namespace

TEST_CASE("a program that the draft rejects has no row") {
  const Space space{};
  const Task task = small_product({.threads = 2, .isa = Isa::Avx2});
  Rng rng(3);
  const std::vector<schedule::Schedule> configs{space.sample(task, rng).value()};
  const FeatureBatch x = features::DraftScore<RejectsAll>{}.extract(space, task, configs);
  REQUIRE(x.programs() == 1);
  CHECK(x.program(0).empty());
}

namespace {

struct Learned : toy::Linear {
  static bool trained() { return true; }
};
struct Recipe : recipes::Random<Space, measurers::Function<loops::LoopNest>> {
  using featurizer = features::Joined<features::PerStatement, Score>;
  using model = Learned;
  using explorer = explorers::Evolutionary;
  using sampler = samplers::TopK;
};

}  // namespace

TEST_CASE("options and targets that the draft refuses are errors, not programs without rows") {
  const Space space{};
  const Task task = small_product({.threads = 2, .isa = Isa::Avx2});
  Rng rng(3);
  const std::vector<schedule::Schedule> configs{space.sample(task, rng).value()};
  Score score;
  score.draft.core.frequency_hz = -1;
  const features::Joined<features::PerStatement, Score> joined{{features::PerStatement{}, score}};
  CHECK_REFUSES("frequency_hz is -1", (void)score.extract(space, task, configs));
  CHECK_REFUSES("frequency_hz is -1", (void)joined.extract(space, task, configs));
  CHECK_REFUSES("peak", (void)Score{}.extract(space, small_product({.kind = DeviceKind::Gpu, .threads = 0}), configs));

  std::size_t measured = 0;
  Parts<Recipe> parts{.featurizer = joined, .measurer = {[&](const Task&, const loops::LoopNest&) {
                                              ++measured;
                                              return Outcome{};
                                            }}};
  Session<Recipe> session(parts, task);
  CHECK_REFUSES("frequency_hz is -1", (void)session.ask(2));  // ranks
  const Candidate<schedule::Schedule> given{configs[0], space.key(configs[0])};
  CHECK_REFUSES("frequency_hz is -1", (void)session.measure(std::span(&given, 1)));
  CHECK(measured == 0);
}
