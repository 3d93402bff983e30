// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/feature_rows.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/models/concept.hpp"
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
///   the last of the batch, a share `epsilon` of all trials (`random_share`), are drawn from the rest of the pool; of a
///   small pool fewer are considered, so that the rest, those of the lowest values, is large enough
///
/// It guides exploration as well: in a ping the explorer looks for large Q(p), in a pong for large scores.
///
/// Pings and pongs alternate from the second round on; a round that no model guided, because none had learned yet, is
/// neither. After two consecutive pongs that improved the best by less than `least_gain`, two pings follow. Until Q has
/// `least_errors` labels, it is replaced by the model's deviation or, if it has none, the deviation of copies trained
/// on resampled labels; without labels, by the score of a pretrained model.
///
/// Paper:       Zeng et al., ALT, ICCD 2020; Yoo and Kweon, Learning Loss for Active Learning, CVPR 2019 (the
///              error predictor).
/// Models:      GuidingSamplerFor<M> for every CostModel M. Q is another, e.g. models::Gbdt. Features: the
///              knobs, one row a program.
/// Shapes:      x [P, D]; result [min(n, P)] in the order taken.
/// Cost:        two fits of Q, or of `copies` of the model, every ping, one for the explorer and one for the choice;
///              O(C (L + n) D), C = candidates_factor * n.
/// Determinism: rounds and errors are read from the labels, so there is no state to resume.
/// Errors:      `std::invalid_argument` for options out of their range, and for scores or labels that are not one
///              a program.
/// Deviates:    the paper's text is not public; what it leaves open is a reconstruction. All there is to choose from is
///              the explorer's pool: let it return several times the batch (`elite_factor`), and random candidates
///              beside them for the random part. Where a recipe has a draft, that ranks the exploration of pings, too.
///              The pool is taken as one task, that of its first candidate. Labels rescaled by a new best stay beside
///              predictions made before it. A knob that `features::Knobs` describes by one column per category
///              counts once per column, so two configurations of different categories differ in two of them.
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
  double epsilon = 0;             ///< share of the trials chosen at random, in [0, 1]

  /// What exploration looks for: the expected error in a ping, the score in a pong.
  template <CostModel M>
  [[nodiscard]] Guide guide(const M& model, const Labelled& labelled, Rng& rng) const {
    check_options();
    return next_is_ping(labelled) ? expected_error(model, labelled, rng) : Guide();
  }

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M& model, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check_options();
    check_pool("UncertaintyPingPong", x, score, labelled);
    std::vector<float> value(score.begin(), score.end());
    if (next_is_ping(labelled)) expected_error(model, labelled, rng)(x, value);
    const std::size_t share = random_share(epsilon, labelled_of_pool_task(labelled), n);
    const std::size_t considered = considered_beside(share, scaled_count(candidates_factor, n), score);
    const std::vector<std::size_t> candidates = largest(described_positions(score), considered, value, score);
    Rng own = rng.split(copies);  // the streams before it are those of the copies
    const std::vector<std::size_t> random = random_others(score, candidates, share, own);
    std::vector<std::size_t> chosen = spread(candidates, x, n - random.size(), labelled);
    chosen.insert(chosen.end(), random.begin(), random.end());
    fill_up(chosen, score, n);
    return chosen;
  }

  /// Whether the next round is a ping. Round numbers missing from `labelled` count as one round.
  [[nodiscard]] bool next_is_ping(const Labelled& labelled) const {
    struct Round {
      float best = 0;
      bool guided = false;
    };
    std::map<std::uint32_t, Round> rounds;  // of the pool's task
    const std::uint32_t task = labelled.pool_task_of(0);
    for (std::size_t l = 0; l < labelled.size(); ++l) {
      if (labelled.task_of(l) != task) continue;
      Round& round = rounds[labelled.round.empty() ? 0 : labelled.round[l]];
      if (!labelled.y.empty()) round.best = std::max(round.best, labelled.y[l]);
      round.guided = round.guided || labelled.predicted.empty() || !std::isnan(labelled.predicted[l]);
    }
    if (rounds.empty()) return true;
    unsigned pings_due = 1, poor_pongs = 0;
    float best = rounds.begin()->second.best;  // the first round has nothing to be compared with
    for (auto round = std::next(rounds.begin()); round != rounds.end(); ++round) {
      const bool gained = double{round->second.best} > double{best} * (1 + least_gain);
      best = std::max(best, round->second.best);
      if (!round->second.guided) continue;
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

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    constexpr const char* policy = "UncertaintyPingPong";
    require(std::isfinite(candidates_factor) && candidates_factor >= 1, policy, "candidates_factor", candidates_factor,
            "finite and at least 1");
    require(std::isfinite(diversity_weight) && diversity_weight >= 0, policy, "diversity_weight", diversity_weight,
            "finite and 0 or more");
    require(least_gain >= 0, policy, "least_gain", least_gain, "0 or more");
    require(least_errors >= 1, policy, "least_errors", static_cast<double>(least_errors), "at least 1");
    require(copies >= 2, policy, "copies", copies, "at least 2");
    require(epsilon >= 0 && epsilon <= 1, policy, "epsilon", epsilon, "a share, 0 to 1");
  }

 private:
  // How far off the model may be; minus infinity for a program without rows, whose deviation is infinite.
  template <CostModel M>
  [[nodiscard]] Guide expected_error(const M& model, const Labelled& labelled, const Rng& rng) const {
    return [of_described = expected_error_of_described(model, labelled, rng)](const FeatureBatch& x,
                                                                              std::span<float> error) {
      of_described(x, error);
      for (std::size_t p = 0; p < error.size(); ++p) {
        if (x.program(p).empty()) error[p] = -std::numeric_limits<float>::infinity();
      }
    };
  }

  template <CostModel M>
  [[nodiscard]] Guide expected_error_of_described(const M& model, const Labelled& labelled, const Rng& rng) const {
    FeatureBatch taught(labelled.x.columns());
    std::vector<float> seen;
    std::vector<std::uint32_t> task;
    for (const std::size_t l : described_positions(labelled)) {
      if (labelled.predicted.empty() || labelled.y.empty() || !std::isfinite(labelled.predicted[l])) continue;
      taught.append_program(labelled.x.program(l));
      seen.push_back(std::min(std::abs(labelled.y[l] - labelled.predicted[l]), models::most_label));
      task.push_back(labelled.task_of(l));
    }
    if (seen.size() >= least_errors) {
      Q judge = error_predictor;
      judge.fit(taught, seen, task);
      return [judge = std::move(judge)](const FeatureBatch& x, std::span<float> error) { judge.predict(x, error); };
    }
    if constexpr (UncertainCostModel<M>) {
      return [&model](const FeatureBatch& x, std::span<float> error) {
        std::vector<float> mean(x.programs());
        model.predict_with_deviation(x, mean, error);
      };
    } else {
      return [&model, taught_copies = copies_of(model, labelled, rng)](const FeatureBatch& x, std::span<float> error) {
        if (taught_copies.empty())
          model.predict(x, error);
        else
          deviation(std::span<const M>(taught_copies), x, error);
      };
    }
  }

  // Copies of the model, each taught as many labels as there are, drawn from them with repetition; none without labels.
  template <CostModel M>
  [[nodiscard]] std::vector<M> copies_of(const M& model, const Labelled& labelled, const Rng& rng) const {
    const std::vector<std::size_t> known = described_positions(labelled);
    std::vector<M> taught_copies;
    if (known.empty() || labelled.y.empty()) return taught_copies;
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
      taught_copies.push_back(model);
      taught_copies.back().fit(taught, y, task);
    }
    return taught_copies;
  }

  // The standard deviation of what the copies predict.
  template <CostModel M>
  static void deviation(std::span<const M> of, const FeatureBatch& x, std::span<float> error) {
    std::vector<double> sum(x.programs()), squares(x.programs());
    for (const M& copy : of) {
      copy.predict(x, error);
      for (std::size_t p = 0; p < error.size(); ++p) {
        sum[p] += double{error[p]};
        squares[p] += double{error[p]} * double{error[p]};
      }
    }
    const double count = static_cast<double>(std::max<std::size_t>(of.size(), 1));
    for (std::size_t p = 0; p < error.size(); ++p) {
      const double mean = sum[p] / count;
      error[p] = static_cast<float>(std::sqrt(std::max(0.0, squares[p] / count - mean * mean)));
    }
  }

  // `candidates` are sorted best first.
  [[nodiscard]] std::vector<std::size_t> spread(std::span<const std::size_t> candidates, const FeatureBatch& x,
                                                std::size_t n, const Labelled& labelled) const {
    const Points points = summed_rows(x, candidates);
    std::vector<float> nearest(candidates.size(), 1.0F);  // share of knobs that differ
    const auto add = [&](std::span<const float> centre) {
      for (std::size_t i = 0; i < nearest.size(); ++i) nearest[i] = std::min(nearest[i], differing(points[i], centre));
    };
    const std::uint32_t task = labelled.pool_task_of(0);
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
};

}  // namespace tunewright::samplers
