// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "operators.hpp"
#include "schedule_recipes.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/splits.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/models/model_file.hpp"
#include "tunewright/models/train_on_journals.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/balto.hpp"
#include "tunewright/study/options.hpp"
#include "tunewright/study/recipe_name.hpp"
#include "tunewright/study/study.hpp"
#include "tunewright/tuner.hpp"

namespace tunewright::bench {

/// Models by recipe and seed, taught by what was measured of other operators on other targets: `--taught` random
/// programs of each of `pretraining_operators()` on each of up to three other targets of this machine (one thread,
/// AVX2). All of these operators teach the model that searches begin with; another one, taught all of them but one,
/// tells how well such a model ranks an operator that it does not know.
///
/// A search begins with the model of its seed, which no other seed has: programs, network and the operator that is held
/// out are drawn by it. Models and programs are made when they are first asked for, and kept in OUT/pretraining. Two
/// processes that share OUT may both make them; of models the last one stays.
///
/// The searches of all problems with one seed begin with the same model, so they share the luck of its training: a
/// study of such recipes says `Plan::one_training_a_seed`.
///
/// Cost: each seed measures its programs in the time of a random search of as many trials, and once more for
/// `BaltoTaught`; each recipe trains two models a seed.
class Pretrained {
 public:
  Pretrained(const study::Options& options, const Target& host)
      : programs_each_(options.number("taught")), folder_(options.out / "pretraining"), host_(host) {
    if (programs_each_ == 0) throw std::invalid_argument("--taught=0: give at least 1");
  }

  /// Gives a search the model that was trained for its recipe and seed, if its recipe begins with one.
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
      std::same_as<Recipe, HetFeatTransfer<M>> || std::same_as<Recipe, MoaPrunerQuick<M>>;

  /// The file of a model is read if it is there.
  template <class Recipe>
  typename Recipe::model trained(const Parts<Recipe>& parts) {
    typename Recipe::model untrained = parts.model;
    untrained.seed += parts.seed;
    const std::string file =
        (folder_ / (std::string(study::recipe_name<Recipe>()) + ending(parts.seed, ".safetensors"))).string();
    if (!std::filesystem::exists(file)) {
      constexpr double share_of_one = 0.1;  // operators are held out whole, until they make this share: one of six is
      const auto judged =
          models::train_on_journals(untrained, {measured_for<Recipe>(parts.seed)}, parts.space, parts.featurizer,
                                    {.split = data::by_task, .test_share = share_of_one, .seed = parts.seed});
      std::fprintf(stderr, "%s: %s; taught all operators but one, pairs of that one in the right order: %.3f\n",
                   file.c_str(), summary(judged.journals.report).c_str(), judged.scores.pairwise_accuracy);
      const data::Dataset& programs = judged.journals.dataset;
      typename Recipe::model model = untrained;
      models::fit(model, programs, positions(programs.size()));
      models::save_model(file, model, parts.featurizer);
    }
    return models::load_model(file, parts.featurizer, untrained);
  }

  /// The end of a file's name. Each number of programs, each seed and each target that is searched has files of its
  /// own: a model taught fewer, or by another seed, would learn from all that are in one, and one taught for the search
  /// of another target may know this one.
  [[nodiscard]] std::string ending(std::uint64_t seed, const char* type) const {
    return "." + to_hex(stable_hash(host_)) + "." + std::to_string(programs_each_) + ".seed" + std::to_string(seed) +
           type;
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
    if (all.empty())
      throw std::invalid_argument("a machine with one core and " + std::string(name(host_.isa)) +
                                  " has no other target to learn from; let the study have more cores, or choose by "
                                  "--recipes=A,B only recipes that begin without a trained model");
    return all;
  }

  template <class Recipe>
  std::string measured_for(std::uint64_t seed) {
    if constexpr (std::same_as<Recipe, BaltoTaught<M>>)
      return measured<recipes::BaltoQuick<Space, M>>("measured_by_balto", 16, seed);
    else
      return measured<Random<M>>("measured", programs_each_, seed);
  }

  /// A journal, complete, of what `Collector` measures.
  template <class Collector>
  std::string measured(const std::string& name, std::size_t batch, std::uint64_t seed) {
    make_folder(folder_);
    const std::string file = (folder_ / (name + ending(seed, ".jsonl"))).string();
    for (const Target& target : targets()) {
      for (const auto& [name_of, graph] : pretraining_operators()) {
        data::Journal journal{{.path = file, .many_tasks = true}};
        Tuner<Collector> tuner{{.seed = seed, .threads = target.threads}};
        const auto run =
            tuner.run(program::make_task(name_of, graph, target), {.trials = programs_each_, .batch = batch}, journal,
                      Progress{}, study::StopsOnRequest{});
        if (run.stop == Stop::Requested) throw study::Stopped();
      }
    }
    return file;
  }

  std::size_t programs_each_;  // of an operator on a target
  std::filesystem::path folder_;
  Target host_;
};

}  // namespace tunewright::bench
