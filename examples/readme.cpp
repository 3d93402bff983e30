// SPDX-License-Identifier: Apache-2.0
//
// The program of the README.
//
// Shows:  the smallest search for a fast matrix product on this machine.
// Run:    build/release/examples/readme
// Expect: the loop nest of the fastest of 64 schedules; where the search stands is told on stderr.

// [snippet-begin program]
#include <iostream>

#include "tunewright/graph.hpp"
#include "tunewright/orc.hpp"

using namespace tunewright;

int main() {
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
  std::cout << explain(best);
}
// [snippet-end program]
