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

/// Annealing ranked by a network pretrained on joint features of programs, tasks and devices, of which only the
/// attention head is fine-tuned on the measurements of the search.
///
///   Tuner<recipes::HetFeatTransfer<Space, Measurer>> tuner{{.model = pretrained}};
///
/// Rows: the statements of the program, each with the tags of the task and the numbers of the device.
///
/// Paper:    Verma et al., Transfer Learning Across Heterogeneous Features For Efficient Tensor Program Generation,
///           arXiv 2304.05430.
/// Deviates: as `models::BiLstmAttention`. The tuner was not released: the choice of rows for the network is a
///           reconstruction. Features are not mapped between devices; `adaptations::FeatureMap` maps them and trains
///           the whole network. `schedulers::FlopsFirst` of a `MultiTaskTuner` orders tasks by operations.
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

  /// More than a batch, so that another sampler can choose; the best of them form the batch.
  static void set_explorer(explorers::Annealing& annealing) { annealing.elite_factor = 4; }
  /// Freezes the encoder, and goes on at the learning rate of the training, the only one that the paper has.
  static void set_adaptation(adaptations::FineTune& tuning) {
    tuning.trained = {"attention", "output"};
    tuning.training = models::BiLstmAttention{}.training;
  }
};

}  // namespace tunewright::recipes
