// SPDX-License-Identifier: Apache-2.0
#include "tunewright/filters/learned_validity.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/toy_model.hpp"
#include "support/toy_space.hpp"
#include "tunewright/filters/all.hpp"
#include "tunewright/filters/none.hpp"
#include "tunewright/filters/static_limits.hpp"

using namespace tunewright;

namespace {

// The mean label of the taught programs of the same depth (column 2), weighted by how often they were taught.
struct MeanByDepth {
  std::vector<float> sum = std::vector<float>(8), count = std::vector<float>(8);

  void predict(const FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p) {
      if (x.program(p).empty()) {
        score[p] = -std::numeric_limits<float>::infinity();
        continue;
      }
      const auto depth = static_cast<std::size_t>(x.program(p)[2]);
      score[p] = count[depth] == 0 ? 1.0F : sum[depth] / count[depth];
    }
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t>) {
    *this = {};
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const auto depth = static_cast<std::size_t>(x.program(p)[2]);
      sum[depth] += y[p];
      count[depth] += 1;
    }
  }
};
using Filter = filters::LearnedValidity<MeanByDepth, toy::Features>;
static_assert(LearningFilterFor<Filter, toy::Space>);
static_assert(!FilterFor<Filter, int>);

// `count` different configurations of one depth.
std::vector<toy::Tiles> of_depth(int depth, int count, int first = 0) {
  std::vector<toy::Tiles> configs;
  for (int i = first; i < first + count; ++i) configs.push_back({i % 8, i / 8 % 8, depth, i / 64});
  return configs;
}

void learn(Filter& filter, const std::vector<toy::Tiles>& configs, bool valid) {
  Outcome outcome;
  if (valid)
    outcome.result = Timing{.repeats = {}, .median = Seconds(1)};
  else
    outcome.result = Failure{Fault::RunError, ""};
  filter.learn(toy::Space{}, toy::task(), std::span<const toy::Tiles>(configs),
               std::vector<Outcome>(configs.size(), outcome));
}

std::size_t kept(const Filter& filter, const std::vector<toy::Tiles>& configs) {
  return filter.keep(toy::Space{}, toy::task(), std::span<const toy::Tiles>(configs)).indices.size();
}

}  // namespace

TEST_CASE("nothing is rejected before there are labels and failures enough") {
  Filter filter{.explored_share = 0};
  learn(filter, of_depth(1, 40), false);
  CHECK(kept(filter, of_depth(1, 10)) == 10);  // too few labels
  Filter seldom{.explored_share = 0};
  learn(seldom, of_depth(1, 7), false);
  learn(seldom, of_depth(2, 60), true);
  CHECK(kept(seldom, of_depth(1, 10)) == 10);  // too few failures
  learn(seldom, of_depth(1, 1, 7), false);
  CHECK(kept(seldom, of_depth(1, 10)) == 0);
  CHECK(kept(seldom, of_depth(2, 10)) == 10);
  Filter hopeless{.explored_share = 0};
  learn(hopeless, of_depth(1, 100), false);
  CHECK(kept(hopeless, of_depth(1, 10)) == 10);  // nothing to tell failures from
}

TEST_CASE("configurations without rows, of which a model learns nothing, do not count") {
  const toy::Features features;
  const auto failed = of_depth(1, 40);
  FeatureBatch x = features.extract(toy::Space{}, toy::task(), std::span<const toy::Tiles>(failed));
  std::vector<float> label(40, 0.0F);
  for (int i = 0; i < 40; ++i) {
    x.close_program();
    label.push_back(1);
  }
  Filter filter{.explored_share = 0};
  filter.teach(x, label);
  CHECK_FALSE(filter.active());  // failures and no success
  CHECK(kept(filter, of_depth(1, 10)) == 10);
  learn(filter, of_depth(2, 23), true);
  CHECK_FALSE(filter.active());  // 63 labels
  learn(filter, of_depth(2, 1, 23), true);
  CHECK(filter.active());
  CHECK(kept(filter, of_depth(1, 10)) == 0);
  CHECK(kept(filter, of_depth(2, 10)) == 10);

  FeatureBatch rowless(x.columns());
  for (int i = 0; i < 8; ++i) rowless.close_program();
  Filter seldom{.explored_share = 0};
  learn(seldom, of_depth(1, 7), false);
  learn(seldom, of_depth(2, 60), true);
  seldom.teach(rowless, std::vector<float>(8, 0.0F));
  CHECK_FALSE(seldom.active());  // 7 failures
}

TEST_CASE("what it rejects has a name, and positions stay those of the pool") {
  Filter filter{.explored_share = 0};
  learn(filter, of_depth(1, 20), false);
  learn(filter, of_depth(2, 60), true);
  const std::vector<toy::Tiles> pool{{0, 0, 2, 0}, {0, 0, 1, 0}, {0, 0, 5, 0}, {5, 5, 1, 0}};
  const Kept result = filter.keep(toy::Space{}, toy::task(), std::span<const toy::Tiles>(pool));
  CHECK(result.indices == std::vector<std::size_t>{0, 2});
  CHECK(result.rejected == ReasonCounts{{"believed to fail", 2}});
}

TEST_CASE("a share of the rejected passes, another one after each batch") {
  Filter filter{.explored_share = 0.25};
  learn(filter, of_depth(1, 20), false);
  learn(filter, of_depth(2, 60), true);
  const auto pool = of_depth(1, 512);
  const auto passed = [&] { return filter.keep(toy::Space{}, toy::task(), std::span<const toy::Tiles>(pool)).indices; };
  const auto before = passed();
  CHECK(std::abs(static_cast<int>(before.size()) - 128) < 45);  // deviation 9.8
  CHECK(passed() == before);
  learn(filter, of_depth(2, 1, 60), true);
  CHECK(passed() != before);
  // One verdict a candidate, whatever else is in the pool.
  const auto after = passed();
  CHECK(kept(filter, {pool[after[3]]}) == 1);
}

TEST_CASE("the rarer class is repeated as often as brings it closest to the weight of the other") {
  const auto taught = [](int failed, int valid) {
    Filter filter;
    learn(filter, of_depth(1, failed), false);
    learn(filter, of_depth(2, valid), true);
    return std::pair(filter.model.count[1], filter.model.count[2]);
  };
  CHECK(taught(34, 40) == std::pair(34.0F, 40.0F));
  CHECK(taught(24, 40) == std::pair(48.0F, 40.0F));  // 5/3 are nearer to two than to one
  CHECK(taught(40, 24) == std::pair(40.0F, 48.0F));
  CHECK(taught(17, 60) == std::pair(68.0F, 60.0F));
  CHECK(taught(20, 60) == std::pair(60.0F, 60.0F));
}

TEST_CASE("repeating the rarer class moves the verdict where both are mixed") {
  // At depth 1 a third works; elsewhere everything does.
  const auto taught = [](bool balanced) {
    Filter filter{.explored_share = 0, .balanced = balanced};
    learn(filter, of_depth(1, 10), false);
    learn(filter, of_depth(1, 20, 10), true);
    learn(filter, of_depth(2, 90), true);
    return filter;
  };
  CHECK(kept(taught(false), of_depth(1, 10, 100)) == 10);  // 20 of 30 work
  CHECK(kept(taught(true), of_depth(1, 10, 100)) == 0);    // failures count 11-fold: 20 of 130
  CHECK(taught(true).model.count[1] == 130);
  CHECK(taught(true).model.count[2] == 90);

  // Failures without rows, which the model does not see, are not the other class.
  Filter filter{.explored_share = 0};
  learn(filter, of_depth(1, 30), false);
  learn(filter, of_depth(2, 60), true);
  FeatureBatch rowless(filter.x.columns());
  for (int i = 0; i < 90; ++i) rowless.close_program();
  filter.teach(rowless, std::vector<float>(90, 0.0F));
  CHECK(filter.model.count[1] == 60);
  CHECK(filter.model.count[2] == 60);
}

TEST_CASE("a threshold learned from held-out labels gives away the share that was allowed") {
  // At depth 1 six of 30 work, elsewhere all of 94 do: the lowest of the 100 held-out scores of valid ones are
  // the six at depth 1, about 0.2 each, and the others are 1.
  const auto taught = [](double most_lost) {
    Filter filter{.explored_share = 0, .balanced = false, .most_lost = most_lost};
    std::vector<toy::Tiles> configs = of_depth(1, 30), more = of_depth(2, 94);
    configs.insert(configs.end(), more.begin(), more.end());
    std::vector<float> label(124, 1.0F);
    for (std::size_t i = 0; i < 24; ++i) label[i] = 0;
    filter.teach(toy::Features{}.extract(toy::Space{}, toy::task(), std::span<const toy::Tiles>(configs)), label);
    return filter;
  };
  const auto unseen = of_depth(1, 10, 100);
  CHECK(taught(0.009).least_score == -std::numeric_limits<float>::infinity());  // 0.009 * 101 < 1
  CHECK(kept(taught(0.009), unseen) == 10);
  CHECK(taught(0.06).least_score < 0.5F);  // the sixth of them
  const Filter strict = taught(0.07);      // the seventh of them: all six are given away
  CHECK(strict.least_score == 1.0F);
  CHECK(kept(strict, unseen) == 0);
  CHECK(kept(strict, of_depth(2, 10, 100)) == 10);
  CHECK(kept(Filter{.most_lost = 0.07}, unseen) == 10);  // nothing taught
}

TEST_CASE("the scores that set the threshold are by models that do not know the program") {
  // One of 10 works at depth 1: models of the others score it 0, one of all 0.1.
  Filter filter{.balanced = false, .most_lost = 0.011};  // the lowest of 95: 0.011 * 96 = 1.06
  std::vector<toy::Tiles> configs = of_depth(1, 10), more = of_depth(2, 94);
  configs.insert(configs.end(), more.begin(), more.end());
  std::vector<float> label(104, 1.0F);
  for (std::size_t i = 0; i < 9; ++i) label[i] = 0;
  filter.teach(toy::Features{}.extract(toy::Space{}, toy::task(), std::span<const toy::Tiles>(configs)), label);
  CHECK(filter.least_score == 0);
}

TEST_CASE("the learned threshold does not depend on the order in which configurations were measured") {
  const auto learned = [](bool reversed) {
    Filter filter{.balanced = false, .most_lost = 0.1};
    // At depth 1 to 6 some fail, the more the deeper.
    std::vector<toy::Tiles> configs;
    for (int i = 0; i < 120; ++i) configs.push_back({i % 8, i / 8 % 8, 1 + i % 6, i / 64});
    if (reversed) std::reverse(configs.begin(), configs.end());
    for (const toy::Tiles& tiles : configs) learn(filter, {tiles}, (tiles[0] + 3 * tiles[1]) % 7 >= tiles[2]);
    return filter.least_score;
  };
  CHECK(learned(true) == learned(false));
  CHECK(learned(false) > 0);
}

TEST_CASE("a configuration counts once a task") {
  Filter filter;
  learn(filter, of_depth(1, 10), false);
  learn(filter, of_depth(1, 12), true);
  CHECK(filter.valid.size() == 12);
  Outcome outcome;
  outcome.result = Failure{Fault::RunError, ""};
  const auto configs = of_depth(1, 1);
  filter.learn(toy::Space{}, toy::task("other", 7), std::span<const toy::Tiles>(configs), std::vector{outcome});
  CHECK(filter.valid.size() == 13);
}

TEST_CASE("what an error kept from being added is learned later, and what was added before the error counts once") {
  Filter filter{.threshold = 2, .explored_share = 0};
  CHECK_THROWS_AS(learn(filter, of_depth(1, 20), false), std::invalid_argument);
  filter.threshold = 0.5;
  learn(filter, of_depth(1, 20), false);
  learn(filter, of_depth(2, 60), true);
  CHECK(filter.x.programs() == 80);
  CHECK(kept(filter, of_depth(1, 10)) == 0);

  struct Failing : MeanByDepth {
    bool fails = true;
    void fit(const FeatureBatch& rows, std::span<const float> y, std::span<const std::uint32_t> groups) {
      if (fails) throw std::runtime_error("no memory");
      MeanByDepth::fit(rows, y, groups);
    }
  };
  filters::LearnedValidity<Failing, toy::Features> unfit{.explored_share = 0};
  const toy::Space space;
  std::vector<toy::Tiles> configs = of_depth(1, 20), more = of_depth(2, 60);
  configs.insert(configs.end(), more.begin(), more.end());
  std::vector<Outcome> outcomes(80);
  for (std::size_t i = 0; i < 80; ++i) {
    if (i < 20)
      outcomes[i].result = Failure{Fault::RunError, ""};
    else
      outcomes[i].result = Timing{.repeats = {}, .median = Seconds(1)};
  }
  const auto learn_all = [&] { unfit.learn(space, toy::task(), std::span<const toy::Tiles>(configs), outcomes); };
  CHECK_THROWS_AS(learn_all(), std::runtime_error);
  unfit.model.fails = false;
  learn_all();
  CHECK(unfit.x.programs() == 80);
  CHECK(unfit.keep(space, toy::task(), std::span<const toy::Tiles>(configs)).indices.size() == 60);
}

TEST_CASE("thresholds of probabilities and of odds") {
  const Filter even;
  CHECK(even.believed(0.5F));
  CHECK_FALSE(even.believed(0.49F));
  const Filter odds{.threshold = 0.75, .log_odds = true};  // ln 3 = 1.0986
  CHECK(odds.believed(1.1F));
  CHECK_FALSE(odds.believed(1.09F));
}

TEST_CASE("what does not fit is refused") {
  const FeatureBatch x = toy::programs({{1, 2, 3}});
  CHECK_THROWS_WITH_AS(Filter{}.teach(x, std::vector<float>{1, 0}), doctest::Contains("2 labels for 1 programs"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Filter{.threshold = 1}.teach(x, std::vector<float>{1}), doctest::Contains("threshold is 1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Filter{.least_labels = 0}.teach(x, std::vector<float>{1}), doctest::Contains("least_labels"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Filter{.least_failures = 0}.teach(x, std::vector<float>{1}), doctest::Contains("least_failures"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Filter{.explored_share = 2}.teach(x, std::vector<float>{1}),
                       doctest::Contains("explored_share is 2"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(Filter{.most_lost = 1}.teach(x, std::vector<float>{1}), doctest::Contains("most_lost is 1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Filter{.folds = 1}.teach(x, std::vector<float>{1}), doctest::Contains("folds is 1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Filter{}.teach(x, std::vector<float>{0.5F}),
                       doctest::Contains("label 0.5 of program 0; give 1 for a latency and 0 for a failure"),
                       std::invalid_argument);
  Filter filter;
  CHECK_THROWS_AS(filter.teach(x, std::vector<float>{std::numeric_limits<float>::quiet_NaN()}), std::invalid_argument);
  CHECK(filter.valid.empty());  // as if it had not been asked
  const std::vector<toy::Tiles> configs = of_depth(1, 2);
  CHECK_THROWS_WITH_AS(
      filter.learn(toy::Space{}, toy::task(), std::span<const toy::Tiles>(configs), std::vector<Outcome>(1)),
      doctest::Contains("1 outcomes for 2 configurations"), std::invalid_argument);
}

TEST_CASE("several filters in one: all must agree, the first to reject is named") {
  using Both = filters::All<filters::StaticLimits, Filter>;
  static_assert(LearningFilterFor<Both, toy::Space>);
  static_assert(FilterFor<filters::All<filters::StaticLimits, filters::None>, toy::Space>);
  static_assert(!LearningFilterFor<filters::All<filters::StaticLimits, filters::None>, toy::Space>);
  Both both{{{}, {.explored_share = 0}}};
  const auto failing = of_depth(1, 20), working = of_depth(2, 60);
  const auto tell = [&](const std::vector<toy::Tiles>& configs, const Outcome& outcome) {
    both.learn(toy::Space{}, toy::task(), std::span<const toy::Tiles>(configs),
               std::vector<Outcome>(configs.size(), outcome));
  };
  Outcome outcome;
  outcome.result = Failure{Fault::RunError, ""};
  tell(failing, outcome);
  outcome.result = Timing{.repeats = {}, .median = Seconds(1)};
  tell(working, outcome);
  const std::vector<toy::Tiles> pool{{7, 7, 1, 0}, {0, 0, 1, 0}, {1, 1, 2, 0}, {7, 7, 2, 0}};
  const Kept result = both.keep(toy::Space{}, toy::task(), std::span<const toy::Tiles>(pool));
  CHECK(result.indices == std::vector<std::size_t>{2});
  CHECK(result.rejected == ReasonCounts{{"believed to fail", 1}, {"tile too large", 2}});
}

TEST_CASE("one of several filters that keeps what it was not given is found out") {
  struct Inventive {
    Kept keep(const toy::Space&, const Task&, std::span<const toy::Tiles> pool) const {
      return {.indices = {pool.size() + 5}, .rejected = {}};
    }
  };
  const std::vector<toy::Tiles> pool{{0, 0, 1, 0}, {7, 7, 1, 0}, {1, 1, 2, 0}};
  const filters::All<filters::StaticLimits, Inventive, filters::None> all{};
  CHECK_THROWS_WITH_AS((void)all.keep(toy::Space{}, toy::task(), std::span<const toy::Tiles>(pool)),
                       doctest::Contains("kept position 7 of a pool of 2"), std::logic_error);
}

TEST_CASE("several filters refuse options of each of them") {
  const filters::All<filters::StaticLimits, Filter> all{{{}, {.threshold = 2}}};
  CHECK_THROWS_WITH_AS(all.check_options(), doctest::Contains("threshold is 2"), std::invalid_argument);
}
