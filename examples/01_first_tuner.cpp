// SPDX-License-Identifier: Apache-2.0
//
// Lesson 1: a first tuner.
//
// Shows:  a tuner assembled from a recipe, a search space and a measurer; one run of it; what came out.
// Run:    build/release/examples/01_first_tuner
// Expect: 64 schedules of a matrix product are compiled, checked and timed within seconds. The program fails
//         when the fastest is not at least twice as fast as plain loops, or when a schedule computed anything
//         wrong.

#include <cstddef>
#include <cstdio>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

int main() {
  // [snippet-begin tune]
  // What the tuner is made of: a recipe, over a space, on a machine. Made first, because the measurer forks
  // the process that kernels run in.
  using Recipe = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::OrcJit>;
  Tuner<Recipe> tuner{{.seed = 7}};

  // What to tune, and for which machine.
  const auto graph = program::operators::matmul_graph({.m = 256, .n = 256, .k = 256});
  const Task task = program::make_task("matmul 256x256x256", graph, host_target());

  // The search: 64 trials in batches of 16. Observers come last; this one reports on stderr.
  const auto run = tuner.run(task, {.trials = 64, .batch = 16}, Progress{});
  if (run.best() == nullptr) return 1;
  const schedule::Schedule& best = run.best()->candidate.config;
  // [snippet-end tune]

  // Whatever has a latency has also computed what the reference evaluator computes.
  const std::size_t wrong = run.status.faults[static_cast<std::size_t>(Fault::WrongResult)];
  std::printf("%zu trials in %zu rounds, %zu wrong results\n", run.history.size(), run.status.rounds, wrong);

  // [snippet-begin compare]
  // The same product as plain loops, and the winner once more: in turns, so that both meet the same machine.
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
