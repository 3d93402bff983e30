// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

/// Variants of `recipes::PrunerQuick` that benchmarks and studies share.
namespace tunewright::bench {

/// Its network chooses from 512 random schedules, without a draft.
template <class Measurer>
struct NoDraft : recipes::PrunerQuick<spaces::MultiLevelTiling, Measurer> {
  using draft = drafts::None;
  using explorer = explorers::Uniform;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 512; }
};

/// Ansor's trees rank what was drafted: they learn thousands of programs in a fraction of a second.
template <class Measurer>
struct DraftAndTrees : recipes::PrunerQuick<spaces::MultiLevelTiling, Measurer> {
  using featurizer = features::PerStatement;
  using model = models::Gbdt;
  using adaptation = adaptations::Refit;
  static void set_model(models::Gbdt&) {}
  static void set_adaptation(adaptations::Refit&) {}
};

}  // namespace tunewright::bench
