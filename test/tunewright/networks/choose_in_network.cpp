// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/choose_in_network.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/schedulers/round_robin.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;

struct Candidates {
  networks::Network network = networks::resnet18({.image_size = 32, .classes = 10, .width = 0.0625});
  networks::Partition partition = networks::partition(network, host_target().with_threads(1));
  reference::Tensors values = networks::random_values(network, Rng(1));
  std::vector<std::vector<schedule::Schedule>> lists;

  explicit Candidates(std::size_t each) : lists(partition.tasks.size()) {
    for (std::uint64_t seed = 1; seed <= each; ++seed) {
      const auto drawn = networks::default_schedules(partition.tasks, {.candidates = 2, .seed = seed});
      for (std::size_t t = 0; t < lists.size(); ++t) lists[t].push_back(drawn[t]);
    }
  }
};

/// The clock of a machine where a call of a task takes what `seconds(comparison, challenges, task)` says.
struct ScriptedClock {
  using Price = std::function<double(std::size_t comparison, bool challenges, std::size_t task)>;
  const networks::Partition* partition;
  networks::InNetworkOptions options;
  Price seconds;
  std::shared_ptr<std::size_t> reads = std::make_shared<std::size_t>(0);
  VirtualClock machine{};

  Seconds operator()() const {
    const std::size_t calls = partition->calls.size(), read = (*reads)++;
    const std::size_t turn = read / (calls + 1) / options.inferences;  // of both networks, in all comparisons
    const std::size_t pair = turn / 2 % options.turns;
    const bool challenges = (pair + turn) % 2 == 1;
    const std::size_t call = read % (calls + 1);
    if (call > 0)
      machine.advance(Seconds(seconds(turn / 2 / options.turns, challenges, partition->calls[call - 1].task)));
    return machine();
  }
  /// How often two networks were compared.
  [[nodiscard]] std::size_t comparisons() const {
    return *reads / (2 * options.turns * options.inferences * (partition->calls.size() + 1));
  }
};

struct Scripted {
  networks::InNetworkChoice choice;
  std::size_t comparisons = 0;
};

Scripted choose(const Candidates& c, ScriptedClock::Price seconds, networks::InNetworkOptions options = {.turns = 3}) {
  const ScriptedClock clock{&c.partition, options, std::move(seconds)};
  options.clock = clock;
  return {networks::choose_in_network(c.network, c.partition, c.lists, c.values, options), clock.comparisons()};
}

}  // namespace

TEST_CASE("each task takes the candidate that is fastest in the network") {
  // Tasks 0, 3, 6, ... have a second candidate that takes nine tenths of the first one's time, tasks 1, 4, 7, ... such a
  // third one, and the others neither.
  const Candidates c(3);
  const auto [choice, comparisons] = choose(c, [](std::size_t comparison, bool challenges, std::size_t task) {
    if (!challenges) return 1.0;
    if (comparison == 2) return 0.94;  // the chosen ones beside the first ones
    return task % 3 == comparison ? 0.9 : 1.2;
  });
  CHECK(comparisons == 3);
  for (std::size_t t = 0; t < c.lists.size(); ++t) {
    const std::size_t expected = t % 3 == 0 ? 1 : t % 3 == 1 ? 2 : 0;
    CHECK(choice.chosen[t] == expected);
    CHECK(choice.schedules[t].steps == c.lists[t][expected].steps);
  }
  CHECK(choice.gain == doctest::Approx(0.06));
}

TEST_CASE("the first candidates stay if others save less than the least gain, or nothing as a whole") {
  const Candidates c(2);
  const auto barely = choose(c, [](std::size_t, bool challenges, std::size_t) { return challenges ? 0.995 : 1.0; });
  CHECK(barely.comparisons == 1);
  CHECK(barely.choice.chosen == std::vector<std::size_t>(c.lists.size(), 0));
  CHECK(barely.choice.gain == 0);

  const auto not_together = choose(c, [](std::size_t comparison, bool challenges, std::size_t) {
    return challenges ? (comparison == 0 ? 0.5 : 1.1) : 1.0;
  });
  CHECK(not_together.comparisons == 2);
  CHECK(not_together.choice.chosen == std::vector<std::size_t>(c.lists.size(), 0));
  CHECK(not_together.choice.gain == 0);
}

TEST_CASE("a machine that becomes slower for some turns decides nothing") {
  // The first network takes ten times as long in the second of five pairs of turns, where it comes last.
  const Candidates c(2);
  std::size_t calls = 0;
  const std::size_t turn = 3 * c.partition.calls.size();
  const auto found = choose(c,
                            [&](std::size_t, bool challenges, std::size_t) {
                              const std::size_t at = calls++ / turn;
                              return (challenges ? 1.05 : 1.0) * (at == 3 ? 10 : 1);
                            },
                            {.turns = 5});
  CHECK(found.choice.chosen == std::vector<std::size_t>(c.lists.size(), 0));
}

TEST_CASE("tasks with fewer candidates keep what they have, and the network computes what it did") {
  Candidates c(2);
  for (std::size_t t = 0; t < c.lists.size(); t += 2) c.lists[t].pop_back();
  const auto half = choose(c, [](std::size_t, bool challenges, std::size_t) { return challenges ? 0.5 : 1.0; });
  for (std::size_t t = 0; t < c.lists.size(); ++t) CHECK(half.choice.chosen[t] == t % 2);
  networks::CompiledNetwork chosen(c.network, c.partition, half.choice.schedules, c.values);
  for (const reference::Comparison& call : chosen.compare_calls(c.values)) CHECK_MESSAGE(call.passed, call.text());

  const networks::InNetworkChoice timed = networks::choose_in_network(c.network, c.partition, c.lists, c.values);
  for (std::size_t t = 0; t < c.lists.size(); ++t) CHECK(timed.chosen[t] < c.lists[t].size());
  CHECK(timed.gain >= 0);
}

TEST_CASE("the fastest of a search are candidates") {
  using Recipe = recipes::Random<spaces::MultiLevelTiling, measurers::Simulated>;
  const auto network = networks::resnet18({.image_size = 32, .classes = 10, .width = 0.0625});
  const auto partition = networks::partition(network, host_target().with_threads(1));
  const auto values = networks::random_values(network, Rng(1));
  // [snippet-begin choose]
  MultiTaskTuner<Recipe, schedulers::RoundRobin> tuner{{.seed = 7}};
  const auto run = tuner.run(partition.tasks, {.trials = 72, .batch = 4});
  std::vector<std::vector<schedule::Schedule>> candidates;
  for (const auto& task : run.tasks) candidates.push_back(task.history.fastest_checked(2));

  const networks::InNetworkChoice choice = networks::choose_in_network(network, partition, candidates, values);
  networks::CompiledNetwork compiled(network, partition, choice.schedules, values);
  // [snippet-end choose]
  CHECK(choice.schedules.size() == partition.tasks.size());
  CHECK(compiled.run(values).size() == 1);
}

TEST_CASE("what cannot be compared is refused") {
  Candidates c(1);
  const auto refusal = [&](const networks::InNetworkOptions& options) {
    return test::refusal(
        [&] { (void)networks::choose_in_network(c.network, c.partition, c.lists, c.values, options); });
  };
  CHECK(refusal({.turns = 0}) == "choose_in_network: turns is 0; give at least 1");
  CHECK(refusal({.inferences = 0}) == "choose_in_network: inferences is 0; give at least 1");
  CHECK(refusal({.least_gain = 1}) == "choose_in_network: least_gain is 1; give a share, 0 or more and below 1");
  CHECK(refusal({.clock = {}}) == "the clock is empty; give one, or leave the default, steady_seconds()");
  const std::string name = c.partition.tasks[1].task.name;
  c.lists[1].clear();
  CHECK(refusal({}) ==
        "choose_in_network: task '" + name + "' has no candidate; give at least networks::default_schedule of it");
  c.lists.pop_back();
  CHECK(refusal({}) ==
        "choose_in_network: 17 lists of candidates were given for 18 tasks; give one a task, in the order "
        "of the partition");
}
