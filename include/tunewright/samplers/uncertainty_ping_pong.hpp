// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/feature_rows.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/points.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Alternates between candidates with a large expected model error (ping) and the best-scored candidates (pong), so
/// that a predictor of scores and a predictor of its errors improve each other; both batches are spread over the knobs.
///
///   error predictor Q: learns |y - predicted| of the labelled programs, predicted before they were measured
///   value(p)  = Q(p) in a ping, score(p) in a pong; the `candidates_factor` * n best by it are considered
///   choose argmax  rank(p) + diversity_weight * (share of knobs that differ from the nearest labelled or chosen)
///   rank: 1 for the best value considered to 0 for the worst
///
/// Pings and pongs alternate from the second round on. After two consecutive pongs that improved the best by less than
/// `least_gain`, two pings follow. Until Q has `least_errors` labels, it is replaced by the model's deviation or, if it
/// has none, the deviation of copies trained on resampled labels.
///
/// Paper:       Zeng et al., ALT, ICCD 2020; Yoo and Kweon, Learning Loss for Active Learning, CVPR 2019 (the error
///              predictor).
/// Models:      LabelAwareSamplerFor<M> for every CostModel M. Q is another, e.g. models::Gbdt. Features: the knobs,
///              one row per program.
/// Shapes:      x [P, D]; result [min(n, P)] in the order of selection.
/// Cost:        one fit of Q, or `copies` fits of the model, per ping; O(C (L + n) D), C = candidates_factor * n.
/// Determinism: rounds and errors are read from the labels, so there is no state to resume.
/// Errors:      `std::invalid_argument` for options out of range, and unless there is one score or label per program.
/// Deviates:    the paper's text is not public; everything beyond its abstract is a reconstruction. It searches for
///              uncertain candidates, while here a ping selects from the explorer's pool, which is ranked by score: the
///              explorer should return several times the batch (`elite_factor`). The pool counts as one task, that of
///              its first candidate. Labels rescaled by a new best are compared with earlier predictions. Recorded
///              predictions are not recalled from a journal, so a resumed search trains Q only on its new rounds.
template <CostModel Q>
struct UncertaintyPingPong {
  template <class Featurizer>
  static constexpr bool reads_rows_of = OneRowFeaturizer<Featurizer>;

  Q error_predictor{};            ///< options of Q; its learned state is not used
  double candidates_factor = 4;   ///< at least 1
  double diversity_weight = 0.5;  ///< at least 0, finite
  double least_gain = 0.01;       ///< relative improvement of the best that justifies a pong, at least 0
  std::size_t least_errors = 32;  ///< at least 1
  unsigned copies = 5;            ///< of the model, at least 2

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M& model, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check();
    check_pool("UncertaintyPingPong", x, score, labelled);
    std::vector<float> value(score.begin(), score.end());
    if (next_is_ping(labelled)) value = expected_error(model, x, labelled, rng);
    const std::size_t considered = scaled_count(candidates_factor, n);
    const std::vector<std::size_t> candidates = largest(described_positions(score), considered, value, score);
    std::vector<std::size_t> chosen = spread(candidates, x, n, labelled);
    fill_up(chosen, score, n);
    return chosen;
  }

  /// Whether the next round is a ping. Round numbers missing from `labelled` count as one round.
  [[nodiscard]] bool next_is_ping(const Labelled& labelled) const {
    std::map<std::uint32_t, float> best_of_round;  // of the pool's task
    const std::uint32_t task = labelled.pool_task.empty() ? 0 : labelled.pool_task.front();
    for (std::size_t l = 0; l < labelled.size(); ++l) {
      if (labelled.task_of(l) != task) continue;
      float& best = best_of_round[labelled.round.empty() ? 0 : labelled.round[l]];
      if (!labelled.y.empty()) best = std::max(best, labelled.y[l]);
    }
    if (best_of_round.empty()) return true;
    unsigned pings_due = 1, poor_pongs = 0;
    float best = best_of_round.begin()->second;  // the first round follows no model
    for (auto round = std::next(best_of_round.begin()); round != best_of_round.end(); ++round) {
      const bool gained = double{round->second} > double{best} * (1 + least_gain);
      best = std::max(best, round->second);
      if (pings_due > 0) {
        --pings_due;
        continue;
      }
      poor_pongs = gained ? 0 : poor_pongs + 1;
      pings_due = poor_pongs == 2 ? 2 : 1;
      if (poor_pongs == 2) poor_pongs = 0;
    }
    return pings_due > 0;
  }

 private:
  // The expected error of the model, [P].
  template <CostModel M>
  [[nodiscard]] std::vector<float> expected_error(const M& model, const FeatureBatch& x, const Labelled& labelled,
                                                  const Rng& rng) const {
    std::vector<float> error(x.programs());
    FeatureBatch taught(labelled.x.columns());
    std::vector<float> seen;
    std::vector<std::uint32_t> task;
    for (const std::size_t l : described_positions(labelled)) {
      if (labelled.predicted.empty() || labelled.y.empty() || !std::isfinite(labelled.predicted[l])) continue;
      taught.append_program(labelled.x.program(l));
      seen.push_back(std::abs(labelled.y[l] - labelled.predicted[l]));
      task.push_back(labelled.task_of(l));
    }
    if (seen.size() >= least_errors) {
      Q judge = error_predictor;
      judge.fit(taught, seen, task);
      judge.predict(x, error);
    } else if constexpr (UncertainCostModel<M>) {
      std::vector<float> mean(x.programs());
      model.predict_with_deviation(x, mean, error);
    } else {
      error = deviation_of_copies(model, x, labelled, rng);
    }
    return error;
  }

  template <CostModel M>
  [[nodiscard]] std::vector<float> deviation_of_copies(const M& model, const FeatureBatch& x, const Labelled& labelled,
                                                       const Rng& rng) const {
    std::vector<double> sum(x.programs()), squares(x.programs());
    const std::vector<std::size_t> known = described_positions(labelled);
    std::vector<float> error(x.programs());
    if (known.empty() || labelled.y.empty()) return error;
    for (unsigned c = 0; c < copies; ++c) {
      Rng own = rng.split(c);
      FeatureBatch taught(labelled.x.columns());
      std::vector<float> y;
      std::vector<std::uint32_t> task;
      for (std::size_t i = 0; i < known.size(); ++i) {
        const std::size_t l = known[own.below(known.size())];
        taught.append_program(labelled.x.program(l));
        y.push_back(labelled.y[l]);
        task.push_back(labelled.task_of(l));
      }
      M copy = model;
      copy.fit(taught, y, task);
      copy.predict(x, error);
      for (std::size_t p = 0; p < error.size(); ++p) {
        sum[p] += double{error[p]};
        squares[p] += double{error[p]} * double{error[p]};
      }
    }
    for (std::size_t p = 0; p < error.size(); ++p) {
      const double mean = sum[p] / copies;
      error[p] = static_cast<float>(std::sqrt(std::max(0.0, squares[p] / copies - mean * mean)));
    }
    return error;
  }

  // `candidates` are sorted best first.
  [[nodiscard]] std::vector<std::size_t> spread(std::span<const std::size_t> candidates, const FeatureBatch& x,
                                                std::size_t n, const Labelled& labelled) const {
    const Points points = summed_rows(x, candidates);
    std::vector<float> nearest(candidates.size(), 1.0F);  // share of knobs that differ
    const auto add = [&](std::span<const float> centre) {
      for (std::size_t i = 0; i < nearest.size(); ++i) nearest[i] = std::min(nearest[i], differing(points[i], centre));
    };
    const std::uint32_t task = labelled.pool_task.empty() ? 0 : labelled.pool_task.front();
    std::vector<std::size_t> known = described_positions(labelled);
    std::erase_if(known, [&](std::size_t l) { return labelled.task_of(l) != task; });
    const Points measured = summed_rows(labelled.x, known);
    for (std::size_t l = 0; l < measured.size(); ++l) add(measured[l]);

    std::vector<bool> taken(candidates.size());
    std::vector<std::size_t> chosen;
    const auto worth = [&](std::size_t i) {
      const double rank =
          candidates.size() < 2 ? 1.0 : 1.0 - static_cast<double>(i) / static_cast<double>(candidates.size() - 1);
      return rank + diversity_weight * double{nearest[i]};
    };
    while (chosen.size() < std::min(n, candidates.size())) {
      std::size_t next = candidates.size();
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (!taken[i] && (next == candidates.size() || worth(i) > worth(next))) next = i;
      }
      taken[next] = true;
      chosen.push_back(candidates[next]);
      add(points[next]);
    }
    return chosen;
  }

  static float differing(std::span<const float> a, std::span<const float> b) {
    std::size_t count = 0;
    for (std::size_t c = 0; c < a.size(); ++c) count += a[c] != b[c] ? 1 : 0;
    return a.empty() ? 0.0F : static_cast<float>(count) / static_cast<float>(a.size());
  }

  void check() const {
    constexpr const char* policy = "UncertaintyPingPong";
    require(std::isfinite(candidates_factor) && candidates_factor >= 1, policy, "candidates_factor", candidates_factor,
            "finite and at least 1");
    require(std::isfinite(diversity_weight) && diversity_weight >= 0, policy, "diversity_weight", diversity_weight,
            "finite and 0 or more");
    require(least_gain >= 0, policy, "least_gain", least_gain, "0 or more");
    require(least_errors >= 1, policy, "least_errors", static_cast<double>(least_errors), "at least 1");
    require(copies >= 2, policy, "copies", copies, "at least 2");
  }
};

}  // namespace tunewright::samplers
