// SPDX-License-Identifier: Apache-2.0
// The poorest types that satisfy the contracts, composed and run: the loop asks for no more than the concepts
// say.
#include "tunewright/tuner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "tunewright/multi_task_tuner.hpp"

using namespace tunewright;

namespace {

// Copyable and nothing else: no default, no comparison, no hash, no output.
class Config {
 public:
  explicit Config(int value) : value_(value) {}
  [[nodiscard]] int value() const { return value_; }

 private:
  int value_;
};

// Movable and nothing else.
class Program {
 public:
  explicit Program(int value) : value_(value) {}
  Program(Program&&) = default;
  Program& operator=(Program&&) = default;
  [[nodiscard]] int value() const { return value_; }

 private:
  int value_;
};

struct Space {
  using config_type = Config;
  using program_type = Program;
  std::optional<Config> sample(const Task&, Rng& rng) const { return Config(static_cast<int>(rng.below(100))); }
  std::optional<Config> mutate(const Task&, const Config& config, Rng&) const {
    return Config((config.value() + 1) % 100);
  }
  bool feasible(const Task&, const Config&) const { return true; }
  std::uint64_t key(const Config& config) const { return static_cast<std::uint64_t>(config.value()); }
  std::string encode(const Config& config) const { return std::to_string(config.value()); }
  std::optional<Config> decode(const Task&, std::string_view text) const {
    return Config(std::stoi(std::string(text)));
  }
  Program lower(const Task&, const Config& config) const { return Program(config.value()); }
};
static_assert(SearchSpace<Space>);

struct Featurizer {
  FeatureBatch extract(const Space&, const Task&, std::span<const Config> configs) const {
    FeatureBatch x(1);
    for (const Config& config : configs) {
      const float value = static_cast<float>(config.value());
      x.append_program(std::span(&value, 1));
    }
    return x;
  }
  FeatureSchema schema() const { return {"poorest", 1, {{"number", "count", ""}}}; }
};
static_assert(FeaturizerFor<Featurizer, Space>);

struct Model {
  void predict(const FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < score.size(); ++p) score[p] = x.program(p)[0];
  }
  void fit(const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) {}
};
static_assert(CostModel<Model>);

struct Draft {
  void score(const Space&, const Task&, std::span<const Config>, std::span<float> score) const {
    for (float& one : score) one = 0;
  }
};
static_assert(DraftModelFor<Draft, Space>);

struct Explorer {
  std::vector<Config> explore(const Space& space, const Task& task, const Guidance<Config>& guidance, Rng& rng) {
    std::vector<Config> pool;
    KeySet known = guidance.measured;
    for (std::size_t i = 0; i < guidance.wanted; ++i) {
      auto config = space.sample(task, rng);
      if (known.insert(space.key(*config)).second) pool.push_back(*config);
    }
    std::vector<float> score(pool.size());
    guidance.rank(pool, score);
    return pool;
  }
};
static_assert(ExplorerFor<Explorer, Space>);

struct Sampler {
  std::vector<std::size_t> select(const Model&, const FeatureBatch&, std::span<const float> score, std::size_t n,
                                  Rng&) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < std::min(n, score.size()); ++i) chosen.push_back(i);
    return chosen;
  }
};
static_assert(SamplerFor<Sampler, Model>);

struct Filter {
  Kept keep(const Space&, const Task&, std::span<const Config> pool) const {
    Kept kept;
    for (std::size_t i = 0; i < pool.size(); ++i) kept.indices.push_back(i);
    return kept;
  }
};
static_assert(FilterFor<Filter, Space>);

struct Adaptation {
  void update(Model& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    model.fit(x, y, group);
  }
};
static_assert(AdaptationFor<Adaptation, Model>);

// Neither copyable nor default-constructible: it may own a device.
class Measurer {
 public:
  explicit Measurer(int) {}
  Measurer(Measurer&&) = default;
  std::vector<Outcome> measure(const Task&, std::span<const Program> programs) {
    std::vector<Outcome> outcomes(programs.size());
    for (std::size_t i = 0; i < programs.size(); ++i) {
      outcomes[i].result = Timing{.repeats = {}, .median = Seconds(1.0 + programs[i].value())};
    }
    return outcomes;
  }
};
static_assert(MeasurerFor<Measurer, Program>);

// Neither copyable nor default-constructible.
class Scheduler {
 public:
  explicit Scheduler(int) {}
  Scheduler(Scheduler&&) = default;
  std::size_t next(std::span<const schedulers::TaskState> tasks, Rng&) {
    std::size_t first = 0;
    while (tasks[first].finished) ++first;
    return first;
  }
};
static_assert(TaskScheduler<Scheduler>);

struct Poorest {
  using space = Space;
  using featurizer = Featurizer;
  using model = Model;
  using draft = Draft;
  using explorer = Explorer;
  using sampler = Sampler;
  using filter = Filter;
  using adaptation = Adaptation;
  using measurer = Measurer;
};

}  // namespace

TEST_CASE("a tuner of the poorest parts runs") {
  Tuner<Poorest> tuner{{.measurer = Measurer(1), .threads = 2}};
  const auto run =
      tuner.run({.name = "poor", .workload_hash = 1, .target = {}, .graph = nullptr}, {.trials = 40, .batch = 10});
  CHECK(run.history.size() == 40);
  CHECK(run.best() != nullptr);
}

TEST_CASE("without a draft as well") {
  struct Recipe : Poorest {
    using draft = drafts::None;
  };
  Tuner<Recipe> tuner{{.measurer = Measurer(1)}};
  const auto run =
      tuner.run({.name = "poor", .workload_hash = 1, .target = {}, .graph = nullptr}, {.trials = 40, .batch = 10});
  CHECK(run.history.size() == 40);
}

TEST_CASE("a tuner of several tasks of the poorest parts runs") {
  MultiTaskTuner<Poorest, Scheduler> tuner{{.measurer = Measurer(1), .threads = 2}, Scheduler(1)};
  const std::vector<WeightedTask> tasks{{{.name = "poor", .workload_hash = 1, .target = {}, .graph = nullptr}, 1},
                                        {{.name = "poorer", .workload_hash = 2, .target = {}, .graph = nullptr}, 2}};
  const auto run = tuner.run(tasks, {.trials = 60, .batch = 10, .patience_trials = 40});
  CHECK(run.status.trials == 60);
  CHECK(run.tasks[0].history.size() >= 40);  // the first, until it is finished
}
