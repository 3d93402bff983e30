// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

#include "network_choice.hpp"
#include "task_results.hpp"
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
  /// What programs are described by: their statements, these and movements of data, or their steps.
  enum class Rows : std::uint8_t { Statements, StatementsAndDataflow, Steps };
  Rows rows = Rows::Statements;
};

/// Records of auto_scheduler logs, or of a collection, in the order of measurement. Programs that cannot be rebuilt are
/// left out and counted.
struct RecordedPrograms {
  data::Dataset records;  ///< x: as `Selection::rows` says: 164 columns, 188, or 22
  std::size_t left_out = 0;
  NetworksOfTasks networks{};  ///< of a collection
  std::vector<bool> drawn{};   ///< [records] of a collection: whether it was drawn at random, not found by a search
};

/// The folder below the data that holds a collection: what `collect` measures.
inline constexpr const char* collection_folder = "collection";

/// The records below the folders of the V100 and the K80 ("gpu"), of the x86 machine ("x86"), of these ("all"), or of a
/// collection ("collection"), whose targets are called as their folders are. Needs the library study_support.
RecordedPrograms recorded_programs(const std::filesystem::path& root, const std::string& which,
                                   const Selection& selection, std::uint64_t seed);

/// Programs with labels, relative to the best of their task on their target among these programs: who learns from a
/// part does not know how fast the others are.
struct Part {
  FeatureBatch x;
  std::vector<float> y;
  std::vector<std::uint32_t> group;
  std::vector<float> latency_s;
  std::map<std::uint32_t, std::string> task;  // of a group

  static Part of(const data::Dataset& all, std::span<const std::size_t> indices) {
    const data::Dataset known = all.subset(indices);
    Part part{
        .x = known.x, .y = known.labels(), .group = data::pick(all.groups(), indices), .latency_s = {}, .task = {}};
    for (std::size_t i = 0; i < known.size(); ++i) {
      part.latency_s.push_back(static_cast<float>(known.cost_s[i]));
      part.task[part.group[i]] = known.tasks[known.task[i]].name;
    }
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

/// Share of the pairs of one task whose latencies differ by more than 2 %, more than the noise of one measurement, that
/// are in the right order; NaN without such pairs.
inline double clear_pair_accuracy(std::span<const float> score, std::span<const float> y) {
  double pairs = 0, right = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      if (!(y[i] > 1.02F * y[j])) continue;
      pairs += 1;
      right += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
    }
  }
  return pairs > 0 ? right / pairs : std::numeric_limits<double>::quiet_NaN();
}

/// Pairwise accuracy of one task; NaN where no two labels differ.
inline double ranked_pairs(std::span<const float> score, std::span<const float> y) {
  const bool differ = std::any_of(y.begin(), y.end(), [&](float one) { return one != y.front(); });
  return differ ? stats::pairwise_accuracy(score, y) : std::numeric_limits<double>::quiet_NaN();
}

/// What every model is judged by, of each task: pairwise_accuracy (all pairs), pairwise_accuracy_clear (pairs more than
/// 2 % apart), top1 and top5 (best of the k / best). A task on two devices counts once, as the mean of both.
inline TaskCounters quality(std::span<const float> score, const Part& test) {
  const auto of = [&](const auto& metric) { return of_tasks(score, test.y, test.group, test.task, metric); };
  return {{"pairwise_accuracy", of([](auto p, auto y) { return ranked_pairs(p, y); })},
          {"pairwise_accuracy_clear", of([](auto p, auto y) { return clear_pair_accuracy(p, y); })},
          {"top1", of([](auto p, auto y) { return stats::top_k_score(p, y, 1); })},
          {"top5", of([](auto p, auto y) { return stats::top_k_score(p, y, 5); })}};
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
                          std::to_string(selection.tasks) + " " + std::to_string(static_cast<int>(selection.rows)) +
                          " " + std::to_string(seed);
  if (last.first == key + split) return last.second;
  last = {};
  if (!loaded || loaded->key != key) loaded = Loaded{key, recorded_programs(root, pool, selection, seed)};
  const data::Dataset& records = loaded->programs.records;
  const data::Split parts = split_by(split, records, seed);
  last = {key + split, Case{Part::of(records, parts.train), Part::of(records, parts.test), loaded->programs.left_out}};
  return last.second;
}

}  // namespace tunewright::study
