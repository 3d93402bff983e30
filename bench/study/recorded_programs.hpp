// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/data/splits.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/study/study.hpp"

namespace tunewright::study {

/// Which records of a log of one task to take.
struct Selection {
  std::size_t records = 200;  ///< of a task on a target, at most
  bool first = false;         ///< the first ones; else drawn at random over the whole log
  std::size_t tasks = 0;      ///< logs of a target, at most, drawn at random; 0: all
  bool primitives = false;    ///< describe programs by their steps instead of their statements
};

/// Records of auto_scheduler logs in the order of measurement. Programs that cannot be rebuilt are left out
/// and counted.
struct RecordedPrograms {
  data::Dataset records;  ///< x: rows of statements, 164 columns; or of steps, 22 columns
  std::size_t left_out = 0;
};

/// The records below the folders of the V100 and the K80 ("gpu"), of the x86 machine ("x86"), or of all ("all").
/// Needs the library study_support.
RecordedPrograms recorded_programs(const std::filesystem::path& root, const std::string& which,
                                   const Selection& selection, std::uint64_t seed);

/// Programs with labels, relative to the best of their task on their target in all that was loaded.
struct Part {
  FeatureBatch x;
  std::vector<float> y;
  std::vector<std::uint32_t> group;
  std::vector<float> latency_s;

  static Part of(const data::Dataset& all, std::span<const std::size_t> indices) {
    Part part;
    part.x = all.subset(indices).x;
    part.y = data::pick(all.labels(), indices);
    part.group = data::pick(all.groups(), indices);
    for (const std::size_t i : indices) part.latency_s.push_back(static_cast<float>(all.cost_s[i]));
    return part;
  }
};

/// The split called `name`: within_task, by_task, or by_target_<name of the target to test on>; a tenth is
/// tested on where whole targets are not.
inline data::Split split_by(const std::string& name, const data::Dataset& data, std::uint64_t seed) {
  const Rng rng = Rng(seed).split(99);
  if (name == "within_task") return data::within_task(data, 0.1, rng);
  if (name == "by_task") return data::by_task(data, 0.1, rng);
  return data::by_target(data, {name.substr(std::string("by_target_").size())});
}

/// Share of the pairs of a task whose latencies differ by more than 2 %, more than the noise of one
/// measurement, that are in the right order.
inline double clear_pair_accuracy(std::span<const float> score, std::span<const float> y,
                                  std::span<const std::uint32_t> group) {
  double sum = 0, programs = 0;
  std::map<std::uint32_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < group.size(); ++i) groups[group[i]].push_back(i);
  for (const auto& [number, members] : groups) {
    double pairs = 0, right = 0;
    for (const std::size_t i : members) {
      for (const std::size_t j : members) {
        if (!(y[i] > 1.02F * y[j])) continue;
        pairs += 1;
        right += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
      }
    }
    const auto n = static_cast<double>(members.size());
    if (pairs > 0) sum += n * right / pairs;
    if (pairs > 0) programs += n;
  }
  return programs > 0 ? sum / programs : 0.5;
}

/// Counters every model gets: pairwise_accuracy (all pairs), pairwise_accuracy_clear (pairs more than 2 %
/// apart), top1 and top5 (best of the k / best, mean over tasks), network_top1 and network_top5 (all tasks
/// as one network, each once).
inline void count_quality(benchmark::State& state, std::span<const float> score, const Part& test) {
  state.counters["pairwise_accuracy"] = stats::pairwise_accuracy(score, test.y, test.group);
  state.counters["pairwise_accuracy_clear"] = clear_pair_accuracy(score, test.y, test.group);
  for (const std::size_t k : {std::size_t{1}, std::size_t{5}}) {
    state.counters["top" + std::to_string(k)] =
        stats::mean_over_tasks(score, test.y, test.group, [k](auto p, auto y) { return stats::top_k_score(p, y, k); });
    std::map<std::uint32_t, std::pair<std::vector<float>, std::vector<float>>> tasks;
    for (std::size_t i = 0; i < score.size(); ++i) {
      tasks[test.group[i]].first.push_back(score[i]);
      tasks[test.group[i]].second.push_back(test.latency_s[i]);
    }
    std::vector<stats::RankedTask> ranked;
    for (const auto& [group, task] : tasks) ranked.push_back({task.first, task.second});
    state.counters["network_top" + std::to_string(k)] = stats::network_top_k_score(ranked, k);
  }
}

/// Training and test programs of one benchmark; the last ones are kept, as recipes of one case run in turn.
struct Case {
  Part train, test;
  std::size_t left_out = 0;
};

/// The records of `pool` (see recorded_programs), drawn and split by `seed`.
inline const Case& recorded_case(const std::filesystem::path& root, const std::string& pool, const Selection& selection,
                                 const std::string& split, std::uint64_t seed) {
  struct Loaded {
    std::string key;
    RecordedPrograms programs;
  };
  static std::optional<Loaded> loaded;
  static std::pair<std::string, Case> last;
  const std::string key = pool + (selection.first ? " first " : " drawn ") + std::to_string(selection.records) + " " +
                          std::to_string(selection.tasks) + (selection.primitives ? " steps " : " rows ") +
                          std::to_string(seed);
  if (last.first == key + split) return last.second;
  last = {};
  if (!loaded || loaded->key != key) loaded = Loaded{key, recorded_programs(root, pool, selection, seed)};
  const data::Dataset& records = loaded->programs.records;
  const data::Split parts = split_by(split, records, seed);
  last = {key + split, Case{Part::of(records, parts.train), Part::of(records, parts.test), loaded->programs.left_out}};
  return last.second;
}

}  // namespace tunewright::study
