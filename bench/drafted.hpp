// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/draft_and_trees.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

/// Variants of `recipes::PrunerQuick` and `recipes::DraftAndTrees` that benchmarks and studies share.
namespace tunewright::bench {

/// Its network chooses from 512 random schedules, without a draft.
template <class Measurer>
struct NoDraft : recipes::PrunerQuick<spaces::MultiLevelTiling, Measurer> {
  using draft = drafts::None;
  using explorer = explorers::Uniform;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 512; }
};

template <class Measurer>
using DraftAndTrees = recipes::DraftAndTrees<spaces::MultiLevelTiling, Measurer>;

/// Its trees do not know the draft.
template <class Measurer>
struct TreesAlone : DraftAndTrees<Measurer> {
  using featurizer = features::PerStatement;
  using model = models::Gbdt;
};

}  // namespace tunewright::bench
