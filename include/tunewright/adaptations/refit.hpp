// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/growth.hpp"
#include "tunewright/core/require.hpp"

namespace tunewright::adaptations {

/// Trains the model from scratch on all measurements so far.
///
///   fit when  candidates now > warmup_candidates, and
///             tasks now > tasks at the last fit, or
///             (candidates now) - (candidates at the last fit)  >=  min_growth * (candidates at the last fit)
///
/// `min_growth` = 0 fits after every batch, as Ansor does; 0.2 is what Ansor and MetaSchedule call adaptive training
/// and makes the total training time linear in the trials.
///
/// Paper:       Zheng et al., Ansor, OSDI 2020.
/// Models:      AdaptationFor<M> for every CostModel M, TaskBoundAdaptation.
/// Shapes:      x (R, D) in N candidates, y [N], group [N].
/// Cost:        one fit, or nothing.
/// Determinism: that of the model.
/// Errors:      `std::invalid_argument` for a negative `min_growth`; errors of the model.
struct Refit {
  static constexpr bool is_task_bound = true;

  double min_growth = 0;              ///< share of new candidates that triggers a fit, at least 0
  std::size_t warmup_candidates = 0;  ///< no fit until more candidates than these, of all tasks, are measured

  std::size_t fitted_candidates = 0;  ///< run-time state: N of the last fit
  std::size_t fitted_tasks = 0;       ///< run-time state: tasks of the last fit

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(min_growth >= 0, "Refit", "min_growth", min_growth, "a share, 0 to fit after every batch");
  }

  template <CostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    if (y.size() <= warmup_candidates) return;
    const std::size_t tasks = std::set<std::uint32_t>(group.begin(), group.end()).size();
    if (!has_grown(y.size(), fitted_candidates, min_growth) && tasks <= fitted_tasks) return;
    model.fit(x, y, group);
    fitted_candidates = y.size();
    fitted_tasks = tasks;
  }
};

}  // namespace tunewright::adaptations
