// SPDX-License-Identifier: Apache-2.0
//
// What measurements on one device are worth on another.
//
//   study_transfer --data=DIR [--seeds=N --source=N --tasks=N --only=PART]
//
// A model learns from --source=N records of the source device (default 4096) and meets the target device in rounds, as
// in a tuner: each of 16 rounds brings 8 more labels of every task, drawn at random, and updates the adaptation with
// all that is known by then. A quarter of every target task, never learned from and not among the source's programs
// either, is ranked. Labels are relative to the best that was measured by then.
//
// Recipes are called <name>@<labels of a task>: `scratch` and `gbdt_scratch` learn from these alone, `none@0` and
// `gbdt_none@0` from the source alone. `momentum` is adaptations::Momentum as it comes: m = 0.99, trained in every
// fourth round. `momentum_m99`, `momentum_m0` and `momentum_m1` are trained in every round; m = 0 goes on from the last
// network, m = 1 starts at the source every time. `fine_tune` starts at the source every time at a tenth of the
// learning rate, `fine_tune_on` goes on from the last network.
//
// Data are named <source>_to_<target>_<same or new tasks>: a task is a shape by a template. DIR/collection, where there
// is one, is a collection; each two of its targets are pairs. Counters, of each task (in
// kernel-tuner-hub a kernel on a pair of devices, which has models of its own):
//   pairwise_accuracy, top5    on the programs held back
//   gain_over_scratch          accuracy minus that from scratch with as many labels, by the network or the trees,
//                              whichever ranks this data set better then, seed by seed
//   gain_over_scratch_4x       the same, but scratch has four times the labels: at least 0 means that a quarter of the
//                              labels is enough
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../collection_index.hpp"
#include "recorded_programs.hpp"
#include "task_results.hpp"
#include "tunewright/adaptations/coral.hpp"
#include "tunewright/adaptations/feature_map.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/guarded.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/adaptations/none.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/adaptations/shared_trunk.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/study/study.hpp"
#include "two_devices.hpp"

using namespace tunewright;
using study::OfTasks;

namespace {

constexpr std::size_t round_labels = 8, rounds = 16;       // of every task
constexpr std::array<std::size_t, 3> budgets{8, 32, 128};  // labels of a task that models are judged at

models::Mlp untrained_mlp(std::uint64_t seed) {
  models::Mlp model{.hidden = 64, .threads = 1, .seed = seed};
  model.training.loss = nn::Loss::MeanSquared;
  model.training.learning_rate = 3e-3F;
  model.training.schedule = nn::Schedule::Cosine;
  model.training.batch_programs = 64;
  return model;
}
models::Gbdt untrained_gbdt(std::uint64_t seed) {
  return {.objective = models::gbdt::Objective::Squared, .threads = 1, .seed = seed};
}

/// One pair of devices as a seed sees it.
struct Pair {
  study::Dealt dealt;
  models::Mlp mlp;    // trained on the source
  models::Gbdt gbdt;  // also

  Pair(study::Dealt given, std::uint64_t seed)
      : dealt(std::move(given)), mlp(untrained_mlp(seed)), gbdt(untrained_gbdt(seed)) {
    mlp.fit(dealt.source.x, dealt.source.y, dealt.source.group);
    gbdt.fit(dealt.source.x, dealt.source.y, dealt.source.group);
  }
};

struct Quality {
  OfTasks accuracy, top5;
};
using Course = std::map<std::size_t, Quality>;  // by labels of a task

template <CostModel M>
Quality quality(const M& model, const study::Dealt& dealt) {
  const study::Known test(dealt.target, dealt.target.test);
  std::vector<float> score(test.y.size());
  model.predict(test.x, score);
  const auto of = [&](const auto& metric) { return study::of_tasks(score, test.y, test.group, dealt.task, metric); };
  return {of([](auto p, auto y) { return study::ranked_pairs(p, y); }),
          of([](auto p, auto y) { return stats::top_k_score(p, y, 5); })};
}

enum class Updates : std::uint8_t {
  EveryRound,
  WhenJudged  // for adaptations whose updates do not depend on those before: the result is the same
};

/// An adaptation meets the rounds.
template <CostModel M, AdaptationFor<M> A>
Course course(M model, A adaptation, const Pair& pair, Updates updates) {
  Course found;
  for (std::size_t round = 1; round <= rounds; ++round) {
    const std::size_t labels = round * round_labels;
    const bool judged = std::find(budgets.begin(), budgets.end(), labels) != budgets.end();
    if (!judged && updates == Updates::WhenJudged) continue;
    const adaptations::LabelledPrograms own = pair.dealt.first(labels);
    adaptation.update(model, own.x, own.y, own.group);
    if (judged) found[labels] = quality(model, pair.dealt);
  }
  return found;
}

/// Learns from scratch, also with four times the labels of the largest budget.
template <CostModel M>
Course scratch(const M& untrained, const Pair& pair) {
  Course found;
  for (const std::size_t labels : {budgets[0], budgets[1], budgets[2], 4 * budgets[2]}) {
    const adaptations::LabelledPrograms own = pair.dealt.first(labels);
    M model = untrained;
    model.fit(own.x, own.y, own.group);
    found[labels] = quality(model, pair.dealt);
  }
  return found;
}

struct Recipe {
  std::string name;
  std::function<Course(const Pair&, std::uint64_t seed)> run;
};

std::vector<Recipe> recipes() {
  using namespace adaptations;
  const auto mlp = [](const char* name, auto adaptation_of, Updates updates) {
    return Recipe{name, [=](const Pair& p, std::uint64_t) { return course(p.mlp, adaptation_of(p), p, updates); }};
  };
  const auto always = [](auto adaptation) { return [=](const Pair&) { return adaptation; }; };
  constexpr Updates every = Updates::EveryRound, judged = Updates::WhenJudged;
  return {
      {"scratch", [](const Pair& p, std::uint64_t seed) { return scratch(untrained_mlp(seed), p); }},
      {"gbdt_scratch", [](const Pair& p, std::uint64_t seed) { return scratch(untrained_gbdt(seed), p); }},
      {"none", [](const Pair& p, std::uint64_t) { return Course{{0, quality(p.mlp, p.dealt)}}; }},
      {"gbdt_none", [](const Pair& p, std::uint64_t) { return Course{{0, quality(p.gbdt, p.dealt)}}; }},
      mlp("fine_tune", always(FineTune{}), judged),
      mlp("fine_tune_on", always(FineTune{.from_source = false}), every),
      mlp("fine_tune_output", always(FineTune{.trained = {"output"}}), judged),
      mlp("momentum", always(Momentum{}), every),
      mlp("momentum_m99", always(Momentum{.every = 1}), every),
      mlp("momentum_m0", always(Momentum{.momentum = 0, .every = 1}), every),
      mlp("momentum_m1", always(Momentum{.momentum = 1, .every = 1}), judged),
      mlp("momentum_source_scale", always(Momentum{.every = 1, .refit_input_scale = false}), every),
      mlp("guarded_momentum", always(Guarded<Momentum, models::Mlp>{.transfer = {.refit_input_scale = false}}), every),
      mlp(
          "coral", [](const Pair& p) { return Coral{.source = p.dealt.source}; }, judged),
      mlp(
          "feature_map", [](const Pair& p) { return FeatureMap{.source = p.dealt.source}; }, judged),
      {"shared_trunk",
       [](const Pair& p, std::uint64_t seed) {
         models::Mlp model = untrained_mlp(seed);
         model.heads = 2;
         return course(std::move(model), SharedTrunk{.sources = {p.dealt.source}}, p, Updates::WhenJudged);
       }},
      {"gbdt_warm_start",
       [](const Pair& p, std::uint64_t seed) {
         return course(Transferred<models::Gbdt>{.source = p.gbdt, .own = untrained_gbdt(seed)}, WarmStart{}, p,
                       Updates::WhenJudged);
       }},
      {"gbdt_feature_map",
       [](const Pair& p, std::uint64_t seed) {
         return course(untrained_gbdt(seed), FeatureMap{.source = p.dealt.source}, p, Updates::WhenJudged);
       }},
  };
}

/// A data set: pairs of devices, each with models of its own.
struct Data {
  std::string name;
  study::Tasks tasks;
  std::vector<std::function<study::TwoDevices()>> pairs;
  std::optional<std::uint64_t>
      collection{};  ///< `index_hash` of the one that it is a part of; published data do not grow
};

/// What the recipes made of one data set and seed; made when it is first asked for.
class Courses {
 public:
  Courses(const Data& data, std::size_t tasks, std::size_t records, std::uint64_t seed) : seed_(seed) {
    for (const auto& read : data.pairs)
      pairs_.emplace_back(study::deal(read(), data.tasks, tasks, records, seed), seed);
  }

  const Course& of(const std::string& name) {
    if (const auto known = courses_.find(name); known != courses_.end()) return known->second;
    Course made;  // one that an exception cuts is not kept
    for (const Recipe& recipe : recipes()) {
      if (recipe.name != name) continue;
      for (const Pair& pair : pairs_) {
        for (const auto& [labels, found] : recipe.run(pair, seed_)) {
          Quality& all = made[labels];
          all.accuracy.insert(found.accuracy.begin(), found.accuracy.end());
          all.top5.insert(found.top5.begin(), found.top5.end());
        }
      }
    }
    return courses_.emplace(name, std::move(made)).first->second;
  }

  /// Scores from scratch by the network or the trees, whichever is better over all tasks.
  const OfTasks& better_scratch(std::size_t labels) {
    const OfTasks& network = of("scratch").at(labels).accuracy;
    const OfTasks& trees = of("gbdt_scratch").at(labels).accuracy;
    return study::mean(network) > study::mean(trees) ? network : trees;
  }

 private:
  std::uint64_t seed_;
  std::vector<Pair> pairs_;
  std::map<std::string, Course> courses_;
};

/// The courses of a data set and seed. The last that were asked for are kept.
Courses& courses_of(const Data& data, std::size_t tasks, std::size_t records, std::uint64_t seed) {
  static std::pair<std::string, std::unique_ptr<Courses>> last;
  const std::string key = data.name + " " + std::to_string(seed);
  if (!last.second || last.first != key) {
    last.second.reset();
    last = {key, std::make_unique<Courses>(data, tasks, records, seed)};
  }
  return *last.second;
}

std::vector<Data> all_data(const study::Options& options) {
  using study::Tasks;
  std::vector<Data> all;
  const std::filesystem::path root = options.data;
  const auto kernels = [&](const char* name, const std::vector<std::array<const char*, 3>>& pairs) {
    Data& data = all.emplace_back(Data{name, Tasks::Same, {}});
    for (const auto& [kernel, source, target] : pairs)
      data.pairs.emplace_back([=, kernel = kernel, source = source, target = target] {
        return study::kernel_on_two_devices(root, kernel, source, target);
      });
  };
  std::vector<std::array<const char*, 3>> same_vendor, other_vendor;
  for (const char* kernel : {"convolution_milo", "dedispersion_milo"}) {
    for (const auto& [a, b] : {std::pair("A4000", "A100"), std::pair("W6600", "MI250X")}) {
      same_vendor.push_back({kernel, a, b});
      same_vendor.push_back({kernel, b, a});
    }
    for (const char* nvidia : {"A4000", "A100"})
      for (const char* amd : {"W6600", "MI250X"}) other_vendor.push_back({kernel, nvidia, amd});
  }
  for (const char* kernel : {"convolution", "gemm"}) {
    same_vendor.push_back({kernel, "RTX_2080_Ti", "RTX_3090"});
    same_vendor.push_back({kernel, "RTX_3090", "RTX_2080_Ti"});
  }
  kernels("kernels_of_one_vendor_same_tasks", same_vendor);
  kernels("kernels_nvidia_to_amd_same_tasks", other_vendor);
  const auto autotvm = [&](const std::string& name, const std::string& source, const std::string& target) {
    const auto read = [=] { return study::autotvm_on_two_devices(root, source, target); };
    all.push_back({name + "_same_tasks", Tasks::Same, {read}});
    all.push_back({name + "_new_tasks", Tasks::New, {read}});
  };
  const std::string x86 = "droplet-autotvm/x86_AMD3700X/resnet-18/random";
  autotvm("autotvm_3700X_to_i7_conv", x86, "droplet-autotvm/x86_inteli7-3770/resnet-18/random");
  autotvm("autotvm_3700X_to_A72_conv", x86, "droplet-autotvm/arm_cortex-a72/resnet-18/random");
  for (const std::string kind : {"conv", "depthwise"})
    autotvm("autotvm_K80_to_V100_" + kind, "roller-tvm-logs/k80/autotvm/" + kind,
            "roller-tvm-logs/v100/autotvm/" + kind);
  const auto programs = [&](const std::string& pool, const std::string& prefix, const std::set<std::string>& targets,
                            std::optional<std::uint64_t> collection) {
    const auto records = std::make_shared<data::Dataset>();
    for (const std::string& source : targets) {
      for (const std::string& target : targets) {
        if (source == target) continue;
        const auto read = [=, most = options.number("records")] {
          if (records->size() == 0) *records = study::recorded_programs(root, pool, {.records = most}, 1).records;
          return study::programs_on_two_devices(*records, source, target);
        };
        const std::string name = prefix + source + "_to_" + target;
        all.push_back({name + "_same_tasks", Tasks::Same, {read}, collection});
        all.push_back({name + "_new_tasks", Tasks::New, {read}, collection});
      }
    }
  };
  programs("gpu", "auto_scheduler_", {"K80", "V100"}, std::nullopt);
  if (const auto folder = root / study::collection_folder; std::filesystem::is_directory(folder)) {
    std::set<std::string> targets;
    for (const auto& [file, journal] : bench::read_index(folder))
      targets.insert(std::filesystem::path(file).parent_path().string());
    programs("collection", "collection_", targets, bench::index_hash(folder));
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const study::Plan plan{.name = "transfer",
                         .seeds = 3,
                         .folders = {"kernel-tuner-hub", "roller-tvm-logs", "droplet-autotvm"},
                         .options = {"source=4096", "records=700", "only="},
                         .choosing = {"only"},
                         .unread = {"threads"}};
  return study::run(argc, argv, plan, [](const study::Study& study) {
    const study::Options& options = study.options();
    const std::size_t tasks = options.tasks == 0 ? 12 : options.tasks;
    const std::size_t records = options.number("source");
    const std::string only = options.text("only");
    const std::vector<Data> known = all_data(options);
    std::vector<std::string> names;
    for (const Data& data : known) names.push_back(data.name);
    study::check_part("only", only, names);
    for (const Data& data : known) {
      if (data.name.find(only) == std::string::npos) continue;
      const study::Options own =
          data.collection ? study::depending_on(options, "collection", *data.collection) : options;
      for (const std::uint64_t seed : options.all_seeds()) {
        const auto add = [&](const std::string& name, std::size_t labels) {
          study::add_of_tasks(own, name + "@" + std::to_string(labels), data.name, seed, [=](benchmark::State&) {
            Courses& courses = courses_of(data, tasks, records, seed);
            const Quality found = courses.of(name).at(labels);
            study::TaskCounters counters{{"pairwise_accuracy", found.accuracy}, {"top5", found.top5}};
            if (labels == 0) return counters;
            counters["gain_over_scratch"] = study::difference(found.accuracy, courses.better_scratch(labels));
            if (labels < 4 * budgets.back()) {
              counters["gain_over_scratch_4x"] = study::difference(found.accuracy, courses.better_scratch(4 * labels));
            }
            return counters;
          });
        };
        for (const Recipe& recipe : recipes()) {
          if (recipe.name.ends_with("none")) {
            add(recipe.name, 0);
            continue;
          }
          for (const std::size_t labels : budgets) add(recipe.name, labels);
          if (recipe.name.ends_with("scratch")) add(recipe.name, 4 * budgets.back());
        }
      }
    }
  });
}
