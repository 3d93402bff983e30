// SPDX-License-Identifier: Apache-2.0
// How well the tree and linear models rank the programs of auto_scheduler logs, beside XGBoost on the same rows.
//
//   study_models --data=DIR [--seeds=N --records=N --tasks=N --threads=N]
//
// Data sets: <pool>_<records>_<split>. Pools: gpu (V100 and K80), x86, all. Records: `drawn` at random over a log,
// or `first`, the first 128 of a task, which the search chose before it knew much. A seed draws the records, the
// split and, in Gbdt, what is random there; of `first` records split by target it draws no more than that. Labels are
// relative to the best of the task among the programs that are learned from. Counters: see study::quality, and
//   train_s                        wall time of the whole fit, data preparation included
//   time_ratio_vs_xgboost          train_s / that of XGBoost with the same options in the same run
//   accuracy_minus_xgboost         difference of the pairwise accuracies, of each task, in points (1 / 100)
//   programs_train, programs_test, left_out (programs that could not be rebuilt)
// Networks are in study_models_networks, which is compiled for the machine; this one is compiled as XGBoost was,
// for any.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../xgboost.hpp"
#include "recorded_programs.hpp"
#include "seconds_of.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/linear.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using models::gbdt::Objective;

struct Set {
  std::string pool, split;
  study::Selection selection;
  [[nodiscard]] std::string name() const { return pool + (selection.first ? "_first_" : "_drawn_") + split; }
};

struct Fitted {
  double seconds = 0;
  std::vector<float> score;
};

template <class Model>
Fitted fit(Model model, const study::Case& data) {
  Fitted fitted;
  fitted.seconds = study::seconds_of([&] { model.fit(data.train.x, data.train.y, data.train.group); });
  fitted.score.resize(data.test.y.size());
  model.predict(data.test.x, fitted.score);
  return fitted;
}

#if defined(TUNEWRIGHT_COMPARES_WITH_XGBOOST)
Fitted fit_xgboost(const models::Gbdt& options, const study::Case& data) {
  Fitted theirs;
  std::optional<bench::XgBoost> xgboost;
  theirs.seconds = study::seconds_of([&] { xgboost.emplace(options, data.train.x, data.train.y); });
  theirs.score = xgboost->predict(data.test.x);
  return theirs;
}
#endif

study::TaskCounters count(benchmark::State& state, const Fitted& fitted, const study::Case& data) {
  state.counters["train_s"] = fitted.seconds;
  state.counters["programs_train"] = static_cast<double>(data.train.y.size());
  state.counters["programs_test"] = static_cast<double>(data.test.y.size());
  state.counters["left_out"] = static_cast<double>(data.left_out);
  return study::quality(fitted.score, data.test);
}

// What XGBoost did last by this key, so that its own row and the comparison tell of the same run.
std::map<std::string, Fitted>& xgboost_runs() {
  static std::map<std::string, Fitted> runs;
  return runs;
}

void add_pair(const std::string& name, const models::Gbdt& model, const Set& set, std::uint64_t seed,
              const study::Options& options) {
  const std::filesystem::path root = options.data;
  const auto load = [=]() -> const study::Case& {
    return study::recorded_case(root, set.pool, set.selection, set.split, seed);
  };
  [[maybe_unused]] const std::string key = name + set.name() + std::to_string(seed);
  study::add_of_tasks(options, "gbdt_" + name, set.name(), seed, [=](benchmark::State& state) {
    const study::Case& data = load();
    const Fitted ours = fit(model, data);
    study::TaskCounters counters = count(state, ours, data);
#if defined(TUNEWRIGHT_COMPARES_WITH_XGBOOST)
    Fitted theirs = fit_xgboost(model, data);
    state.counters["time_ratio_vs_xgboost"] = ours.seconds / theirs.seconds;
    counters["accuracy_minus_xgboost"] = study::difference(
        counters["pairwise_accuracy"], study::quality(theirs.score, data.test)["pairwise_accuracy"], 100);
    xgboost_runs()[key] = std::move(theirs);
#endif
    return counters;
  });
#if defined(TUNEWRIGHT_COMPARES_WITH_XGBOOST)
  study::add_of_tasks(options, "xgboost_" + name, set.name(), seed, [=](benchmark::State& state) {
    // That of another process, where the pair was stopped in between.
    if (!xgboost_runs().contains(key)) xgboost_runs()[key] = fit_xgboost(model, load());
    return count(state, xgboost_runs().at(key), load());
  });
#endif
}

template <class Model>
void add_alone(const std::string& recipe, const Model& model, const Set& set, std::uint64_t seed,
               const study::Options& options) {
  study::add_of_tasks(options, recipe, set.name(), seed, [=, root = options.data](benchmark::State& state) {
    const study::Case& data = study::recorded_case(root, set.pool, set.selection, set.split, seed);
    return count(state, fit(model, data), data);
  });
}

void add_all(const Set& set, std::uint64_t seed, const study::Options& options) {
  const auto threads = options.threads_or(2);
  const models::Gbdt usual{.threads = threads, .seed = seed + 43};
  const models::Gbdt tenset{.rounds = 300,
                            .learning_rate = 0.2F,
                            .min_child_weight = 2,
                            .gamma = 3e-3F,
                            .objective = Objective::Squared,
                            .threads = threads,
                            .seed = seed + 43};
  const models::Gbdt ansor{.rounds = options.few("ansor_rounds"),
                           .max_depth = 10,
                           .learning_rate = 0.2F,
                           .gamma = 1e-3F,
                           .threads = threads,
                           .seed = seed + 43};
  add_pair("tenset", tenset, set, seed, options);
  add_pair("ansor", ansor, set, seed, options);
  add_pair("default", usual, set, seed, options);
  for (const auto& [name, objective] :
       std::vector<std::pair<std::string, Objective>>{{"gbdt_squared", Objective::Squared},
                                                      {"gbdt_lambda_rank", Objective::LambdaRank},
                                                      {"gbdt_rank_pairwise", Objective::RankPairwise},
                                                      {"gbdt_quantile", Objective::Quantile}}) {
    models::Gbdt model = usual;
    model.objective = objective;
    add_alone(name, model, set, seed, options);
  }
  add_alone("linear", models::Linear{}, set, seed, options);
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "models",
                     .seeds = 3,
                     .folders = {"roller-tvm-logs", "bennu-ansor"},
                     .options = {"records=100", "ansor_rounds=100"}},
                    [](const study::Study& study) {
                      const study::Options& options = study.options();
                      const study::Selection drawn{.records = options.number("records"), .tasks = options.tasks};
                      const study::Selection first{.records = 128, .first = true, .tasks = options.tasks};
                      for (const std::uint64_t seed : options.all_seeds()) {
                        for (const study::Selection& selection : {drawn, first}) {
                          for (const char* split : {"within_task", "by_task", "by_target_V100", "by_target_K80"})
                            add_all({"gpu", split, selection}, seed, options);
                          add_all({"x86", "within_task", selection}, seed, options);
                          add_all({"all", "by_target_x86", selection}, seed, options);
                        }
                      }
                    });
}
