// SPDX-License-Identifier: Apache-2.0
// The policies that the pages in docs/concepts/ show, composed and run.
#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/core/hash.hpp"
#include "tunewright/measurers/function.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/recipes/expected_improvement.hpp"
#include "tunewright/spaces/draw.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

namespace manual {

// [snippet-begin space]
/// Tile sizes 1 to 64 of one loop. The tile size is also the program.
struct TileSizes {
  using config_type = int;
  using program_type = int;

  std::optional<int> sample(const Task&, Rng& rng) const { return 1 + static_cast<int>(rng.below(64)); }
  std::optional<int> mutate(const Task&, int tile, Rng& rng) const {
    const int neighbour = rng.below(2) == 0 ? tile - 1 : tile + 1;
    if (neighbour < 1 || neighbour > 64) return std::nullopt;
    return neighbour;
  }
  bool feasible(const Task&, int tile) const { return tile <= 60; }
  std::uint64_t key(int tile) const { return StableHash{}.add(tile).value(); }
  std::string encode(int tile) const { return std::to_string(tile); }
  std::optional<int> decode(const Task&, std::string_view text) const {
    int tile = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tile);
    if (error != std::errc() || end != text.data() + text.size() || tile < 1 || tile > 64) return std::nullopt;
    return tile;
  }
  int lower(const Task&, int tile) const { return tile; }
};
// [snippet-end space]
static_assert(SearchSpace<TileSizes>);

// [snippet-begin knobs]
/// The same space for recipes that need knobs: one, the tile size, whose factors matter more than differences.
struct TileKnobs : TileSizes {
  std::vector<Knob> knobs() const { return {{"tile", KnobScale::Log2}}; }
  std::vector<double> knob_values(int tile) const { return {static_cast<double>(tile)}; }
};

/// Searches for the fastest tile of a kernel that `seconds` runs; a kernel that does not run throws.
Run<int> fastest_tile(const std::function<double(int)>& seconds) {
  const auto measure = [seconds](const Task&, int tile) {
    Outcome outcome;
    try {
      outcome.result = Timing{.repeats = {}, .median = Seconds(seconds(tile))};
    } catch (const std::exception& error) {
      outcome.result = Failure{Fault::RunError, error.what()};
    }
    return outcome;
  };
  using Recipe = recipes::ExpectedImprovement<TileKnobs, measurers::Function<int>>;
  Tuner<Recipe> tuner{{.measurer = {measure}, .seed = 3}};
  const Task task{.name = "my kernel", .workload_hash = 1, .target = {}, .graph = nullptr};
  return tuner.run(task, {.trials = 20, .batch = 4});
}
// [snippet-end knobs]
static_assert(KnobSpace<TileKnobs>);

// [snippet-begin featurizer]
template <class S>
concept TileSpace = SearchSpace<S> && (std::convertible_to<config_t<S>, int>);

struct TileItself {
  template <TileSpace S>
  FeatureBatch extract(const S&, const Task&, std::span<const config_t<S>> configs) const {
    FeatureBatch batch(1);
    for (const int tile : configs) {
      batch.append_row()[0] = static_cast<float>(tile);
      batch.close_program();
    }
    return batch;  // (N, 1)
  }
  FeatureSchema schema() const { return {"tile", 1, {{"tile", "iterations", "Size of the tile."}}}; }
};
// [snippet-end featurizer]
static_assert(FeaturizerFor<TileItself, TileSizes>);

// [snippet-begin model]
/// score(p) = -|first feature of p - that of the fastest program seen|
struct NearTheBest {
  std::optional<float> best{};  ///< the learned feature

  void predict(const FeatureBatch& x, std::span<float> score) const {
    models::check_predict_sizes("NearTheBest", x, score.size());
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const std::span<const float> rows = x.program(p);
      if (rows.empty())
        score[p] = -std::numeric_limits<float>::infinity();
      else
        score[p] = best ? -std::abs(rows[0] - *best) : 0.0F;
    }
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    models::check_fit_sizes("NearTheBest", x, y.size(), group.size());
    best.reset();
    float top = 0;
    for (std::size_t p = 0; p < x.programs(); ++p) {
      if (y[p] <= top || x.program(p).empty()) continue;
      top = y[p];
      best = x.program(p)[0];
    }
  }
};
// [snippet-end model]
static_assert(CostModel<NearTheBest>);

// [snippet-begin draft]
struct LargeTilesFirst {
  void score(const TileSizes&, const Task&, std::span<const int> configs, std::span<float> score) const {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(configs[i]);
  }
};
// [snippet-end draft]
static_assert(DraftModelFor<LargeTilesFirst, TileSizes>);

// [snippet-begin explorer]
/// Random configurations and one neighbour of each seed.
struct Neighbours {
  template <SearchSpace S>
  std::vector<config_t<S>> explore(const S& space, const Task& task, const Guidance<config_t<S>>& guidance,
                                   Rng& rng) const {
    auto pool = spaces::draw(space, task, guidance.wanted, guidance.measured, guidance.threads, rng.split(0));
    KeySet known = guidance.measured;
    for (const auto& config : pool) known.insert(space.key(config));
    for (const auto& seed : guidance.seeds) {
      const auto config = space.mutate(task, seed, rng);
      if (config && known.insert(space.key(*config)).second) pool.push_back(*config);
    }
    std::vector<float> score(pool.size());
    guidance.rank(pool, score);
    std::size_t next = 0;  // must not return candidates that rank -infinity
    std::erase_if(pool, [&](const auto&) { return std::isinf(score[next++]); });
    return pool;
  }
};
// [snippet-end explorer]
static_assert(ExplorerFor<Neighbours, TileSizes>);

// [snippet-begin sampler]
/// Chooses evenly spaced ranks from the best to the worst of the pool.
struct EvenlySpread {
  template <CostModel M>
  std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float> score, std::size_t n,
                                  Rng&) const {
    std::vector<std::size_t> order(score.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
    std::vector<std::size_t> chosen;
    const std::size_t count = std::min(n, order.size());
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(order[i * order.size() / count]);
    return chosen;
  }
};
// [snippet-end sampler]
static_assert(SamplerFor<EvenlySpread, NearTheBest>);

// [snippet-begin filter]
struct EvenTiles {
  Kept keep(const TileSizes&, const Task&, std::span<const int> pool) const {
    Kept kept;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (pool[i] % 2 == 0)
        kept.indices.push_back(i);
      else
        ++kept.rejected["odd tile"];
    }
    return kept;
  }
};
// [snippet-end filter]
static_assert(FilterFor<EvenTiles, TileSizes>);

// [snippet-begin adaptation]
/// Trains the model from scratch after every other batch.
struct EveryOtherBatch {
  std::size_t batches = 0;  ///< run-time state

  template <CostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    if (batches++ % 2 == 0) model.fit(x, y, group);
  }
};
// [snippet-end adaptation]
static_assert(AdaptationFor<EveryOtherBatch, NearTheBest>);

// [snippet-begin measurer]
/// A machine on which tiles of 32 are fastest and large tiles fail.
struct MadeUpMachine {
  std::vector<Outcome> measure(const Task&, std::span<const int> programs) const {
    std::vector<Outcome> outcomes;
    for (const int tile : programs) {
      Outcome& outcome = outcomes.emplace_back();
      if (tile > 56)
        outcome.result = Failure{Fault::RunError, "out of memory"};
      else
        outcome.result = Timing{.repeats = {}, .median = Seconds(1e-6 * (1 + std::abs(tile - 32)))};
    }
    return outcomes;  // [B]
  }
};
// [snippet-end measurer]
static_assert(MeasurerFor<MadeUpMachine, int>);

// [snippet-begin scheduler]
/// Chooses the unfinished task with the largest share of the network's latency.
struct LongestFirst {
  std::size_t next(std::span<const schedulers::TaskState> tasks, Rng&) const {
    const std::size_t unvisited = schedulers::first_unvisited(tasks);
    if (unvisited < tasks.size()) return unvisited;
    return schedulers::least_open(tasks, [&](std::size_t t) {
      // Dividing by the rounds gives other tasks a turn if this one does not improve.
      return -tasks[t].weight * tasks[t].best_s() / static_cast<double>(tasks[t].rounds.size());
    });
  }
};
// [snippet-end scheduler]
static_assert(TaskScheduler<LongestFirst>);

// [snippet-begin recipe]
struct Mine {
  using space = TileSizes;
  using featurizer = TileItself;
  using model = NearTheBest;
  using draft = drafts::None;
  using explorer = Neighbours;
  using sampler = EvenlySpread;
  using filter = EvenTiles;
  using adaptation = EveryOtherBatch;
  using measurer = MadeUpMachine;
};
struct MineWithADraft : Mine {
  using draft = LargeTilesFirst;
};
// [snippet-end recipe]

template <class Recipe>
Run<int> run() {
  Tuner<Recipe> tuner{{.seed = 3, .threads = 2}};
  const Task task{.name = "manual", .workload_hash = 1, .target = {}, .graph = nullptr};
  return tuner.run(task, {.trials = 20, .batch = 4});
}

}  // namespace manual

TEST_CASE("the policies of the manual make a tuner") {
  const auto plain = manual::run<manual::Mine>();
  CHECK(plain.history.size() == 20);
  REQUIRE(plain.best() != nullptr);
  CHECK(plain.best()->cost_s() < 10e-6);
  const auto drafted = manual::run<manual::MineWithADraft>();
  CHECK(drafted.history.size() == 20);
  for (const auto& trial : drafted.history.trials()) CHECK(trial.candidate.config % 2 == 0);
}

TEST_CASE("the knobs of the manual are searched, and a kernel that does not run is data") {
  const auto found = manual::fastest_tile([](int tile) {
    if (tile > 56) throw std::runtime_error("out of memory");
    return 1e-6 * (1 + std::abs(tile - 32));
  });
  CHECK(found.history.size() == 20);
  REQUIRE(found.best() != nullptr);
  CHECK(std::abs(found.best()->candidate.config - 32) <= 1);
}

TEST_CASE("the scheduler of the manual searches a network") {
  MultiTaskTuner<manual::Mine, manual::LongestFirst> tuner{{.seed = 3}};
  const std::vector<WeightedTask> tasks{{{.name = "rare", .workload_hash = 1, .target = {}, .graph = nullptr}, 1},
                                        {{.name = "frequent", .workload_hash = 2, .target = {}, .graph = nullptr}, 9}};
  const auto run = tuner.run(tasks, {.trials = 30, .batch = 3});
  CHECK(run.tasks[1].history.size() > run.tasks[0].history.size());
}
