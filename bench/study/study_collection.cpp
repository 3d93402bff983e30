// SPDX-License-Identifier: Apache-2.0
//
// What models are worth on a network and a target that they do not know, on programs that `collect` measured.
//
//   study_collection --data=DIR [--seeds=N --first_seed=N --records=N --only=PART]
//
// DIR/collection is the folder of the collection. Data are named <network>_on_<target>; all programs of the tasks of
// that network on that target judge. Of the tasks that teach, a seed draws --records=N programs each (default 200).
//
// Recipes of part `models` are called <model>_<teachers>: other_networks on the same target, the network's own tasks on
// other_targets, or other_networks_and_targets. gbdt has the library's default options, gbdt_pairwise the objective of
// ranking, 300 rounds and a learning rate of 0.2; names with _quick are networks with the library's quick settings.
// `chance` scores at random.
//
// Recipes of part `labels` learn from the other networks on the target: labels_all from all labels, labels_random from
// 5 %, drawn at random, and labels_<bias> from as many, chosen by samplers::BiasedDiversity with a committee of two
// small ensembles as in study_label_curve. What learns from them is gbdt, and with _pairwise gbdt_pairwise.
//
// Counters: see study::quality, of each task; and of the network, see study::relative_latency:
//   latency_top1, 5, 16, 64     of the best of what the model ranks first among all programs of a task
//   latency_drawn16, 64         of what it ranks first among those drawn at random, as many as the collection's index
//                               tells: no measurement had a part in making these
//
// Results of a collection that has changed since are made anew.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../collection_index.hpp"
#include "chosen_labels.hpp"
#include "network_choice.hpp"
#include "recorded_programs.hpp"
#include "seconds_of.hpp"
#include "task_results.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using samplers::Bias;
using study::Indices;
using study::RecordedPrograms;
using study::Teachers;
using Rows = study::Selection::Rows;

constexpr std::size_t all_records = 1'000'000;
constexpr double labelled_share = 0.05;

/// A network on a target.
struct Cell {
  std::string network, target;
  [[nodiscard]] std::string name() const { return network + "_on_" + target; }
};

std::vector<Cell> cells(const std::filesystem::path& collection) {
  std::set<std::pair<std::string, std::string>> known;
  for (const auto& [file, journal] : bench::read_index(collection))
    for (const auto& [network, times] : journal.networks)
      known.emplace(network, std::filesystem::path(file).parent_path().string());
  std::vector<Cell> all;
  for (const auto& [network, target] : known) all.push_back({network, target});
  return all;
}

/// The collection; the rows that were asked for last are kept.
const RecordedPrograms& collection(const std::filesystem::path& root, Rows rows) {
  static std::optional<std::pair<Rows, RecordedPrograms>> last;
  if (!last || last->first != rows) {
    last.reset();
    const study::Selection selection{.records = all_records, .first = true, .rows = rows};
    last.emplace(rows, study::recorded_programs(root, study::collection_folder, selection, 1));
  }
  return last->second;
}

/// Ranking of each task and latency of the network. `test` are the programs at `indices`, in the order of measurement.
study::TaskCounters judged(std::span<const float> score, const study::Part& test, const RecordedPrograms& programs,
                           std::span<const std::size_t> indices, const Cell& cell) {
  std::map<std::uint32_t, study::ScoredTask> scored;
  for (std::size_t i = 0; i < score.size(); ++i) {
    study::ScoredTask& task = scored[test.group[i]];
    if (programs.drawn[indices[i]]) ++task.drawn;
    task.occurrences = programs.networks.at(test.task.at(test.group[i])).at(cell.network);
    task.score.push_back(score[i]);
    task.latency_s.push_back(static_cast<double>(test.latency_s[i]));
  }
  std::vector<study::ScoredTask> tasks;
  for (auto& [group, task] : scored) tasks.push_back(std::move(task));
  study::TaskCounters counters = study::quality(score, test);
  for (const std::size_t k : {1, 5, 16, 64})
    counters["latency_top" + std::to_string(k)][cell.name()] = study::relative_latency(tasks, k);
  for (const std::size_t k : {16, 64})
    counters["latency_drawn" + std::to_string(k)][cell.name()] = study::relative_latency(tasks, k, study::Among::Drawn);
  return counters;
}

/// Trains on `train` and judges.
template <CostModel M>
study::TaskCounters taught(benchmark::State& state, M model, const RecordedPrograms& programs,
                           std::span<const std::size_t> train, std::span<const std::size_t> test, const Cell& cell) {
  const auto known = study::Part::of(programs.records, train), judge = study::Part::of(programs.records, test);
  state.counters["train_s"] = study::seconds_of([&] { model.fit(known.x, known.y, known.group); });
  state.counters["programs_train"] = static_cast<double>(known.y.size());
  state.counters["programs_test"] = static_cast<double>(judge.y.size());
  std::vector<float> score(judge.y.size());
  model.predict(judge.x, score);
  return judged(score, judge, programs, test, cell);
}

/// At most `records` of each task on each target among `from`, at random.
Indices drawn(const data::Dataset& data, const Indices& from, std::size_t records, const Rng& rng) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Indices> of_task;
  for (const std::size_t i : from) of_task[{data.task[i], data.target[i]}].push_back(i);
  Indices taken;
  std::uint64_t stream = 0;
  for (auto& [task, members] : of_task) {
    rng.split(stream++).shuffle(std::span(members));
    members.resize(std::min(members.size(), records));
    taken.insert(taken.end(), members.begin(), members.end());
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

models::Gbdt usual_trees(unsigned threads, std::uint64_t seed) { return {.threads = threads, .seed = seed + 43}; }
models::Gbdt pairwise_trees(unsigned threads, std::uint64_t seed) {
  return {.rounds = 300,
          .learning_rate = 0.2F,
          .objective = models::gbdt::Objective::RankPairwise,
          .threads = threads,
          .seed = seed + 43};
}

/// Positions of the share of `pool` that a sampler labels, learning as it goes.
Indices chosen_labels(const data::Dataset& data, const Indices& pool, Bias bias, std::uint64_t seed) {
  study::Programs all{.x = data.x, .cost_s = data.cost_s, .group = data.groups(), .pool = pool, .test = {}};
  const study::Model chooser(models::Committee<models::Gbdt, 2>{
      .member = {.rounds = 50, .learning_rate = 0.2F, .embedding_columns = 128, .threads = 1},
      .bootstrap = true,
      .threads = 1});
  constexpr std::size_t least = 2;  // of a task, at random, before there is a model
  Indices chosen;
  study::label(all, chooser, samplers::BiasedDiversity{.bias = bias, .standardised = false},
               {.005, .01, .02, labelled_share}, least, seed,
               [&](const study::Model&, const Indices& labelled) { chosen = labelled; });
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void add_models(const study::Options& options, const std::vector<Cell>& all, std::uint64_t seed) {
  const std::filesystem::path root = options.data;
  const std::size_t records = options.number("records");
  const unsigned threads = options.threads_or(1);
  const auto add = [&](const std::string& name, const auto& model, Rows rows) {
    for (const Cell& cell : all) {
      for (const auto& [teachers, who] :
           {std::pair(Teachers::OtherNetworks, "other_networks"), std::pair(Teachers::OtherTargets, "other_targets"),
            std::pair(Teachers::Both, "other_networks_and_targets")}) {
        study::add_of_tasks(
            options, name + "_" + who, cell.name(), seed, [=, teachers = teachers](benchmark::State& state) {
              const RecordedPrograms& programs = collection(root, rows);
              const auto split =
                  study::hold_out(programs.records, programs.networks, cell.network, cell.target, teachers);
              const Indices train = drawn(programs.records, split.train, records, Rng(seed).split(21));
              return taught(state, model, programs, train, split.test, cell);
            });
      }
    }
  };
  for (const Cell& cell : all) {
    study::add_of_tasks(options, "chance", cell.name(), seed, [=](benchmark::State&) {
      const RecordedPrograms& programs = collection(root, Rows::Statements);
      const auto split =
          study::hold_out(programs.records, programs.networks, cell.network, cell.target, Teachers::OtherNetworks);
      const auto test = study::Part::of(programs.records, split.test);
      Rng rng = Rng(seed).split(22);
      std::vector<float> score(test.y.size());
      for (float& one : score) one = static_cast<float>(rng.uniform());
      return judged(score, test, programs, split.test, cell);
    });
  }
  const auto seeded = [&](auto model) {
    model.threads = threads;
    model.seed = seed + 43;
    return model;
  };
  add("gbdt", usual_trees(threads, seed), Rows::Statements);
  add("gbdt_pairwise", pairwise_trees(threads, seed), Rows::Statements);
  add("mlp_quick", seeded(models::Mlp::quick()), Rows::Statements);
  add("pattern_aware_quick", seeded(models::PatternAware::quick()), Rows::StatementsAndDataflow);
  add("primitive_attention_quick", seeded(models::PrimitiveAttention::quick()), Rows::Steps);
}

void add_labels(const study::Options& options, const std::vector<Cell>& all, std::uint64_t seed) {
  const std::filesystem::path root = options.data;
  const unsigned threads = options.threads_or(1);
  for (const Cell& cell : all) {
    // What both judges are taught is chosen once.
    const auto choices = std::make_shared<std::map<std::string, Indices>>();
    const auto add = [&](const std::string& name, auto labelled) {
      for (const auto& [suffix, judge] :
           {std::pair("", usual_trees(threads, seed)), std::pair("_pairwise", pairwise_trees(threads, seed))}) {
        study::add_of_tasks(options, name + suffix, cell.name(), seed, [=, judge = judge](benchmark::State& state) {
          const RecordedPrograms& programs = collection(root, Rows::Statements);
          const auto split =
              study::hold_out(programs.records, programs.networks, cell.network, cell.target, Teachers::OtherNetworks);
          Indices& chosen = (*choices)[name];
          if (chosen.empty()) chosen = labelled(programs.records, split.train);
          return taught(state, judge, programs, chosen, split.test, cell);
        });
      }
    };
    add("labels_all", [](const data::Dataset&, const Indices& pool) { return pool; });
    add("labels_random", [=](const data::Dataset&, Indices pool) {
      Rng(seed).split(23).shuffle(std::span(pool));
      pool.resize(static_cast<std::size_t>(std::lround(labelled_share * static_cast<double>(pool.size()))));
      std::sort(pool.begin(), pool.end());
      return pool;
    });
    for (const auto& [name, bias] : {std::pair("high", Bias::High), std::pair("restore", Bias::Restore)}) {
      add(std::string("labels_") + name, [=, bias = bias](const data::Dataset& data, const Indices& pool) {
        return chosen_labels(data, pool, bias, seed);
      });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "collection",
                     .seeds = 3,
                     .folders = {study::collection_folder},
                     .options = {"records=200", "only="},
                     .choosing = {"only"},
                     .unread = {"tasks"}},
                    [](const study::Study& study) {
                      const std::filesystem::path folder = study.options().data / study::collection_folder;
                      const std::vector<Cell> all = cells(folder);
                      const study::Options options =
                          study::depending_on(study.options(), "collection", bench::index_hash(folder));
                      const std::string only = options.text("only");
                      if (!only.empty() && only != "labels" && only != "models")
                        throw std::invalid_argument("--only=" + only + "; give labels or models, or leave it out");
                      for (const std::uint64_t seed : options.all_seeds()) {
                        if (only != "labels") add_models(options, all, seed);
                        if (only != "models") add_labels(options, all, seed);
                      }
                    });
}
