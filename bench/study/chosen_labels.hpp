// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "recorded_programs.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/splits.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/stats/ranking.hpp"

/// Learning from labels that a sampler chooses, step by step, on programs that were measured before.
namespace tunewright::study {

using Indices = std::vector<std::size_t>;

/// A committee of any kind behind one face, so that samplers are compiled once.
class Model {
 public:
  std::uint64_t seed = 0;

  template <class M>
  explicit Model(const M& untrained) : held_(std::make_shared<Holder<M>>(untrained)) {}

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    held_ = held_->fitted(x, y, group, seed);
  }
  void predict(const FeatureBatch& x, std::span<float> score) const {
    if (known_x_ == &x)
      std::copy(known_score_.begin(), known_score_.end(), score.begin());
    else
      held_->predict(x, score);
  }
  void predict_with_deviation(const FeatureBatch& x, std::span<float> score, std::span<float> deviation) const {
    if (known_x_ == &x) {
      std::copy(known_score_.begin(), known_score_.end(), score.begin());
      std::copy(known_deviation_.begin(), known_deviation_.end(), deviation.begin());
    } else {
      held_->predict_with_deviation(x, score, deviation);
    }
  }
  // Predicts the whole pool once; samplers ask again. `x` must stay as it is.
  void remember(const FeatureBatch& x) {
    known_score_.resize(x.programs());
    known_deviation_.resize(x.programs());
    held_->predict_with_deviation(x, known_score_, known_deviation_);
    known_x_ = &x;
  }
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const { return held_->embed(x); }

 private:
  struct Face {
    virtual ~Face() = default;
    virtual std::shared_ptr<const Face> fitted(const FeatureBatch& x, std::span<const float> y,
                                               std::span<const std::uint32_t> group, std::uint64_t seed) const = 0;
    virtual void predict(const FeatureBatch& x, std::span<float> score) const = 0;
    virtual void predict_with_deviation(const FeatureBatch& x, std::span<float> score,
                                        std::span<float> deviation) const = 0;
    [[nodiscard]] virtual FeatureBatch embed(const FeatureBatch& x) const = 0;
  };
  template <class M>
  struct Holder : Face {
    M model;
    explicit Holder(const M& untrained) : model(untrained) {}
    std::shared_ptr<const Face> fitted(const FeatureBatch& x, std::span<const float> y,
                                       std::span<const std::uint32_t> group, std::uint64_t seed) const override {
      auto next = std::make_shared<Holder>(model);
      next->model.seed = seed;
      next->model.fit(x, y, group);
      return next;
    }
    void predict(const FeatureBatch& x, std::span<float> score) const override { model.predict(x, score); }
    void predict_with_deviation(const FeatureBatch& x, std::span<float> score,
                                std::span<float> deviation) const override {
      model.predict_with_deviation(x, score, deviation);
    }
    [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const override { return model.embed(x); }
  };
  std::shared_ptr<const Face> held_;
  const FeatureBatch* known_x_ = nullptr;
  std::vector<float> known_score_{}, known_deviation_{};
};
static_assert(EmbeddingCostModel<Model> && UncertainCostModel<Model>);

/// Programs with their costs; which of them may be labelled and which judge.
struct Programs {
  FeatureBatch x;
  std::vector<double> cost_s;
  std::vector<std::uint32_t> group;
  Indices pool, test;
};

inline FeatureBatch rows_of(const FeatureBatch& x, const Indices& which) {
  FeatureBatch part(x.columns());
  for (const std::size_t i : which) part.append_program(x.program(i));
  return part;
}

/// Best of the group among `which` / cost; 0 for failures.
inline std::vector<float> labels_of(const Programs& all, const Indices& which) {
  std::map<std::uint32_t, double> best;
  for (const std::size_t i : which) {
    double& one = best.try_emplace(all.group[i], std::numeric_limits<double>::infinity()).first->second;
    one = std::min(one, all.cost_s[i]);
  }
  std::vector<float> y;
  for (const std::size_t i : which)
    y.push_back(std::isfinite(all.cost_s[i]) ? static_cast<float>(best[all.group[i]] / all.cost_s[i]) : 0.0F);
  return y;
}

/// A part of the programs as models take it.
struct Known {
  FeatureBatch x;
  std::vector<float> y;
  std::vector<std::uint32_t> group;
  Known(const Programs& all, const Indices& which)
      : x(rows_of(all.x, which)), y(labels_of(all, which)), group(data::pick(all.group, which)) {}
};

struct Quality {
  double accuracy = 0, top5 = 0, overestimation = 0, found = 0;
};

inline Quality judge(const Model& model, const Known& test) {
  std::vector<float> score(test.y.size());
  model.predict(test.x, score);
  const auto mean = [&](auto metric) { return stats::mean_over_tasks(score, test.y, test.group, metric); };
  return {.accuracy = mean([](auto p, auto y) { return stats::pairwise_accuracy(p, y); }),
          .top5 = mean([](auto p, auto y) { return stats::top_k_score(p, y, 5); }),
          .overestimation = mean([](auto p, auto y) { return stats::overestimation(p, y); })};
}

/// Best labelled / best of the pool, mean over groups.
inline double found(const Programs& all, const Indices& labelled) {
  std::map<std::uint32_t, std::pair<double, double>> best;
  constexpr double never = std::numeric_limits<double>::infinity();
  for (const std::size_t i : all.pool) {
    auto& [of_all, of_labelled] = best.try_emplace(all.group[i], never, never).first->second;
    of_all = std::min(of_all, all.cost_s[i]);
  }
  for (const std::size_t i : labelled) {
    auto& [of_all, of_labelled] = best.at(all.group[i]);
    of_labelled = std::min(of_labelled, all.cost_s[i]);
  }
  double sum = 0;
  for (const auto& [group, one] : best) sum += std::isfinite(one.second) ? one.first / one.second : 0;
  return sum / static_cast<double>(best.size());
}

struct Step {
  double share = 0;  // of the pool that is labelled
  Quality quality;
};
using Curve = std::vector<Step>;

/// `first` of every group of the pool, rounded to the nearest and `least` at least, at random; the others behind. Many
/// groups that are rounded up, or too small for `least`, make it more than `first` of the whole pool.
inline std::pair<Indices, Indices> start(const Programs& all, double first, std::size_t least, const Rng& rng) {
  std::map<std::uint32_t, Indices> groups;
  for (const std::size_t i : all.pool) groups[all.group[i]].push_back(i);
  std::pair<Indices, Indices> parts;
  for (auto& [number, members] : groups) {
    rng.split(number).shuffle(std::span(members));
    const auto wanted = std::max<std::size_t>(
        least, static_cast<std::size_t>(std::lround(first * static_cast<double>(members.size()))));
    for (std::size_t i = 0; i < members.size(); ++i) (i < wanted ? parts.first : parts.second).push_back(members[i]);
  }
  std::sort(parts.second.begin(), parts.second.end());
  return parts;
}

/// Labels the pool in steps; calls `visit(model, labelled)` after each, with the model taught what is labelled. The
/// first share is that of `start`, the others are of the whole pool, rounded to the nearest; one that `start` exceeds
/// is visited with the labels that there are. A sampler that chooses fewer than a step asks for chooses again, each
/// time by a model that knows its last choice, as in a search: the shares of all samplers are of as many labels.
template <class S, class Visit>
void label(const Programs& all, const Model& untrained, const S& sampler, const std::vector<double>& shares,
           std::size_t least, std::uint64_t seed, const Visit& visit) {
  Rng rng(seed);
  auto [labelled, open] = start(all, shares.front(), least, rng.split(1));
  std::vector<std::uint32_t> round(labelled.size(), 0);
  std::vector<float> predicted(labelled.size(), std::numeric_limits<float>::quiet_NaN());
  std::uint32_t rounds = 0;
  for (std::size_t step = 0, wanted = labelled.size();;) {
    Model model = untrained;
    model.seed = seed * 100 + step;
    const Known known(all, labelled);
    model.fit(known.x, known.y, known.group);
    if (labelled.size() >= wanted) {
      visit(model, labelled);
      if (++step == shares.size()) return;
      wanted = static_cast<std::size_t>(std::lround(shares[step] * static_cast<double>(all.pool.size())));
      if (labelled.size() >= wanted) continue;
    }
    const FeatureBatch x = rows_of(all.x, open);
    const std::vector<std::uint32_t> tasks = data::pick(all.group, open);
    std::vector<float> score(open.size());
    model.remember(x);
    model.predict(x, score);
    const std::size_t missing = wanted - labelled.size();
    Indices chosen;
    if constexpr (LabelAwareSamplerFor<S, Model>) {
      chosen = sampler.select(model, x, score, missing, rng,
                              {.x = known.x,
                               .y = known.y,
                               .task = known.group,
                               .round = round,
                               .predicted = predicted,
                               .pool_task = tasks});
    } else {
      chosen = sampler.select(model, x, score, missing, rng);
    }
    samplers::check_selection(chosen, open.size(), missing);
    ++rounds;
    std::vector<bool> taken(open.size());
    for (const std::size_t i : chosen) {
      taken[i] = true;
      labelled.push_back(open[i]);
      round.push_back(rounds);
      predicted.push_back(score[i]);
    }
    Indices left;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (!taken[i]) left.push_back(open[i]);
    open = std::move(left);
  }
}

/// `label`, judged after each step by the model that chooses.
template <class S>
Curve learn(const Programs& all, const Model& untrained, const S& sampler, const std::vector<double>& shares,
            std::uint64_t seed) {
  constexpr std::size_t least = 8;
  const Known test(all, all.test);
  Curve curve;
  label(all, untrained, sampler, shares, least, seed, [&](const Model& model, const Indices& labelled) {
    Quality quality = judge(model, test);
    quality.found = found(all, labelled);
    curve.push_back({static_cast<double>(labelled.size()) / static_cast<double>(all.pool.size()), quality});
  });
  return curve;
}

/// Share at which the curve reaches `wanted`, between its steps by straight lines.
inline double share_reaching(const Curve& curve, double Quality::* value, double wanted, double otherwise) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const double now = curve[i].quality.*value;
    if (now < wanted) continue;
    if (i == 0) return curve[0].share;
    const double before = curve[i - 1].quality.*value;
    return curve[i - 1].share + (curve[i].share - curve[i - 1].share) * (wanted - before) / (now - before);
  }
  return otherwise;
}

}  // namespace tunewright::study
