// SPDX-License-Identifier: Apache-2.0
//
// Lesson 6: measurements of one GPU may help on another.
//
// Shows:  a model trained on one device as the start on another (`adaptations::WarmStart`), a guard against
//         unrelated devices (`adaptations::Guarded`), and a tuner that starts with such a model.
// Run:    build/release/examples/06_transfer_between_two_gpus
// Expect: for a device similar to the source and for an unrelated one, the pairwise accuracy of each model by the
//         number of measurements on the new device; then the best kernel that tuners with and without a warm
//         start find in 32 measurements. The program fails if the warm start does not help on the similar
//         device, or if the guard does not limit the loss on the other.
//
// Nothing is run: a 4096 x 4096 convolution was measured on three GPUs by others (test/data/README.md).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/adaptations/guarded.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/measurers/replay.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;
using adaptations::LabelledPrograms;

namespace {

struct Gpu {
  spaces::RecordedTable space;
  Task task;
  double best_s = 0;
  LabelledPrograms programs;  // all of its configurations
};

Gpu measured_on(const std::string& device) {
  const std::filesystem::path folder = TUNEWRIGHT_TEST_DATA;  // test/data: CMake knows where
  auto imported =
      data::read_table((folder / ("kernel_tuner_convolution_" + device + ".json.gz")).string(), {.device = device});
  Gpu gpu;
  gpu.space = spaces::RecordedTable(std::make_shared<const data::Table>(std::move(imported.table)));
  gpu.task = data::task_of(gpu.space.table());

  // [snippet-begin describe]
  const data::Table& table = gpu.space.table();
  std::vector<spaces::TableRow> rows;
  for (std::size_t i = 0; i < table.size(); ++i) rows.push_back(gpu.space.at(i));
  const features::Knobs featurizer{.knobs = gpu.space.knobs()};
  gpu.programs.x = featurizer.extract(gpu.space, gpu.task, std::span<const spaces::TableRow>(rows));
  // [snippet-end describe]

  gpu.best_s = table.cost_s(0);
  for (std::size_t i = 0; i < table.size(); ++i) gpu.best_s = std::min(gpu.best_s, table.cost_s(i));
  for (std::size_t i = 0; i < table.size(); ++i)  // 0 for one that failed
    gpu.programs.y.push_back(static_cast<float>(gpu.best_s / table.cost_s(i)));
  return gpu;
}

using Model = adaptations::Transferred<models::Gbdt>;
models::Gbdt untrained() { return {.objective = models::gbdt::Objective::Squared, .threads = 1}; }

double accuracy(const Model& model, const LabelledPrograms& unseen) {
  std::vector<float> score(unseen.size());
  model.predict(unseen.x, score);
  return stats::pairwise_accuracy(score, unseen.y);
}

/// Pairwise accuracy on unmeasured kernels after `n` random measurements on `gpu`: without the source, by the source
/// alone, with a warm start, with a guarded one. Mean over draws.
std::array<double, 4> learned(const models::Gbdt& source, const Gpu& gpu, std::size_t n) {
  constexpr int draws = 10;
  std::array<double, 4> mean{};
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    std::vector<std::size_t> order = positions(gpu.programs.size());
    Rng rng(draw);
    rng.shuffle(std::span(order));
    const LabelledPrograms own = gpu.programs.subset(std::span(order).first(n));
    const LabelledPrograms unseen = gpu.programs.subset(std::span(order).last(200));

    // [snippet-begin adapt]
    Model alone{.own = untrained()};
    adaptations::Refit{}.update(alone, own.x, own.y, own.group);

    const Model given{.source = source, .own = untrained()};  // scores like the source
    Model warm = given;
    adaptations::WarmStart{}.update(warm, own.x, own.y, own.group);

    Model guarded = given;
    adaptations::Guarded<adaptations::WarmStart, Model> guard;  // falls back to a model like `alone`
    guard.update(guarded, own.x, own.y, own.group);
    // [snippet-end adapt]

    const std::array<const Model*, 4> all{&alone, &given, &warm, &guarded};
    for (std::size_t m = 0; m < all.size(); ++m) mean[m] += accuracy(*all[m], unseen) / draws;
  }
  return mean;
}

// [snippet-begin recipes]
using Recorded = recipes::Random<spaces::RecordedTable, measurers::Replay<spaces::TableRow>>;
struct FromNothing : Recorded {
  using featurizer = features::Knobs;
  using model = models::Gbdt;
  using explorer = explorers::Uniform;
  using sampler = samplers::EpsilonGreedy;
  using adaptation = adaptations::Refit;
};
struct FromAnotherGpu : FromNothing {
  using model = Model;
  using adaptation = adaptations::WarmStart;
};
// [snippet-end recipes]

/// Latency of the best kernel found in 32 measurements over that of the best of the space; geometric mean over runs.
template <class Recipe>
double found(const Gpu& gpu, const typename Recipe::model& model) {
  constexpr int runs = 20;
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    measurers::Replay<spaces::TableRow> replay;
    replay.load(data::records_of(gpu.space.table(), gpu.task));
    Tuner<Recipe> tuner{{.space = gpu.space,
                         .featurizer = {.knobs = gpu.space.knobs()},
                         .model = model,
                         .explorer = {.pool = 256},
                         .measurer = replay,
                         .seed = seed,
                         .clock = replay.clock}};
    const auto run = tuner.run(gpu.task, {.trials = 32, .batch = 8});
    sum += std::log(run.best()->cost_s() / gpu.best_s) / runs;
  }
  return std::exp(sum);
}

}  // namespace

int main() {
  const Gpu a4000 = measured_on("A4000");
  models::Gbdt source = untrained();
  source.fit(a4000.programs.x, a4000.programs.y, a4000.programs.group);
  std::printf("%zu kernels measured on an A4000\n", a4000.programs.size());

  bool as_told = true;
  for (const char* device : {"A100", "MI250X"}) {
    const Gpu gpu = measured_on(device);
    std::printf("\n%s: pairs in the right order\nmeasured   alone  A4000   warm  guarded\n", device);
    double lost = 0, lost_guarded = 0;
    for (const std::size_t n : {16U, 32U, 64U, 128U, 192U}) {
      const auto [alone, given, warm, guarded] = learned(source, gpu, n);
      std::printf("%8zu   %.3f  %.3f  %.3f    %.3f\n", n, alone, given, warm, guarded);
      lost = alone - warm;
      lost_guarded = alone - guarded;
      if (std::string(device) == "A100") as_told = as_told && warm > alone && warm > given - 0.01;
    }
    if (std::string(device) == "MI250X") as_told = as_told && lost_guarded <= lost;

    const double nothing = found<FromNothing>(gpu, untrained());
    const double started = found<FromAnotherGpu>(gpu, {.source = source, .own = untrained()});
    std::printf("best of 32 trials, over the best there is: %.2f alone, %.2f warm\n", nothing, started);
  }
  return as_told ? 0 : 1;
}
