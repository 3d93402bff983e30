// SPDX-License-Identifier: Apache-2.0
//
// Lesson 10: a whole network.
//
// Shows:  a network cut into tasks; one tuner for all of them, whose scheduler gives the next round to the task that
//         promises most; the tuned network run, compared with the reference, and timed beside default schedules.
// Run:    build/release/examples/10_a_whole_network
// Expect: the tasks that take most operations, about 400 trials within half a minute, and two latencies. The program
//         fails when a layer computes something else than the reference, or when tuning did not help.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/networks/squeezenet.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;

namespace {

/// Of the fastest of ten inferences.
double milliseconds_of(networks::CompiledNetwork& network) {
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    network.execute();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, 1e3 * taken.count());
  }
  return least;
}

}  // namespace

int main() {
  // [snippet-begin tune]
  using Recipe = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::OrcJit>;
  MultiTaskTuner<Recipe, schedulers::Gradient> tuner{{.seed = 7}};

  // SqueezeNet on small images, cut into tasks: layers with what can be computed along with them.
  const networks::Network network = networks::squeezenet1_1({.image_size = 64, .width = 0.5});
  const networks::Partition partition = networks::partition(network, host_target());
  std::printf("%s: %zu tasks, %zu calls\n", network.name.c_str(), partition.tasks.size(), partition.calls.size());

  // One search for all tasks: they share a model, and the scheduler says whose round is next.
  const auto run = tuner.run(partition.tasks, {.trials = 16 * partition.tasks.size(), .batch = 8}, Progress{});
  // [snippet-end tune]
  const std::size_t wrong = run.status.faults[static_cast<std::size_t>(Fault::WrongResult)];
  std::printf("%zu trials, %zu wrong results\n", run.status.trials, wrong);

  // [snippet-begin run]
  // The fastest schedule of each task, beside those that were never measured.
  const std::vector<schedule::Schedule> untuned = networks::default_schedules(partition.tasks);
  std::vector<schedule::Schedule> tuned = untuned;
  for (std::size_t t = 0; t < tuned.size(); ++t)
    if (run.tasks[t].best() != nullptr) tuned[t] = run.tasks[t].best()->candidate.config;

  const reference::Tensors values = networks::random_values(network, Rng(1));
  networks::CompiledNetwork before(network, partition, untuned, values), after(network, partition, tuned, values);

  // Layer by layer, against the reference.
  std::size_t differing = 0;
  for (const reference::Comparison& call : after.compare_calls(values)) differing += call.passed ? 0U : 1U;
  // [snippet-end run]
  std::printf("%zu calls differ from the reference\n", differing);

  before.set_inputs(values);
  const double before_ms = milliseconds_of(before), after_ms = milliseconds_of(after);
  std::printf("default schedules  %7.3f ms\n", before_ms);
  std::printf("tuned              %7.3f ms\n", after_ms);
  std::printf("faster: %s\n", after_ms < before_ms ? "yes" : "no");
  return wrong == 0 && differing == 0 && after_ms < before_ms ? 0 : 1;
}
