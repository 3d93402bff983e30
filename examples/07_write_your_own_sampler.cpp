// SPDX-License-Identifier: Apache-2.0
//
// Lesson 7: a sampler of your own.
//
// Shows:  the inputs and obligations of a sampler; how it uses the measurements so far; how it becomes part of a
//         recipe; and how to evaluate it.
// Run:    build/release/examples/07_write_your_own_sampler
// Expect: the same search with three samplers, and the best latency of each. The program fails if the sampler
//         violates its contract, or if it is no better than random selection.
//
// Nothing is run: an analytic machine model computes all latencies, so that every run prints the same.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/samplers/points.hpp"
#include "tunewright/samplers/pool.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

// [snippet-begin sampler]
/// Best first, but no twins: a candidate is penalised for its similarity to measured or chosen ones.
///
///   value(p) = score(p) - penalty * (range of scores) / (1 + distance to the nearest of them)
struct NoTwins {
  double penalty = 0.5;  ///< penalty of an exact twin in score ranges, at least 0

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng&, const samplers::Labelled& labelled = {}) const {
    // Candidates without features cannot be compared; they come last.
    const std::vector<std::size_t> pool = samplers::described_positions(score);
    samplers::Points points = samplers::summed_rows(x, pool);
    samplers::Points measured = samplers::summed_rows(labelled.x, samplers::described_positions(labelled));
    samplers::standardise(points, measured);

    samplers::NearestCentre nearest(points.size());
    for (std::size_t l = 0; l < measured.size(); ++l) nearest.add(points, measured[l]);
    float low = 0, high = 0;
    for (const std::size_t p : pool) {
      low = std::min(low, score[p]);
      high = std::max(high, score[p]);
    }
    const auto value = [&](std::size_t i) {
      const double like = 1 / (1 + std::sqrt(double{nearest.squared(i)}));
      return double{score[pool[i]]} - penalty * double{high - low} * like;
    };

    std::vector<bool> taken(pool.size());
    std::vector<std::size_t> chosen;
    while (chosen.size() < std::min(n, pool.size())) {
      std::size_t best = pool.size();
      for (std::size_t i = 0; i < pool.size(); ++i) {
        if (!taken[i] && (best == pool.size() || value(i) > value(best))) best = i;
      }
      taken[best] = true;
      chosen.push_back(pool[best]);
      nearest.add(points, points[best]);
    }
    samplers::fill_up(chosen, score, n);
    return chosen;
  }
};
// [snippet-end sampler]

// [snippet-begin contract]
// The compiler checks its form, and that it gets the measurements so far.
static_assert(SamplerFor<NoTwins, models::Gbdt>);
static_assert(LabelAwareSamplerFor<NoTwins, models::Gbdt>);
// [snippet-end contract]

// [snippet-begin recipe]
// A recipe with another sampler differs in one line.
using Ansor = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::Simulated>;
struct WithNoTwins : Ansor {
  using sampler = NoTwins;
};
// [snippet-end recipe]
struct WithTopK : Ansor {
  using sampler = samplers::TopK;
};
struct WithRandom : Ansor {
  using sampler = samplers::Random;
};

namespace {

// Checks what the compiler cannot: distinct positions in range, n of them if the pool has n, equal results for equal
// arguments, and candidates without features last.
bool keeps_the_rules() {
  FeatureBatch x(2);
  std::vector<float> score;
  for (int p = 0; p < 20; ++p) {
    if (p % 5 != 0) x.append_row()[0] = static_cast<float>(p % 3);
    x.close_program();
    score.push_back(p % 5 == 0 ? -std::numeric_limits<float>::infinity() : 0.05F * static_cast<float>(p));
  }
  for (const std::size_t n : {0U, 1U, 16U, 18U, 40U}) {
    Rng rng(1), again(1);
    const auto chosen = NoTwins{}.select(models::Gbdt{}, x, score, n, rng);
    samplers::check_selection(chosen, score.size(), n);
    if (chosen.size() != std::min<std::size_t>(n, 20)) return false;
    if (chosen != NoTwins{}.select(models::Gbdt{}, x, score, n, again)) return false;
    for (std::size_t i = 0; i < std::min<std::size_t>(chosen.size(), 16); ++i) {
      if (chosen[i] % 5 == 0) return false;
    }
  }
  return true;
}

// The best latency after each number of trials, in milliseconds: geometric mean over five seeds. A paper needs more.
template <class Recipe>
std::array<double, 3> milliseconds_after(const Task& task, std::array<std::size_t, 3> trials) {
  constexpr int seeds = 5;
  std::array<double, 3> mean{};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Tuner<Recipe> tuner{
        {.explorer = {.population = 512, .generations = 3, .elite_factor = 16}, .seed = seed, .threads = 2}};
    const auto run = tuner.run(task, {.trials = trials.back(), .batch = 16});
    for (std::size_t i = 0; i < trials.size(); ++i) {
      double best = std::numeric_limits<double>::infinity();
      for (std::size_t t = 0; t < std::min(trials[i], run.history.size()); ++t)
        best = std::min(best, run.history.trials()[t].cost_s());
      mean[i] += std::log(1e3 * best) / seeds;
    }
  }
  for (double& one : mean) one = std::exp(one);
  return mean;
}

}  // namespace

int main() {
  if (!keeps_the_rules()) return 1;
  // Schedules differ more on a GPU than on a CPU, whose random schedules are already good.
  const Task task = program::make_task(
      "matmul 512x512x512", program::operators::matmul_graph({.m = 512, .n = 512, .k = 512}), gpu_target("V100"));
  constexpr std::array<std::size_t, 3> trials{32, 64, 128};
  std::printf("milliseconds of the best after %zu, %zu and %zu trials\n", trials[0], trials[1], trials[2]);
  const auto report = [](const char* name, const std::array<double, 3>& found) {
    std::printf("%-8s %8.3f %8.3f %8.3f\n", name, found[0], found[1], found[2]);
    return found;
  };
  const auto random = report("Random", milliseconds_after<WithRandom>(task, trials));
  report("TopK", milliseconds_after<WithTopK>(task, trials));
  const auto own = report("NoTwins", milliseconds_after<WithNoTwins>(task, trials));
  const bool better = own.back() < random.back();
  std::printf("better than random: %s\n", better ? "yes" : "no");
  return better ? 0 : 1;
}
