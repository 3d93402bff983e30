// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/none.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/none.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/random.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Random search: every candidate is a random sample of the space. The baseline that every recipe has to beat.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Random {
  using space = Space;
  using featurizer = features::None;
  using model = models::Random;
  using draft = drafts::None;
  using explorer = explorers::Uniform;
  using sampler = samplers::Random;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::None;
  using measurer = Measurer;
};

}  // namespace tunewright::recipes
