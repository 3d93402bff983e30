// SPDX-License-Identifier: Apache-2.0
//
// Lesson 10: a whole network.
//
// Shows:  a network cut into tasks; one tuner for all of them, whose scheduler gives the next round to the task that
//         promises most; the tuned network run, compared with the reference, and timed beside schedules that nobody
//         measured: random ones, and those that a draft ranks first.
// Run:    build/release/examples/10_a_whole_network
// Expect: some 600 trials within half a minute, and three latencies. Drafts are good at such layers, so that tuning
//         adds little to them. The program fails when a layer computes something else than the reference, or when the
//         tuned network is not faster than the random one.

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
  const networks::Network network = networks::squeezenet1_1({.image_size = 112});
  const networks::Partition partition = networks::partition(network, host_target());
  std::printf("%s: %zu tasks, %zu calls\n", network.name.c_str(), partition.tasks.size(), partition.calls.size());

  // One search for all tasks: they share a model, and the scheduler says whose round is next.
  const auto run = tuner.run(partition.tasks, {.trials = 24 * partition.tasks.size(), .batch = 8}, Progress{});
  // [snippet-end tune]
  const std::size_t wrong = run.status.faults[static_cast<std::size_t>(Fault::WrongResult)];
  std::printf("%zu trials, %zu wrong results\n", run.status.trials, wrong);

  // [snippet-begin run]
  // The fastest schedule of each task, beside those that were never measured: a random one, and the best of 64 by a
  // draft.
  const std::vector<schedule::Schedule> random = networks::default_schedules(partition.tasks, {.candidates = 1});
  const std::vector<schedule::Schedule> drafted = networks::default_schedules(partition.tasks);
  std::vector<schedule::Schedule> tuned = drafted;
  for (std::size_t t = 0; t < tuned.size(); ++t)
    if (run.tasks[t].best() != nullptr) tuned[t] = run.tasks[t].best()->candidate.config;

  const reference::Tensors values = networks::random_values(network, Rng(1));
  networks::CompiledNetwork by_chance(network, partition, random, values);
  networks::CompiledNetwork by_draft(network, partition, drafted, values);
  networks::CompiledNetwork by_search(network, partition, tuned, values);

  // Layer by layer, against the reference.
  std::size_t differing = 0;
  for (const reference::Comparison& call : by_search.compare_calls(values)) differing += call.passed ? 0U : 1U;
  // [snippet-end run]
  std::printf("%zu calls differ from the reference\n", differing);

  by_chance.set_inputs(values);
  by_draft.set_inputs(values);
  const double random_ms = milliseconds_of(by_chance);
  const double tuned_ms = milliseconds_of(by_search);
  std::printf("random schedules   %7.3f ms\n", random_ms);
  std::printf("drafted schedules  %7.3f ms\n", milliseconds_of(by_draft));
  std::printf("tuned schedules    %7.3f ms\n", tuned_ms);
  std::printf("faster than random ones: %s\n", tuned_ms < random_ms ? "yes" : "no");
  return wrong == 0 && differing == 0 && tuned_ms < random_ms ? 0 : 1;
}
