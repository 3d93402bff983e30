// SPDX-License-Identifier: Apache-2.0
// How many labels a sampler needs before a model ranks as well as one taught the whole pool.
//
//   study_samplers --data=DIR [--part=spaces|tasks|all] [--seeds=N --first_seed=N --tasks=N]
//                  [--models=gbdt,mlp] [--pool=N --test=N]
//
// spaces: every exhaustive space one by one. tasks: Ansor and AutoTVM logs one by one, `--tasks` of them. Programs of
// many tasks at once are another study, study_label_curve.
//
// Single spaces: --pool configurations are drawn as the pool and --test others as the test set, which no sampler sees.
// A hundredth of the pool (8 at least) is labelled at random, the same for all samplers, then as many as make 2, 3, 4,
// 5, 7.5, 10, 15, 20, 30 and 50 % of it. The model is a committee of three, trained anew after each step; it is
// judged on the test set and chooses the next labels. Labels are relative to the best that is labelled. Counters:
//   accuracy_P, top5_P, overestimation_P, found_P   with P % labelled: pairwise accuracy, best of the five best
//                         predicted / best, share of programs slower than twice the best among the best predicted
//                         hundredth, all on the test set; best labelled / best of the pool
//   full_accuracy, full_top5, full_overestimation   of the model taught the whole pool
//   share_to_full_accuracy, share_to_full_top5      share of the pool after which the value is within one point of
//                         that, between steps by straight lines; 1 where it is not within half the pool
//   labels_vs_random      labels needed for the accuracy that random labels reach with a tenth of the pool / that
//                         tenth; 5 (half the pool) where it is not reached
//   found_minus_diverse_top_k   found_10 less that of diverse_top_k
// Data "mean_of_..." are the means of all counters over the data sets of that name, which are its tasks.
//
// Names: biased_<weight> at deviation 1 of each coordinate of the embedding, biased_<weight>_raw without;
// biased_high_half_random has a random share of a half instead of a tenth.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chosen_labels.hpp"
#include "recorded_files.hpp"
#include "recorded_programs.hpp"
#include "task_results.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/data/autotvm_table.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/samplers/badge.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/samplers/cluster_centres.hpp"
#include "tunewright/samplers/core_set.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/samplers/uncertainty.hpp"
#include "tunewright/samplers/uncertainty_ping_pong.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using samplers::Bias;
using study::Curve;
using study::Indices;
using study::Known;
using study::Model;
using study::Programs;
using study::Quality;

const std::vector<double> steps{.01, .02, .03, .04, .05, .075, .1, .15, .2, .3, .5};

using Counters = std::map<std::string, double>;

std::string percent(double share) { return std::to_string(static_cast<int>(std::lround(100 * share))); }

// What one model and one sampler make of one data set.
using Learn = std::function<Curve(const Programs&, const std::vector<double>&, std::uint64_t)>;

struct Recipe {
  std::string model, sampler;
  Learn learn;
  [[nodiscard]] std::string name() const { return model + "_" + sampler; }
};

// Programs of a data set, drawn by a seed.
struct Source {
  std::string name, group;
  std::function<Programs(std::uint64_t seed)> draw;
};

void add_recipes(std::vector<Recipe>& recipes, const std::string& name, const Model& model) {
  const auto add = [&](const std::string& sampler_name, auto sampler) {
    recipes.push_back(
        {name, sampler_name, [=](const Programs& all, const std::vector<double>& shares, std::uint64_t seed) {
           return study::learn(all, model, sampler, shares, seed);
         }});
  };
  add("random", samplers::Random{});
  const std::vector<std::pair<std::string, Bias>> biases{{"none", Bias::None},     {"high", Bias::High},
                                                         {"strata", Bias::Strata}, {"restore", Bias::Restore},
                                                         {"dpp", Bias::Dpp},       {"qbc", Bias::Qbc}};
  for (const auto& [bias_name, bias] : biases) {
    add("biased_" + bias_name, samplers::BiasedDiversity{.bias = bias, .standardised = true});
    add("biased_" + bias_name + "_raw", samplers::BiasedDiversity{.bias = bias, .standardised = false});
  }
  // Half of the labels at random.
  add("biased_high_half_random",
      samplers::BiasedDiversity{.bias = Bias::High, .random_share = 0.5, .standardised = false});
  // Diversity alone, without the random share.
  add("brute_force", samplers::BiasedDiversity{.bias = Bias::None, .random_share = 0, .standardised = false});
  add("top_k", samplers::TopK{});
  add("epsilon_greedy", samplers::EpsilonGreedy{});
  add("variance", samplers::Uncertainty{.acquisition = samplers::Acquisition::Variance});
  add("margin", samplers::Uncertainty{.acquisition = samplers::Acquisition::Margin});
  add("expected_improvement", samplers::Uncertainty{});
  add("upper_confidence_bound", samplers::Uncertainty{.acquisition = samplers::Acquisition::UpperConfidenceBound});
  add("core_set", samplers::CoreSet{});
  add("badge", samplers::Badge{});
  add("cluster_centres", samplers::ClusterCentres{});
  add("diverse_top_k", samplers::DiverseTopK{});
  using Errors = models::Gbdt;
  add("ping_pong", samplers::UncertaintyPingPong<Errors>{
                       .error_predictor = {.rounds = 30, .objective = models::gbdt::Objective::Squared, .threads = 1}});
}

// Failures must teach: the objective is the plain squared error.
models::Committee<models::Gbdt, 3> small_gbdt() {
  return {.member = {.objective = models::gbdt::Objective::Squared, .embedding_columns = 128, .threads = 1},
          .threads = 1};
}
models::Committee<models::Mlp, 3> small_mlp() {
  nn::Training training;
  training.loss = nn::Loss::MeanSquared;
  training.batch_programs = 32;
  training.learning_rate = 3e-3F;
  training.epochs = 40;
  training.least_steps = 300;
  training.schedule = nn::Schedule::Cosine;
  return {.member = {.hidden = 32, .training = training, .threads = 1}, .threads = 1};
}

// The pool and the test set of one task.
Programs draw(std::shared_ptr<const Programs> whole, std::size_t pool, std::size_t test, std::uint64_t seed) {
  Programs all = *whole;
  Indices order = positions(all.cost_s.size());
  Rng(seed).split(77).shuffle(std::span(order));
  const std::size_t held = std::min(test, order.size() / 4), kept = std::min(pool, order.size() - held);
  all.test.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(held));
  all.pool.assign(order.begin() + static_cast<std::ptrdiff_t>(held),
                  order.begin() + static_cast<std::ptrdiff_t>(held + kept));
  return all;
}

Programs programs_of(const data::Table& table) {
  Programs all;
  const std::vector<Knob> given = data::knobs_of(table);
  features::Knobs knobs{.knobs = given};
  std::vector<std::string> names;
  for (const Knob& knob : given) names.push_back(knob.name);
  const auto places = knobs.places(names);
  all.x = FeatureBatch(knobs.schema().columns.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    knobs.describe(places, data::knob_values(table, i), all.x);
    all.cost_s.push_back(table.cost_s(i));
  }
  all.group.assign(table.size(), 0);
  return all;
}

Source source(const std::string& name, const std::string& group, const study::Options& options,
              std::function<Programs()> load) {
  // Loaded when first asked for, and kept.
  auto kept = std::make_shared<std::shared_ptr<const Programs>>();
  const std::size_t pool = options.number("pool"), test = options.number("test");
  return {name, group, [=](std::uint64_t seed) {
            if (!*kept) *kept = std::make_shared<const Programs>(load());
            return draw(*kept, pool, test, seed);
          }};
}

std::string stem(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  name.resize(name.find('.'));
  return name;
}

std::vector<Source> exhaustive_spaces(const study::Options& options) {
  std::vector<Source> sources;
  for (const char* kernel : {"convolution", "convolution_milo", "dedispersion_milo", "gemm", "ktt"}) {
    for (const auto& file : study::files(options.data, std::string("kernel-tuner-hub/") + kernel, ".json.gz")) {
      if (stem(file).ends_with("_T4")) continue;  // one of the others in another format
      sources.push_back(source(std::string(kernel) + "_" + stem(file), "kernel_tuner", options, [file] {
        return programs_of(data::read_table(file.string(), {.device = "device"}).table);
      }));
    }
  }
  for (const char* device : {"x86_AMD3700X", "x86_inteli7-3770"}) {
    const std::string folder = std::string("droplet-autotvm/") + device + "/resnet-18/random";
    if (!std::filesystem::is_directory(options.data / folder)) continue;
    for (const auto& file : study::files(options.data, folder)) {
      sources.push_back(source(std::string(device) + "_" + stem(file), "droplet_x86", options, [file] {
        return programs_of(data::read_autotvm_table(file.string(), {.device = "device"}).table);
      }));
    }
  }
  return sources;
}

// The programs of one group of recorded auto_scheduler programs.
Programs programs_of(const data::Dataset& records, std::uint32_t group) {
  Programs all;
  all.x = FeatureBatch(records.x.columns());
  const std::vector<std::uint32_t> groups = records.groups();
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (groups[i] != group) continue;
    all.x.append_program(records.x.program(i));
    all.cost_s.push_back(records.cost_s[i]);
  }
  all.group.assign(all.cost_s.size(), 0);
  return all;
}

// Half of them from each tuner. Of auto_scheduler logs those with enough records to be told apart.
std::vector<Source> recorded_tasks(const study::Options& options, std::size_t count) {
  std::vector<Source> sources;
  const std::size_t of_device = (count + 3) / 4;
  constexpr std::size_t least_records = 400;
  auto ansor = std::make_shared<data::Dataset>();
  auto large = std::make_shared<std::vector<std::uint32_t>>();
  for (std::size_t number = 0; number < 2 * of_device; ++number) {
    sources.push_back(source("ansor_" + std::to_string(number), "ansor_tasks", options, [=] {
      if (ansor->size() == 0) {
        *ansor = study::recorded_programs(options.data, "gpu", {.records = 1000, .tasks = 2 * of_device}, 1).records;
        const auto groups = ansor->by_group();
        for (std::size_t g = 0; g < groups.size(); ++g)
          if (groups[g].size() >= least_records) large->push_back(static_cast<std::uint32_t>(g));
      }
      if (number >= large->size()) throw std::runtime_error("too few logs of 400 records; give fewer --tasks");
      return programs_of(*ansor, (*large)[number]);
    }));
  }
  for (const char* device : {"v100", "k80"}) {
    const auto logs = study::files(options.data, std::string("roller-tvm-logs/") + device + "/autotvm");
    const std::size_t wanted = std::min(logs.size(), of_device);
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::filesystem::path file = logs[i * logs.size() / wanted];
      sources.push_back(source(std::string(device) + "_" + stem(file), "autotvm_tasks", options, [file] {
        return programs_of(data::read_autotvm_table(file.string(), {.device = "device"}).table);
      }));
    }
  }
  return sources;
}

Counters count(const Curve& curve, const Quality& full, const Curve& random) {
  Counters counters{
      {"full_accuracy", full.accuracy}, {"full_top5", full.top5}, {"full_overestimation", full.overestimation}};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const double share = steps[i];
    if (share != .02 && share != .05 && share != .1 && share != .2 && share != .5) continue;
    const Quality& q = curve[i].quality;
    counters["accuracy_" + percent(share)] = q.accuracy;
    counters["top5_" + percent(share)] = q.top5;
    counters["overestimation_" + percent(share)] = q.overestimation;
    counters["found_" + percent(share)] = q.found;
  }
  counters["share_to_full_accuracy"] = study::share_reaching(curve, &Quality::accuracy, full.accuracy - 0.01, 1);
  counters["share_to_full_top5"] = study::share_reaching(curve, &Quality::top5, full.top5 - 0.01, 1);
  const auto tenth = static_cast<std::size_t>(std::find(steps.begin(), steps.end(), .1) - steps.begin());
  counters["labels_vs_random"] =
      study::share_reaching(curve, &Quality::accuracy, random[tenth].quality.accuracy, .5) / random[tenth].share;
  return counters;
}

// Every recipe on every source, then the means over sources.
void add_single(const study::Options& options, const std::vector<Recipe>& recipes, const std::vector<Source>& sources,
                std::uint64_t seed) {
  struct Shared {  // of one source, for all recipes
    std::string key;
    Programs all;
    std::map<std::string, Quality> full;  // by model, like the next
    std::map<std::string, Curve> random;
  };
  static Shared shared;
  std::map<std::string, std::vector<std::string>> groups;  // sources of each
  for (const Source& source : sources) {
    groups[source.group].push_back(source.name);
    for (const Recipe& recipe : recipes) {
      study::add_of_tasks(options, recipe.name(), source.name, seed, [=](benchmark::State&) {
        const std::string key = source.name + std::to_string(seed);
        if (shared.key != key) shared = {key, source.draw(seed), {}, {}};
        if (!shared.full.contains(recipe.model)) {
          shared.full[recipe.model] = recipe.learn(shared.all, {1.0}, seed).front().quality;
          for (const Recipe& other : recipes)
            if (other.model == recipe.model && other.sampler == "random")
              shared.random[recipe.model] = other.learn(shared.all, steps, seed);
        }
        const Curve& random = shared.random.at(recipe.model);
        const Curve curve = recipe.sampler == "random" ? random : recipe.learn(shared.all, steps, seed);
        study::TaskCounters counters;
        for (const auto& [name, value] : count(curve, shared.full.at(recipe.model), random))
          counters[name][source.name] = value;
        return counters;
      });
    }
  }
  for (const auto& [group, names] : groups) {
    for (const Recipe& recipe : recipes) {
      const auto found = [=, names = names](const std::string& name) {
        study::TaskCounters all;
        for (const std::string& source : names) {
          const auto run = study::find_run(study::finished_runs(options), name, source, seed, conditions_of(options));
          // OUT would keep the mean of those that a filter left, or that did not fail.
          if (!run) throw std::runtime_error("'" + source + "' has no result; run all data sets for their mean");
          for (const auto& [counter, tasks] : run->counters) all[counter].insert(tasks.begin(), tasks.end());
        }
        return all;
      };
      study::add_of_tasks(options, recipe.name(), "mean_of_" + group, seed, [=](auto&) {
        study::TaskCounters counters = found(recipe.name());
        const study::TaskCounters diverse = found(recipe.model + "_diverse_top_k");
        for (const auto& [source, value] : counters.at("found_10"))
          counters["found_minus_diverse_top_k"][source] = value - diverse.at("found_10").at(source);
        return counters;
      });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "samplers",
                     .seeds = 1,
                     .folders = {"kernel-tuner-hub", "roller-tvm-logs"},
                     .options = {"part=all", "models=gbdt,mlp", "pool=2000", "test=1000"},
                     .choosing = {"part"},
                     .unread = {"threads"}},
                    [](const study::Study& study) {
                      const study::Options& options = study.options();
                      const std::string part = options.text("part"), models = options.text("models");
                      const auto wants = [&](const char* one) { return part == one || part == "all"; };
                      const auto models_has = [&](const std::string& one) {
                        return ("," + models + ",").find("," + one + ",") != std::string::npos;
                      };
                      if (!wants("spaces") && !wants("tasks"))
                        throw std::invalid_argument("--part=" + part + "; give spaces, tasks or all");
                      if (models != "gbdt" && models != "mlp" && models != "gbdt,mlp")
                        throw std::invalid_argument("--models=" + models + "; give gbdt, mlp or gbdt,mlp");
                      std::vector<Recipe> single;
                      if (models_has("gbdt")) add_recipes(single, "gbdt", Model(small_gbdt()));
                      if (models_has("mlp")) add_recipes(single, "mlp", Model(small_mlp()));
                      for (const std::uint64_t seed : options.all_seeds()) {
                        if (wants("spaces")) add_single(options, single, exhaustive_spaces(options), seed);
                        if (wants("tasks")) {
                          add_single(options, single, recorded_tasks(options, options.tasks == 0 ? 40 : options.tasks),
                                     seed);
                        }
                      }
                    });
}
