// SPDX-License-Identifier: Apache-2.0
// How few labels, chosen by which sampler, rank new tasks as well as all of them.
//
//   study_label_curve --data=DIR [--seeds=N --first_seed=N --records=N --tasks=N]
//
// --records programs of every auto_scheduler log of the V100 and the K80 (default 500). Of the tasks, drawn by the
// seed, a tenth judges, another tenth chooses, the others are the pool. The reference, boosted trees taught the whole
// pool, is the one of `sizes` that ranks the choosing tasks best; labels are judged by trees of the same size that are
// taught these alone. A committee of two small ensembles chooses labels: half a percent of every task and device at
// random, rounded and two at least, then in steps up to a tenth of the pool. Rounded, that start may be more than half
// a percent of the pool, so what is chosen is judged from 1 % on. A step that the start exceeds nevertheless is an
// error, because `random` has fewer labels there. Labels are relative to the best of the task that is labelled.
//
// Data `choose` and `judge` have the same recipes, called <sampler>@<percent of the pool that is labelled>: what is
// chosen by the one is judged by the other. `size_<...>@100` are the sizes. Counters, of each task:
//   pairwise_accuracy, top5
//   accuracy_to_whole, top5_to_whole   that less the same of the reference, in points
//
// Samplers: `random`, and BiasedDiversity by its weights, `biased_high` as it comes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "chosen_labels.hpp"
#include "recorded_programs.hpp"
#include "task_results.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using samplers::Bias;
using study::Indices;
using study::Known;
using study::Model;
using study::Programs;

// The size of a reference.
struct Size {
  std::string name;
  models::Gbdt model;
};
std::vector<Size> sizes(std::uint64_t seed) {
  using models::gbdt::Objective;
  const auto trees = [&](Objective objective, unsigned rounds, unsigned depth) {
    return models::Gbdt{.rounds = rounds,
                        .max_depth = depth,
                        .learning_rate = 0.2F,
                        .objective = objective,
                        .threads = 1,
                        .seed = seed};
  };
  return {{"summed_50_depth6", trees(Objective::SummedOverStatements, 50, 6)},
          {"summed_300_depth6", trees(Objective::SummedOverStatements, 300, 6)},
          {"pairwise_100_depth6", trees(Objective::RankPairwise, 100, 6)},
          {"pairwise_300_depth6", trees(Objective::RankPairwise, 300, 6)},
          {"pairwise_300_depth10", trees(Objective::RankPairwise, 300, 10)},
          {"pairwise_800_depth6", trees(Objective::RankPairwise, 800, 6)}};
}

// Ranking of each task, of those that choose and of those that judge.
struct Ranked {
  study::OfTasks accuracy, top5;
};
using OnBoth = std::map<std::string, Ranked>;  // "choose", "judge"

// The pool of a seed, and what was learned from it.
class LabelCurve {
 public:
  LabelCurve(const data::Dataset& records, std::uint64_t seed) : seed_(seed) {
    all_.x = records.x;
    all_.cost_s = records.cost_s;
    all_.group = records.groups();
    for (std::size_t i = 0; i < records.size(); ++i) names_[all_.group[i]] = records.tasks[records.task[i]].name;
    std::vector<std::string> tasks;
    for (const auto& [group, name] : names_)
      if (std::find(tasks.begin(), tasks.end(), name) == tasks.end()) tasks.push_back(name);
    Rng(seed).split(3).shuffle(std::span(tasks));
    const std::size_t tenth = std::max<std::size_t>(tasks.size() / 10, 1);
    const auto place = [&](const std::string& name) {
      return static_cast<std::size_t>(std::find(tasks.begin(), tasks.end(), name) - tasks.begin());
    };
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::size_t at = place(names_.at(all_.group[i]));
      (at < tenth ? held_["judge"] : at < 2 * tenth ? held_["choose"] : all_.pool).push_back(i);
    }
    for (const Size& size : sizes(seed)) of_sizes_[size.name] = taught(size.model, all_.pool);
    for (const auto& [name, on_both] : of_sizes_) {
      if (best_.empty() ||
          study::mean(on_both.at("choose").accuracy) > study::mean(of_sizes_.at(best_).at("choose").accuracy))
        best_ = name;
    }
  }

  const OnBoth& whole() const { return of_sizes_.at(best_); }
  const OnBoth& size(const std::string& name) const { return of_sizes_.at(name); }

  // Results stand by percent of the pool; those of shares that the start of a sampler exceeds are missing.
  template <class S>
  const std::map<std::string, OnBoth>& of(const std::string& name, const S& sampler,
                                          const std::vector<double>& shares) {
    if (const auto known = curves_.find(name); known != curves_.end()) return known->second;
    std::map<std::string, OnBoth> curve;  // one that an exception cuts is not kept
    const auto wanted = [&](double share) {
      return static_cast<std::size_t>(std::lround(share * static_cast<double>(all_.pool.size())));
    };
    if constexpr (std::is_same_v<S, samplers::Random>) {
      Indices order = all_.pool;
      Rng(seed_).split(4).shuffle(std::span(order));
      for (const double share : shares) {
        const auto end = order.begin() + static_cast<std::ptrdiff_t>(wanted(share));
        curve[percent_of(share)] = taught(reference(), {order.begin(), end});
      }
    } else {
      constexpr double first = .005;
      constexpr std::size_t least = 2;
      std::vector<double> steps{first};
      steps.insert(steps.end(), shares.begin(), shares.end());
      std::size_t step = 0;
      study::label(all_, chooser(), sampler, steps, least, seed_, [&](const Model&, const Indices& labelled) {
        const double share = steps[step];
        if (step++ > 0 && labelled.size() == wanted(share)) curve[percent_of(share)] = taught(reference(), labelled);
      });
    }
    return curves_.emplace(name, std::move(curve)).first->second;
  }

  static std::string percent_of(double share) {
    std::string text = std::to_string(100 * share);
    text.resize(text.find('.') + 2);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  }

 private:
  static Model chooser() {
    return Model(models::Committee<models::Gbdt, 2>{
        .member = {.rounds = 50, .learning_rate = 0.2F, .embedding_columns = 128, .threads = 1},
        .bootstrap = true,
        .threads = 1});
  }
  models::Gbdt reference() const {
    for (Size& size : sizes(seed_))
      if (size.name == best_) return size.model;
    return {};
  }
  OnBoth taught(models::Gbdt model, const Indices& labelled) const {
    const Known known(all_, labelled);
    model.fit(known.x, known.y, known.group);
    OnBoth both;
    for (const auto& [half, which] : held_) {
      const Known test(all_, which);
      std::vector<float> score(test.y.size());
      model.predict(test.x, score);
      const auto of = [&](const auto& metric) { return study::of_tasks(score, test.y, test.group, names_, metric); };
      both[half] = {of([](auto p, auto y) { return study::ranked_pairs(p, y); }),
                    of([](auto p, auto y) { return stats::top_k_score(p, y, 5); })};
    }
    return both;
  }

  std::uint64_t seed_;
  Programs all_;
  std::map<std::uint32_t, std::string> names_;
  std::map<std::string, Indices> held_;
  std::map<std::string, OnBoth> of_sizes_;
  std::string best_;
  std::map<std::string, std::map<std::string, OnBoth>> curves_;
};

LabelCurve& label_curve(const study::Options& options, std::uint64_t seed) {
  static std::unique_ptr<const data::Dataset> records;
  static std::pair<std::uint64_t, std::unique_ptr<LabelCurve>> last;
  if (!records) {
    const study::Selection selection{.records = options.number("records"), .tasks = options.tasks};
    records =
        std::make_unique<const data::Dataset>(study::recorded_programs(options.data, "gpu", selection, 1).records);
  }
  if (!last.second || last.first != seed) {
    last.second.reset();
    last = {seed, std::make_unique<LabelCurve>(*records, seed)};
  }
  return *last.second;
}

void add_curve(const study::Options& options, std::uint64_t seed) {
  const std::vector<double> few{.01, .02, .05, .1}, all{.005, .01, .02, .05, .1, .2, .5, 1};
  for (const std::string half : {"choose", "judge"}) {
    // `found(curve)` is what one recipe ranks.
    const auto add = [&](const std::string& name, auto found) {
      study::add_of_tasks(options, name, half, seed, [=](benchmark::State&) {
        LabelCurve& curve = label_curve(options, seed);
        const Ranked own = OnBoth(found(curve)).at(half);
        const Ranked& whole = curve.whole().at(half);
        return study::TaskCounters{{"pairwise_accuracy", own.accuracy},
                                   {"top5", own.top5},
                                   {"accuracy_to_whole", study::difference(own.accuracy, whole.accuracy, 100)},
                                   {"top5_to_whole", study::difference(own.top5, whole.top5, 100)}};
      });
    };
    for (const Size& size : sizes(seed))
      add("size_" + size.name + "@100", [name = size.name](LabelCurve& curve) { return curve.size(name); });
    const auto add_sampler = [&](const std::string& name, auto sampler, const std::vector<double>& shares) {
      for (const double share : shares) {
        const std::string percent = LabelCurve::percent_of(share);
        add(name + "@" + percent, [=](LabelCurve& curve) {
          const std::map<std::string, OnBoth>& known = curve.of(name, sampler, shares);
          if (const auto found = known.find(percent); found != known.end()) return found->second;
          throw std::invalid_argument("two labels of every task and device are more than " + percent +
                                      " % of the pool; give more --records, or leave this step out by "
                                      "--benchmark_filter=REGEX");
        });
      }
    };
    add_sampler("random", samplers::Random{}, all);
    for (const auto& [name, bias] : {std::pair("none", Bias::None), std::pair("high", Bias::High),
                                     std::pair("strata", Bias::Strata), std::pair("restore", Bias::Restore)})
      add_sampler(std::string("biased_") + name, samplers::BiasedDiversity{.bias = bias, .standardised = false}, few);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "label_curve",
                     .seeds = 3,
                     .folders = {"roller-tvm-logs"},
                     .options = {"records=500"},
                     .unread = {"threads"}},
                    [](const study::Study& study) {
                      const study::Options& options = study.options();
                      for (const std::uint64_t seed : options.all_seeds()) add_curve(options, seed);
                    });
}
