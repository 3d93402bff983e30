// SPDX-License-Identifier: Apache-2.0
// What every sampler owes, whatever it is: see samplers/concept.hpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "support/toy_model.hpp"
#include "tunewright/samplers/badge.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/samplers/cluster_centres.hpp"
#include "tunewright/samplers/core_set.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/samplers/uncertainty.hpp"
#include "tunewright/samplers/uncertainty_ping_pong.hpp"

using namespace tunewright;

namespace {

using samplers::Acquisition;
using samplers::Bias;
using Select = std::function<std::vector<std::size_t>(const FeatureBatch&, std::span<const float>, std::size_t, Rng&,
                                                      const samplers::Labelled*)>;

struct Law {
  const char* name;
  Select select;  // with all that is known, if the sampler looks at it and anything is given
  bool label_aware = false;
  bool may_return_fewer = false;
};

template <class Sampler>
Law law(const char* name, Sampler sampler) {
  constexpr bool aware = LabelAwareSamplerFor<Sampler, toy::OpenBook>;
  return {name,
          [sampler](const FeatureBatch& x, std::span<const float> score, std::size_t n, Rng& rng,
                    const samplers::Labelled* labelled) mutable {
            if constexpr (aware) {
              if (labelled != nullptr) return sampler.select(toy::OpenBook{}, x, score, n, rng, *labelled);
            }
            return sampler.select(toy::OpenBook{}, x, score, n, rng);
          },
          aware, std::is_same_v<Sampler, samplers::ClusterCentres>};
}

const std::vector<Law>& laws() {
  static const std::vector<Law> all = [] {
    std::vector<Law> made{law("TopK", samplers::TopK{}),
                          law("EpsilonGreedy", samplers::EpsilonGreedy{}),
                          law("Random", samplers::Random{}),
                          law("CoreSet", samplers::CoreSet{}),
                          law("CoreSet, standardised", samplers::CoreSet{.standardised = true}),
                          law("Badge", samplers::Badge{}),
                          law("ClusterCentres", samplers::ClusterCentres{}),
                          law("DiverseTopK", samplers::DiverseTopK{}),
                          law("UncertaintyPingPong", samplers::UncertaintyPingPong<toy::OpenBook>{})};
    for (const auto acquisition :
         {Acquisition::Variance, Acquisition::Margin, Acquisition::ExpectedImprovement,
          Acquisition::ProbabilityOfImprovement, Acquisition::UpperConfidenceBound, Acquisition::Thompson})
      made.push_back(law("Uncertainty", samplers::Uncertainty{.acquisition = acquisition}));
    for (const auto bias : {Bias::None, Bias::High, Bias::Strata, Bias::Restore, Bias::Dpp, Bias::Qbc})
      made.push_back(law("BiasedDiversity", samplers::BiasedDiversity{.bias = bias}));
    return made;
  }();
  return all;
}

enum class Kind { random, equal, some_undescribed, all_undescribed };
constexpr Kind kinds[] = {Kind::random, Kind::equal, Kind::some_undescribed, Kind::all_undescribed};

// Programs for toy::OpenBook. A third of `some_undescribed` has no rows, and now and then one that has is
// scored NaN.
struct Pool {
  FeatureBatch x{6};
  std::vector<float> score;

  Pool(std::size_t size, Kind kind, Rng& rng) {
    for (std::size_t p = 0; p < size; ++p) {
      const bool described = kind != Kind::all_undescribed && (kind != Kind::some_undescribed || rng.below(3) > 0);
      if (described) {
        const std::span<float> row = x.append_row();
        for (float& value : row) value = kind == Kind::equal ? 0.5F : static_cast<float>(rng.below(8)) / 8;
      }
      x.close_program();
    }
    score = toy::scores(toy::OpenBook{}, x);
    for (float& one : score) {
      if (kind == Kind::some_undescribed && rng.below(10) == 0) one = std::numeric_limits<float>::quiet_NaN();
    }
  }
};

std::vector<std::uint32_t> draws(std::size_t count, std::uint64_t below, Rng& rng) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<std::uint32_t>(rng.below(below)));
  return numbers;
}

// Calls the sampler with everything a caller may have.
std::vector<std::size_t> select_knowing(const Law& law, const Pool& pool, const Pool& known, std::size_t n,
                                        std::uint64_t seed) {
  Rng rng(seed);
  Rng numbers(seed + 1);
  const auto task = draws(known.score.size(), 3, numbers), round = draws(known.score.size(), 5, numbers),
             pool_task = draws(pool.score.size(), 4, numbers);
  std::vector<float> y;
  for (const float one : known.score) y.push_back(one > 0 ? one : 0.0F);
  const samplers::Labelled labelled{
      .x = known.x, .y = y, .task = task, .round = round, .predicted = known.score, .pool_task = pool_task};
  return law.select(pool.x, pool.score, n, rng, &labelled);
}

void check_choice(const Law& law, const std::vector<std::size_t>& chosen, const Pool& pool, std::size_t n) {
  CHECK_NOTHROW(samplers::check_selection(chosen, pool.score.size(), n));
  const std::size_t most = std::min(n, pool.score.size());
  if (law.may_return_fewer)
    CHECK(chosen.empty() == (most == 0));
  else
    CHECK(chosen.size() == most);
  const auto hopeless = [&](std::size_t p) { return !samplers::described(pool.score[p]); };
  const auto first = std::find_if(chosen.begin(), chosen.end(), hopeless);
  CHECK(std::all_of(first, chosen.end(), hopeless));
  const std::size_t described = samplers::described_positions(pool.score).size();
  if (first != chosen.end()) CHECK(static_cast<std::size_t>(first - chosen.begin()) == described);
}

}  // namespace

TEST_CASE("min(n, P) distinct positions in range, described ones first") {
  Rng draw(17);
  for (const Law& law : laws()) {
    CAPTURE(law.name);
    for (const std::size_t size : {0U, 1U, 5U, 64U}) {
      for (const std::size_t n : {0U, 1U, 5U, 20U}) {
        for (const Kind kind : kinds) {
          CAPTURE(size);
          CAPTURE(n);
          CAPTURE(static_cast<int>(kind));
          const Pool pool(size, kind, draw);
          Rng rng(draw());
          check_choice(law, law.select(pool.x, pool.score, n, rng, nullptr), pool, n);
          for (const std::size_t labelled : {0U, 3U, 40U}) {
            const Pool known(labelled, kind, draw);
            check_choice(law, select_knowing(law, pool, known, n, draw()), pool, n);
          }
        }
      }
    }
  }
}

TEST_CASE("the choice depends on the arguments alone") {
  Rng draw(4);
  const Pool pool(40, Kind::random, draw);
  const Pool known(10, Kind::random, draw);
  for (const Law& law : laws()) {
    CAPTURE(law.name);
    Rng first(4);
    Rng second(4);
    CHECK(law.select(pool.x, pool.score, 7, first, nullptr) == law.select(pool.x, pool.score, 7, second, nullptr));
    CHECK(select_knowing(law, pool, known, 7, 5) == select_knowing(law, pool, known, 7, 5));
  }
}

TEST_CASE("nothing known is the same as nothing said") {
  Rng draw(6);
  const Pool pool(40, Kind::random, draw);
  const std::vector<std::uint32_t> one_task(40, 0);
  const samplers::Labelled nothing{.pool_task = one_task};
  for (const Law& law : laws()) {
    CAPTURE(law.name);
    Rng first(4);
    Rng second(4);
    CHECK(law.select(pool.x, pool.score, 7, first, nullptr) == law.select(pool.x, pool.score, 7, second, &nothing));
  }
}

TEST_CASE("what does not belong together is refused") {
  Rng rng(6);
  const Pool pool(4, Kind::random, rng);
  const std::vector<std::uint32_t> two{1, 2};
  FeatureBatch narrow(3);
  narrow.append_program(std::vector<float>{1, 2, 3});
  for (const Law& law : laws()) {
    if (!law.label_aware) continue;
    CAPTURE(law.name);
    const auto select = [&](const FeatureBatch& x, const samplers::Labelled& labelled) {
      return law.select(x, pool.score, 2, rng, &labelled);
    };
    CHECK_THROWS_WITH_AS((void)select(Pool(3, Kind::random, rng).x, {}),
                         doctest::Contains("3 programs in the features of the pool where 4"), std::invalid_argument);
    CHECK_THROWS_WITH_AS((void)select(pool.x, {.pool_task = two}),
                         doctest::Contains("2 task numbers of the pool where 4"), std::invalid_argument);
    CHECK_THROWS_WITH_AS((void)select(pool.x, {.x = pool.x, .round = two}),
                         doctest::Contains("2 rounds of labelled programs where 4"), std::invalid_argument);
    CHECK_THROWS_WITH_AS((void)select(pool.x, {.x = narrow}),
                         doctest::Contains("labelled programs of 3 columns and a pool of 6"), std::invalid_argument);
  }
}
