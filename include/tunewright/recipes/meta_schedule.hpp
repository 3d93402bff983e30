// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/recipes/ansor.hpp"

namespace tunewright::recipes {

/// Ansor's search as in MetaSchedule: a quarter of the population, and trees that are trained from scratch only when
/// the data have grown by a fifth.
///
///   Tuner<recipes::MetaSchedule<Space, Measurer>> tuner{{.seed = 7}};
///
/// Paper:    Shao et al., Tensor Program Optimization with Probabilistic Programs, NeurIPS 2022; settings of its
///           released code.
/// Deviates: the space is a parameter; the rules of `spaces::MultiLevelTiling` replace the modules that users write; as
///           its parts. A try after a failed mutation mutates again; its code draws whether to mutate anew.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct MetaSchedule : Ansor<Space, Measurer> {
  /// Up to ten further parents replace one that cannot be mutated, or that was copied already.
  static void set_explorer(explorers::Evolutionary& evolution) {
    evolution.max_tries = 11;
    evolution.one_copy_each = true;
  }
  static void set_adaptation(adaptations::Refit& refit) {
    Ansor<Space, Measurer>::set_adaptation(refit);
    refit.min_growth = 0.2;
  }
};

}  // namespace tunewright::recipes
