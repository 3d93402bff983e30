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

/// Collects measurements to train a cost model: among random programs it measures those that differ most from the known
/// ones, weighted so that not all of them are slow. Its result is `tuner.parts().model`, not the fastest trial.
///
/// Paper:    Bi et al., BALTO: Fast Tensor Program Optimization with Diversity-based Active Learning, ICLR 2023.
/// Deviates: only the abstract is public, so the choice of the three models, trained from scratch every round, and
///           everything in `samplers::BiasedDiversity` is a reconstruction. The paper selects from a given pool of many
///           tasks; here `explorers::Uniform` draws a pool of 2,048 candidates of one task per round. Which way the
///           paper's bias goes is not public, either. It reports that its models lead to faster programs, as labels
///           do that prefer fast ones (`samplers::Bias::High`, the default of the sampler); for a model that ranks a
///           whole space set `samplers::Bias::Strata`.
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

/// Balto for machines that measure quickly: on CPUs a batch of 16 takes a second or two, and training three networks
/// with the default settings several times that.
///
/// Differences from `Balto`, our own: a network, alone or in a committee, has a quarter of the width and trains for 120
/// mini-batches of 64 programs or twenty epochs, whichever is more, at 3e-3. Other models are as in `Balto`.
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
