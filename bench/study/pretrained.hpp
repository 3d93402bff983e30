// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "operators.hpp"
#include "schedule_recipes.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/data/journal.hpp"
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

/// Models by recipe, taught by what was measured of other operators on other targets: `--taught` random programs of
/// each of `pretraining_operators()` on each of up to three other targets of this machine (one thread, AVX2), which are
/// measured once. A model is trained once, for all searches of its recipe. Both are kept in OUT/pretraining.
class Pretrained {
 public:
  Pretrained(const study::Options& options, const Target& host)
      : programs_each_(options.number("taught")), folder_(options.out / "pretraining"), host_(host) {
    if (programs_each_ == 0) throw std::invalid_argument("--taught=0: give at least 1");
  }

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
      std::same_as<Recipe, HetFeatTransfer<M>> || std::same_as<Recipe, MoaPrunerQuick<M>>;

  /// The file of a model is read if it is there.
  template <class Recipe>
  typename Recipe::model trained(const Parts<Recipe>& parts) {
    const std::string taught = std::string(study::recipe_name<Recipe>()) + "." + std::to_string(programs_each_);
    const std::string file = (folder_ / (taught + ".safetensors")).string();
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
    if (all.empty())
      throw std::invalid_argument("this machine has no other target to learn from; search for another, --threads=2");
    return all;
  }

  template <class Recipe>
  std::string measured_for() {
    if constexpr (std::same_as<Recipe, BaltoTaught<M>>)
      return measured<recipes::BaltoQuick<Space, M>>("measured_by_balto", 16);
    else
      return measured<Random<M>>("measured", programs_each_);
  }

  /// A journal, complete, of what `Collector` measures. Each number of programs has its own: a model taught fewer would
  /// learn from all.
  template <class Collector>
  std::string measured(const std::string& name, std::size_t batch) {
    make_folder(folder_);
    const std::string file = (folder_ / (name + "." + std::to_string(programs_each_) + ".jsonl")).string();
    for (const Target& target : targets()) {
      for (const auto& [name_of, graph] : pretraining_operators()) {
        data::Journal journal{{.path = file, .many_tasks = true}};
        Tuner<Collector> tuner{{.seed = 1, .threads = target.threads}};
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
