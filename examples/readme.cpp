// SPDX-License-Identifier: Apache-2.0
//
// The program of the README.
//
// Shows:  the smallest search for a fast matrix product on this machine.
// Run:    build/release/examples/readme
// Expect: the loop nest of the fastest of 64 schedules; progress on stderr.

// [snippet-begin program]
#include <iostream>

#include "tunewright/graph.hpp"
#include "tunewright/orc.hpp"

using namespace tunewright;

int main() {
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
  std::cout << explain(best);
}
// [snippet-end program]
