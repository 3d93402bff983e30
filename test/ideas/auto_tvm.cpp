// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/auto_tvm.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "ideas/paired_seeds.hpp"
#include "ideas/recorded_searches.hpp"
#include "tunewright/adaptations/none.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/models/random.hpp"
#include "tunewright/recipes/random.hpp"

// Chen et al., Learning to Optimize Tensor Programs: a search guided by trees needs fewer measurements than a blind
// one.
namespace {

using namespace tunewright;
using test::RecordedSearch;
using AutoTvm = recipes::AutoTvm<spaces::RecordedTable, test::RecordedReplay>;
using Random = recipes::Random<spaces::RecordedTable, test::RecordedReplay>;

/// Annealing that nothing guides.
struct Blind : AutoTvm {
  using model = models::Random;
  using adaptation = adaptations::None;
  static void set_model(models::Random&) {}
};

/// The trees choose from 64 random candidates instead of those that annealing finds.
struct FromRandomPool : AutoTvm {
  using explorer = explorers::Uniform;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 64; }
};

template <class Recipe>
auto searches(const test::RecordedTask& source) {
  return [&source](std::uint64_t seed) { return test::searched_recorded<Recipe>(source, seed, 64, 8); };
}

TEST_CASE("AutoTVM finds fast configurations sooner than random search, in less measuring time, with fewer failures") {
  const auto source = test::recorded_convolution("RTX_3090");
  const auto runs = test::on_seeds(20, searches<AutoTvm>(source), searches<Random>(source));
  const auto soon = runs.more(&RecordedSearch::mean_best);
  const auto seconds = runs.less(&RecordedSearch::seconds);
  const auto failures = runs.less(&RecordedSearch::failures);
  CAPTURE(soon);
  CAPTURE(seconds);
  CAPTURE(failures);
  CHECK(soon.idea_is_better());
  CHECK(seconds.idea_is_better());
  CHECK(failures.idea_is_better());
}

TEST_CASE("AutoTVM's annealing needs its trees") {
  const auto source = test::recorded_convolution("A100");
  const auto runs = test::on_seeds(20, searches<AutoTvm>(source), searches<Blind>(source));
  const auto soon = runs.more(&RecordedSearch::mean_best);
  CAPTURE(soon);
  CHECK(soon.idea_is_better());
}

TEST_CASE("AutoTVM's trees spend less measuring time where annealing searches for candidates than on random ones") {
  const auto source = test::recorded_convolution("RTX_3090");
  const auto runs = test::on_seeds(20, searches<AutoTvm>(source), searches<FromRandomPool>(source));
  const auto seconds = runs.less(&RecordedSearch::seconds);
  const auto failures = runs.less(&RecordedSearch::failures);
  CAPTURE(seconds);
  CAPTURE(failures);
  CHECK(seconds.idea_is_better());
  CHECK(failures.idea_is_better());
}

}  // namespace
