// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/alt.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "ideas/paired_seeds.hpp"
#include "ideas/recorded_searches.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/top_k.hpp"

// Zeng et al., ALT: a filter avoids measurements that fail, and measuring what the model may be wrong about teaches it
// more than measuring what it thinks best.
namespace {

using namespace tunewright;
using test::RecordedSearch;

/// Has fewer trees than by default, for time.
struct Alt : recipes::Alt<spaces::RecordedTable, test::RecordedReplay> {
  static void set_model(models::Gbdt& trees) {
    recipes::Alt<space, measurer>::set_model(trees);
    trees.rounds = 40;
  }
  static void set_sampler(samplers::UncertaintyPingPong<models::Gbdt>& sampler) {
    recipes::Alt<space, measurer>::set_sampler(sampler);
    sampler.error_predictor.rounds = 40;
    sampler.error_predictor.threads = 1;
  }
};
using Random = recipes::Random<spaces::RecordedTable, test::RecordedReplay>;

struct WithoutPings : Alt {
  using sampler = samplers::TopK;
};

/// Random search that learns what fails: nothing but the filter can tell.
struct FilteredRandom : Random {
  using filter = recipes::AltFilter;
  static void set_filter(filter& filter, const spaces::RecordedTable& space) { Alt::set_filter(filter, space); }
};

template <class Recipe>
auto searches(const test::RecordedTask& source, std::size_t trials, std::size_t batch) {
  return [&source, trials, batch](std::uint64_t seed) {
    return test::searched_recorded<Recipe>(source, seed, trials, batch);
  };
}

TEST_CASE("ALT's turns of uncertain and promising batches teach the model more than the most promising ones alone") {
  const auto source = test::recorded_convolution("RTX_3090");
  const auto runs = test::on_seeds(40, searches<Alt>(source, 96, 16), searches<WithoutPings>(source, 96, 16));
  const auto accuracy = runs.more(&RecordedSearch::accuracy);
  const auto best = runs.more(&RecordedSearch::best);
  const auto failures = runs.less(&RecordedSearch::failures);
  CAPTURE(accuracy);
  CAPTURE(best);
  CAPTURE(failures);
  CHECK(accuracy.idea_is_better());
}

TEST_CASE("ALT's filter avoids failures, and the time that they take") {
  const auto source = test::recorded_convolution("RTX_3090");
  const auto runs = test::on_seeds(20, searches<FilteredRandom>(source, 256, 32), searches<Random>(source, 256, 32));
  const auto failures = runs.less(&RecordedSearch::failures);
  const auto seconds = runs.less(&RecordedSearch::seconds);
  CAPTURE(failures);
  CAPTURE(seconds);
  CHECK(failures.idea_is_better());
  CHECK(seconds.idea_is_better());
}

}  // namespace
