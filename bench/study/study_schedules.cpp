// SPDX-License-Identifier: Apache-2.0
// Recipes that search schedules, on operators that played no part in developing them.
//
//   study_schedules [--operators=unseen|known] [--machine=real|cores] [--trials=N] [--batch=N] [--seeds=N]
//                   [--recipes=A,B]
//
// Eight operators are searched, `--trials` measurements (100) in batches of `--batch` (10): on this machine's CPU,
// where programs are compiled and run, or on two simulated cores. operators.hpp names the operators.
//   AnsorQuick     the reference
//   Random         valid schedules at random
//   Ansor          by the paper's settings
//   Pruner         likewise
//   PrunerQuick    its variant for machines that measure quickly
//   NoDraft        the same without a draft: its network chooses from 512 random schedules
//   DraftAndTrees  the same with Ansor's trees for a network
//   NoDataflow     the same with rows of statements alone, for a network of TenSet's form and Pruner's size
// and, where programs are run, with models that were trained before on 64 random programs of each of six other
// operators on each of up to three other targets of this machine (one thread, AVX2), which are measured once, to
// OUT/pretraining:
//   TenSet, Tlp, TlpQuick, OneShot, HetFeatTransfer, MoaPrunerQuick (`PrunerQuick` with momentum)
//   BaltoTaught    TenSet's search with a network that was taught what `BaltoQuick` chose to measure of the same
// A model is trained once, to OUT/pretraining, for all searches of its recipe.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../drafted.hpp"
#include "chosen_machine.hpp"
#include "operators.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/model_file.hpp"
#include "tunewright/models/train_on_journals.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/balto.hpp"
#include "tunewright/recipes/het_feat_transfer.hpp"
#include "tunewright/recipes/one_shot.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/recipes/tenset.hpp"
#include "tunewright/recipes/tlp.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Space = spaces::MultiLevelTiling;

template <class M>
using Random = recipes::Random<Space, M>;
template <class M>
using Ansor = recipes::Ansor<Space, M>;
template <class M>
using AnsorQuick = recipes::AnsorQuick<Space, M>;
template <class M>
using Pruner = recipes::Pruner<Space, M>;
template <class M>
using PrunerQuick = recipes::PrunerQuick<Space, M>;

using bench::DraftAndTrees;
using bench::NoDraft;

template <class M>
struct NoDataflow : PrunerQuick<M> {
  using featurizer = features::PerStatement;
  using model = models::Mlp;
  static void set_model(models::Mlp& network) {
    models::PatternAware of_pruner;
    PrunerQuick<M>::set_model(of_pruner);
    network.hidden = of_pruner.hidden;
    network.training = of_pruner.training;
  }
};

using recipes::HetFeatTransfer;
template <class M>
using TenSet = recipes::TenSet<Space, M>;
template <class M>
using Tlp = recipes::Tlp<Space, M>;
template <class M>
using OneShot = recipes::OneShot<Space, M>;
template <class M>
using TlpQuick = recipes::TlpQuick<Space, M>;
template <class M>
struct BaltoTaught : TenSet<M> {};
template <class M>
struct MoaPrunerQuick : PrunerQuick<M> {
  using adaptation = adaptations::Momentum;
  static void set_adaptation(adaptations::Momentum&) {}
};

/// Models by recipe, taught by what was measured of other operators on other targets.
class Pretrained {
 public:
  Pretrained(std::filesystem::path folder, const Target& host) : folder_(std::move(folder)), host_(host) {}

  /// Gives a search the model that was trained for its recipe, if there is one.
  template <class Recipe>
  void prepare(Parts<Recipe>& parts) {
    if constexpr (begins_trained<Recipe>) parts.model = trained(parts);
  }

 private:
  using M = measurers::OrcJit;
  template <class Recipe>
  static constexpr bool begins_trained =
      std::same_as<Recipe, TenSet<M>> || std::same_as<Recipe, Tlp<M>> || std::same_as<Recipe, TlpQuick<M>> ||
      std::same_as<Recipe, BaltoTaught<M>> || std::same_as<Recipe, OneShot<M>> ||
      std::same_as<Recipe, HetFeatTransfer<Space, M>> || std::same_as<Recipe, MoaPrunerQuick<M>>;

  /// The file of a model is read if it is there.
  template <class Recipe>
  typename Recipe::model trained(const Parts<Recipe>& parts) {
    const std::string file = (folder_ / (std::string(study::recipe_name<Recipe>()) + ".safetensors")).string();
    if (!std::filesystem::exists(file)) {
      const auto model = models::train_on_journals(parts.model, {measured_for<Recipe>()}, parts.space, parts.featurizer,
                                                   {.split = data::by_task, .test_share = 0.17});
      std::fprintf(stderr, "%s: %s, pairs of another operator in the right order: %.3f\n", file.c_str(),
                   summary(model.journals.report).c_str(), model.scores.pairwise_accuracy);
      models::save_model(file, model.model, parts.featurizer);
    }
    return models::load_model(file, parts.featurizer, parts.model);
  }

  /// Other targets of this machine than the one that is searched for.
  [[nodiscard]] std::vector<Target> targets() const {
    std::vector<Target> all;
    for (const Isa isa : {host_.isa, Isa::Avx2}) {
      if (isa > host_.isa) continue;
      for (const unsigned threads : {1U, host_.threads}) {
        Target target = host_.with_isa(isa).with_threads(threads);
        target.name = std::string(name(isa)) + "_" + std::to_string(threads);
        if (stable_hash(target) == stable_hash(host_)) continue;
        if (std::find(all.begin(), all.end(), target) == all.end()) all.push_back(target);
      }
    }
    return all;
  }

  template <class Recipe>
  std::string measured_for() {
    if constexpr (std::same_as<Recipe, BaltoTaught<M>>)
      return measured<recipes::BaltoQuick<Space, M>>("measured_by_balto.jsonl", 16);
    else
      return measured<Random<M>>("measured.jsonl", trials_each);
  }

  /// A journal, complete, of what `Collector` measures.
  template <class Collector>
  std::string measured(const std::string& name, std::size_t batch) {
    std::filesystem::create_directories(folder_);
    const std::string file = (folder_ / name).string();
    for (const Target& target : targets()) {
      for (const auto& [name_of, graph] : bench::pretraining_operators()) {
        data::Journal journal{{.path = file, .many_tasks = true}};
        Tuner<Collector> tuner{{.seed = 1, .threads = target.threads}};
        tuner.run(program::make_task(name_of, graph, target), {.trials = trials_each, .batch = batch}, journal,
                  Progress{});
      }
    }
    return file;
  }

  static constexpr std::size_t trials_each = 64;  // of an operator on a target
  std::filesystem::path folder_;
  Target host_;
};

bench::Operators operators(const study::Options& options) {
  const std::string set = options.text("operators", "unseen");
  if (set != "unseen" && set != "known") throw std::invalid_argument("--operators=" + set + ": give unseen or known");
  return set == "unseen" ? bench::unseen_operators() : bench::known_operators();
}

template <class M>
auto problems(const study::Options& options, const Target& target, const M& measurer) {
  return bench::problems(operators(options), options, target, measurer);
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv, {.name = "schedules", .seeds = 5}, [](study::Study& study) {
    bench::with_chosen_machine(study.options(), [&]<class M>(const Target& target, const M& measurer) {
      const auto searched = problems(study.options(), target, measurer);
      const Budget budget = bench::budget(study.options());
      if constexpr (std::same_as<M, measurers::OrcJit>) {
        const auto pretrained = std::make_shared<Pretrained>(study.options().out / "pretraining", target);
        study.compare<AnsorQuick<M>, Random<M>, Ansor<M>, Pruner<M>, PrunerQuick<M>, NoDraft<M>, DraftAndTrees<M>,
                      NoDataflow<M>, TenSet<M>, Tlp<M>, TlpQuick<M>, BaltoTaught<M>, OneShot<M>,
                      HetFeatTransfer<Space, M>, MoaPrunerQuick<M>>(
            searched, budget, [pretrained](auto& parts) { pretrained->prepare(parts); });
      } else {
        study.compare<AnsorQuick<M>, Random<M>, Ansor<M>, Pruner<M>, PrunerQuick<M>, NoDraft<M>, DraftAndTrees<M>,
                      NoDataflow<M>>(searched, budget);
      }
    });
  });
}
