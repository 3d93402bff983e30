// SPDX-License-Identifier: Apache-2.0
// Recipes that need knobs, searching spaces that others have measured whole.
//
//   study_recipes --data=DIR [--set=judge|choose|all] [--batch=N] [--seeds=N] [--cap=N] [--recipes=A,B]
//
// 25 searches of every space by each recipe, in batches of `--batch` (4), with as many trials as the score needs, at
// most `--cap`. A configuration is judged by the mean of its repeats, as Kernel Tuner does. Options of
// `recipes::ExpectedImprovement` were chosen on the spaces of the set choose (RTX A4000, Radeon W6600, RTX 2080 Ti);
// none was on those of the set judge (A100, MI250X, RTX 3090). Failed trials count as trials.
//
// kernel_tuner_strategies.py lays the searches of Kernel Tuner's own strategies into the same folder.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tunewright/explorers/uniform.hpp"
#include "tunewright/recipes/alt.hpp"
#include "tunewright/recipes/auto_tvm.hpp"
#include "tunewright/recipes/expected_improvement.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/study/recorded_problem.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Space = spaces::RecordedTable;
using Replay = measurers::Replay<spaces::TableRow>;
using Random = recipes::Random<Space, Replay>;
using ExpectedImprovement = recipes::ExpectedImprovement<Space, Replay>;
using AutoTvm = recipes::AutoTvm<Space, Replay>;
using Alt = recipes::Alt<Space, Replay>;

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
struct AutoTvmGreedy : AutoTvm {
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

/// Lets the models of samplers and filters use as many threads as the search, not all of the machine.
template <class Parts>
void limit_threads(Parts& parts) {
  if constexpr (requires { parts.sampler.error_predictor.threads; })
    parts.sampler.error_predictor.threads = parts.threads;
  if constexpr (requires { parts.sampler.turns; }) parts.sampler.turns.error_predictor.threads = parts.threads;
  if constexpr (requires { std::get<1>(parts.filter.filters).model.threads; })
    std::get<1>(parts.filter.filters).model.threads = parts.threads;
}

std::vector<study::RecordedProblem> spaces_of(const study::Options& options) {
  const std::string set = options.text("set", "judge");
  if (set != "judge" && set != "choose" && set != "all")
    throw std::invalid_argument("--set=" + set + ": give judge, choose or all");
  const std::set<std::string> chosen_on{"A4000", "W6600", "RTX_2080_Ti"};
  std::vector<study::RecordedProblem> problems;
  for (const char* kernel : {"convolution_milo", "dedispersion_milo", "convolution", "gemm"}) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(options.data / "kernel-tuner-hub" / kernel))
      if (entry.path().extension() == ".gz") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      const std::string device = file.stem().stem().string();
      if (device.ends_with("_T4")) continue;  // the same measurements in another format
      if (set != "all" && chosen_on.contains(device) != (set == "choose")) continue;
      problems.push_back(study::recorded_problem(std::string(kernel) + "." + device, file.string(),
                                                 {.device = device, .latency = data::Latency::Mean}));
      problems.back().trials = std::min(problems.back().trials, options.number("cap", problems.back().trials));
    }
  }
  return problems;
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(
      argc, argv, {.name = "recipes", .seeds = 25, .folders = {"kernel-tuner-hub"}}, [](study::Study& study) {
        study.compare<Random, ExpectedImprovement, RandomCandidates, BestByMean, AutoTvm, AutoTvmGreedy, Alt,
                      AltUnguided>(spaces_of(study.options()), {.batch = study.options().number("batch", 4)},
                                   [](auto& parts) { limit_threads(parts); });
      });
}
