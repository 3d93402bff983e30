// SPDX-License-Identifier: Apache-2.0
// Recipes that need knobs, searching spaces that others have measured whole.
//
//   study_recipes --data=DIR [--set=judge|choose|all] [--batch=N] [--seeds=N] [--cap=N] [--history=N] [--recipes=A,B]
//
// 25 searches of every space by each recipe, in batches of `--batch` (4), with as many trials as the score needs, at
// most `--cap`. A configuration is judged by the mean of its repeats, as Kernel Tuner does. Options of
// `recipes::ExpectedImprovement` were chosen on the spaces of the set choose (RTX A4000, Radeon W6600, RTX 2080 Ti);
// none was on those of the set judge (A100, MI250X, RTX 3090). Failed trials count as trials.
//
// Recipes with histories know `--history` (1,000) random configurations of the same kernel on each device of the other
// set, others for every seed and device.
//
// kernel_tuner_strategies.py lays the searches of Kernel Tuner's own strategies into the same folder.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/adaptations/none.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/core/training_set.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/recipes/alt.hpp"
#include "tunewright/recipes/auto_tvm.hpp"
#include "tunewright/recipes/chameleon.hpp"
#include "tunewright/recipes/expected_improvement.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/recipes/with_history.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/spaces/draw.hpp"
#include "tunewright/study/recorded_problem.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Space = spaces::RecordedTable;
using Replay = measurers::Replay<spaces::TableRow>;
using Random = recipes::Random<Space, Replay>;
using ExpectedImprovement = recipes::ExpectedImprovement<Space, Replay>;
using AutoTvm = recipes::AutoTvm<Space, Replay>;
using AutoTvmRegression = recipes::AutoTvmRegression<Space, Replay>;
using Alt = recipes::Alt<Space, Replay>;
using Chameleon = recipes::Chameleon<Space, Replay>;

/// Ranks random candidates alone, no neighbours of the fastest.
struct RandomCandidates : ExpectedImprovement {
  using explorer = explorers::Uniform;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 1000; }
};
/// Takes what the committee thinks best, however sure it is.
struct BestByMean : ExpectedImprovement {
  using sampler = samplers::TopK;
};

/// Measures nothing at random, and all that annealing finds, whatever its score.
struct AutoTvmGreedy : AutoTvmRegression {
  static void set_explorer(explorers::Annealing&) {}
  static void set_sampler(samplers::DiverseTopK&) {}
};

/// Chooses as ALT does, and says nothing to the explorer.
struct Unguiding {
  samplers::UncertaintyPingPong<models::Gbdt> turns{};

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M& model, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng,
                                                const samplers::Labelled& labelled = {}) const {
    return turns.select(model, x, score, n, rng, labelled);
  }
};
/// Explores by scores in its pings, too.
struct AltUnguided : Alt {
  using sampler = Unguiding;
  static void set_sampler(Unguiding& sampler) { Alt::set_sampler(sampler.turns); }
};

struct AutoTvmWithHistories : recipes::WithHistory<AutoTvmRegression> {};
struct AltWithHistories : recipes::WithHistory<Alt> {};
/// Learns nothing in the search.
struct HistoriesAlone : AutoTvmWithHistories {
  using adaptation = adaptations::None;
};

/// Whether options are chosen on the spaces of this device, instead of judged.
bool is_for_choosing(std::string_view device) {
  return device == "A4000" || device == "W6600" || device == "RTX_2080_Ti";
}

/// A recorded space, named <kernel>.<device>.
struct KernelOnDevice {
  std::string kernel, device;
  study::RecordedProblem problem;
};

/// What the devices of one set measured, for searches on those of the other.
struct Histories {
  std::vector<KernelOnDevice> recorded;
  std::size_t configurations = 1000;  ///< of each device

  /// Teaches `trees` random configurations of the kernel of `space`.
  void teach(models::Gbdt& trees, const Space& space, std::uint64_t seed) const {
    const auto own = std::find_if(recorded.begin(), recorded.end(), [&](const KernelOnDevice& one) {
      return &one.problem.space.table() == &space.table();
    });
    const features::Knobs knobs{.knobs = space.knobs()};
    TrainingSet history;
    for (const auto& [kernel, device, problem] : recorded) {
      if (kernel != own->kernel || is_for_choosing(device) == is_for_choosing(own->device)) continue;
      // By the task, which names the device: tables of one kernel are alike, and would give the same rows.
      const Rng rng = Rng(seed).split(stable_hash(problem.task));
      const auto rows = spaces::draw(problem.space, problem.task, configurations, {}, 1, rng);
      std::vector<double> costs_s;
      for (const spaces::TableRow& row : rows) costs_s.push_back(problem.latencies_s[row.row]);
      history.add(stable_hash(problem.task), knobs.extract(problem.space, problem.task, rows), costs_s);
    }
    const TrainingSet::Data data = history.assemble();
    trees.fit(data.x, data.y, data.group);
  }
};

/// Lets the models of samplers and filters use as many threads as the search, not all of the machine.
template <class Parts>
void limit_threads(Parts& parts) {
  if constexpr (requires { parts.sampler.error_predictor.threads; })
    parts.sampler.error_predictor.threads = parts.threads;
  if constexpr (requires { parts.model.source.threads; })
    parts.model.source.threads = parts.model.own.threads = parts.threads;
  if constexpr (requires { parts.sampler.turns; }) parts.sampler.turns.error_predictor.threads = parts.threads;
  if constexpr (requires { std::get<1>(parts.filter.filters).model.threads; })
    std::get<1>(parts.filter.filters).model.threads = parts.threads;
}

std::vector<KernelOnDevice> all_spaces(const study::Options& options) {
  require(options.number("cap", 1) >= 1, "study_recipes", "--cap", options.number("cap", 1), "at least 1");
  std::vector<KernelOnDevice> all;
  for (const std::string kernel : {"convolution_milo", "dedispersion_milo", "convolution", "gemm"}) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(options.data / "kernel-tuner-hub" / kernel))
      if (entry.path().extension() == ".gz") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      const std::string device = file.stem().stem().string();
      if (device.ends_with("_T4")) continue;  // the same measurements in another format
      study::RecordedProblem problem = study::recorded_problem(kernel + "." + device, file.string(),
                                                               {.device = device, .latency = data::Latency::Mean});
      problem.trials = std::min(problem.trials, options.number("cap", problem.trials));
      all.push_back({kernel, device, std::move(problem)});
    }
  }
  return all;
}

/// Selects the spaces of `all` that --set names.
std::vector<study::RecordedProblem> spaces_of(const study::Options& options, const std::vector<KernelOnDevice>& all) {
  const std::string set = options.text("set");
  if (set != "judge" && set != "choose" && set != "all")
    throw std::invalid_argument("--set=" + set + ": give judge, choose or all");
  std::vector<study::RecordedProblem> problems;
  for (const KernelOnDevice& one : all)
    if (set == "all" || is_for_choosing(one.device) == (set == "choose")) problems.push_back(one.problem);
  return problems;
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "recipes",
                     .seeds = 25,
                     .folders = {"kernel-tuner-hub"},
                     .options = {"set=judge", "cap", "history=1000", "batch=4"},
                     .choosing = {"set"},
                     .unread = {"tasks"}},
                    [](study::Study& study) {
                      const study::Options& options = study.options();
                      const auto histories =
                          std::make_shared<const Histories>(Histories{all_spaces(options), options.number("history")});
                      study.compare<Random, ExpectedImprovement, RandomCandidates, BestByMean, AutoTvm, AutoTvmGreedy,
                                    AutoTvmRegression, AutoTvmWithHistories, HistoriesAlone, Alt, AltUnguided,
                                    AltWithHistories, Chameleon>(
                          spaces_of(options, histories->recorded), {.batch = options.number("batch")},
                          [histories](auto& parts) {
                            limit_threads(parts);
                            if constexpr (requires { parts.model.source; })
                              histories->teach(parts.model.source, parts.space, parts.seed);
                          });
                    });
}
