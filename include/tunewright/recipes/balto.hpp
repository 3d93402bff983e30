// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Collects the measurements that a cost model learns most from: random programs, of which those are measured
/// that differ most from what is known, weighed so that not all of them are slow. What it is for is
/// `tuner.parts().model`, not the fastest trial.
///
/// Paper:    Bi et al., BALTO: Fast Tensor Program Optimization with Diversity-based Active Learning, ICLR
///           2023.
/// Deviates: only the abstract is public, so the choice of the three models, all fitted anew every round, and
///           everything that `samplers::BiasedDiversity` says there is a reconstruction. The paper selects
///           from a given pool of many tasks; here the pool is what `explorers::Uniform` draws for one, 2,048
///           candidates a round.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer,
          EmbeddingCostModel Model = models::Committee<models::Mlp, 3>,
          FeaturizerFor<Space> Featurizer = features::PerStatement>
struct Balto {
  using space = Space;
  using featurizer = Featurizer;
  using model = Model;
  using draft = drafts::None;
  using explorer = explorers::Uniform;
  using sampler = samplers::BiasedDiversity;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;

  static void set_featurizer(features::Knobs& features, const Space& space)
    requires KnobSpace<Space>
  {
    features.knobs = space.knobs();
  }
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 2048; }
};

/// Balto where measuring is quick: on CPUs a batch of 16 takes a second or two, and three networks of the default
/// settings several times that.
///
/// What differs from `Balto`, ours: a network, alone or in a committee, has a quarter of the width and trains 120
/// mini-batches of 64 programs at 3e-3, or twenty epochs of them, whichever are more. Other models are as in `Balto`.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer,
          EmbeddingCostModel Model = models::Committee<models::Mlp, 3>,
          FeaturizerFor<Space> Featurizer = features::PerStatement>
struct BaltoQuick : Balto<Space, Measurer, Model, Featurizer> {
  static void set_model(models::Mlp& network) {
    network = models::Mlp::quick();
    network.hidden = 64;
    network.training.least_steps = 120;
    network.training.learning_rate = 3e-3F;
  }
  template <std::size_t N>
  static void set_model(models::Committee<models::Mlp, N>& committee) {
    set_model(committee.member);
  }
};

}  // namespace tunewright::recipes
