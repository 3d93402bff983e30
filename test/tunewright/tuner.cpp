// SPDX-License-Identifier: Apache-2.0
#include "tunewright/tuner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "support/counting_limits.hpp"
#include "support/toy_recipes.hpp"

using namespace tunewright;

namespace {

template <class Recipe>
std::vector<std::pair<std::uint64_t, double>> history_of(std::uint64_t seed, unsigned threads) {
  Tuner<Recipe> tuner{{.seed = seed, .threads = threads}};
  std::vector<std::pair<std::uint64_t, double>> trials;
  for (const auto& trial : tuner.run(toy::task(), {.trials = 96, .batch = 16}).history.trials()) {
    trials.emplace_back(trial.candidate.key, trial.cost_s());
  }
  return trials;
}

/// Takes 3 s to explore.
struct SlowExplorer : explorers::Evolutionary {
  VirtualClock clock{};
  template <SearchSpace S>
  [[nodiscard]] std::vector<config_t<S>> explore(const S& space, const Task& task,
                                                 const Guidance<config_t<S>>& guidance, Rng& rng) const {
    clock.advance(Seconds(3));
    return Evolutionary::explore(space, task, guidance, rng);
  }
};

/// Takes 2 s to learn.
struct SlowRefit : adaptations::Refit {
  VirtualClock clock{};
  template <class Model>
  void update(Model& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    clock.advance(Seconds(2));
    Refit::update(model, x, y, group);
  }
};

}  // namespace

TEST_CASE("a guided search finds the optimum of the table in two rounds, random search does not in eight") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Tuner<toy::Evolution> evolution{{.seed = seed}};
    const auto run = evolution.run(toy::task(), {.trials = 64, .batch = 32});
    REQUIRE(run.best() != nullptr);
    CHECK(run.best()->candidate.config == toy::best);
    CHECK(run.history.size() == 64);
    CHECK(run.stop == Stop::Trials);
    CHECK(run.status.rounds == 2);
    Tuner<toy::RandomSearch> random{{.seed = seed}};
    CHECK(random.run(toy::task(), {.trials = 256, .batch = 32}).best()->cost_s() > 1.01e-3);
  }
}

TEST_CASE_TEMPLATE("the same seed gives the same history with 1 and with 2 threads, another seed another one", Recipe,
                   toy::RandomSearch, toy::Evolution, toy::Anneal) {
  const auto one = history_of<Recipe>(7, 1);
  CHECK(one.size() == 96);
  CHECK(one == history_of<Recipe>(7, 2));
  CHECK(one == history_of<Recipe>(7, 1));
  CHECK(one != history_of<Recipe>(8, 1));
}

TEST_CASE("no candidate is measured twice and none over a static limit is measured") {
  Tuner<toy::Evolution> tuner;
  const auto run = tuner.run(toy::task(), {.trials = 500, .batch = 50});
  KeySet keys;
  for (const auto& trial : run.history.trials()) {
    CHECK(keys.insert(trial.candidate.key).second);
    CHECK(toy::Space{}.feasible(toy::task(), trial.candidate.config));
  }
  CHECK(keys.size() == 500);
  CHECK(run.status.rejected.at("tile too large") > 0);
  CHECK(run.status.trials == 500);
}

TEST_CASE("a space that is used up ends the run") {
  struct Tiny : toy::Space {
    std::optional<toy::Tiles> sample(const Task&, Rng& rng) const {
      return toy::Tiles{static_cast<int>(rng.below(5)), 0, 0, 0};
    }
  };
  struct Recipe : recipes::Random<Tiny, toy::Measurer> {};
  Tuner<Recipe> tuner;
  const auto run = tuner.run(toy::task(), {.trials = 100, .batch = 3});
  CHECK(run.stop == Stop::Exhausted);
  CHECK(run.history.size() == 5);
}

TEST_CASE("the last configurations of a space are found") {
  struct Hidden : toy::Space {  // all but one are drawn 2048 times as often
    std::optional<toy::Tiles> sample(const Task&, Rng& rng) const {
      const auto drawn = rng.below(4097);
      return drawn == 4096 ? toy::best : toy::Tiles{static_cast<int>(drawn % 2), 0, 0, 0};
    }
  };
  struct Recipe : recipes::Random<Hidden, toy::Measurer> {};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Tuner<Recipe> tuner{{.seed = seed}};
    CHECK(tuner.run(toy::task(), {.trials = 100, .batch = 3}).history.size() == 3);
  }
}

TEST_CASE("a space of which the filter keeps a few in a thousand is searched, whatever the size of a batch") {
  for (const std::size_t batch : {1U, 4U}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      CAPTURE(batch);
      CAPTURE(seed);
      Tuner<toy::RandomSearch> random{{.space = {.limit = 0}, .seed = seed}};  // 64 of 4096 are feasible
      const auto run = random.run(toy::task(), {.trials = 56, .batch = batch});
      CHECK(run.stop == Stop::Trials);
      CHECK(run.history.size() == 56);
      CHECK(run.status.rounds == 56 / batch);
      KeySet keys;
      for (const auto& trial : run.history.trials()) {
        CHECK(keys.insert(trial.candidate.key).second);
        CHECK(toy::Space{.limit = 0}.feasible(toy::task(), trial.candidate.config));
      }
    }
  }
  Tuner<toy::Evolution> guided{{.space = {.limit = 1}}};
  CHECK(guided.run(toy::task(), {.trials = 60, .batch = 1}).stop == Stop::Trials);
}

TEST_CASE("what the last question rejected is counted, too") {
  struct Recipe : toy::RandomSearch {
    using filter = toy::CountingLimits;
  };
  struct AtTheEnd {
    std::size_t* told;
    void on_stop(const RunStatus& status, Stop) const { *told = status.rejected.at("tile too large"); }
  };
  std::size_t rejected = 0, told = 0;
  Tuner<Recipe> tuner{{.space = {.limit = 0}, .filter = {{}, &rejected}}};
  const auto run = tuner.run(toy::task(), {.trials = 100, .batch = 16}, AtTheEnd{&told});
  CHECK(run.stop == Stop::Exhausted);
  CHECK(run.history.size() == 64);
  CHECK(told == rejected);
  CHECK(run.status.rejected.at("tile too large") == rejected);
}

TEST_CASE("an empty space gets an error that names the task and the remedy") {
  Tuner<toy::RandomSearch> tuner{{.space = {.limit = -1}}};
  CHECK_THROWS_WITH_AS((void)tuner.run(toy::task("toy 0x0"), {.trials = 10}), doctest::Contains("toy 0x0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)tuner.run(toy::task(), {.trials = 10}), doctest::Contains("loosen"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)tuner.run(toy::task(), {.trials = 10}), doctest::Contains("as 'tile too large')"),
                       std::invalid_argument);
}

TEST_CASE("an empty clock is refused") {
  Tuner<toy::RandomSearch> tuner{{.clock = {}}};
  CHECK_THROWS_WITH_AS((void)tuner.run(toy::task(), {.trials = 10}), doctest::Contains("the clock is empty"),
                       std::invalid_argument);
}

TEST_CASE("an impossible budget is refused before anything is measured") {
  Tuner<toy::RandomSearch> tuner;
  CHECK_THROWS_AS((void)tuner.run(toy::task(), {.trials = 0}), std::invalid_argument);
  CHECK_THROWS_AS((void)tuner.run(toy::task(), {.trials = 10, .batch = 0}), std::invalid_argument);
}

TEST_CASE("time ends a run after a few measurements more, by the clock given") {
  const VirtualClock clock;
  struct Slow {
    VirtualClock clock;
    std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs) {
      clock.advance(Seconds(static_cast<double>(programs.size())));
      return toy::Measurer{}.measure(task, programs);
    }
  };
  struct Recipe : recipes::Random<toy::Space, Slow> {};
  Tuner<Recipe> tuner{{.measurer = {clock}, .clock = clock}};
  const auto run = tuner.run(toy::task(), {.trials = 1000, .batch = 10, .time = Seconds(25)});
  CHECK(run.stop == Stop::Time);
  CHECK(run.history.size() == 28);  // eight at a time where a quarter of the time left allows no more
  CHECK(run.status.elapsed == Seconds(28));
  CHECK(run.status.rounds == 3);

  // What is told of earlier trials takes its time, too.
  struct SlowJournal {
    VirtualClock clock;
    std::vector<Record> recall(const Task&) const {
      clock.advance(Seconds(30));
      return {};
    }
  };
  const auto late = tuner.run(toy::task(), {.trials = 1000, .batch = 10, .time = Seconds(25)}, SlowJournal{clock});
  CHECK(late.stop == Stop::Time);
  CHECK(late.history.size() == 0);

  // What is measured is the beginning of what is measured without a limit, and batches are cut only at the end.
  Tuner<Recipe> unlimited{{.measurer = {clock}, .clock = clock}};
  const auto all = unlimited.run(toy::task(), {.trials = 1000, .batch = 100});
  Tuner<Recipe> limited{{.measurer = {clock}, .clock = clock}};
  const auto some = limited.run(toy::task(), {.trials = 1000, .batch = 100, .time = Seconds(150)});
  REQUIRE(some.history.size() >= 150);
  REQUIRE(some.history.size() < 158);
  for (std::size_t i = 0; i < some.history.size(); ++i) {
    CHECK(some.history.trials()[i].candidate.key == all.history.trials()[i].candidate.key);
    CHECK(some.history.trials()[i].candidate.round == i / 100);
  }
}

TEST_CASE("a measurer knows the best of a batch that is measured in parts") {
  struct Noting {
    std::vector<Seconds>* noted;
    VirtualClock clock;
    void note_best(const Task&, Seconds best) const { noted->push_back(best); }
    std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs) const {
      clock.advance(Seconds(static_cast<double>(programs.size())));
      return toy::Measurer{}.measure(task, programs);
    }
  };
  struct Recipe : recipes::Random<toy::Space, Noting> {};
  std::vector<Seconds> noted;
  const VirtualClock clock;
  Tuner<Recipe> tuner{{.measurer = {&noted, clock}, .clock = clock}};
  const auto run = tuner.run(toy::task(), {.trials = 20, .batch = 20, .time = Seconds(1000)});
  REQUIRE(run.history.size() == 20);
  REQUIRE(noted.size() >= 2);
  CHECK(noted[0] == Seconds(0));
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < 8; ++i)
    if (run.history.trials()[i].outcome.valid()) best = std::min(best, run.history.trials()[i].cost_s());
  CHECK(noted[1] == Seconds(best));
}

TEST_CASE("patience ends a run that finds nothing better") {
  Tuner<toy::Evolution> tuner;
  const auto run = tuner.run(toy::task(), {.trials = 2000, .batch = 20, .patience_trials = 100});
  CHECK(run.stop == Stop::Patience);
  CHECK(run.history.trials_since_best() >= 100);
  CHECK(run.history.size() < 300);
}

TEST_CASE("observers see start, every measurement, every round, and the end; a lambda sees rounds") {
  struct Log {
    std::string events;
    std::size_t records = 0;
    void on_start(const RunStatus& status) { events += status.trials == 0 ? "start " : "?"; }
    void on_record(const Record& record, const RunStatus& status) {
      ++records;
      CHECK(status.trials == records);
      CHECK(record.task == stable_hash(toy::task()));
      CHECK(record.seed == 9);
      CHECK(record.slot == (records - 1) % 4);
      CHECK(toy::Space{}.key(*toy::Space{}.decode(toy::task(), record.config)) == record.key);
    }
    void on_round(const RunStatus& status) { events += std::to_string(status.rounds) + " "; }
    void on_stop(const RunStatus&, Stop stop) { events += name(stop); }
  } log;
  std::size_t seen = 0;
  Tuner<toy::RandomSearch> tuner{{.seed = 9}};
  (void)tuner.run(toy::task(), {.trials = 10, .batch = 4}, log, [&](const auto& history) { seen = history.size(); });
  CHECK(log.events == "start 1 2 3 all trials used");
  CHECK(log.records == 10);
  CHECK(seen == 10);
}

TEST_CASE("records say what the model expected, and what choosing and learning took beside measuring") {
  struct Log {
    std::vector<Record> records;
    void on_record(const Record& record, const RunStatus&) { records.push_back(record); }
  } log;
  struct Recipe : toy::Evolution {
    using explorer = SlowExplorer;
    using adaptation = SlowRefit;
  };
  Tuner<Recipe> tuner;
  const VirtualClock clock;
  tuner.parts().clock = clock;
  tuner.parts().explorer.clock = tuner.parts().adaptation.clock = clock;
  (void)tuner.run(toy::task(), {.trials = 12, .batch = 4}, log);
  REQUIRE(log.records.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    CAPTURE(i);
    CHECK(log.records[i].predicted.has_value() == (i >= 4));  // the first round is drawn
    CHECK(log.records[i].search_time == Seconds(i == 4 || i == 8 ? 3 : 0));
    CHECK(log.records[i].learn_time == Seconds(i == 4 || i == 8 ? 2 : 0));
  }
}

TEST_CASE("a run's status says whether the model learns from it") {
  Tuner<toy::Evolution> learning;
  CHECK(learning.run(toy::task(), {.trials = 1}).status.learns);
  CHECK(learning.run(toy::task(), {.trials = 1}).status.warmup == 0);
  learning.parts().adaptation.warmup_candidates = 7;
  CHECK(learning.run(toy::task(), {.trials = 5}).status.warmup == 8);
  CHECK(learning.run(toy::task("another", 2), {.trials = 5}).status.warmup == 3);  // five of the first one are known
  CHECK(learning.run(toy::task("a third", 3), {.trials = 1}).status.warmup == 0);
  Tuner<toy::RandomSearch> random;
  CHECK_FALSE(random.run(toy::task(), {.trials = 1}).status.learns);
}

TEST_CASE("a run's status says how many candidates a model could not tell apart") {
  struct Lost : toy::Linear {
    void predict(const FeatureBatch&, std::span<float> score) const {
      std::fill(score.begin(), score.end(), std::numeric_limits<float>::quiet_NaN());
    }
  };
  struct Recipe : toy::Evolution {
    using model = Lost;
  };
  Tuner<Recipe> lost;
  const auto run = lost.run(toy::task(), {.trials = 24, .batch = 8});
  CHECK(run.history.size() == 24);
  CHECK(run.status.unscored >= 16);  // all that there was to choose from in two rounds
  Tuner<toy::Evolution> found;
  CHECK(found.run(toy::task(), {.trials = 24, .batch = 8}).status.unscored == 0);
}

TEST_CASE("an observer can end a run") {
  struct Impatient {
    int questions = 0;
    bool should_stop() { return ++questions == 3; }
  } impatient;
  Tuner<toy::RandomSearch> tuner;
  const auto run = tuner.run(toy::task(), {.trials = 100, .batch = 10}, impatient);
  CHECK(run.stop == Stop::Requested);
  CHECK(run.history.size() == 20);
}

TEST_CASE("finalists are measured once more and come back in their new order") {
  struct Drifting : toy::Measurer {
    std::vector<Outcome> confirm(const Task&, std::span<const toy::Program> programs) {
      std::vector<Outcome> outcomes(programs.size());
      for (std::size_t i = 0; i < programs.size(); ++i) {  // the one that seemed the slowest is the fastest
        outcomes[i].result = Timing{.repeats = {}, .median = Seconds(static_cast<double>(programs.size() - i))};
      }
      return outcomes;
    }
  };
  struct Recipe : recipes::Random<toy::Space, Drifting> {};
  Tuner<Recipe> tuner;
  const auto run = tuner.run(toy::task(), {.trials = 50, .batch = 25});
  CHECK(run.status.can_confirm);
  CHECK_FALSE(Tuner<toy::RandomSearch>{}.run(toy::task(), {.trials = 1}).status.can_confirm);
  const auto before = run.history.fastest_trials(3);
  const auto after = tuner.confirm(toy::task(), run, 3);
  REQUIRE(after.size() == 3);
  CHECK(after[0].candidate.key == before[2].candidate.key);
  CHECK(after[0].cost_s() == 1.0);
  CHECK(after[2].candidate.key == run.best()->candidate.key);

  struct Impossible : toy::Measurer {
    std::size_t missing = 0;
    std::vector<Outcome> confirm(const Task&, std::span<const toy::Program> programs) {
      std::vector<Outcome> outcomes(programs.size() - missing);
      for (std::size_t i = 0; i < outcomes.size(); ++i)
        outcomes[i].result = Timing{.repeats = {}, .median = Seconds(i == 0 ? std::nan("") : static_cast<double>(i))};
      return outcomes;
    }
  };
  struct Careless : recipes::Random<toy::Space, Impossible> {};
  Tuner<Careless> careless;
  const auto found = careless.run(toy::task(), {.trials = 50, .batch = 25});
  const auto fastest = found.history.fastest_trials(3);
  const auto sorted = careless.confirm(toy::task(), found, 3);
  CHECK(sorted[0].candidate.key == fastest[1].candidate.key);
  CHECK(sorted[2].candidate.key == fastest[0].candidate.key);
  REQUIRE(sorted[2].outcome.failure() != nullptr);
  CHECK(sorted[2].outcome.failure()->fault == Fault::Unknown);
  careless.measurer.missing = 1;
  CHECK_THROWS_AS((void)careless.confirm(toy::task(), found, 3), std::logic_error);

  Task other = toy::task();
  other.name = "other";
  ++other.workload_hash;
  CHECK_THROWS_WITH_AS((void)tuner.confirm(other, run, 3), doctest::Contains("not of 'other' ("),
                       std::invalid_argument);
}
