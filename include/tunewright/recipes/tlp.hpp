// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/features/primitives.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/primitive_attention.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Ansor's search ranked by a pretrained network that reads schedules instead of loop nests, fine-tuned on the
/// measurements of the search. A model with several heads, trained by `fit_heads`, makes it MTL-TLP; the search uses
/// head 0. By default it reads schedules for CPUs; for a GPU give the paper's other table and a network trained on it:
///
///   Tuner<recipes::Tlp<Space, Measurer>> tuner{{.featurizer = features::Primitives::gpu(), .model = pretrained}};
///
/// Paper:    Zhai et al., TLP: A Deep Learning-based Cost Model for Tensor Program Tuning, ASPLOS 2023,
///           doi:10.1145/3575693.3575737.
/// Deviates: as `Ansor`, `features::Primitives` and `models::PrimitiveAttention`. The paper fine-tunes on half a
///           million measurements of the target before the search; here on the measurements of the search.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Tlp {
  using space = Space;
  using featurizer = features::Primitives;
  using model = models::PrimitiveAttention;
  using draft = drafts::None;
  using explorer = explorers::Evolutionary;
  using sampler = samplers::EpsilonGreedy;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::FineTune;
  using measurer = Measurer;

  /// As in Ansor.
  static void set_explorer(explorers::Evolutionary& evolution) { evolution.population = 2048; }
  /// 50 epochs, however few programs there are.
  static void set_model(models::PrimitiveAttention& network) { network.training.least_steps = 0; }
  /// Fine-tuning uses the settings of the training.
  static void set_adaptation(adaptations::FineTune& tuning) {
    models::PrimitiveAttention network;
    Tlp::set_model(network);
    tuning.training = network.training;
  }
};

/// Tlp for machines that measure quickly: on CPUs a batch of 10 takes a third of a second, and training with the
/// settings of the paper, before the search and after every batch, takes minutes.
///
/// Differences from `Tlp`, our own: MetaSchedule's population, a quarter of Ansor's; a quarter of the width; some 200
/// mini-batches of 64 programs before the search, and 20 of 32 after a batch when the data has grown by a tenth.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct TlpQuick : Tlp<Space, Measurer> {
  static void set_explorer(explorers::Evolutionary& evolution) { evolution = {}; }
  static void set_model(models::PrimitiveAttention& network) { network = models::PrimitiveAttention::quick(); }
  static void set_adaptation(adaptations::FineTune& tuning) {
    tuning.training = models::PrimitiveAttention::quick().training;
    tuning.training->epochs = 1;
    tuning.training->least_steps = 20;
    tuning.training->batch_programs = 32;
    tuning.min_growth = 0.1;
  }
};

}  // namespace tunewright::recipes
