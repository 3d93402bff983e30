// SPDX-License-Identifier: Apache-2.0
// What a measurer lacks is named.
// error 1: recipe: slot 'measurer' does not model MeasurerFor<program of the space>: measure must also work without a sink
// error 2: recipe: slot 'measurer' does not model MeasurerFor<program of the space>: measure must return
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using Programs = std::span<const toy::Space::program_type>;

struct Measurer {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  std::vector<tunewright::Outcome> measure(const tunewright::Task&, Programs, const tunewright::OutcomeSink&) {
    return {};
  }
#elif TUNEWRIGHT_SHOULD_FAIL == 2
  std::vector<double> measure(const tunewright::Task&, Programs) { return {}; }
#else
  std::vector<tunewright::Outcome> measure(const tunewright::Task&, Programs, const tunewright::OutcomeSink& = {}) {
    return {};
  }
#endif
};

struct Recipe : toy::Evolution {
  using measurer = Measurer;
};

tunewright::Tuner<Recipe> tuner;
