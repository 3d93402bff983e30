// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/features/hardware.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/features/tags.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Annealing ranked by a network that learned elsewhere from programs, tasks and devices together, of which
/// the attention head follows what is measured here.
///
///   Tuner<recipes::HetFeatTransfer<Space, Measurer>> tuner{{.model = pretrained}};
///
/// Rows: the statements of the program, each with what the task is and the numbers of the device.
///
/// Paper:    Verma et al., Transfer Learning Across Heterogeneous Features For Efficient Tensor Program
///           Generation, arXiv 2304.05430.
/// Deviates: as `models::BiLstmAttention`. The tuner was not released: which rows the network reads is a
///           reconstruction. Features are not moved between devices; `adaptations::FeatureMap` does that, and
///           trains the whole network. Choosing tasks by their share of the operations is left to whoever
///           runs them.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct HetFeatTransfer {
  using space = Space;
  using featurizer = features::Joined<features::PerStatement, features::Tags, features::Hardware>;
  using model = models::BiLstmAttention;
  using draft = drafts::None;
  using explorer = explorers::Annealing;
  using sampler = samplers::TopK;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::FineTune;
  using measurer = Measurer;

  /// More than a batch, so that another sampler has something to choose; the best of them are those of a batch.
  static void set_explorer(explorers::Annealing& annealing) { annealing.elite_factor = 4; }
  /// The encoder stays as it was trained.
  static void set_adaptation(adaptations::FineTune& tuning) { tuning.trained = {"attention", "output"}; }
};

}  // namespace tunewright::recipes
