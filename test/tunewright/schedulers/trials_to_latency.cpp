// SPDX-License-Identifier: Apache-2.0
// In what fraction of the rounds do schedulers bring a network to the latency with which round-robin ends? On curves
// that fall as those of searches do, drawn for the layers of four networks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "support/task_states.hpp"
#include "tunewright/schedulers/bandit.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"

using namespace tunewright;

namespace {

struct Layer {
  double weight, megaflops;
};
using Layers = std::vector<Layer>;

// Occurrences and operations of the distinct layers, for one image of 224 x 224 or one sequence of 128.
const std::vector<Layers>& networks() {
  static const std::vector<Layers> all{
      // ResNet-18
      {{1, 236},
       {4, 231},
       {1, 116},
       {1, 13},
       {3, 231},
       {1, 116},
       {1, 13},
       {3, 231},
       {1, 116},
       {1, 13},
       {3, 231},
       {1, 1}},
      // ResNet-50
      {{1, 236}, {1, 26},  {3, 231}, {4, 103}, {2, 103}, {1, 206}, {1, 231}, {1, 206},
       {4, 103}, {3, 103}, {3, 231}, {1, 206}, {1, 231}, {1, 206}, {6, 103}, {5, 103},
       {5, 231}, {1, 206}, {1, 231}, {1, 206}, {3, 103}, {2, 103}, {2, 231}, {1, 4}},
      // MobileNet-V2
      {{1, 22}, {1, 7}, {1, 13}, {1, 39}, {1, 5}, {1, 14}, {2, 22}, {1, 8},  {1, 22}, {1, 2},  {1, 7},
       {3, 10}, {2, 3}, {2, 10}, {1, 1},  {1, 5}, {4, 10}, {4, 1},  {3, 10}, {1, 14}, {3, 22}, {2, 2},
       {2, 22}, {1, 1}, {1, 9},  {3, 15}, {3, 1}, {2, 15}, {1, 30}, {1, 40}, {1, 3}},
      // BERT-base: products of 128 x 768, scores and their use, softmax, the two wide layers
      {{48, 151}, {12, 25}, {12, 1}, {12, 25}, {12, 604}, {12, 604}}};
  return all;
}

// best after t rounds = floor (1 + gap t^-power): floors of 50 to 100 GFLOP/s, first rounds 1.5 to 5 times as slow.
class Curves {
 public:
  Curves(const Layers& layers, Rng rng) {
    for (const auto& [weight, megaflops] : layers) {
      tasks_.push_back(support::task_state({}, weight, 1e6 * megaflops));
      floor_s_.push_back(megaflops * 1e-5 * (1 + rng.uniform()));
      gap_.push_back(0.5 + 3.5 * rng.uniform());
      power_.push_back(0.5 + rng.uniform());
    }
  }

  /// Rounds that `scheduler` needs for `goal_s`, at most `most`, and the latency then.
  template <class Scheduler>
  std::pair<std::size_t, double> run(Scheduler scheduler, std::size_t most, double goal_s, std::uint64_t seed) const {
    std::vector<schedulers::TaskState> tasks = tasks_;
    double latency_s = support::never_valid;
    std::size_t rounds = 0;
    for (; rounds < most && latency_s > goal_s; ++rounds) {
      Rng rng = Rng(seed).split(rounds);
      const std::size_t t = scheduler.next(tasks, rng);
      tasks[t].rounds.push_back({tasks[t].trials() + 16, best_s(t, tasks[t].rounds.size() + 1)});
      latency_s = 0;
      for (const schedulers::TaskState& one : tasks) latency_s += one.weight * one.best_s();
    }
    return {rounds, latency_s};
  }
  /// The fewest rounds for `goal_s`, which only one who knows the curves would need: as each falls by less and less,
  /// they are those of the largest falls.
  [[nodiscard]] std::size_t fewest_rounds(double goal_s) const {
    std::vector<double> falls_s;
    double latency_s = 0;
    for (std::size_t t = 0; t < size(); ++t) {
      latency_s += tasks_[t].weight * best_s(t, 1);
      for (std::size_t round = 2; round <= 1000; ++round)
        falls_s.push_back(tasks_[t].weight * (best_s(t, round - 1) - best_s(t, round)));
    }
    std::sort(falls_s.begin(), falls_s.end(), std::greater<>());
    std::size_t rounds = size();
    for (auto fall = falls_s.begin(); fall != falls_s.end() && latency_s > goal_s; ++fall, ++rounds) latency_s -= *fall;
    return rounds;
  }
  [[nodiscard]] std::size_t size() const { return tasks_.size(); }

 private:
  [[nodiscard]] double best_s(std::size_t task, std::size_t round) const {
    return floor_s_[task] * (1 + gap_[task] * std::pow(static_cast<double>(round), -power_[task]));
  }

  std::vector<schedulers::TaskState> tasks_;
  std::vector<double> floor_s_, gap_, power_;
};

// The geometric mean, over networks and seeds, of `needed(curves, most rounds, goal in seconds, seed)` over the rounds
// of round-robin, which are `rounds_per_task` for each task.
template <class Needed>
double fraction_of_round_robin(std::size_t rounds_per_task, Needed needed) {
  double logarithms = 0, searches = 0;
  for (std::size_t network = 0; network < networks().size(); ++network) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const Curves curves(networks()[network], Rng(seed).split(network));
      const std::size_t rounds = rounds_per_task * curves.size();
      const double goal_s = curves.run(schedulers::RoundRobin{}, rounds, 0, seed).second;
      const std::size_t fewer = needed(curves, 2 * rounds, goal_s, seed);
      logarithms += std::log(static_cast<double>(fewer) / static_cast<double>(rounds));
      ++searches;
    }
  }
  return std::exp(logarithms / searches);
}

template <class Scheduler>
double fraction_of_round_robin(std::size_t rounds_per_task) {
  return fraction_of_round_robin(rounds_per_task,
                                 [](const Curves& curves, std::size_t most, double goal_s, std::uint64_t seed) {
                                   return curves.run(Scheduler{}, most, goal_s, seed).first;
                                 });
}

double least_fraction_of_round_robin(std::size_t rounds_per_task) {
  return fraction_of_round_robin(rounds_per_task, [](const Curves& curves, std::size_t, double goal_s, std::uint64_t) {
    return curves.fewest_rounds(goal_s);
  });
}

}  // namespace

TEST_CASE("schedulers that know what a round may bring need fewer of them than round-robin") {
  for (const std::size_t rounds_per_task : {6, 16}) {
    const double gradient = fraction_of_round_robin<schedulers::Gradient>(rounds_per_task);
    const double bandit = fraction_of_round_robin<schedulers::Bandit>(rounds_per_task);
    const double least = least_fraction_of_round_robin(rounds_per_task);
    CHECK(fraction_of_round_robin<schedulers::RoundRobin>(rounds_per_task) == doctest::Approx(1));
    MESSAGE("of " << rounds_per_task << " rounds a task: Gradient " << gradient << ", Bandit " << bandit << ", least "
                  << least);
    CHECK(gradient < 0.8);
    CHECK(bandit < 0.8);
    // No scheduler can need less than one that knows the curves.
    CHECK(least <= gradient);
    CHECK(least <= bandit);
  }
}
