// SPDX-License-Identifier: Apache-2.0
// How well drafts, which learn nothing, rank programs that were measured on GPUs.
//
//   study_drafts --data=DIR [--seeds=N --records=N --tasks=N]
//
// Programs of auto_scheduler logs of a V100 and a K80 that lower to loop nests. Data sets: <device>_drawn, `--records`
// of a log (1,000), which a seed draws; they are what a guided search measured, so most are fast. <device>_first, the
// 64 that a log begins with, before anything guided the search. Recipes:
//   released, printed  Pruner's draft in the form of its code, with the numbers it has for a K80, and of its paper
//   levels             the library's, by levels of the machine
//   roofline           the larger one of arithmetic and traffic
//   random             an order by chance
// Counters, of each task:
//   pairwise_accuracy  of the programs that ran
//   best1, best5       latency of the best / that of the 1st or 5th best of the eighth that scores best: what a draft
//                      leaves to the model after it, in the proportion of Pruner's 512 of 4,000
//   top1, top5, top10  latency of the best / that of the best of so many
//   refused_valid      share of the programs that ran which the draft says the device cannot run
// Programs that failed have no latency; they are ranked, too.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "recorded_files.hpp"
#include "task_results.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_programs.hpp"
#include "tunewright/data/tvm_result.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Form = drafts::SymbolAnalyzer::Form;

/// Programs of one task.
struct Ranked {
  std::vector<float> latency_s;                     // infinite for one that failed
  std::map<std::string, std::vector<float>> score;  // by recipe
};
using Tasks = std::map<std::string, Ranked>;

const std::vector<std::string> recipes{"released", "printed", "levels", "roofline", "random"};

drafts::SymbolAnalyzer analyzer(Form form) {
  drafts::SymbolAnalyzer draft;
  draft.form = form;
  return draft;
}

void score(std::span<const data::AutoSchedulerRecord> records, data::AutoSchedulerPrograms& programs,
           const std::string& device, Rng rng, Ranked& to) {
  const Target target = gpu_target(device);
  drafts::SymbolAnalyzer as_released = analyzer(Form::Released);
  if (device == "K80") as_released.device = drafts::released_device("k80");
  auto released = as_released.for_target(target);
  auto printed = analyzer(Form::Printed).for_target(target);
  auto levels = analyzer(Form::Hierarchical).for_target(target);
  auto roofline = drafts::Roofline{}.for_target(target);
  for (const data::AutoSchedulerRecord& record : records) {
    const auto nest = programs.lower(record);
    if (!nest) continue;
    to.latency_s.push_back(static_cast<float>(cost_s(data::to_outcome(record.result))));
    to.score["released"].push_back(drafts::score_of(released, *nest));
    to.score["printed"].push_back(drafts::score_of(printed, *nest));
    to.score["levels"].push_back(drafts::score_of(levels, *nest));
    to.score["roofline"].push_back(drafts::score_of(roofline, *nest));
    to.score["random"].push_back(static_cast<float>(rng.uniform()));
  }
}

struct Set {
  std::string device;
  bool first = false;
  [[nodiscard]] std::string name() const { return device + (first ? "_first" : "_drawn"); }
};

constexpr std::ptrdiff_t fewest = 40;  // programs that ran, of which an eighth has 5

Tasks read(const study::Options& options, const Set& set, const Rng& rng) {
  constexpr std::size_t unguided = 64;  // records that a log begins with
  const std::size_t most = set.first ? unguided : options.number("records");
  auto logs =
      study::files(options.data, set.device == "K80" ? "roller-tvm-logs/k80/ansor" : "roller-tvm-logs/v100/ansor");
  Rng which = rng.split(1);
  which.shuffle(std::span(logs));
  if (options.tasks != 0) logs.resize(std::min(logs.size(), options.tasks));
  Tasks all;
  data::AutoSchedulerPrograms programs(set.device);
  for (const std::filesystem::path& log : logs) {
    std::map<std::string, std::vector<data::AutoSchedulerRecord>> of_task;
    data::read_log<data::AutoSchedulerLog>(log.string(), [&](const data::AutoSchedulerRecord& record) {
      auto& records = of_task[record.task->workload_key];
      if (!set.first || records.size() < unguided) records.push_back(record);
    });
    for (auto& [key, records] : of_task) {
      Rng draw = rng.split(2).split(all.size());
      if (!set.first) draw.shuffle(std::span(records));
      records.resize(std::min(records.size(), most));
      const Rng chance = rng.split(3).split(all.size());  // ahead of all[key], which may add one
      score(records, programs, set.device, chance, all[key]);
    }
  }
  std::erase_if(all, [](const auto& task) {
    const auto& latency_s = task.second.latency_s;
    return std::count_if(latency_s.begin(), latency_s.end(), [](float one) { return std::isfinite(one); }) < fewest;
  });
  return all;
}

/// The last ones are kept, since recipes run in turn.
const Tasks& tasks_of(const study::Options& options, const Set& set, std::uint64_t seed) {
  static std::optional<std::pair<std::string, Tasks>> last;
  const std::string key = set.name() + std::to_string(seed);
  if (!last || last->first != key) last = {key, read(options, set, Rng(seed))};
  return last->second;
}

study::TaskCounters quality(const Tasks& tasks, const std::string& recipe) {
  study::TaskCounters counters;
  for (const auto& [name, task] : tasks) {
    const std::vector<float>& score = task.score.at(recipe);
    const stats::RankedTask ranked{.prediction = score, .latency_s = task.latency_s};
    const std::size_t eighth = score.size() / 8;
    for (const std::size_t k : {1, 5})
      counters["best" + std::to_string(k)][name] = stats::network_best_k_score(std::span(&ranked, 1), eighth, k);
    for (const std::size_t k : {1, 5, 10})
      counters["top" + std::to_string(k)][name] = stats::network_top_k_score(std::span(&ranked, 1), k);
    std::vector<float> ran, speed;
    for (std::size_t i = 0; i < score.size(); ++i) {
      if (!std::isfinite(task.latency_s[i])) continue;
      ran.push_back(score[i]);
      speed.push_back(1 / task.latency_s[i]);
    }
    counters["pairwise_accuracy"][name] = stats::pairwise_accuracy(ran, speed);
    counters["refused_valid"][name] =
        static_cast<double>(std::count(ran.begin(), ran.end(), -std::numeric_limits<float>::infinity())) /
        static_cast<double>(ran.size());
  }
  return counters;
}

void add(const std::string& recipe, const Set& set, std::uint64_t seed, const study::Options& options) {
  study::add_of_tasks(options, recipe, set.name(), seed, [=](benchmark::State& state) {
    const Tasks& tasks = tasks_of(options, set, seed);
    std::size_t programs = 0;
    for (const auto& [name, task] : tasks) programs += task.latency_s.size();
    state.counters["programs"] = static_cast<double>(programs);
    return quality(tasks, recipe);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "drafts",
                     .seeds = 3,
                     .folders = {"roller-tvm-logs"},
                     .options = {"records=1000"},
                     .unread = {"threads"}},
                    [](const study::Study& study) {
                      const study::Options& options = study.options();
                      for (const char* device : {"V100", "K80"})
                        for (const bool first : {false, true})
                          for (const std::uint64_t seed : options.all_seeds())
                            for (const std::string& recipe : recipes) add(recipe, {device, first}, seed, options);
                    });
}
