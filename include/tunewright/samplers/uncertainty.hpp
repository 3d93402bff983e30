// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// The value of measuring a candidate with mean m and deviation s; f is the mean of the best candidate measured so far.
/// N: the standard normal density, C: its distribution function.
enum class Acquisition : std::uint8_t {
  Variance,                  ///< s: where the committee disagrees
  Margin,                    ///< -|m - f| / s: where it is uncertain whether the candidate beats the best
  ExpectedImprovement,       ///< (m - f - xi) C(z) + s N(z), z = (m - f - xi) / s;  max(0, m - f - xi) for s = 0
  ProbabilityOfImprovement,  ///< C(z)
  UpperConfidenceBound,      ///< m + kappa s
  Thompson,                  ///< one draw from N(m, s^2)
};

/// Selects the candidates with the largest acquisition value, computed from the model's mean and deviation.
///
/// Paper:       Jones et al., Efficient Global Optimization, 1998 (expected improvement); Srinivas et al., GP-UCB, ICML
///              2010; Seung et al., Query by Committee, COLT 1992 (variance).
/// Models:      LabelAwareSamplerFor<M> for every UncertainCostModel M.
/// Shapes:      score [P]; result [min(n, P)], largest value first.
/// Units:       xi in units of the score; kappa in deviations.
/// Cost:        O(P log n), one prediction of the pool and, if f is needed, of the labelled programs.
/// Determinism: only Thompson uses the generator.
/// Errors:      `std::invalid_argument` for options out of range, and unless there is one score or label per program.
/// Deviates:    f is the largest mean over the labelled programs of the candidate's task rather than their best label,
///              because scores of ranking models have no unit; for a task without labels, it is the largest score of
///              its pool. Thompson draws each candidate independently, because models give no joint distribution. A
///              batch consists of the n largest values, without hallucinated results.
struct Uncertainty {
  Acquisition acquisition = Acquisition::ExpectedImprovement;
  double kappa = 2;  ///< number of deviations for UpperConfidenceBound, at least 0, finite
  double xi = 0;     ///< minimum improvement that counts, at least 0, finite

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(std::isfinite(kappa) && kappa >= 0, "Uncertainty", "kappa", kappa, "finite and 0 or more");
    require(std::isfinite(xi) && xi >= 0, "Uncertainty", "xi", xi, "finite and 0 or more");
  }

  template <UncertainCostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M& model, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check_options();
    check_pool("Uncertainty", x, score, labelled);
    std::vector<float> mean(score.size()), deviation(score.size());  // [P]
    model.predict_with_deviation(x, mean, deviation);
    std::map<std::uint32_t, float> best;
    if (needs_best()) {
      std::vector<float> known(labelled.size());  // [L]
      if (!known.empty()) model.predict(labelled.x, known);
      best = best_of_tasks(score, known, labelled);
    }
    std::vector<float> value(score.size());
    const std::vector<std::size_t> candidates = described_positions(score);
    for (const std::size_t p : candidates) {
      const double f = needs_best() ? double{best.at(labelled.pool_task_of(p))} : 0.0;
      value[p] = static_cast<float>(worth(double{mean[p]}, double{deviation[p]}, f, rng));
    }
    std::vector<std::size_t> chosen = largest(candidates, n, value, score);
    fill_up(chosen, score, n);
    return chosen;
  }

  /// The acquisition value for mean `m` and deviation `s` against the best `f`.
  [[nodiscard]] double worth(double m, double s, double f, Rng& rng) const;

 private:
  [[nodiscard]] bool needs_best() const noexcept;
  static double density(double z) { return std::exp(-0.5 * z * z) * 0.3989422804014327; }
  static double below(double z) { return 0.5 * std::erfc(-z * 0.7071067811865476); }

  static std::map<std::uint32_t, float> best_of_tasks(std::span<const float> score, std::span<const float> known,
                                                      const Labelled& labelled);
};

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::samplers {

TUNEWRIGHT_INLINE double Uncertainty::worth(double m, double s, double f, Rng& rng) const {
  const double gain = m - f - xi;
  switch (acquisition) {
    case Acquisition::Variance: return s;
    case Acquisition::Margin: return s > 0 ? -std::abs(m - f) / s : -std::numeric_limits<double>::infinity();
    case Acquisition::ExpectedImprovement:
      return s > 0 ? gain * below(gain / s) + s * density(gain / s) : std::max(0.0, gain);
    case Acquisition::ProbabilityOfImprovement: return s > 0 ? below(gain / s) : (gain > 0 ? 1.0 : 0.0);
    case Acquisition::UpperConfidenceBound: return m + kappa * s;
    case Acquisition::Thompson: return m + s * rng.normal();
  }
  return m;
}

TUNEWRIGHT_INLINE bool Uncertainty::needs_best() const noexcept {
  return acquisition == Acquisition::Margin || acquisition == Acquisition::ExpectedImprovement ||
         acquisition == Acquisition::ProbabilityOfImprovement;
}

TUNEWRIGHT_INLINE std::map<std::uint32_t, float> Uncertainty::best_of_tasks(std::span<const float> score,
                                                                            std::span<const float> known,
                                                                            const Labelled& labelled) {
  std::map<std::uint32_t, float> best;
  for (const auto& [task, members] : by_task(score, labelled)) {
    const bool any = !members.labelled.empty();
    float largest_mean = -std::numeric_limits<float>::infinity();
    for (const std::size_t i : any ? members.labelled : members.pool)
      largest_mean = std::max(largest_mean, any ? known[i] : score[i]);
    best[task] = largest_mean;
  }
  return best;
}

}  // namespace tunewright::samplers

#endif
