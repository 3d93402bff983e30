// SPDX-License-Identifier: Apache-2.0
// Whole recipes on measurements of a real kernel, with the tuner that runs on hardware.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "support/data_file.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/measurers/replay.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

namespace {

struct Recorded {
  spaces::RecordedTable space;
  Task task;
  measurers::Replay<spaces::TableRow> replay;
  double best_s = std::numeric_limits<double>::infinity();
};

Recorded recorded() {
  Recorded result;
  auto imported = data::read_table(support::data_file("kernel_tuner_convolution_A100.json.gz"));
  result.space = spaces::RecordedTable(std::make_shared<const data::Table>(std::move(imported.table)));
  const data::Table& table = result.space.table();
  result.task = data::task_of(table);
  result.replay.load(data::records_of(table, result.task));
  for (std::size_t i = 0; i < table.size(); ++i) result.best_s = std::min(result.best_s, table.cost_s(i));
  return result;
}

using RandomSearch = recipes::Random<spaces::RecordedTable, measurers::Replay<spaces::TableRow>>;

struct Evolution : RandomSearch {
  using featurizer = features::Knobs;
  using model = models::Gbdt;
  using explorer = explorers::Evolutionary;
  using sampler = samplers::EpsilonGreedy;
  using adaptation = adaptations::Refit;
};
struct Walks : Evolution {
  using explorer = explorers::Annealing;
  using sampler = samplers::TopK;
};

template <class Recipe>
auto run(std::uint64_t seed, std::size_t trials, unsigned threads = 1) {
  const Recorded source = recorded();
  Parts<Recipe> parts{
      .space = source.space, .measurer = source.replay, .seed = seed, .threads = threads, .clock = source.replay.clock};
  if constexpr (std::is_same_v<typename Recipe::featurizer, features::Knobs>) {
    parts.featurizer.knobs = source.space.knobs();
    parts.model.rounds = 40;
  }
  if constexpr (std::is_same_v<typename Recipe::explorer, explorers::Evolutionary>) parts.explorer.population = 64;
  if constexpr (std::is_same_v<typename Recipe::explorer, explorers::Annealing>) {
    parts.explorer.chains = 16;
    parts.explorer.steps = 20;
  }
  return Tuner<Recipe>(parts).run(source.task, {.trials = trials, .batch = 16});
}

template <class Recipe>
double mean_regret(std::size_t trials) {  // latency found / best recorded
  const double best_s = recorded().best_s;
  double sum = 0;
  constexpr int seeds = 6;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) sum += run<Recipe>(seed, trials).best()->cost_s() / best_s;
  return sum / seeds;
}

}  // namespace

TEST_CASE("searches of recorded measurements cost what was recorded and never leave the table") {
  const auto result = run<Evolution>(7, 96);
  REQUIRE(result.history.size() == 96);
  Seconds spent{0};
  for (const auto& trial : result.history.trials()) {
    spent += trial.outcome.compile_time + trial.outcome.run_time;
    const Failure* failure = trial.outcome.failure();
    CHECK((failure == nullptr || failure->fault != Fault::Unknown));
  }
  CHECK(result.status.elapsed.count() == doctest::Approx(spent.count()));
  CHECK(spent.count() > 96);  // more than a second each: seconds, not milliseconds
}

TEST_CASE("a recorded table is searched like a machine") {
  const std::string file = support::data_file("kernel_tuner_convolution_A100.json.gz");
  // [snippet-begin recorded]
  auto imported = data::read_table(file);
  const spaces::RecordedTable space(std::make_shared<const data::Table>(std::move(imported.table)));
  const Task task = data::task_of(space.table());
  measurers::Replay<spaces::TableRow> replay;
  replay.load(data::records_of(space.table(), task));

  Tuner<Evolution> tuner{
      {.space = space, .featurizer = {.knobs = space.knobs()}, .measurer = replay, .seed = 7, .clock = replay.clock}};
  const auto run = tuner.run(task, {.trials = 64, .batch = 16, .time = Seconds(3600)});
  // [snippet-end recorded]
  CHECK(run.history.size() == 64);
}

TEST_CASE("searches that learn beat random search on a third of the space") {
  const double random = mean_regret<RandomSearch>(128);
  CHECK(mean_regret<Evolution>(128) < random);
  CHECK(mean_regret<Walks>(128) < random);
}

TEST_CASE("same seed, same history, at any number of threads") {
  const auto one = run<Evolution>(3, 64, 1), two = run<Evolution>(3, 64, 2), other = run<Evolution>(4, 64, 1);
  REQUIRE(one.history.size() == two.history.size());
  bool differs = false;
  for (std::size_t i = 0; i < one.history.size(); ++i) {
    CHECK(one.history.trials()[i].candidate.key == two.history.trials()[i].candidate.key);
    differs = differs || one.history.trials()[i].candidate.key != other.history.trials()[i].candidate.key;
  }
  CHECK(differs);
}

TEST_CASE("measurements of another device answer nothing") {
  Recorded source = recorded();
  Task other = source.task;
  other.target.architecture = "another device";
  const auto row = source.space.at(0);
  CHECK(source.replay.measure(source.task, std::vector{row})[0].valid());
  CHECK(source.replay.measure(other, std::vector{row})[0].failure()->fault == Fault::Unknown);
}
