// SPDX-License-Identifier: Apache-2.0
//
// Lesson 1: a first tuner.
//
// Shows:  a tuner assembled from a recipe, a search space and a measurer; a run and its result.
// Run:    build/release/examples/01_first_tuner
// Expect: 64 schedules of a matrix product are compiled, checked and timed within seconds. The program fails
//         if the fastest is not at least twice as fast as plain loops, or if a schedule computed a wrong result.

#include <cstddef>
#include <cstdio>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/draft_and_trees.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

int main() {
  // [snippet-begin tune]
  // The tuner: a recipe with a search space and a measurer. Create it before any thread: the measurer forks
  // the process that runs the kernels.
  using Recipe = recipes::DraftAndTrees<spaces::MultiLevelTiling, measurers::OrcJit>;
  Tuner<Recipe> tuner{{.seed = 7}};

  // The task: an operator and the machine to tune it for.
  const auto graph = program::operators::matmul_graph({.m = 256, .n = 256, .k = 256});
  const Task task = program::make_task("matmul 256x256x256", graph, host_target());

  // The search: 64 trials in batches of 10, with an observer that reports progress on stderr.
  const auto run = tuner.run(task, {.trials = 64, .batch = 10}, Progress{});
  if (run.best() == nullptr) return 1;
  const schedule::Schedule& best = run.best()->candidate.config;
  // [snippet-end tune]

  // Every program with a latency has passed the comparison with the reference evaluator, but for long calls that were
  // cut short because others are faster: these are never the best.
  const std::size_t wrong = run.status.faults[static_cast<std::size_t>(Fault::WrongResult)];
  std::printf("%zu trials in %zu rounds, %zu wrong results\n", run.history.size(), run.status.rounds, wrong);

  // [snippet-begin compare]
  // Measures plain loops and the winner alternately, so that both run under the same conditions.
  measurers::OrcJit& measurer = tuner.parts().measurer;
  const schedule::Schedule plain{graph, {}};
  const std::vector<loops::LoopNest> both{loops::lower(plain), loops::lower(best)};
  const std::vector<Outcome> outcomes = measurer.confirm(task, both);
  // [snippet-end compare]
  if (!outcomes[0].valid() || !outcomes[1].valid()) return 1;
  const Seconds plain_time = outcomes[0].timing()->median, best_time = outcomes[1].timing()->median;
  std::printf("plain loops  %8.3f ms\n", 1e3 * plain_time.count());
  std::printf("tuned        %8.3f ms, %.0f GFLOP/s\n", 1e3 * best_time.count(), 1e-9 * task.flops / best_time.count());
  const bool faster = plain_time > 2 * best_time;
  std::printf("at least twice as fast: %s\n", faster ? "yes" : "no");
  return wrong == 0 && faster ? 0 : 1;
}
