// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/growth.hpp"
#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::adaptations {

/// Starts with a pretrained model and shifts weight to the own model as measurements accumulate.
///
///   w = 2^(-n / half_life_programs),  0 below least_share         n = own programs
///   Corrected    K + (1 - w) g            g fitted to y - K
///   Discounted   w s + g                  g fitted to y - w s       s = score of the source
///   Blended      w L_s + (1 - w) L_o      own model fitted to y
///
/// K is the least-squares line from the source's scores to y on the own programs, with a slope of at least 0; L_s and
/// L_o scale the scores of both models to the mean and deviation of y. Before there are two different labels, only the
/// source scores.
///
/// Corrected never drops the source and is best for similar devices; Discounted and Blended end with the own model
/// alone. Corrections can be negative: they are learned as (g + 1) / 2, cut to [0, 1], so Corrected and Discounted need
/// an own model whose scores approximate labels (a squared loss), and Discounted such a source. Blended works with any
/// loss.
///
/// Paper:       Chen et al., AutoTVM, NeurIPS 2018, and its code: Discounted, 64 programs, 0.05, added before training
///              as the margin of boosted trees.
/// Models:      AdaptationFor<Transferred<S, O>>.
/// Cost:        one fit of the own model, and a prediction of the own programs by the source.
/// Determinism: that of the models.
/// Errors:      `std::invalid_argument` for options out of range; errors of the own model.
/// Deviates:    AutoTVM's trees use the margin in every objective; other models can only get modified labels. Corrected
///              is ours: AutoTVM gives full weight to a correction learned from a few programs.
struct WarmStart {
  enum class Form : std::uint8_t { Corrected, Discounted, Blended };
  Form form = Form::Corrected;
  double half_life_programs = 64;  ///< above 0; infinity: the weight of own programs does not grow
  double least_share = 0.05;       ///< a smaller w becomes 0; in [0, 1)
  double min_growth = 0;           ///< share of new programs that makes a fit worth it, at least 0

  std::size_t fitted_candidates = 0;  ///< run-time state: own programs of the last fit

  /// w for n own programs.
  [[nodiscard]] double share(std::size_t n) const;

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(half_life_programs > 0, "WarmStart", "half_life_programs", half_life_programs,
            "a number of programs above 0");
    require(least_share >= 0 && least_share < 1, "WarmStart", "least_share", least_share, "a share, 0 to 1");
    require(min_growth >= 0, "WarmStart", "min_growth", min_growth, "a share, 0 to fit after every batch");
  }

  template <CostModel S, CostModel O>
  void update(Transferred<S, O>& model, const FeatureBatch& x, std::span<const float> y,
              std::span<const std::uint32_t> group) {
    check_options();
    if (y.empty() || !has_grown(y.size(), fitted_candidates, min_growth)) return;
    if (std::all_of(y.begin(), y.end(), [&](float label) { return label == y.front(); })) return;
    const double w = share(y.size());
    if (form == Form::Corrected)
      correct(model, 1, 1 - w, x, y, group);
    else if (w == 0)
      model.fit(x, y, group);
    else if (form == Form::Discounted)
      correct(model, w, 1, x, y, group);
    else
      blend(model, w, x, y, group);
    fitted_candidates = y.size();
  }

 private:
  struct Line {
    double offset = 0, slope = 1;
  };
  struct Moments {
    double n = 0, score = 0, label = 0;          // means
    double score2 = 0, label2 = 0, product = 0;  // about the means, summed
  };

  /// Moments of the programs with finite scores.
  static Moments moments(std::span<const float> score, std::span<const float> y);
  static Line same_spread(const Moments& m);
  static Line least_squares(const Moments& m);

  template <class Model>
  static void blend(Model& model, double w, const FeatureBatch& x, std::span<const float> y,
                    std::span<const std::uint32_t> group) {
    std::vector<float> score(y.size());
    model.source.predict(x, score);
    const Line source = same_spread(moments(score, y));
    model.own.fit(x, y, group);
    model.own.predict(x, score);
    const Line own = same_spread(moments(score, y));
    model.offset = w * source.offset + (1 - w) * own.offset;
    model.of_source = w * source.slope;
    model.of_own = (1 - w) * own.slope;
  }

  /// score = said * K + heard * g, where K is the source's own score if it is to be discounted.
  template <class Model>
  void correct(Model& model, double said, double heard, const FeatureBatch& x, std::span<const float> y,
               std::span<const std::uint32_t> group) const {
    std::vector<float> score(y.size());
    model.source.predict(x, score);
    const Line source = form == Form::Discounted ? Line{} : least_squares(moments(score, y));
    std::vector<float> half(y.size());
    for (std::size_t p = 0; p < y.size(); ++p) {
      const double k = std::isfinite(score[p]) ? source.offset + source.slope * static_cast<double>(score[p]) : 0;
      half[p] = static_cast<float>(std::clamp((static_cast<double>(y[p]) - said * k + 1) / 2, 0.0, 1.0));
    }
    model.own.fit(x, half, group);
    model.offset = said * source.offset - heard;
    model.of_source = said * source.slope;
    model.of_own = 2 * heard;
  }
};

}  // namespace tunewright::adaptations

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::adaptations {

TUNEWRIGHT_INLINE double WarmStart::share(std::size_t n) const {
  const double w = std::exp2(-static_cast<double>(n) / half_life_programs);
  return w < least_share ? 0 : w;
}

TUNEWRIGHT_INLINE WarmStart::Moments WarmStart::moments(std::span<const float> score, std::span<const float> y) {
  Moments m;
  for (std::size_t p = 0; p < y.size(); ++p) {
    if (!std::isfinite(score[p])) continue;
    const double s = static_cast<double>(score[p]) - m.score, l = static_cast<double>(y[p]) - m.label;
    ++m.n;
    m.score += s / m.n;
    m.label += l / m.n;
    const double s_after = static_cast<double>(score[p]) - m.score;
    m.score2 += s * s_after;
    m.product += l * s_after;
    m.label2 += l * (static_cast<double>(y[p]) - m.label);
  }
  return m;
}

TUNEWRIGHT_INLINE WarmStart::Line WarmStart::same_spread(const Moments& m) {
  const double slope = m.score2 > 0 ? std::sqrt(m.label2 / m.score2) : 0;
  return {m.label - slope * m.score, slope};
}

TUNEWRIGHT_INLINE WarmStart::Line WarmStart::least_squares(const Moments& m) {
  const double slope = m.score2 > 0 ? std::max(0.0, m.product / m.score2) : 0;
  return {m.label - slope * m.score, slope};
}

}  // namespace tunewright::adaptations

#endif
