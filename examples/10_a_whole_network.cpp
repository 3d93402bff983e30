// SPDX-License-Identifier: Apache-2.0
//
// Lesson 10: a whole network.
//
// Shows:  a network partitioned into tasks; one tuner for all tasks, whose scheduler gives the next round to the most
//         promising task; the tuned network run, checked against the reference, and compared with unmeasured
//         schedules: random ones, and those that a draft ranks first; the tuned network exported to a C program that
//         does not use this library.
// Run:    build/release/examples/10_a_whole_network
// Expect: some 600 trials within half a minute, and three latencies. Drafts are good for such layers, so tuning
//         adds little. The program fails if a layer differs from the reference, or if the C program, which is built
//         if there is a C compiler, gives another result.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/export.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/networks/squeezenet.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;

namespace {

/// The time of the fastest of ten inferences.
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

constexpr const char* c_program = R"(
// [snippet-begin program]
#include <stdio.h>
#include <time.h>

#include "squeezenet.h"
#include "tunewright_runtime.h"

/* Wall time: clock() would add the processor time of all threads. */
static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int main(void) {
  struct squeezenet_weights* weights;
  struct squeezenet* network;
  int error = squeezenet_load("squeezenet.weights", &weights);
  if (error == squeezenet_ok) error = squeezenet_create(weights, &network);
  if (error != squeezenet_ok) {
    fprintf(stderr, "%s\n", squeezenet_error_text(error));
    return 1;
  }
  float* image = squeezenet_input_image(network);
  if (fread(image, sizeof *image, squeezenet_input_image_elements, stdin) != squeezenet_input_image_elements) return 2;

  struct tunewright_team* team = tunewright_team_create(squeezenet_threads, NULL, 0);
  if (team == NULL) return 3;
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double start = milliseconds();
    if (squeezenet_run(network, tunewright_team_runtime(team)) != squeezenet_ok) return 4;
    const double taken = milliseconds() - start;
    if (taken < least) least = taken;
  }
  tunewright_team_destroy(team);
  fprintf(stderr, "the C program      %7.3f ms\n", least);

  const float* output = squeezenet_output_global_avg_pool2d(network);
  fwrite(output, sizeof *output, squeezenet_output_global_avg_pool2d_elements, stdout);
  squeezenet_destroy(network);
  squeezenet_unload(weights);
  return fflush(stdout) == 0 ? 0 : 5;
}
// [snippet-end program]
)";

bool succeeds(const std::string& command) { return std::system(command.c_str()) == 0; }

/// Builds and runs the C program of a folder; returns whether it computes `expected` from `image`.
bool program_agrees(const std::filesystem::path& folder, const reference::Array& image,
                    const reference::Array& expected) {
  std::ofstream(folder / "main.c") << c_program;
  std::ofstream(folder / "image", std::ios::binary)
      .write(static_cast<const char*>(image.data()), static_cast<std::streamsize>(image.size_in_bytes()));
  std::fflush(stdout);
  if (!succeeds("cd '" + folder.string() +
                "' && cc -std=gnu11 -O2 -pthread -o main main.c squeezenet.c tunewright_runtime.c "
                "libsqueezenet.a -lm && ./main < image > scores 2> said")) {
    return false;
  }
  std::string said;
  std::getline(std::ifstream(folder / "said"), said);
  std::printf("%s\n", said.c_str());
  reference::Array scores(expected.type(), expected.shape());
  std::ifstream(folder / "scores", std::ios::binary)
      .read(static_cast<char*>(scores.data()), static_cast<std::streamsize>(scores.size_in_bytes()));
  return scores == expected;
}

}  // namespace

int main() {
  // [snippet-begin tune]
  using Recipe = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::OrcJit>;
  MultiTaskTuner<Recipe, schedulers::Gradient> tuner{{.seed = 7}};

  // SqueezeNet on small images, partitioned into tasks: layers with fused elementwise operators.
  const networks::Network network = networks::squeezenet1_1({.image_size = 112});
  const networks::Partition partition = networks::partition(network, host_target());
  std::printf("%s: %zu tasks, %zu calls\n", network.name.c_str(), partition.tasks.size(), partition.calls.size());

  // One search for all tasks: they share a model, and the scheduler chooses the next task.
  const auto run = tuner.run(partition.tasks, {.trials = 24 * partition.tasks.size(), .batch = 8}, Progress{});
  // [snippet-end tune]
  const std::size_t wrong = run.status.faults[static_cast<std::size_t>(Fault::WrongResult)];
  std::printf("%zu trials, %zu wrong results\n", run.status.trials, wrong);

  // [snippet-begin run]
  // The fastest schedule of each task, and two unmeasured ones: a random schedule, and the draft's best of 64.
  const std::vector<schedule::Schedule> random = networks::default_schedules(partition.tasks, {.candidates = 1});
  const std::vector<schedule::Schedule> drafted = networks::default_schedules(partition.tasks);
  std::vector<schedule::Schedule> tuned = drafted;
  for (std::size_t t = 0; t < tuned.size(); ++t)
    if (run.tasks[t].best() != nullptr) tuned[t] = run.tasks[t].best()->candidate.config;

  const reference::Tensors values = networks::random_values(network, Rng(1));
  networks::CompiledNetwork by_chance(network, partition, random, values);
  networks::CompiledNetwork by_draft(network, partition, drafted, values);
  networks::CompiledNetwork by_search(network, partition, tuned, values);

  // Compares layer by layer with the reference.
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
  std::printf("tuned ones are     %7.1f times as fast as random ones\n", random_ms / tuned_ms);

  // [snippet-begin export]
  const std::filesystem::path folder = std::filesystem::current_path() / "10_a_whole_network.files";
  const networks::ExportedNetwork files =
      networks::export_network(network, partition, by_search.kernels(), values, "squeezenet", folder, "lesson 10");
  // [snippet-end export]
  std::printf("exported: %s, %s, %s, %s\n", files.header.filename().c_str(), files.source.filename().c_str(),
              files.library.filename().c_str(), files.weights.filename().c_str());
  bool agrees = true;
  if (succeeds("cc --version > /dev/null 2>&1")) {
    agrees = program_agrees(folder, values[networks::inputs(network)[0]], by_search.run(values)[0]);
    std::printf("computes the same: %s\n", agrees ? "yes" : "no");
  } else {
    std::printf("not run: there is no C compiler\n");
  }
  return wrong == 0 && differing == 0 && agrees ? 0 : 1;
}
