// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../drafted.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/het_feat_transfer.hpp"
#include "tunewright/recipes/one_shot.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/recipes/tenset.hpp"
#include "tunewright/recipes/tlp.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

/// Recipes for schedules that studies compare, by measurer. Their names are those of tables.
///
///   AnsorQuick     the reference
///   Random         valid schedules at random
///   Ansor          by the paper's settings
///   Pruner         likewise
///   PrunerQuick    its variant for machines that measure quickly
///   NoDraft        the same without a draft: its network chooses from 512 random schedules
///   DraftAndTrees  the same with Ansor's trees for a network, which correct the draft
///   TreesAlone     the same with trees that do not know the draft
///   NoDataflow     the same with rows of statements alone, for a network of TenSet's form and Pruner's size
///
/// Those whose models are trained before, by `Pretrained`:
///
///   TenSet, Tlp, TlpQuick, OneShot, HetFeatTransfer, MoaPrunerQuick (`PrunerQuick` with momentum)
///   BaltoTaught    TenSet's search with a network that was taught what `BaltoQuick` chose to measure
namespace tunewright::bench {

using Space = spaces::MultiLevelTiling;

template <class M>
using Random = recipes::Random<Space, M>;
template <class M>
using Ansor = recipes::Ansor<Space, M>;
template <class M>
using AnsorQuick = recipes::AnsorQuick<Space, M>;
template <class M>
using Pruner = recipes::Pruner<Space, M>;
template <class M>
using PrunerQuick = recipes::PrunerQuick<Space, M>;

template <class M>
struct NoDataflow : PrunerQuick<M> {
  using featurizer = features::PerStatement;
  using model = models::Mlp;
  static void set_model(models::Mlp& network) {
    models::PatternAware of_pruner;
    PrunerQuick<M>::set_model(of_pruner);
    network.hidden = of_pruner.hidden;
    network.training = of_pruner.training;
  }
};

template <class M>
using HetFeatTransfer = recipes::HetFeatTransfer<Space, M>;
template <class M>
using TenSet = recipes::TenSet<Space, M>;
template <class M>
using Tlp = recipes::Tlp<Space, M>;
template <class M>
using OneShot = recipes::OneShot<Space, M>;
template <class M>
using TlpQuick = recipes::TlpQuick<Space, M>;
template <class M>
struct BaltoTaught : TenSet<M> {};
template <class M>
struct MoaPrunerQuick : PrunerQuick<M> {
  using adaptation = adaptations::Momentum;
  static void set_adaptation(adaptations::Momentum&) {}
};

}  // namespace tunewright::bench
