// SPDX-License-Identifier: Apache-2.0
#include "tunewright/multi_task_tuner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "support/counting_limits.hpp"
#include "support/toy_recipes.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/schedulers/bandit.hpp"
#include "tunewright/schedulers/flops_first.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"

using namespace tunewright;

namespace {

// Latencies of the table, times what the operations of the task say.
struct Machine {
  VirtualClock clock{};
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs, const OutcomeSink& sink = {}) {
    std::vector<Outcome> outcomes;
    for (const toy::Program& program : programs) {
      outcomes.push_back(toy::outcome(program.tiles));
      if (auto* timing = std::get_if<Timing>(&outcomes.back().result)) timing->median *= task.flops / 2e6;
      clock.advance(Seconds(1));
      if (sink) sink(outcomes.size() - 1, outcomes.back());
    }
    return outcomes;
  }
};

struct Evolution : toy::Evolution {
  using measurer = Machine;
};
struct RandomSearch : toy::RandomSearch {
  using measurer = Machine;
};

std::vector<WeightedTask> network() {
  std::vector<WeightedTask> tasks{{toy::task("a", 1), 1}, {toy::task("b", 2), 4}, {toy::task("c", 3), 2}};
  tasks[1].task.flops = 10e6;
  tasks[2].task.flops = 1e6;
  return tasks;
}

using Trace = std::vector<std::vector<std::pair<std::uint64_t, double>>>;
template <class Config>
Trace trace(const MultiTaskRun<Config>& run) {
  Trace all;
  for (const auto& task : run.tasks) {
    all.emplace_back();
    for (const auto& trial : task.history.trials()) all.back().emplace_back(trial.candidate.key, trial.cost_s());
  }
  return all;
}

struct Memory {
  std::vector<Record> records;
  std::size_t measured = 0;
  std::vector<Record> recall(const Task& task) const {
    std::vector<Record> own;
    for (const Record& record : records)
      if (record.task == stable_hash(task)) own.push_back(record);
    return own;
  }
  void on_record(const Record& record, const RunStatus&) {
    records.push_back(record);
    ++measured;
  }
};

/// The mean label of the taught programs with as many rows and columns, the same whatever the order they come in.
struct MeanBySize {
  std::vector<float> sum = std::vector<float>(64), count = std::vector<float>(64);
  static std::size_t size_of(const FeatureBatch& x, std::size_t p) {
    return static_cast<std::size_t>(8 * x.program(p)[0] + x.program(p)[1]);
  }
  void predict(const FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const std::size_t size = size_of(x, p);
      score[p] = count[size] == 0 ? 0.5F : sum[size] / count[size];
    }
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t>) {
    *this = {};
    for (std::size_t p = 0; p < x.programs(); ++p) {
      sum[size_of(x, p)] += y[p];
      count[size_of(x, p)] += 1;
    }
  }
};

/// Fails the more often the more rows a tile has.
struct Fragile : Machine {
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs, const OutcomeSink& sink = {}) {
    std::vector<Outcome> outcomes = Machine::measure(task, programs);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const toy::Tiles& tiles = programs[i].tiles;
      if (static_cast<int>(programs[i].key % 8) < tiles[0]) outcomes[i].result = Failure{Fault::RunError, "fragile"};
      if (sink) sink(i, outcomes[i]);
    }
    return outcomes;
  }
};
struct Filtered : Evolution {
  using measurer = Fragile;
  using filter = filters::LearnedValidity<MeanBySize, toy::Features>;
  static void set_filter(filter& validity) {
    validity.least_labels = 16;
    validity.least_failures = 2;
    validity.explored_share = 0;
    validity.balanced = false;
    validity.most_lost = 0.3;
  }
};

/// Stops a run between rounds, goes on from its records, and compares with a run that was not stopped.
template <class Recipe, class Scheduler>
void check_goes_on() {
  MultiTaskTuner<Recipe, Scheduler> whole{{.seed = 4}};
  const Trace expected = trace(whole.run(network(), {.trials = 240, .batch = 8}));
  for (const std::size_t stopped_after : {16U, 120U}) {  // in the middle of the first visits, and later
    Memory memory;
    struct Stopper {
      std::size_t after;
      std::size_t rounds = 0;
      void on_round(const RunStatus& status) { rounds = status.rounds; }
      bool should_stop() const { return rounds * 8 == after; }
    } stopper{stopped_after};
    MultiTaskTuner<Recipe, Scheduler> first{{.seed = 4}};
    const auto stopped = first.run(network(), {.trials = 240, .batch = 8}, memory, stopper);
    CHECK(stopped.stop == Stop::Requested);
    CHECK(stopped.status.trials == stopped_after);
    CHECK(stopped.end_to_end().has_value() == (stopped_after > 16));
    MultiTaskTuner<Recipe, Scheduler> second{{.seed = 4}};
    const auto resumed = second.run(network(), {.trials = 240, .batch = 8}, memory);
    CHECK(memory.measured == 240);
    CHECK(resumed.status.recalled == stopped_after);
    CHECK(resumed.status.trials == 240);
    CHECK(trace(resumed) == expected);
  }
}

}  // namespace

TEST_CASE("most trials go where most of the latency is, and the whole is the sum of weight times best") {
  MultiTaskTuner<Evolution, schedulers::Gradient> tuner{{.seed = 7}};
  const auto run = tuner.run(network(), {.trials = 400, .batch = 16});
  CHECK(run.stop == Stop::Trials);
  CHECK(run.status.trials == 400);
  REQUIRE(run.tasks.size() == 3);
  std::size_t trials = 0;
  for (const auto& task : run.tasks) {
    REQUIRE(task.best() != nullptr);
    CHECK_FALSE(task.stop);
    trials += task.history.size();
  }
  CHECK(trials == 400);
  CHECK(run.tasks[1].task.weight == 4);
  CHECK(run.end_to_end()->count() == doctest::Approx(run.tasks[0].best()->cost_s() + 4 * run.tasks[1].best()->cost_s() +
                                                     2 * run.tasks[2].best()->cost_s()));
  // At their optimum the tasks take 1 * 1 ms, 4 * 5 ms and 2 * 0.5 ms.
  CHECK(run.tasks[1].best()->candidate.config == toy::best);
  CHECK(run.tasks[1].history.size() > 250);
  CHECK(run.end_to_end()->count() < 1.02 * 22e-3);
}

TEST_CASE_TEMPLATE("the same seed gives the same histories with 1 and with 2 threads, another seed others", Scheduler,
                   schedulers::Gradient, schedulers::Bandit, schedulers::RoundRobin) {
  const auto run = [](std::uint64_t seed, unsigned threads) {
    MultiTaskTuner<Evolution, Scheduler> tuner{{.seed = seed, .threads = threads}};
    return trace(tuner.run(network(), {.trials = 160, .batch = 8}));
  };
  const Trace one = run(7, 1);
  CHECK(one == run(7, 2));
  CHECK(one == run(7, 1));
  CHECK(one != run(8, 1));
}

TEST_CASE_TEMPLATE("a run that was stopped between rounds goes on exactly as if it had not been", Scheduler,
                   schedulers::Gradient, schedulers::Bandit, schedulers::FlopsFirst) {
  check_goes_on<Evolution, Scheduler>();
}

TEST_CASE(
    "a run that was stopped between rounds goes on exactly as if it had not been, with a threshold learned by folds") {
  check_goes_on<Filtered, schedulers::Gradient>();
  MultiTaskTuner<Filtered, schedulers::Gradient> tuner{{.seed = 4}};
  CHECK(tuner.run(network(), {.trials = 240, .batch = 8}).status.rejected.at("believed to fail") > 0);
}

TEST_CASE("a run that was killed within a round repeats nothing and loses nothing") {
  for (const std::size_t killed_after : {3U, 61U, 150U}) {
    Memory memory;
    MultiTaskTuner<Evolution, schedulers::Gradient> first{{.seed = 4}};
    (void)first.run(network(), {.trials = 240, .batch = 8}, memory);
    memory.records.resize(killed_after);
    memory.measured = 0;
    MultiTaskTuner<Evolution, schedulers::Gradient> second{{.seed = 4}};
    const auto resumed = second.run(network(), {.trials = 240, .batch = 8}, memory);
    CHECK(memory.measured == 240 - killed_after);
    CHECK(resumed.status.recalled == killed_after);
    std::set<std::pair<std::uint64_t, std::uint64_t>> distinct;
    for (const Record& record : memory.records) CHECK(distinct.insert({record.task, record.key}).second);
    std::size_t recalled = 0;
    for (const auto& task : resumed.tasks)
      for (const auto& trial : task.history.trials()) recalled += trial.recalled ? 1 : 0;
    CHECK(recalled == killed_after);
  }
}

TEST_CASE("recorded trials are spent: a used-up budget measures nothing") {
  Memory memory;
  MultiTaskTuner<RandomSearch, schedulers::RoundRobin> first;
  (void)first.run(network(), {.trials = 60, .batch = 10}, memory);
  MultiTaskTuner<RandomSearch, schedulers::RoundRobin> second;
  const auto after = second.run(network(), {.trials = 60, .batch = 10}, memory);
  CHECK(memory.measured == 60);
  CHECK(after.stop == Stop::Trials);
  CHECK(after.status.rounds == 0);
  CHECK(after.end_to_end().has_value());
}

TEST_CASE("a round is small enough for every task to have one") {
  MultiTaskTuner<RandomSearch, schedulers::Gradient> tuner;
  const auto run = tuner.run(network(), {.trials = 100, .batch = 64});
  CHECK(run.status.budget.batch == 33);
  for (const auto& task : run.tasks) CHECK(task.history.size() >= 33);
}

TEST_CASE("an impossible budget, a network that is none and an empty clock are refused before anything is measured") {
  MultiTaskTuner<RandomSearch, schedulers::RoundRobin> tuner;
  CHECK_THROWS_AS((void)tuner.run(network(), {.trials = 0}), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)tuner.run(network(), {.trials = 2}), doctest::Contains("2 trials for 3 tasks"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)tuner.run({}, {.trials = 2}), doctest::Contains("0 tasks"), std::invalid_argument);
  tuner.parts().clock = {};
  CHECK_THROWS_WITH_AS((void)tuner.run(network(), {.trials = 100}), doctest::Contains("the clock is empty"),
                       std::invalid_argument);
  CHECK(tuner.parts().measurer.clock() == Seconds(0));
}

TEST_CASE("time ends a run after a few measurements more, by the clock given") {
  const VirtualClock clock;
  MultiTaskTuner<RandomSearch, schedulers::RoundRobin> tuner{{.measurer = {clock}, .clock = clock}};
  const auto run = tuner.run(network(), {.trials = 1000, .batch = 10, .time = Seconds(45)});
  CHECK(run.stop == Stop::Time);
  CHECK(run.status.trials == 48);  // eight at a time where a quarter of the time left allows no more
  CHECK(run.status.elapsed == Seconds(48));
  std::size_t trials = 0;
  for (const auto& task : run.tasks) trials += task.history.size();
  CHECK(trials == 48);
}

TEST_CASE("a task that stalls is left alone, and a network of such tasks ends the run") {
  MultiTaskTuner<Evolution, schedulers::RoundRobin> tuner;
  const auto run = tuner.run(network(), {.trials = 5000, .batch = 20, .patience_trials = 100});
  CHECK(run.stop == Stop::Patience);
  CHECK(run.status.trials < 1000);
  CHECK(run.status.network->finished == 3);
  for (const auto& task : run.tasks) {
    CHECK(task.stop == Stop::Patience);
    CHECK(task.history.trials_since_best() >= 100);
    CHECK(task.history.trials_since_best() < 120);
  }
}

TEST_CASE("a network whose spaces are used up ends the run") {
  struct Tiny : toy::Space {
    std::optional<toy::Tiles> sample(const Task&, Rng& rng) const {
      return toy::Tiles{static_cast<int>(rng.below(5)), 0, 0, 0};
    }
  };
  struct Recipe : recipes::Random<Tiny, Machine> {};
  MultiTaskTuner<Recipe, schedulers::Gradient> tuner;
  const auto run = tuner.run(network(), {.trials = 100, .batch = 3});
  CHECK(run.stop == Stop::Exhausted);
  CHECK(run.status.trials == 15);
  for (const auto& task : run.tasks) CHECK(task.stop == Stop::Exhausted);
}

TEST_CASE("tasks of which the filter keeps a few in a hundred are searched with batches of one") {
  MultiTaskTuner<Evolution, schedulers::RoundRobin> tuner{{.space = {.limit = 1}}};  // 192 of 4096 are feasible
  const auto run = tuner.run(network(), {.trials = 90, .batch = 1});
  CHECK(run.stop == Stop::Trials);
  CHECK(run.status.trials == 90);
  for (const auto& task : run.tasks) CHECK_FALSE(task.stop);
}

TEST_CASE("what the last questions rejected is counted, too") {
  struct Recipe : RandomSearch {
    using filter = toy::CountingLimits;
  };
  std::size_t rejected = 0;
  MultiTaskTuner<Recipe, schedulers::RoundRobin> tuner{{.space = {.limit = 0}, .filter = {{}, &rejected}}};
  const auto run = tuner.run(network(), {.trials = 300, .batch = 16});
  CHECK(run.stop == Stop::Exhausted);
  CHECK(run.status.trials == 3 * 64);
  CHECK(run.status.rejected.at("tile too large") == rejected);
}

TEST_CASE("observers see the task of each round and the network as a whole") {
  struct Log {
    std::string rounds;
    std::size_t records = 0;
    std::vector<double> end_to_end_s;
    void on_start(const RunStatus& status) {
      REQUIRE(status.network.has_value());
      CHECK(status.network->tasks == 3);
      CHECK(status.network->without_valid == 3);
      CHECK_FALSE(status.network->end_to_end());
      CHECK(status.network->flops == 2e6 + 4 * 10e6 + 2 * 1e6);
    }
    void on_record(const Record& record, const RunStatus& status) {
      CHECK(status.trials == ++records);
      CHECK(record.task == stable_hash(status.task));
      CHECK(record.task_name == status.task.name);
    }
    void on_round(const RunStatus& status) {
      rounds += status.task.name;
      if (const auto latency = status.network->end_to_end()) end_to_end_s.push_back(latency->count());
    }
    void on_stop(const RunStatus&, Stop stop) { rounds += std::string(" ") + std::string(name(stop)); }
  } log;
  std::size_t seen = 0;
  MultiTaskTuner<RandomSearch, schedulers::RoundRobin> tuner{{.seed = 9}};
  const auto run =
      tuner.run(network(), {.trials = 60, .batch = 10}, log, [&](const auto& history) { seen = history.size(); });
  CHECK(log.rounds == "abcabc all trials used");
  CHECK(log.records == 60);
  CHECK(seen == 20);
  REQUIRE(log.end_to_end_s.size() == 4);
  CHECK(std::is_sorted(log.end_to_end_s.rbegin(), log.end_to_end_s.rend()));
  CHECK(log.end_to_end_s.back() == run.end_to_end()->count());
}

TEST_CASE("the progress of a run shows the network") {
  std::ostringstream out;
  Progress progress{.out = &out, .in_place = false};
  const VirtualClock clock;
  MultiTaskTuner<Evolution, schedulers::RoundRobin> tuner{{.measurer = {clock}, .seed = 1, .clock = clock}};
  (void)tuner.run(network(), {.trials = 240, .batch = 40}, progress);
  CHECK(out.str().find("3 tasks | 240/240 trials | end to end 22 ms, 2.0 GFLOP/s | c: best 500 us, 2.0 GFLOP/s") !=
        std::string::npos);
}

TEST_CASE("a task without any configuration is finished without a trial, and progress names it at the end") {
  struct NoneForB : toy::Space {
    std::optional<toy::Tiles> sample(const Task& task, Rng& rng) const {
      return task.name == "b" ? std::nullopt : toy::Space::sample(task, rng);
    }
  };
  std::ostringstream out;
  MultiTaskTuner<recipes::Random<NoneForB, Machine>, schedulers::RoundRobin> tuner;
  const auto run = tuner.run(network(), {.trials = 60, .batch = 20}, Progress{.out = &out, .in_place = false});
  CHECK(run.tasks[1].stop == Stop::Exhausted);
  CHECK(run.tasks[1].history.size() == 0);
  CHECK_FALSE(run.end_to_end());
  CHECK(run.status.network->without_valid == 1);
  CHECK(out.str().ends_with("3 tasks, 1 finished | without a valid program: b\n"));
}

TEST_CASE("what the space of a task throws ends the run of its network") {
  struct ThrowsForB : toy::Space {
    std::optional<toy::Tiles> sample(const Task& task, Rng& rng) const {
      if (task.name == "b") throw std::invalid_argument("no sketch for 'b'");
      return toy::Space::sample(task, rng);
    }
  };
  MultiTaskTuner<recipes::Random<ThrowsForB, Machine>, schedulers::RoundRobin> tuner;
  CHECK_THROWS_WITH_AS((void)tuner.run(network(), {.trials = 60, .batch = 20}), "no sketch for 'b'",
                       std::invalid_argument);
}

TEST_CASE("candidates that a model could not tell apart are counted over all tasks") {
  struct Lost : toy::Linear {
    void predict(const FeatureBatch&, std::span<float> score) const {
      std::fill(score.begin(), score.end(), std::numeric_limits<float>::quiet_NaN());
    }
  };
  struct Recipe : Evolution {
    using model = Lost;
  };
  MultiTaskTuner<Recipe, schedulers::RoundRobin> tuner;
  const auto run = tuner.run(network(), {.trials = 120, .batch = 10});
  CHECK(run.status.unscored >= 90);  // in three of the four rounds of each of three tasks
}

TEST_CASE("options of the scheduler follow those of the parts") {
  const MultiTaskTuner<Evolution, schedulers::Gradient> tuner{{.explorer = {.population = 64}, .seed = 7},
                                                              {.epsilon = 0}};
  CHECK(tuner.scheduler.epsilon == 0);
  CHECK(tuner.parts().explorer.population == 64);
}

TEST_CASE("finalists of a task are measured once more and come back in their new order") {
  struct Drifting : Machine {
    std::vector<Outcome> confirm(const Task& task, std::span<const toy::Program> programs) {
      CHECK(task.name == "b");
      std::vector<Outcome> outcomes(programs.size());
      for (std::size_t i = 0; i < programs.size(); ++i)
        outcomes[i].result = Timing{.repeats = {}, .median = Seconds(static_cast<double>(programs.size() - i))};
      return outcomes;
    }
  };
  struct Recipe : recipes::Random<toy::Space, Drifting> {};
  MultiTaskTuner<Recipe, schedulers::RoundRobin> tuner;
  const auto run = tuner.run(network(), {.trials = 60, .batch = 20});
  CHECK(run.status.can_confirm);
  const auto after = tuner.confirm(run.tasks[1], 3);
  REQUIRE(after.size() == 3);
  CHECK(after[2].candidate.key == run.tasks[1].best()->candidate.key);
}
