// SPDX-License-Identifier: Apache-2.0
#include "tunewright/session.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "support/toy_recipes.hpp"
#include "tunewright/filters/all.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/filters/static_limits.hpp"

using namespace tunewright;

namespace {

std::vector<Outcome> measured(const auto& batch) {
  std::vector<Outcome> outcomes;
  for (const auto& candidate : batch) outcomes.push_back(toy::outcome(candidate.config));
  return outcomes;
}

std::vector<std::uint64_t> keys(const auto& batch) {
  std::vector<std::uint64_t> all;
  for (const auto& candidate : batch) all.push_back(candidate.key);
  return all;
}

/// Makes the model what the table is, whatever was measured.
struct TaskBound {
  static constexpr bool is_task_bound = true;
  void update(toy::Linear& model, const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) {
    model.weights = {-3, -3.2, -2, -0.4, 0.5, 0.4, 0.2, 0.1, 17.3};  // the cost of the table, in milliseconds
  }
};

struct ByFirstTile {
  void score(const toy::Space&, const Task&, std::span<const toy::Tiles> configs, std::span<float> score) const {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(configs[i][0]);
  }
};

/// The table where some configurations cannot be lowered: the filter knows of unroll 6, nobody of unroll 5.
struct Unlowerable : toy::Space {
  using toy::Space::why_infeasible;
  std::shared_ptr<std::atomic<int>> lowered = std::make_shared<std::atomic<int>>();

  [[nodiscard]] toy::Program lower(const Task& task, const toy::Tiles& tiles) const {
    ++*lowered;
    if (tiles[3] >= 5 && tiles[3] <= 6) throw std::invalid_argument("leads nowhere");
    return toy::Space::lower(task, tiles);
  }
  [[nodiscard]] std::string_view why_infeasible(const Task& task, const toy::Tiles& tiles) const {
    try {
      return why_infeasible(task, lower(task, tiles));
    } catch (const std::invalid_argument&) {
      return tiles[3] == 6 ? "cannot be lowered" : toy::Space::why_infeasible(task, tiles);
    }
  }
  [[nodiscard]] std::string_view why_infeasible(const Task& task, const toy::Program& program) const {
    return toy::Space::why_infeasible(task, program.tiles);
  }
  [[nodiscard]] bool feasible(const Task& task, const toy::Tiles& tiles) const {
    return why_infeasible(task, tiles).empty();
  }
};

/// Does what `filters::StaticLimits` does, by configurations alone.
struct LimitsOfConfigurations {
  [[nodiscard]] Kept keep(const Unlowerable& space, const Task& task, std::span<const toy::Tiles> pool) const {
    Kept kept;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      const std::string_view reason = space.why_infeasible(task, pool[i]);
      if (reason.empty())
        kept.indices.push_back(i);
      else
        ++kept.rejected[std::string(reason)];
    }
    return kept;
  }
};

struct DraftOfConfigurations {
  static float of(const toy::Program& program) {
    return static_cast<float>(1e-3 / (toy::cost_s(program.tiles) + 1e-4 * program.tiles[0]));
  }
  void score(const Unlowerable& space, const Task& task, std::span<const toy::Tiles> configs,
             std::span<float> score) const {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      try {
        score[i] = of(space.lower(task, configs[i]));
      } catch (const std::invalid_argument&) {
        score[i] = -INFINITY;
      }
    }
  }
};
struct DraftOfPrograms : DraftOfConfigurations {
  [[nodiscard]] auto score_of(const Task&) const {
    return [](const toy::Program& program) { return of(program); };
  }
};

/// Columns of the lowered program; no rows for what cannot be lowered.
struct FeaturesOfConfigurations {
  static FeatureBatch columns_of(const toy::Program& program, const Task& task) {
    return toy::Features{}.extract({}, task, std::span(&program.tiles, 1));
  }
  [[nodiscard]] FeatureBatch extract(const Unlowerable& space, const Task& task,
                                     std::span<const toy::Tiles> configs) const {
    FeatureBatch batch(8);
    for (const toy::Tiles& tiles : configs) {
      try {
        batch.append(columns_of(space.lower(task, tiles), task));
      } catch (const std::invalid_argument&) {
        batch.close_program();
      }
    }
    return batch;
  }
  [[nodiscard]] FeatureSchema schema() const { return toy::Features{}.schema(); }
};
struct FeaturesOfPrograms : FeaturesOfConfigurations {
  struct Describer {
    void describe(const toy::Program& program, const Task& task, FeatureBatch& batch) const {
      batch.append(columns_of(program, task));
    }
  };
  [[nodiscard]] Describer describer() const { return {}; }
};

/// Knows the most programs it was asked about at once.
struct Asked : toy::Linear {
  std::shared_ptr<std::atomic<std::size_t>> most = std::make_shared<std::atomic<std::size_t>>();

  void predict(const FeatureBatch& x, std::span<float> score) const {
    std::size_t seen = *most;
    while (seen < x.programs() && !most->compare_exchange_weak(seen, x.programs())) {
    }
    toy::Linear::predict(x, score);
  }
};

/// The table, which tells of a program what is read without making the program. Counts how often each configuration was
/// lowered and described; tiles with an unroll of 7 have no summary.
struct Counted : toy::Space {
  using toy::Space::why_infeasible;
  struct Summary {
    toy::Tiles tiles{};
  };
  using summary_type = Summary;
  using Counts = std::map<toy::Tiles, int>;

  std::shared_ptr<Counts> lowered = std::make_shared<Counts>();
  static inline Counts described{};

  [[nodiscard]] toy::Program lower(const Task& task, const toy::Tiles& tiles) const {
    ++(*lowered)[tiles];
    return toy::Space::lower(task, tiles);
  }
  [[nodiscard]] auto summarizer() const {
    return [summary = Summary()](const toy::Tiles& tiles) mutable -> const Summary* {
      summary.tiles = tiles;
      return tiles[3] == 7 ? nullptr : &summary;
    };
  }
  [[nodiscard]] std::string_view why_infeasible(const Task& task, const toy::Program& program) const {
    return toy::Space::why_infeasible(task, program.tiles);
  }
  [[nodiscard]] std::optional<std::string_view> why_infeasible(const Task& task, const Summary& summary) const {
    if (summary.tiles[3] == 6) return std::nullopt;  // it takes the program to tell
    return toy::Space::why_infeasible(task, summary.tiles);
  }
};
struct CountedFeatures {
  struct Describer {
    void describe(const auto& program, const Task& task, FeatureBatch& batch) const {
      ++Counted::described[program.tiles];
      batch.append(toy::Features{}.extract({}, task, std::span(&program.tiles, 1)));
    }
  };
  [[nodiscard]] Describer describer() const { return {}; }
  [[nodiscard]] FeatureBatch extract(const Counted& space, const Task& task,
                                     std::span<const toy::Tiles> configs) const {
    FeatureBatch batch(8);
    ProgramReader<Counted> reader(space, task);
    for (const toy::Tiles& tiles : configs)
      reader.read(tiles, [&](const auto& program) { Describer{}.describe(program, task, batch); });
    return batch;
  }
  [[nodiscard]] FeatureSchema schema() const { return toy::Features{}.schema(); }
};
struct OverCounted : toy::Evolution {
  using space = Counted;
  using filter = filters::StaticLimits;
  using featurizer = CountedFeatures;
};
static_assert(SummarizingSpace<Counted>);
static_assert(SummaryFilterFor<filters::StaticLimits, Counted>);
static_assert(features::SummaryFeaturizerFor<CountedFeatures, Counted>);

template <class Filter, class Draft, class Featurizer>
struct OverUnlowerable : toy::Evolution {
  using space = Unlowerable;
  using filter = Filter;
  using draft = Draft;
  using featurizer = Featurizer;
  using model = Asked;
};

/// What a search of five rounds came to, and what it lowered for it.
struct Searched {
  std::vector<std::uint64_t> keys;
  std::vector<float> predicted;
  ReasonCounts rejected;
  int lowered = 0;
  std::size_t most_at_once = 0;  // programs whose scores the model was asked for
};
template <class Recipe>
Searched searched(unsigned threads) {
  Parts<Recipe> parts{.seed = 3, .threads = threads};
  parts.explorer.population = 160;
  Session<Recipe> session(parts, toy::task());
  Searched result;
  for (int round = 0; round < 5; ++round) {
    const auto batch = session.ask(8);
    for (const auto& candidate : batch) {
      result.keys.push_back(candidate.key);
      if (round > 0) result.predicted.push_back(candidate.predicted);
    }
    std::vector<Outcome> outcomes = measured(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (batch[i].config[3] == 5) outcomes[i].result = Failure{Fault::InvalidSchedule, "leads nowhere"};
    }
    session.tell(batch, outcomes);
  }
  result.rejected = session.rejected();
  result.lowered = *parts.space.lowered;
  result.most_at_once = *parts.model.most;
  return result;
}

/// Both search alike, at any number of threads, and `Once` lowers less for it. If it is the model that ranks, `Once`
/// asks it in blocks and `Twice` for all at once.
template <class Once, class Twice>
void check_alike(bool model_ranks) {
  const Searched twice = searched<Twice>(1);
  CHECK(twice.keys.size() == 40);
  CHECK(twice.rejected.at("tile too large") > 0);
  CHECK(twice.rejected.at("cannot be lowered") > 0);
  for (const unsigned threads : {1U, 3U}) {
    INFO(threads, " threads");
    const Searched once = searched<Once>(threads);
    CHECK(once.keys == twice.keys);
    CHECK(once.predicted == twice.predicted);
    CHECK(once.rejected == twice.rejected);
    CHECK(once.lowered < twice.lowered);
    if (model_ranks && threads == 1) {
      constexpr std::size_t block = 64;
      CHECK(twice.most_at_once > block);  // one block does not hold what is ranked
      CHECK(once.most_at_once == block);
    }
    CHECK(searched<Twice>(threads).keys == twice.keys);
  }
}

}  // namespace

TEST_CASE("a session asks, is told, and asks for something else") {
  Parts<toy::Evolution> parts{.seed = 2};
  Session<toy::Evolution> session(parts, toy::task());
  const auto first = session.ask(10);
  REQUIRE(first.size() == 10);
  CHECK(keys(session.ask(10)) == keys(first));  // nothing was learned in between
  CHECK(first[3].slot == 3);
  session.tell(first, measured(first));
  CHECK(session.history().size() == 10);
  CHECK(session.round() == 1);
  const auto second = session.ask(10);
  CHECK(second.front().round == 1);
  for (const auto& candidate : second) CHECK_FALSE(session.history().contains(candidate.key));
}

TEST_CASE("until something valid was measured, candidates come straight from the space") {
  struct Untouched : explorers::Evolutionary {
    std::vector<toy::Tiles> explore(const toy::Space&, const Task&, const Guidance<toy::Tiles>&, Rng&) const {
      throw std::logic_error("nothing to be guided by");
    }
  };
  struct Recipe : toy::Evolution {
    using explorer = Untouched;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto batch = session.ask(5);
  std::vector<Outcome> failures(5);
  for (Outcome& outcome : failures) outcome.result = Failure{Fault::RunTimeout, ""};
  session.tell(batch, failures);
  const auto again = session.ask(5);
  CHECK(again.size() == 5);
  session.tell(again, measured(again));
  CHECK_THROWS_AS((void)session.ask(5), std::logic_error);
}

TEST_CASE("a measurer is told the best of the search, and that a new search has none") {
  struct Told : toy::Measurer {
    std::vector<double> best{};
    void note_best(const Task&, Seconds latency) { best.push_back(latency.count()); }
  };
  struct Recipe : toy::RandomSearch {
    using measurer = Told;
  };
  Parts<Recipe> parts;
  for (int search = 0; search < 2; ++search) {
    Session<Recipe> session(parts, toy::task());
    for (int round = 0; round < 2; ++round) {
      const auto batch = session.ask(8);
      session.tell(batch, session.measure(batch));
    }
  }
  const std::vector<double>& best = parts.measurer.best;
  REQUIRE(best.size() == 4);
  CHECK(best[0] == 0);
  CHECK(best[1] > 0);
  CHECK(best[2] == 0);
  CHECK(best[3] > 0);
}

TEST_CASE("a model that says it has learned is used at once") {
  struct Pretrained : toy::Linear {
    bool trained() const { return !weights.empty(); }
  };
  struct Recipe : toy::Evolution {
    using model = Pretrained;
  };
  Parts<Recipe> parts;
  Session<Recipe> untrained(parts, toy::task());
  const auto guessed = untrained.ask(4);
  CHECK(std::none_of(guessed.begin(), guessed.end(), [](const auto& c) { return c.config == toy::best; }));
  parts.model.weights = {-3, -3.2, -2, -0.4, 0.5, 0.4, 0.2, 0.1, 17.3};  // the cost of the table, in milliseconds
  Session<Recipe> trained(parts, toy::task());
  CHECK(trained.ask(4).front().config == toy::best);
}

TEST_CASE("a task's first batch is not chosen by a model that knows other tasks alone, unless it was taught before") {
  struct Taught : toy::Linear {
    bool trained() const { return !weights.empty(); }
  };
  struct Recipe : toy::Evolution {
    using model = Taught;
    using adaptation = TaskBound;
  };
  Parts<Recipe> parts;
  Session<Recipe> first(parts, toy::task("a", 1)), second(parts, toy::task("b", 2));
  const auto batch = first.ask(4);
  first.tell(batch, measured(batch));
  REQUIRE(parts.model.trained());
  CHECK(first.ask(4).front().config == toy::best);
  const auto guessed = second.ask(4);
  CHECK(std::none_of(guessed.begin(), guessed.end(), [](const auto& c) { return c.config == toy::best; }));
  CHECK_FALSE(std::isfinite(guessed.front().predicted));
  second.tell(guessed, measured(guessed));
  CHECK(second.ask(4).front().config == toy::best);

  Parts<Recipe> taught;
  TaskBound{}.update(taught.model, {}, {}, {});
  Session<Recipe> only(taught, toy::task("a", 1));
  CHECK(only.ask(4).front().config == toy::best);  // nothing was measured that it could have been trained anew on
}

TEST_CASE("during the warm-up batches are random, also with a model that does not say whether it has learned") {
  struct Untold : toy::Evolution {
    static void set_adaptation(adaptations::Refit& refit) { refit.warmup_candidates = 8; }
  };
  Parts<Untold> parts;
  Session<Untold> session(parts, toy::task());
  CHECK(session.warmup() == 9);
  for (const std::size_t left : {5U, 1U, 0U}) {
    const auto batch = session.ask(4);
    CHECK_FALSE(std::isfinite(batch.front().predicted));
    session.tell(batch, measured(batch));
    CHECK(session.warmup() == left);
  }
  CHECK(std::isfinite(session.ask(4).front().predicted));
}

TEST_CASE("a draft guides the first round") {
  struct Recipe : toy::Evolution {
    using draft = ByFirstTile;
    using sampler = samplers::TopK;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  for (const auto& candidate : session.ask(8)) CHECK(candidate.config[0] == 7);
}

TEST_CASE("a sampler with nothing to choose is refused at the first batch, and told what to raise") {
  struct Recipe : toy::Evolution {
    using explorer = explorers::Uniform;
  };
  const auto first_batch = [](auto parts, std::size_t n) {
    using Parts = decltype(parts);
    return Session<typename Parts::recipe>(parts, toy::task()).ask(n).size();
  };
  CHECK_THROWS_WITH_AS((void)first_batch(Parts<Recipe>{}, 16),
                       "the explorer returns at most 16 candidates for a batch of 16, so the sampler has nothing to "
                       "choose; raise explorer.pool, ask for smaller batches, or take samplers::Random",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)first_batch(Parts<Recipe>{.explorer = {.pool = 16}}, 16),
                       doctest::Contains("at most 16 candidates"), std::invalid_argument);
  CHECK(first_batch(Parts<Recipe>{.explorer = {.pool = 17}}, 16) == 16);
  CHECK_THROWS_WITH_AS((void)first_batch(Parts<toy::Anneal>{.explorer = {.elite_factor = 1}}, 8),
                       doctest::Contains("raise explorer.elite_factor"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      (void)first_batch(Parts<toy::Evolution>{.explorer = {.elite_factor = 1, .random_immigrant_factor = 0}}, 8),
      doctest::Contains("raise explorer.elite_factor"), std::invalid_argument);
  struct AtRandom : Recipe {
    using sampler = samplers::Random;
  };
  CHECK(first_batch(Parts<AtRandom>{}, 16) == 16);
}

TEST_CASE("candidates with scores that are no numbers are counted") {
  struct Lost : toy::Linear {
    void predict(const FeatureBatch& x, std::span<float> score) const {
      toy::Linear::predict(x, score);
      for (std::size_t p = 0; p < score.size(); ++p)
        if (x.program(p).empty() || x.program(p)[0] > 3) score[p] = NAN;
    }
  };
  struct Counts : samplers::TopK {
    std::shared_ptr<std::size_t> large = std::make_shared<std::size_t>(0);
    std::vector<std::size_t> select(const Lost& model, const FeatureBatch& x, std::span<const float> score,
                                    std::size_t n, Rng& rng) const {
      for (std::size_t p = 0; p < x.programs(); ++p) *large += !x.program(p).empty() && x.program(p)[0] > 3 ? 1U : 0U;
      return TopK::select(model, x, score, n, rng);
    }
  };
  struct Recipe : toy::Evolution {
    using model = Lost;
    using explorer = explorers::Uniform;
    using sampler = Counts;
  };
  Parts<Recipe> parts{.explorer = {.pool = 64}};
  Session<Recipe> session(parts, toy::task());
  for (int round = 0; round < 3; ++round) {
    CHECK(session.unscored() == *parts.sampler.large);
    const auto batch = session.ask(8);
    session.tell(batch, measured(batch));
  }
  CHECK(session.unscored() == *parts.sampler.large);
  CHECK(session.unscored() > 32);  // of two pools of 64, about half
}

TEST_CASE("a sampler that chooses nothing is an error, not the end of the space") {
  struct ChoosesNothing {
    std::vector<std::size_t> select(const toy::Linear&, const FeatureBatch&, std::span<const float>, std::size_t,
                                    Rng&) const {
      return {};
    }
  };
  struct Recipe : toy::Evolution {
    using sampler = ChoosesNothing;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto first = session.ask(8);
  session.tell(first, measured(first));
  CHECK_THROWS_WITH_AS((void)session.ask(8), doctest::Contains("the sampler chose none of"), std::logic_error);
}

TEST_CASE("an explorer that proposes what is measured, or the same twice, is found out before it is measured again") {
  struct Repeats {
    bool measured = false;
    std::vector<toy::Tiles> explore(const toy::Space& space, const Task& task, const Guidance<toy::Tiles>& guidance,
                                    Rng& rng) const {
      auto pool = spaces::draw(space, task, 32, guidance.measured, guidance.threads, rng.split(0));
      pool.push_back(measured ? guidance.seeds[0] : pool[0]);
      return pool;
    }
  };
  struct Recipe : toy::Evolution {
    using explorer = Repeats;
  };
  for (const bool again : {false, true}) {
    CAPTURE(again);
    Parts<Recipe> parts{.explorer = {.measured = again}};
    Session<Recipe> session(parts, toy::task());
    const auto first = session.ask(8);
    session.tell(first, measured(first));
    CHECK_THROWS_WITH_AS(
        (void)session.ask(8),
        doctest::Contains(again ? "which is measured already; leave out keys that guidance.measured has" : " twice"),
        std::logic_error);
  }
}

TEST_CASE("a featurizer that leaves a configuration out is found out, whether the model ranks or only learns") {
  struct LeavesOut : toy::Features {
    [[nodiscard]] FeatureBatch extract(const toy::Space& space, const Task& task,
                                       std::span<const toy::Tiles> configs) const {
      return toy::Features::extract(space, task, configs.first(configs.size() - 1));
    }
  };
  struct Recipe : toy::Evolution {
    using featurizer = LeavesOut;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto first = session.ask(8);
  CHECK_THROWS_WITH_AS(session.tell(first, measured(first)), doctest::Contains("gave 7 programs for 8 configurations"),
                       std::logic_error);
}

TEST_CASE("a learning filter is told every outcome and keeps out what it learned") {
  struct NoUnrolling {
    int largest = 100;
    std::size_t told = 0;
    Kept keep(const toy::Space&, const Task&, std::span<const toy::Tiles> pool) const {
      Kept kept;
      for (std::size_t i = 0; i < pool.size(); ++i) {
        if (pool[i][3] <= largest)
          kept.indices.push_back(i);
        else
          ++kept.rejected["unrolled too far"];
      }
      return kept;
    }
    void learn(const toy::Space&, const Task&, std::span<const toy::Tiles> configs, std::span<const Outcome> outcomes) {
      CHECK(configs.size() == outcomes.size());
      told += configs.size();
      largest = 2;
    }
  };
  struct Recipe : toy::Evolution {
    using filter = NoUnrolling;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto batch = session.ask(8);
  session.tell(batch, measured(batch));
  CHECK(parts.filter.told == 8);
  for (const auto& candidate : session.ask(32)) CHECK(candidate.config[3] <= 2);
  CHECK(session.rejected().at("unrolled too far") > 0);
}

TEST_CASE("a filter that keeps what it was not given is found out") {
  struct Inventive {
    Kept keep(const toy::Space&, const Task&, std::span<const toy::Tiles> pool) const {
      return {.indices = {pool.size()}, .rejected = {}};
    }
  };
  struct Recipe : toy::Evolution {
    using filter = Inventive;
  };
  Parts<Recipe> parts;
  CHECK_THROWS_WITH_AS((void)Session<Recipe>(parts, toy::task()).ask(4), doctest::Contains("the filter kept position"),
                       std::logic_error);
}

TEST_CASE("filters and drafts that are handed the lowered program search as those that lower it themselves") {
  using filters::StaticLimits;
  static_assert(ProgramFilterFor<StaticLimits, Unlowerable>);
  static_assert(!ProgramFilterFor<LimitsOfConfigurations, Unlowerable>);
  static_assert(ProgramDraftFor<DraftOfPrograms, Unlowerable>);
  static_assert(!ProgramDraftFor<DraftOfConfigurations, Unlowerable>);
  static_assert(features::NestFeaturizerFor<FeaturesOfPrograms, Unlowerable>);
  static_assert(!features::NestFeaturizerFor<FeaturesOfConfigurations, Unlowerable>);
  SUBCASE("a draft ranks") {
    check_alike<OverUnlowerable<StaticLimits, DraftOfPrograms, FeaturesOfConfigurations>,
                OverUnlowerable<LimitsOfConfigurations, DraftOfConfigurations, FeaturesOfConfigurations>>(false);
  }
  SUBCASE("the model ranks") {
    check_alike<OverUnlowerable<StaticLimits, drafts::None, FeaturesOfPrograms>,
                OverUnlowerable<LimitsOfConfigurations, drafts::None, FeaturesOfConfigurations>>(true);
  }
}

TEST_CASE("a measured candidate is lowered once and described once") {
  Parts<OverCounted> parts{.seed = 5};
  Session<OverCounted> session(parts, toy::task());
  const auto check = [&](const auto& batch) {
    for (const auto& candidate : batch) {
      // Those that have no summary are lowered to be ranked as well.
      const bool is_summarized = candidate.config[3] < 6;
      CHECK((*parts.space.lowered)[candidate.config] >= 1);
      if (is_summarized) CHECK((*parts.space.lowered)[candidate.config] == 1);
      CHECK(Counted::described[candidate.config] == 1);
    }
  };
  const auto forget = [&] {
    parts.space.lowered->clear();
    Counted::described.clear();
  };
  SUBCASE("that was asked for") {
    for (int round = 0; round < 4; ++round) {  // the first of them drawn, the others ranked by the model
      forget();
      const auto batch = session.ask(8);
      REQUIRE(batch.size() == 8);
      session.tell(batch, session.measure(batch));
      check(batch);
    }
    CHECK(std::isfinite(session.history().trials().back().candidate.predicted));
  }
  SUBCASE("that was not asked for") {
    forget();
    std::vector<Candidate<toy::Tiles>> batch;
    for (const toy::Tiles& tiles : {toy::Tiles{1, 2, 3, 4}, toy::Tiles{2, 2, 2, 2}})
      batch.push_back({tiles, parts.space.key(tiles)});
    session.tell(batch, session.measure(batch));
    check(batch);
  }
  SUBCASE("that was told without being measured here, or recalled: not lowered at all") {
    const auto batch = session.ask(8);
    const auto told = measured(batch);
    std::vector<Record> records;
    for (std::size_t i = 0; i < batch.size(); ++i) records.push_back(session.record(batch[i], told[i]));
    forget();
    session.tell(batch, told);
    const auto check_described = [&] {
      for (const auto& candidate : batch) {
        CHECK((*parts.space.lowered)[candidate.config] == (candidate.config[3] == 7 ? 1 : 0));
        CHECK(Counted::described[candidate.config] == 1);
      }
    };
    check_described();
    forget();
    Session<OverCounted> resumed(parts, toy::task());
    CHECK(resumed.recall(records).empty());
    CHECK(resumed.history().size() == batch.size());
    check_described();
  }
}

TEST_CASE("a batch that is told in parts, or not at all, is described as one that is told whole") {
  const auto rows_after = [](bool in_parts) {
    Parts<OverCounted> parts{.seed = 5};
    Session<OverCounted> session(parts, toy::task());
    (void)session.ask(8);
    const auto batch = session.ask(8);
    const auto told = session.measure(batch);
    const std::span<const Candidate<toy::Tiles>> all(batch);
    const std::span<const Outcome> outcomes(told);
    for (std::size_t first = 0, size = in_parts ? 4 : 8; first < 8; first += size)
      session.tell(all.subspan(first, size), outcomes.subspan(first, size));
    const TrainingSet::Data data = parts.training.assemble();
    return std::vector<float>(data.x.values().begin(), data.x.values().end());
  };
  CHECK(rows_after(true) == rows_after(false));
}

TEST_CASE("a session that was told a batch in parts goes on as one that recalls it") {
  Parts<toy::Evolution> parts{.seed = 5}, resumed_parts{.seed = 5};
  Session<toy::Evolution> session(parts, toy::task());
  std::vector<Record> records;
  for (int round = 0; round < 2; ++round) {
    const auto batch = session.ask(8);
    const auto told = measured(batch);
    const std::span<const Candidate<toy::Tiles>> all(batch);
    const std::span<const Outcome> outcomes(told);
    for (std::size_t first = 0; first < 8; first += 4) session.tell(all.subspan(first, 4), outcomes.subspan(first, 4));
    for (std::size_t i = 0; i < 8; ++i) records.push_back(session.record(batch[i], told[i]));
  }
  session.tell({}, {});  // a batch of which nothing was measured
  CHECK(session.round() == 2);
  Session<toy::Evolution> resumed(resumed_parts, toy::task());
  resumed.recall(records);
  CHECK(resumed.round() == 2);
  const auto next = session.ask(8), resumed_next = resumed.ask(8);
  REQUIRE(next.size() == resumed_next.size());
  for (std::size_t i = 0; i < next.size(); ++i) CHECK(next[i].key == resumed_next[i].key);
}

TEST_CASE("recalling earlier rounds does not set a session back") {
  Parts<toy::RandomSearch> parts;
  Session<toy::RandomSearch> session(parts, toy::task());
  const auto batch = session.ask(3);
  const auto told = measured(batch);
  std::vector<Record> records;
  for (std::size_t i = 0; i < 3; ++i) records.push_back(session.record(batch[i], told[i]));
  records[0].round = 5;
  records[2].round = std::numeric_limits<std::uint32_t>::max();  // there is no next one
  session.recall(std::span(records).first(1));
  CHECK(session.round() == 6);
  session.recall(std::span(records).subspan(1));
  CHECK(session.round() == 6);
}

TEST_CASE("a sampler that looks at what was measured is shown all of it") {
  struct Looks : samplers::TopK {
    std::vector<std::size_t> select(const toy::Linear& model, const FeatureBatch& x, std::span<const float> score,
                                    std::size_t n, Rng& rng, const samplers::Labelled& labelled = {}) const {
      CHECK(labelled.size() == 20);
      CHECK(*std::max_element(labelled.y.begin(), labelled.y.end()) == 1);
      CHECK(labelled.task_of(0) == 0);
      CHECK(labelled.task_of(19) == 1);
      CHECK(labelled.round[9] == 0);
      CHECK(labelled.pool_task.size() == score.size());
      if (labelled.round[19] == 0) {
        CHECK(labelled.pool_task_of(0) == 1);
        CHECK(std::isnan(labelled.predicted[19]));  // the first round is a guess
      }
      return TopK::select(model, x, score, n, rng);
    }
  };
  struct Recipe : toy::Evolution {
    using sampler = Looks;
  };
  static_assert(LabelAwareSamplerFor<Looks, toy::Linear>);
  static_assert(!LabelAwareSamplerFor<samplers::TopK, toy::Linear>);
  Parts<Recipe> parts;
  Session<Recipe> a(parts, toy::task("a", 1));
  Session<Recipe> b(parts, toy::task("b", 2));
  const auto batch_a = a.ask(10);
  a.tell(batch_a, measured(batch_a));
  const auto batch_b = b.ask(10);
  b.tell(batch_b, measured(batch_b));
  const auto guided = b.ask(4);
  REQUIRE(guided.size() == 4);
  b.tell(guided, measured(guided));
  const TrainingSet::Data known = parts.training.assemble();
  CHECK(known.round.back() == 1);
  CHECK(known.predicted.back() == guided.back().predicted);
  CHECK(std::isfinite(guided.back().predicted));
}

/// Wants the explorer to look for large first tiles in odd rounds, and for what the model thinks best in even ones.
struct WantsLargeFirstTiles : samplers::TopK {
  std::shared_ptr<std::vector<std::uint64_t>> draws = std::make_shared<std::vector<std::uint64_t>>();

  std::vector<std::size_t> select(const toy::Linear& model, const FeatureBatch& x, std::span<const float> score,
                                  std::size_t n, Rng& rng, const samplers::Labelled& = {}) const {
    draws->push_back(rng.below(1U << 20));
    return TopK::select(model, x, score, n, rng);
  }
  samplers::Guide guide(const toy::Linear&, const samplers::Labelled& labelled, Rng& rng) const {
    CHECK(labelled.pool_task.size() == 1);
    draws->push_back(rng.below(1U << 20));
    if (labelled.round.back() % 2 == 1) return {};
    return [](const FeatureBatch& x, std::span<float> value) {
      for (std::size_t p = 0; p < x.programs(); ++p) value[p] = x.program(p)[0];
    };
  }
};

TEST_CASE("a sampler says what exploration looks for, round by round") {
  struct Recipe : toy::Anneal {
    using sampler = WantsLargeFirstTiles;
    static void set_explorer(explorers::Annealing& annealing) { annealing.first_temperature = 0; }
  };
  static_assert(GuidingSamplerFor<WantsLargeFirstTiles, toy::Linear>);
  static_assert(!GuidingSamplerFor<samplers::TopK, toy::Linear>);
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto first = session.ask(40);
  session.tell(first, measured(first));
  const auto guided = session.ask(8);
  for (const auto& candidate : guided) CHECK(candidate.config[0] == 7);
  session.tell(guided, measured(guided));
  CHECK(session.ask(8).front().config == toy::best);
  // The guide and the choice of a round have generators in the same state.
  const std::vector<std::uint64_t>& draws = *parts.sampler.draws;
  REQUIRE(draws.size() == 4);
  CHECK(draws[0] == draws[1]);
  CHECK(draws[2] == draws[3]);
  CHECK(draws[0] != draws[2]);
}

/// Looks for what the model thinks best, and at its arguments each time.
struct LooksAtLabels : samplers::TopK {
  std::shared_ptr<std::vector<float>> sums = std::make_shared<std::vector<float>>();

  std::vector<std::size_t> select(const toy::Linear& model, const FeatureBatch& x, std::span<const float> score,
                                  std::size_t n, Rng& rng, const samplers::Labelled& = {}) const {
    return TopK::select(model, x, score, n, rng);
  }
  samplers::Guide guide(const toy::Linear& model, const samplers::Labelled& labelled, Rng&) const {
    return [&, seen = sums](const FeatureBatch& x, std::span<float> value) {
      seen->push_back(std::accumulate(labelled.y.begin(), labelled.y.end(), 0.0F));
      model.predict(x, value);
    };
  }
};

TEST_CASE("the arguments of a guide last as long as the exploration") {
  struct Recipe : toy::Anneal {
    using sampler = LooksAtLabels;
  };
  Parts<Recipe> parts;
  parts.threads = 1;
  Session<Recipe> session(parts, toy::task());
  const auto first = session.ask(40);
  session.tell(first, measured(first));
  const std::vector<float> y = parts.training.assemble().y;
  (void)session.ask(8);
  REQUIRE_FALSE(parts.sampler.sums->empty());
  for (const float sum : *parts.sampler.sums) CHECK(sum == std::accumulate(y.begin(), y.end(), 0.0F));
}

TEST_CASE("where there is a draft the sampler is not asked what to look for") {
  struct Recipe : toy::Anneal {
    using draft = ByFirstTile;
    using sampler = WantsLargeFirstTiles;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto batch = session.ask(8);
  session.tell(batch, measured(batch));
  (void)session.ask(8);
  CHECK(parts.sampler.draws->size() == 2);  // of the two choices
}

TEST_CASE("sessions over the same parts share what the model learns from") {
  Parts<toy::Evolution> parts;
  Session<toy::Evolution> a(parts, toy::task("a", 1));
  Session<toy::Evolution> b(parts, toy::task("b", 2));
  const auto batch_a = a.ask(10);
  a.tell(batch_a, measured(batch_a));
  const auto batch_b = b.ask(10);
  b.tell(batch_b, measured(batch_b));
  CHECK(parts.training.size() == 20);
  const Session<toy::Evolution> again(parts, toy::task("a", 1));
  CHECK(parts.training.size() == 10);  // a new session of a task replaces the old one
}

TEST_CASE("telling what does not fit is refused with the numbers") {
  Parts<toy::RandomSearch> parts;
  Session<toy::RandomSearch> session(parts, toy::task());
  const auto batch = session.ask(4);
  auto outcomes = measured(batch);
  CHECK_THROWS_WITH_AS(session.tell(batch, std::span(outcomes).first(3)),
                       doctest::Contains("3 outcomes for a batch of 4"), std::invalid_argument);
  session.tell(batch, outcomes);
  CHECK_THROWS_WITH_AS(session.tell(batch, outcomes), doctest::Contains("told before"), std::invalid_argument);
}

TEST_CASE("latencies that are none, and a candidate twice in a batch, are refused before anything is learned") {
  Parts<toy::Evolution> parts;
  Session<toy::Evolution> session(parts, toy::task());
  auto batch = session.ask(4);
  const auto told = measured(batch);
  for (const double latency_s : {0.0, -1e-3, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    auto outcomes = told;
    outcomes[2].result = Timing{.repeats = {}, .median = Seconds(latency_s)};
    CHECK_THROWS_WITH_AS(session.tell(batch, outcomes), doctest::Contains("tell a positive latency"),
                         std::invalid_argument);
  }
  auto twice = batch;
  twice[3] = twice[0];
  CHECK_THROWS_WITH_AS(session.tell(twice, told), doctest::Contains("told before"), std::invalid_argument);
  CHECK(session.history().size() == 0);
  CHECK(parts.training.size() == 0);
  CHECK(session.round() == 0);
  session.tell(batch, told);
  CHECK(session.history().size() == 4);
}

TEST_CASE("a journal that cannot be taken over leaves the session where it was") {
  Parts<toy::RandomSearch> parts;
  Session<toy::RandomSearch> session(parts, toy::task());
  const auto batch = session.ask(4);
  const auto told = measured(batch);
  session.tell(batch, told);
  Record record = session.record(batch[0], told[0]);
  record.round = 7;
  CHECK_THROWS_WITH_AS((void)session.recall(std::span(&record, 1)), doctest::Contains("told before"),
                       std::invalid_argument);
  CHECK(session.round() == 1);
}

TEST_CASE("options out of range are refused before anything is measured") {
  struct Filtered : toy::Evolution {
    using filter = filters::All<filters::StaticLimits, filters::LearnedValidity<toy::Linear, toy::Features>>;
  };
  const auto refuses = [](auto parts, const char* why) {
    using Recipe = typename decltype(parts)::recipe;
    CHECK_THROWS_WITH_AS((void)Session<Recipe>(parts, toy::task()), doctest::Contains(why), std::invalid_argument);
  };
  refuses(Parts<toy::Evolution>{.sampler = {.epsilon = 7}}, "EpsilonGreedy: epsilon is 7");
  refuses(Parts<toy::Evolution>{.adaptation = {.min_growth = -1}}, "Refit: min_growth is -1");
  refuses(Parts<toy::Evolution>{.explorer = {.population = 0}}, "Evolutionary: population is 0");
  refuses(Parts<Filtered>{.filter = {{{}, {.threshold = 2}}}}, "LearnedValidity: threshold is 2");

  struct Unchecked : samplers::TopK {
   private:
    void check_options() const { throw std::invalid_argument("not for others"); }
  };
  struct Private : toy::Evolution {
    using sampler = Unchecked;
  };
  Parts<Private> parts;
  CHECK(Session<Private>(parts, toy::task()).ask(4).size() == 4);
}

TEST_CASE("asking for nothing is refused") {
  Parts<toy::RandomSearch> parts;
  Session<toy::RandomSearch> session(parts, toy::task());
  CHECK_THROWS_WITH_AS((void)session.ask(0), doctest::Contains("ask for at least 1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)session.ask(std::numeric_limits<std::size_t>::max()),
                       doctest::Contains("candidates were asked for at once; ask for at most 1048576"),
                       std::invalid_argument);
}

TEST_CASE("configurations to start with are measured first, once, and without those that the filter refuses") {
  struct Limited : toy::Evolution {
    using filter = filters::StaticLimits;
  };
  Parts<Limited> parts{.seed = 5};
  parts.starts = [](const toy::Space&, const Task&) {
    return std::vector<toy::Tiles>{{3, 4, 5, 1}, {7, 7, 0, 0}, {1, 1, 1, 1}, {3, 4, 5, 1}, {2, 2, 2, 2}};
  };
  Task task;
  task.name = "toy";
  Session<Limited> session(parts, task);
  auto batch = session.ask(2);
  REQUIRE(batch.size() == 2);
  CHECK(batch[0].config == toy::Tiles{3, 4, 5, 1});
  CHECK(batch[1].config == toy::Tiles{1, 1, 1, 1});
  CHECK(keys(session.ask(2)) == keys(batch));
  session.tell(batch, measured(batch));
  batch = session.ask(6);
  REQUIRE(batch.size() == 6);
  CHECK(batch[0].config == toy::Tiles{2, 2, 2, 2});
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(batch[i].slot == i);
    CHECK(batch[i].round == 1);
    for (std::size_t j = 0; j < i; ++j) CHECK(batch[i].key != batch[j].key);
  }
  session.tell(batch, measured(batch));
  for (const auto& candidate : session.ask(6)) CHECK(session.history().keys().count(candidate.key) == 0);
}
