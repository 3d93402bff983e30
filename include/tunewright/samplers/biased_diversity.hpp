// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/points.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// The weight w of a candidate's distance in `BiasedDiversity`. q is its score, scaled to [0, 1] within its task. Ten
/// equal parts of that range are the levels k, with a share P_k of all programs of the task and a share H_k of its
/// labelled and chosen ones.
enum class Bias : std::uint8_t {
  None,     ///< 1: only diversity
  High,     ///< 0.1 + q: prefers fast programs
  Strata,   ///< 1 / (1 + labelled and chosen of level k): uniform over levels
  Restore,  ///< min(10, T_k / max(H_k, 0.001)), T_k = (1 - beta) P_k + beta / 10: the pool's to uniform shares
  Dpp,      ///< 1, and drawn with probability D² / sum D² instead of the largest (k-means++)
  Qbc,      ///< the model's deviation + 0.0001: diversity times disagreement
};

/// Selects measurements from a pool of many tasks: programs far from the labelled ones of their task, weighted so that
/// diversity does not label mostly dissimilar, slow programs, which makes a model overestimate others of their kind.
///
///   quota of task t  proportional to sqrt(|U_t|), times `unsure_task_factor` for the quarter of tasks with the
///                    largest mean deviation, if the model is an UncertainCostModel
///   within a task:   `random_share` of the quota randomly, then repeatedly  argmax D(p) w(p)
///   D(p) = min over labelled and chosen z of the task of |h(p) - h(z)|;   w: see Bias
///
/// Paper:       Bi et al., BALTO, ICLR 2023: pool-based active learning for pre-trained cost models with
///              "biased-diversity-based" selection.
/// Models:      LabelAwareSamplerFor<M> for every EmbeddingCostModel M; Bias::Qbc throws std::invalid_argument unless
///              it is also an UncertainCostModel.
/// Shapes:      h [P + L, E]; result [min(n, P)], task by task.
/// Cost:        O(sum over tasks of P_t (L_t + n_t) E) and one prediction of pool and labelled programs.
/// Determinism: ties are ordered by score, then by position in the pool.
/// Errors:      `std::invalid_argument` for options out of range, and unless there is one score or label per program.
/// Deviates:    only the paper's abstract is public, so distance, bias, quotas and shares are a reconstruction, with
///              every plausible form of the bias. The caller trains in rounds and rescales labels.
struct BiasedDiversity {
  Bias bias = Bias::High;
  double random_share = 0.1;      ///< of each quota, in [0, 1]; an unbiased part to monitor the model
  double beta = 0.75;             ///< for Bias::Restore, in [0, 1]: 0 keeps the pool's shares, 1 gives uniform ones
  double unsure_task_factor = 2;  ///< factor for the quota of the least certain quarter of tasks, 1 to 10^6
  bool standardised = false;      ///< scales every coordinate of h to deviation 1 within the task

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const;

  template <EmbeddingCostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M& model, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check_options();
    check_bias(UncertainCostModel<M>);
    check_pool("BiasedDiversity", x, score, labelled);
    const auto tasks = by_task(score, labelled);
    std::vector<float> deviation;  // [P], or empty
    if constexpr (UncertainCostModel<M>) {
      if (bias == Bias::Qbc || (unsure_task_factor > 1 && tasks.size() >= 4)) {  // of fewer, a quarter is none
        std::vector<float> mean(score.size());
        deviation.resize(score.size());
        model.predict_with_deviation(x, mean, deviation);
      }
    }
    const FeatureBatch pool_h = model.embed(x);
    FeatureBatch known_h;
    std::vector<float> known_score(labelled.size());  // [L]
    if (labelled.size() > 0) {
      known_h = model.embed(labelled.x);
      model.predict(labelled.x, known_score);
    }

    const std::vector<std::size_t> quota = quotas(tasks, deviation, n);
    std::vector<std::size_t> chosen;
    std::size_t t = 0;
    const Rng now(rng());  // the next call draws anew
    for (const auto& [number, members] : tasks) {
      Rng own = now.split(number);
      Task task = describe(members, pool_h, known_h, score, known_score, deviation);
      for (const std::size_t i : pick(task, quota[t++], own)) chosen.push_back(members.pool[i]);
    }
    fill_up(chosen, score, n);
    return chosen;
  }

 private:
  static constexpr std::size_t levels = 10;
  static constexpr double most_task_factor = 1e6;  // sums of shares stay finite

  // One task. Candidates are counted from 0 within it.
  struct Task {
    Points points;                                 // [P_t, E]
    std::vector<float> score;                      // [P_t]
    std::vector<double> q;                         // [P_t], score scaled to [0, 1]
    std::vector<std::size_t> level;                // [P_t]
    std::vector<double> deviation;                 // [P_t], or empty
    std::array<double, levels> all{}, labelled{};  // programs and labelled or chosen ones of each level
    NearestCentre nearest{0};
    std::vector<bool> taken;  // [P_t]
  };

  [[nodiscard]] Task describe(const TaskMembers& members, const FeatureBatch& pool_h, const FeatureBatch& known_h,
                              std::span<const float> score, std::span<const float> known_score,
                              std::span<const float> deviation) const;

  [[nodiscard]] std::vector<std::size_t> pick(Task& task, std::size_t count, Rng& rng) const;

  // The largest worth; among equals the better-scored.
  static std::size_t best(const Task& task, std::span<const double> worth);

  [[nodiscard]] double weight(const Task& task, std::size_t i, const std::array<double, levels>& of_level) const;

  [[nodiscard]] std::array<double, levels> level_weights(const Task& task) const;

  [[nodiscard]] std::vector<std::size_t> quotas(const std::map<std::uint32_t, TaskMembers>& tasks,
                                                std::span<const float> deviation, std::size_t n) const;

  void check_bias(bool knows_deviation) const;
};

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/require.hpp"
#include "tunewright/samplers/quotas.hpp"

namespace tunewright::samplers {

TUNEWRIGHT_INLINE BiasedDiversity::Task BiasedDiversity::describe(
    const TaskMembers& members, const FeatureBatch& pool_h, const FeatureBatch& known_h, std::span<const float> score,
    std::span<const float> known_score, std::span<const float> deviation) const {
  Task task;
  task.points = points_of(pool_h, members.pool);
  Points centres = points_of(known_h, members.labelled);
  if (standardised) standardise(task.points, centres);
  task.nearest = NearestCentre(members.pool.size());
  for (std::size_t l = 0; l < centres.size(); ++l) task.nearest.add(task.points, centres[l]);
  task.taken.resize(members.pool.size());

  constexpr float infinity = std::numeric_limits<float>::infinity();
  float low = infinity, high = -infinity;
  const auto widen = [&](float one) {
    if (!std::isfinite(one)) return;
    low = std::min(low, one);
    high = std::max(high, one);
  };
  for (const std::size_t p : members.pool) widen(score[p]);
  for (const std::size_t l : members.labelled) widen(known_score[l]);
  const double range = double{high} - double{low};  // negative if no score is finite
  const auto scaled = [&](float one) {
    if (!described(one)) return 0.0;
    if (one == infinity) return 1.0;
    return range > 0 ? std::clamp((double{one} - double{low}) / range, 0.0, 1.0) : 0.5;
  };
  const auto level_of = [](double q) {
    return std::min(static_cast<std::size_t>(q * static_cast<double>(levels)), levels - 1);
  };
  for (const std::size_t p : members.pool) {
    task.score.push_back(score[p]);
    task.q.push_back(scaled(score[p]));
    task.level.push_back(level_of(task.q.back()));
    task.all[task.level.back()] += 1;
    if (!deviation.empty()) task.deviation.push_back(double{deviation[p]});
  }
  for (const std::size_t l : members.labelled) {
    const std::size_t level = level_of(scaled(known_score[l]));
    task.all[level] += 1;
    task.labelled[level] += 1;
  }
  return task;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> BiasedDiversity::pick(Task& task, std::size_t count, Rng& rng) const {
  const std::size_t candidates = task.score.size();
  std::vector<std::size_t> chosen;
  const auto take = [&](std::size_t i) {
    task.taken[i] = true;
    task.labelled[task.level[i]] += 1;
    task.nearest.add(task.points, task.points[i]);
    chosen.push_back(i);
  };
  // A fraction of a program is a probability, so that small quotas keep their share on average.
  const auto random = static_cast<std::size_t>(random_share * static_cast<double>(count) + rng.uniform() * 0.999999);
  std::vector<std::size_t> order = positions(candidates);
  rng.shuffle(std::span(order));
  for (std::size_t i = 0; i < std::min(random, count); ++i) take(order[i]);

  std::vector<double> worth(candidates);
  while (chosen.size() < count) {
    const std::array<double, levels> of_level = level_weights(task);
    for (std::size_t i = 0; i < candidates; ++i) {
      const double squared = double{task.nearest.squared(i)};
      worth[i] = bias == Bias::Dpp ? squared : std::sqrt(squared) * weight(task, i, of_level);
      if (task.taken[i]) worth[i] = -1;
    }
    std::size_t next = candidates;
    if (bias == Bias::Dpp) next = draw_by_weight(worth, rng);
    if (next == candidates) next = best(task, worth);
    take(next);
  }
  return chosen;
}

TUNEWRIGHT_INLINE std::size_t BiasedDiversity::best(const Task& task, std::span<const double> worth) {
  std::size_t next = task.taken.size();
  for (std::size_t i = 0; i < task.taken.size(); ++i) {
    if (task.taken[i]) continue;
    if (next == task.taken.size() || worth[i] > worth[next] ||
        (worth[i] == worth[next] && task.score[i] > task.score[next]))
      next = i;
  }
  return next;
}

TUNEWRIGHT_INLINE double BiasedDiversity::weight(const Task& task, std::size_t i,
                                                 const std::array<double, levels>& of_level) const {
  switch (bias) {
    case Bias::High: return 0.1 + task.q[i];
    case Bias::Strata:
    case Bias::Restore: return of_level[task.level[i]];
    case Bias::Qbc: return task.deviation[i] + 1e-4;
    case Bias::None:
    case Bias::Dpp: break;
  }
  return 1;
}

TUNEWRIGHT_INLINE std::array<double, BiasedDiversity::levels> BiasedDiversity::level_weights(const Task& task) const {
  std::array<double, levels> weights{};
  const double all = std::accumulate(task.all.begin(), task.all.end(), 0.0);
  const double labelled = std::max(1.0, std::accumulate(task.labelled.begin(), task.labelled.end(), 0.0));
  for (std::size_t k = 0; k < levels; ++k) {
    const double wanted = (1 - beta) * task.all[k] / all + beta / static_cast<double>(levels);
    weights[k] = bias == Bias::Restore ? std::min(10.0, wanted / std::max(task.labelled[k] / labelled, 1e-3))
                                       : 1 / (1 + task.labelled[k]);
  }
  return weights;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> BiasedDiversity::quotas(const std::map<std::uint32_t, TaskMembers>& tasks,
                                                                   std::span<const float> deviation,
                                                                   std::size_t n) const {
  std::vector<double> share, doubt;
  std::vector<std::size_t> room;
  for (const auto& [number, members] : tasks) {
    room.push_back(members.pool.size());
    share.push_back(std::sqrt(static_cast<double>(members.pool.size())));
    if (deviation.empty()) continue;
    double sum = 0;
    for (const std::size_t p : members.pool) sum += double{deviation[p]};
    doubt.push_back(sum / static_cast<double>(members.pool.size()));
  }
  const auto unsure = first_in_order(positions(doubt.size()), doubt.size() / 4, [&](std::size_t a, std::size_t b) {
    return doubt[a] != doubt[b] ? doubt[a] > doubt[b] : a < b;
  });
  for (const std::size_t t : unsure) share[t] *= unsure_task_factor;
  return divide(n, share, room);
}

TUNEWRIGHT_INLINE void BiasedDiversity::check_options() const {
  constexpr const char* policy = "BiasedDiversity";
  require(random_share >= 0 && random_share <= 1, policy, "random_share", random_share, "a share, 0 to 1");
  require(beta >= 0 && beta <= 1, policy, "beta", beta, "a share, 0 to 1");
  require(unsure_task_factor >= 1 && unsure_task_factor <= most_task_factor, policy, "unsure_task_factor",
          unsure_task_factor, "1 to 1000000");
}

TUNEWRIGHT_INLINE void BiasedDiversity::check_bias(bool knows_deviation) const {
  if (bias == Bias::Qbc && !knows_deviation) {
    throw std::invalid_argument(
        "BiasedDiversity: Bias::Qbc asks how sure the model is, and this one does not say; wrap it in "
        "models::Committee or choose another bias");
  }
}

}  // namespace tunewright::samplers

#endif
