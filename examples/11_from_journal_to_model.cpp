// SPDX-License-Identifier: Apache-2.0
//
// Lesson 11: a model trained on earlier searches starts the next one.
//
// Shows:  journals of several searches read into a dataset, a network trained on it in seconds, evaluated on a held-out
//         task and stored in a file, and a search that ranks by it from the first trial on.
// Run:    build/release/examples/11_from_journal_to_model
// Expect: the contents of the journals; the pairwise accuracy on the held-out task; then the best of 8 trials on
//         a new product, chosen by the network and randomly. The program fails if the network is not clearly
//         better than chance, or finds nothing better than random search.
//
// Nothing is run: a simulated machine computes all latencies.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tunewright/data/journal.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/model_file.hpp"
#include "tunewright/models/train_on_journals.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;
using Space = spaces::MultiLevelTiling;
using Machine = measurers::Simulated;

namespace {

Task matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::string name = "matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  return program::make_task(name, program::operators::matmul_graph({m, n, k}),
                            Target{.name = "simulated", .threads = 4, .isa = Isa::Avx2, .l3_bytes = 8U << 20});
}

// [snippet-begin recipe]
// Random search, and a search that measures a fixed model's best of a thousand random schedules.
using Drawn = recipes::Random<Space, Machine>;
struct Informed : Drawn {
  using featurizer = features::PerStatement;
  using model = models::Mlp;
  using sampler = samplers::TopK;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 1024; }
};
// [snippet-end recipe]

/// Milliseconds of the fastest of 8 trials, the geometric mean of five seeds.
template <class Recipe>
double best_of_8(const Task& task, const typename Recipe::model& model) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Tuner<Recipe> tuner{{.model = model, .seed = seed}};
    sum += std::log(tuner.run(task, {.trials = 8, .batch = 8}).best()->cost_s());
  }
  return 1e3 * std::exp(sum / 5);
}

}  // namespace

int main() {
  // Earlier searches, one journal each.
  std::filesystem::remove_all("lesson_11_journals");
  std::filesystem::create_directory("lesson_11_journals");
  std::vector<std::string> paths;
  for (const Task& task : {matmul(128, 128, 128), matmul(256, 64, 512), matmul(64, 512, 96), matmul(192, 384, 64)}) {
    paths.push_back("lesson_11_journals/" + std::to_string(paths.size()) + ".jsonl");
    data::Journal journal{{.path = paths.back()}};
    Tuner<Drawn> tuner{{.seed = paths.size()}};
    tuner.run(task, {.trials = 200}, journal);
  }

  // [snippet-begin train]
  const Space space;
  const features::PerStatement featurizer;
  // Reads the journals, which describe their tasks, holds one task out, trains on the others, and evaluates on it.
  const auto trained = models::train_on_journals(models::Mlp::quick(), paths, space, featurizer,
                                                 {.split = data::by_task, .test_share = 0.2, .seed = 1});
  std::printf("%s\n", summary(trained.journals.report).c_str());
  std::printf("pairs of the unknown task ranked right: %.2f\n", trained.scores.pairwise_accuracy);

  models::save_model("matmuls.safetensors", trained.model, featurizer);
  // [snippet-end train]

  // [snippet-begin use]
  // Later, for another product, the model chooses what to measure.
  const auto model = models::load_model<models::Mlp>("matmuls.safetensors", featurizer);
  const Task task = matmul(320, 256, 160);
  const double chosen = best_of_8<Informed>(task, model), drawn = best_of_8<Drawn>(task, {});
  // [snippet-end use]
  std::printf("best of 8 trials on a new task: %.3f ms chosen by the model, %.3f ms drawn\n", chosen, drawn);
  return trained.scores.pairwise_accuracy > 0.7 && chosen < drawn ? 0 : 1;
}
