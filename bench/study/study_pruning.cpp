// SPDX-License-Identifier: Apache-2.0
// What training on a pruned dataset costs: share of the training set removed against the change of pairwise accuracy.
//
//   study_pruning --data=DIR [--seeds=N --records=N --tasks=N --threads=N]
//
// Data are named <half>_<machines>_<split>. Rules are chosen by the tasks of `choose` and judged by those of `judge`:
// of the names of all tasks in order, every other one, so that no task is in both. Machines: `gpu`, the V100 and the
// K80, both halves; `x86`, all tasks, to judge alone. The training side of a split is pruned, the test side stays
// whole. Labels are relative to the best of the task among the programs that are learned from. A seed draws records,
// split and pruning.
// Recipes: `full` (nothing removed); `uniform@P` (P percent removed at random, for comparison);
// `default` (data::Pruning as it comes: near-duplicates go), `default_half_as_many` (it keeps half as many),
// `all_stages` (tasks drawn by their work, slow records thinned out, as the paper names them),
// `prune_rows<R>_floor<F>_slow<S>` (these two stages with other percentages), `tasks_only`, `slow_only`,
// `invalid_only` (one stage each), `far_labels` (records of unlike latency stay), `without_<N>x_slower` (slower ones
// go, but for a share, then others at random). Counters, see also study::quality:
//   removed_percent       of the training records
//   accuracy_lost         of each task: pairwise accuracy of `full` less this one's, in points (1 / 100); negative:
//                         gained
//   train_s, train_s_full time of the fit
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recorded_programs.hpp"
#include "seconds_of.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/pruning.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;

// Which records, and how they are split.
struct Set {
  std::string half, machines, split;
  [[nodiscard]] std::string name() const { return half + "_" + machines + "_" + split; }
};

// The records of one seed, split.
struct Sides {
  data::Dataset records, train;
  data::Split split;
  study::Part test;
  study::OfTasks full_accuracy;
  double full_s = 0;
};

struct Fitted {
  std::vector<float> score;
  double seconds = 0;
};

Fitted fit(const Sides& sides, const std::vector<std::size_t>& kept, unsigned threads, std::uint64_t seed) {
  std::vector<std::size_t> of_all;
  for (const std::size_t i : kept) of_all.push_back(sides.split.train[i]);
  const study::Part part = study::Part::of(sides.records, of_all);
  models::Gbdt model{.threads = threads, .seed = seed + 43};
  Fitted fitted;
  fitted.seconds = study::seconds_of([&] { model.fit(part.x, part.y, part.group); });
  fitted.score.resize(sides.test.y.size());
  model.predict(sides.test.x, fitted.score);
  return fitted;
}

std::vector<std::size_t> everything(const Sides& sides) { return positions(sides.train.size()); }

// Every other task by name, so that both halves have operators of all classes.
data::Dataset half_of(const data::Dataset& all, const std::string& half) {
  if (half != "choose" && half != "judge") return all;
  std::map<std::string, bool> chosen_by;
  for (const data::DatasetTask& task : all.tasks) chosen_by.emplace(task.name, false);
  bool choose = false;
  for (auto& [name, one] : chosen_by) one = choose = !choose;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (chosen_by.at(all.tasks[all.task[i]].name) == (half == "choose")) kept.push_back(i);
  return all.subset(kept);
}

// The last one is kept: recipes of one data set and seed run in turn.
const Sides& sides_of(const study::Options& options, const Set& set, std::uint64_t seed) {
  static std::optional<std::pair<std::string, Sides>> last;
  const std::string key = set.name() + std::to_string(seed);
  if (last && last->first == key) return last->second;
  last.reset();
  Sides sides;
  const data::Dataset all =
      study::recorded_programs(options.data, set.machines,
                               {.records = options.number("records"), .tasks = options.tasks}, seed)
          .records;
  sides.records = set.machines == "gpu" ? half_of(all, set.half) : all;
  sides.split = study::split_by(set.split, sides.records, seed);
  sides.train = sides.records.subset(sides.split.train);
  sides.test = study::Part::of(sides.records, sides.split.test);
  const Fitted full = fit(sides, everything(sides), options.threads_or(2), seed);
  sides.full_accuracy = study::quality(full.score, sides.test).at("pairwise_accuracy");
  sides.full_s = full.seconds;
  last.emplace(key, std::move(sides));
  return last->second;
}

// The records of every group that `thinned(members, wanted)` keeps; `share` of them is wanted.
template <class Thin>
std::vector<std::size_t> thin_groups(const Sides& sides, double share, const Thin& thinned) {
  std::vector<std::size_t> kept;
  for (const std::vector<std::size_t>& members : sides.train.by_group()) {
    const auto wanted = static_cast<std::size_t>(std::lround(share * static_cast<double>(members.size())));
    for (const std::size_t i : thinned(members, wanted)) kept.push_back(i);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// Records of unlike speed: again and again the one goes whose neighbours in log latency are closest to each other.
std::vector<std::size_t> far_labels(const Sides& sides, std::vector<std::size_t> members, std::size_t wanted) {
  const auto cost = [&](std::size_t i) { return sides.train.cost_s[members[i]]; };
  std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(sides.train.cost_s[a], a) < std::pair(sides.train.cost_s[b], b);
  });
  while (members.size() > wanted && members.size() > 2) {
    std::size_t closest = 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i + 1 < members.size(); ++i) {
      const double gap = std::log(cost(i + 1) / cost(i - 1));
      if (gap < least || std::isnan(gap)) {  // of failures all but one
        least = std::isnan(gap) ? -1 : gap;
        closest = i;
      }
    }
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(closest));
  }
  return members;
}

// Drops records slower than `slowest` times the best but for a share of `spare`, then at random.
std::vector<std::size_t> without_slow(const Sides& sides, double share, double slowest, double spare, const Rng& rng) {
  return thin_groups(sides, share, [&](const std::vector<std::size_t>& members, std::size_t wanted) {
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t i : members) best = std::min(best, sides.train.cost_s[i]);
    std::vector<std::size_t> kept;
    for (const std::size_t i : members)
      if (sides.train.cost_s[i] <= slowest * best || rng.split(1).split(i).uniform() < spare) kept.push_back(i);
    Rng own = rng.split(2).split(members.front());
    own.shuffle(std::span(kept));
    kept.resize(std::min(kept.size(), wanted));
    return kept;
  });
}

template <class Keep>
void add(const std::string& recipe, const Set& set, std::uint64_t seed, const study::Options& options,
         const Keep& keep) {
  study::add_of_tasks(options, recipe, set.name(), seed, [=](benchmark::State& state) {
    const Sides& sides = sides_of(options, set, seed);
    const std::vector<std::size_t> kept = keep(sides, Rng(seed).split(7));
    const Fitted fitted = fit(sides, kept, options.threads_or(2), seed);
    study::TaskCounters counters = study::quality(fitted.score, sides.test);
    counters["accuracy_lost"] = study::difference(sides.full_accuracy, counters["pairwise_accuracy"], 100);
    state.counters["removed_percent"] =
        100 * (1 - static_cast<double>(kept.size()) / static_cast<double>(sides.train.size()));
    state.counters["train_s"] = fitted.seconds;
    state.counters["train_s_full"] = sides.full_s;
    return counters;
  });
}

void add_pruning(const std::string& recipe, const Set& set, std::uint64_t seed, const study::Options& options,
                 data::Pruning pruning) {
  pruning.min_records = options.number("min_records");
  add(recipe, set, seed, options,
      [pruning](const Sides& sides, const Rng& rng) { return data::prune(sides.train, pruning, rng); });
}

void add_all(const Set& set, std::uint64_t seed, const study::Options& options) {
  add("full", set, seed, options, [](const Sides& sides, const Rng&) { return everything(sides); });
  add_pruning("default", set, seed, options, {});
  add_pruning("default_half_as_many", set, seed, options, {.distinct_share = 0.275});
  add_pruning("all_stages", set, seed, options,
              {.task_rows = 0.85, .floor = 0.4, .slow_share = 0.1, .distinct_share = 1});
  add_pruning("invalid_only", set, seed, options, {.distinct_share = 1});
  add_pruning("tasks_only", set, seed, options, {.task_rows = 0.55, .distinct_share = 1});
  add_pruning("slow_only", set, seed, options, {.floor = 0.5, .slow_share = 0.1, .distinct_share = 1});
  for (const auto& [rows, floor, slow] : std::vector<std::array<double, 3>>{{1, 0.6, 0.25},
                                                                            {1, 0.75, 0.4},
                                                                            {1, 0.9, 0.5},
                                                                            {0.85, 0.4, 0.2},
                                                                            {0.85, 0.7, 0.5},
                                                                            {0.7, 0.4, 0.5},
                                                                            {0.7, 0.25, 0.1}}) {
    const auto percent = [](double share) { return std::to_string(std::lround(100 * share)); };
    add_pruning("prune_rows" + percent(rows) + "_floor" + percent(floor) + "_slow" + percent(slow), set, seed, options,
                {.task_rows = rows, .floor = floor, .slow_share = slow, .distinct_share = 1});
  }
  constexpr double share = 0.55;
  add("far_labels", set, seed, options, [](const Sides& sides, const Rng&) {
    return thin_groups(sides, share,
                       [&](const auto& members, std::size_t wanted) { return far_labels(sides, members, wanted); });
  });
  for (const auto& [slowest, spare] : std::vector<std::pair<double, double>>{{3, 0.0}, {5, 0.25}, {10, 0.25}}) {
    add("without_" + std::to_string(std::lround(slowest)) + "x_slower", set, seed, options,
        [slowest = slowest, spare = spare](const Sides& sides, const Rng& rng) {
          return without_slow(sides, share, slowest, spare, rng);
        });
  }
  for (const std::size_t percent : {25U, 45U, 65U}) {
    add("uniform@" + std::to_string(percent), set, seed, options, [percent](const Sides& sides, const Rng& rng) {
      std::vector<std::size_t> kept = everything(sides);
      Rng own = rng;
      own.shuffle(std::span(kept));
      kept.resize(kept.size() * (100 - percent) / 100);
      std::sort(kept.begin(), kept.end());
      return kept;
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "pruning",
                     .seeds = 5,
                     .folders = {"roller-tvm-logs", "bennu-ansor"},
                     .options = {"records=120", "min_records=48"}},
                    [](const study::Study& study) {
                      const study::Options& options = study.options();
                      for (const std::uint64_t seed : options.all_seeds()) {
                        for (const char* half : {"choose", "judge"})
                          for (const char* split : {"within_task", "by_task", "by_target_V100", "by_target_K80"})
                            add_all({half, "gpu", split}, seed, options);
                        add_all({"judge", "x86", "within_task"}, seed, options);
                      }
                    });
}
