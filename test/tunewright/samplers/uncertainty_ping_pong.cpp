// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/uncertainty_ping_pong.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "support/toy_model.hpp"
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;
using Positions = std::vector<std::size_t>;

namespace {

// Says the mean label it was taught for programs whose column 1 is alike, 0 for others.
struct MeanByColumn1 {
  std::vector<float> values{}, means{};

  void predict(const FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p) {
      score[p] = x.program(p).empty() ? -std::numeric_limits<float>::infinity() : 0;
      for (std::size_t i = 0; i < values.size() && !x.program(p).empty(); ++i) {
        if (values[i] == x.program(p)[1]) score[p] = means[i];
      }
    }
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t>) {
    values.clear();
    means.clear();
    for (std::size_t p = 0; p < x.programs(); ++p) {
      float sum = 0, count = 0;
      for (std::size_t other = 0; other < x.programs(); ++other) {
        if (x.program(other)[1] != x.program(p)[1]) continue;
        sum += y[other];
        count += 1;
      }
      values.push_back(x.program(p)[1]);
      means.push_back(sum / count);
    }
  }
};
using PingPong = samplers::UncertaintyPingPong<MeanByColumn1>;

// What is labelled, one program a round with its best label.
struct Rounds {
  FeatureBatch x{2};
  std::vector<float> y;
  std::vector<std::uint32_t> round;
  explicit Rounds(std::vector<float> labels) : y(std::move(labels)) {
    for (std::uint32_t r = 0; r < y.size(); ++r) {
      x.append_program(std::vector<float>{0, 0});
      round.push_back(r);
    }
  }
  [[nodiscard]] bool next_is_ping() const { return PingPong{}.next_is_ping({.x = x, .y = y, .round = round}); }
};

}  // namespace

TEST_CASE("pings and pongs alternate, and two poor pongs earn two pings") {
  CHECK(PingPong{}.next_is_ping({}));
  CHECK(Rounds({0.1F}).next_is_ping());              // after the first round, a ping
  CHECK_FALSE(Rounds({0.1F, 0.1F}).next_is_ping());  // a pong
  CHECK(Rounds({0.1F, 0.1F, 0.2F}).next_is_ping());  // it gained
  CHECK_FALSE(Rounds({0.1F, 0.1F, 0.2F, 0.3F}).next_is_ping());
  CHECK(Rounds({0.1F, 0.1F, 0.1F, 0.1F, 0.1F}).next_is_ping());  // second poor pong: two pings
  CHECK(Rounds({0.1F, 0.1F, 0.1F, 0.1F, 0.1F, 0}).next_is_ping());
  CHECK_FALSE(Rounds({0.1F, 0.1F, 0.1F, 0.1F, 0.1F, 0, 0}).next_is_ping());
  CHECK_FALSE(Rounds({0.1F, 0.1F, 0.2F, 0.1F, 0.2F, 0}).next_is_ping());  // one poor pong after a good one
  CHECK(Rounds({1, 1, 1, 1, 1.005F, 0}).next_is_ping());                  // half a percent is not enough
  CHECK_FALSE(Rounds({1, 1, 1, 1, 1.015F, 0}).next_is_ping());            // one and a half are
  CHECK_FALSE(Rounds({1, 1, 1, 1, 2, 1, 1, 0}).next_is_ping());           // poor, good, poor: none follows another
  CHECK(Rounds({1, 0.5F, 0.9F, 0.5F, 0.9F, 0}).next_is_ping());  // both are better than the ping before, not than 1
  // The count starts again: two pings (5, 6), a poor pong (7), a ping (8), a second poor pong (9), two pings (10, 11).
  CHECK_FALSE(Rounds(std::vector<float>(9, 1)).next_is_ping());
  CHECK(Rounds(std::vector<float>(11, 1)).next_is_ping());
  CHECK_FALSE(Rounds(std::vector<float>(12, 1)).next_is_ping());
}

TEST_CASE("a round that no model guided is neither a ping nor a pong") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto next_is_ping = [](const Rounds& rounds, const std::vector<float>& predicted) {
    return PingPong{}.next_is_ping({.x = rounds.x, .y = rounds.y, .round = rounds.round, .predicted = predicted});
  };
  CHECK(next_is_ping(Rounds({0, 0.1F}), {none, none}));  // all of the first round failed: the ping is still to come
  CHECK_FALSE(next_is_ping(Rounds({0, 0.1F}), {none, 0.5F}));
  CHECK_FALSE(next_is_ping(Rounds({0, 0.1F, 0.1F}), {none, none, 0.5F}));
  CHECK(next_is_ping(Rounds({0, 0.1F, 0.1F, 0.1F}), {none, none, 0.5F, 0.5F}));
  // What it found counts as the best so far: the second pong gains nothing on 0.5, and two pings follow.
  CHECK(next_is_ping(Rounds({0.1F, 0.1F, 0.1F, 0.5F, 0.1F, 0.4F, 0.1F}), {none, 0, 0, none, 0, 0, 0}));
  CHECK_FALSE(next_is_ping(Rounds({0.1F, 0.1F, 0.1F, 0.1F, 0.1F, 0.4F, 0.1F}), {none, 0, 0, none, 0, 0, 0}));
  // One program with a prediction is enough.
  Rounds mixed({0.1F, 0.1F, 0.1F});
  mixed.round = {0, 1, 1};
  CHECK_FALSE(next_is_ping(mixed, {none, none, 0.5F}));
}

/// Eight labels of the first round, of 0.5: the model was off by 0.5 where column 1 is 7, by `error_at_3` where it is 3.
struct Known {
  FeatureBatch x{2};
  std::vector<float> y = std::vector<float>(8, 0.5F), predicted{};
  std::vector<std::uint32_t> round = std::vector<std::uint32_t>(8, 0);

  explicit Known(float error_at_3) {
    for (std::size_t l = 0; l < y.size(); ++l) {
      x.append_program(std::vector<float>{-1, l % 2 == 0 ? 7.0F : 3.0F});
      predicted.push_back(l % 2 == 0 ? 1.0F : 0.5F - error_at_3);
    }
  }
  [[nodiscard]] samplers::Labelled labelled() const { return {.x = x, .y = y, .round = round, .predicted = predicted}; }
};

TEST_CASE("a ping goes where the model was wrong, a pong where it expects most") {
  Known known(0);
  const FeatureBatch x = toy::programs({{0.9F, 3}, {0.1F, 7}, {0.2F, 3}, {0.3F, 7}});
  const std::vector<float> score = toy::scores(toy::OpenBook{}, x);
  Rng rng(1);
  const PingPong sampler{.diversity_weight = 0, .least_errors = 8};
  CHECK(sampler.select(toy::OpenBook{}, x, score, 2, rng, known.labelled()) == Positions{3, 1});
  known.round.back() = 1;  // the ping has been
  CHECK(sampler.select(toy::OpenBook{}, x, score, 2, rng, known.labelled()) == Positions{0, 3});
}

TEST_CASE("a ping guides exploration to expected errors, a pong to scores") {
  Known known(0.25F);
  const PingPong sampler{.least_errors = 8};
  Rng rng(1);
  const samplers::Guide guide = sampler.guide(toy::OpenBook{}, known.labelled(), rng);
  REQUIRE(guide);
  std::vector<float> value(3);
  guide(toy::programs({{0.9F, 3}, {0.1F, 7}, {0.2F, 5}}), value);
  CHECK(value == std::vector<float>{0.25F, 0.5F, 0});
  known.round.back() = 1;
  CHECK_FALSE(sampler.guide(toy::OpenBook{}, known.labelled(), rng));
}

TEST_CASE("what was not predicted taught nothing about errors") {
  Known known(0.25F);
  known.predicted.front() = std::numeric_limits<float>::quiet_NaN();
  const FeatureBatch x = toy::programs({{0.9F, 3}, {0.1F, 7}, {0.2F, 5}});
  Rng rng(1);
  std::vector<float> value(3);
  PingPong{.least_errors = 8}.guide(toy::OpenBook{}, known.labelled(), rng)(x, value);
  CHECK(value == std::vector<float>{3, 7, 5});  // seven errors are too few: the model's own deviations
  PingPong{.least_errors = 7}.guide(toy::OpenBook{}, known.labelled(), rng)(x, value);
  CHECK(value == std::vector<float>{0.25F, 0.5F, 0});
}

TEST_CASE("an error of a model that is lost is the largest label that a predictor of errors takes") {
  const Known known(1e30F);
  Rng rng(1);
  std::vector<float> value(2);
  PingPong{.least_errors = 8}.guide(toy::OpenBook{}, known.labelled(), rng)(toy::programs({{0.9F, 3}, {0.1F, 7}}),
                                                                            value);
  CHECK(value == std::vector<float>{64, 0.5F});
}

TEST_CASE("the random share is drawn from what is not considered") {
  // A pong over the best 2 by score; one of four trials in all is random, the third.
  const FeatureBatch x = toy::programs({{1, 1}, {2, 2}, {3, 3}, {4, 4}});
  const std::vector<float> score{0.9F, 0.8F, 0.7F, 0.6F};
  FeatureBatch known(2);
  known.append_program(std::vector<float>{9, 9});
  known.append_program(std::vector<float>{9, 9});
  const std::vector<std::uint32_t> round{0, 1};
  std::vector<std::size_t> drawn(4);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const PingPong sampler{.candidates_factor = 1, .epsilon = 0.25};
    const Positions chosen = sampler.select(toy::OpenBook{}, x, score, 2, rng, {.x = known, .round = round});
    REQUIRE(chosen.size() == 2);
    CHECK(chosen[0] == 0);
    ++drawn[chosen[1]];
  }
  CHECK(drawn[1] == 0);
  CHECK(drawn[2] >= 8);
  CHECK(drawn[3] >= 8);
}

TEST_CASE("a pool that could be considered as a whole keeps its random share") {
  // A pong over a pool of four, of which one of each four trials in all, the third, is random: the last by score.
  const FeatureBatch x = toy::programs({{1, 1}, {2, 2}, {3, 3}, {4, 4}});
  const std::vector<float> score{0.9F, 0.8F, 0.7F, 0.6F};
  const FeatureBatch known = toy::programs({{9, 9}, {9, 9}});
  const std::vector<std::uint32_t> round{0, 1};
  Rng rng(1);
  CHECK(PingPong{.epsilon = 0.25}.select(toy::OpenBook{}, x, score, 2, rng, {.x = known, .round = round}) ==
        Positions{0, 3});
}

TEST_CASE("until errors are known the model's own doubt counts, or that of its copies") {
  const FeatureBatch x = toy::programs({{0.9F, 0.1F}, {0.1F, 0.3F}, {0.2F, 0.2F}});
  Rng rng(1);
  const PingPong sampler{.diversity_weight = 0};
  CHECK(sampler.select(toy::OpenBook{}, x, toy::scores(toy::OpenBook{}, x), 3, rng) == Positions{1, 2, 0});

  // Labels of the programs with 7 in column 1 vary, so resampled ones do too.
  FeatureBatch known(2);
  std::vector<float> y;
  for (int l = 0; l < 20; ++l) {
    known.append_program(std::vector<float>{0, l % 2 == 0 ? 7.0F : 3.0F});
    y.push_back(l % 2 == 0 ? static_cast<float>(l) / 20 : 0.5F);
  }
  const FeatureBatch pool = toy::programs({{0.9F, 3}, {0.1F, 7}});
  CHECK(sampler.select(MeanByColumn1{}, pool, std::vector<float>{0.9F, 0.1F}, 1, rng, {.x = known, .y = y}) ==
        Positions{1});
}

TEST_CASE("a ping ranks programs without rows last, whatever stands for the error") {
  constexpr float last = -std::numeric_limits<float>::infinity();
  FeatureBatch x(2);
  x.close_program();
  x.append_program(std::vector<float>{0.9F, 3});
  x.close_program();
  x.append_program(std::vector<float>{0.1F, 7});
  const Known known(0.25F);
  samplers::Labelled unpredicted = known.labelled();
  unpredicted.predicted = {};
  Rng rng(1);
  std::vector<float> value(4);
  const auto ranked_last = [&] { return value[0] == last && value[2] == last && value[1] > last && value[3] > last; };
  PingPong{.least_errors = 8}.guide(toy::OpenBook{}, known.labelled(), rng)(x, value);  // learned errors
  CHECK(ranked_last());
  PingPong{}.guide(toy::OpenBook{}, known.labelled(), rng)(x, value);  // the model's deviation
  CHECK(ranked_last());
  PingPong{}.guide(MeanByColumn1{}, unpredicted, rng)(x, value);  // that of copies
  CHECK(ranked_last());
  PingPong{}.guide(MeanByColumn1{}, {}, rng)(x, value);  // a pretrained model's scores
  CHECK(ranked_last());
}

TEST_CASE("without labels a pretrained model's scores count") {
  MeanByColumn1 pretrained;
  pretrained.fit(toy::programs({{0, 7}, {0, 3}}), std::vector<float>{0.2F, 0.8F}, {});
  const FeatureBatch pool = toy::programs({{0.1F, 7}, {0.9F, 3}});
  Rng rng(1);
  CHECK(PingPong{.diversity_weight = 0}.select(pretrained, pool, toy::scores(pretrained, pool), 1, rng) ==
        Positions{1});
}

TEST_CASE("the batch is spread over the knobs") {
  // Ranks 1, 2/3, 1/3, 0 and distances to what is chosen: after (1, 1), (1, 1) again is worth 2/3, (2, 2)
  // 1/3 + 0.5 and (1, 2) 0 + 0.25.
  const FeatureBatch x = toy::programs({{1, 1}, {1, 1}, {2, 2}, {1, 2}});
  const std::vector<float> score{0.9F, 0.8F, 0.7F, 0.6F};
  FeatureBatch known(2);
  known.append_program(std::vector<float>{9, 9});
  known.append_program(std::vector<float>{9, 9});
  const std::vector<std::uint32_t> round{0, 1};  // a pong comes
  Rng rng(1);
  CHECK(PingPong{}.select(toy::OpenBook{}, x, score, 4, rng, {.x = known, .round = round}) == Positions{0, 2, 1, 3});
  // At a weight of 0.3, (1, 1) again is worth 2/3 and (2, 2) 1/3 + 0.3.
  CHECK(PingPong{.diversity_weight = 0.3}.select(toy::OpenBook{}, x, score, 2, rng, {.x = known, .round = round}) ==
        Positions{0, 1});
}

TEST_CASE("labels of other tasks neither turn the rounds nor crowd the knobs") {
  const FeatureBatch x = toy::programs({{1, 1}, {2, 2}}), known = toy::programs({{9, 9}, {1, 1}, {9, 9}});
  const std::vector<float> score{0.9F, 0.8F};
  const std::vector<std::uint32_t> task{4, 8, 4}, pool_task{4, 4};
  const std::vector<std::uint32_t> other_ahead{0, 1, 0}, own_ahead{0, 0, 1};
  CHECK(PingPong{}.next_is_ping({.x = known, .task = task, .round = other_ahead, .pool_task = pool_task}));
  CHECK_FALSE(PingPong{}.next_is_ping({.x = known, .task = task, .round = own_ahead, .pool_task = pool_task}));
  // A pong: 1 + 2 against 0 + 2, where a label at (1, 1) would leave the first 1 + 0.
  Rng rng(1);
  CHECK(PingPong{.diversity_weight = 2}.select(
            toy::OpenBook{}, x, score, 1, rng,
            {.x = known, .task = task, .round = own_ahead, .pool_task = pool_task}) == Positions{0});
}

TEST_CASE("options out of range are refused") {
  const FeatureBatch x = toy::programs({{1, 1}});
  const std::vector<float> score{1};
  Rng rng(1);
  const auto select = [&](const PingPong& sampler) { (void)sampler.select(toy::OpenBook{}, x, score, 1, rng); };
  CHECK_THROWS_WITH_AS(select({.candidates_factor = 0}), doctest::Contains("candidates_factor is 0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.candidates_factor = std::numeric_limits<double>::infinity()}),
                       doctest::Contains("candidates_factor is inf"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.diversity_weight = -1}), doctest::Contains("diversity_weight"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.diversity_weight = std::numeric_limits<double>::infinity()}),
                       doctest::Contains("diversity_weight is inf"), std::invalid_argument);
  CHECK_NOTHROW(select({.candidates_factor = 1e300}));
  CHECK_THROWS_WITH_AS(select({.least_gain = -1}), doctest::Contains("least_gain"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.least_errors = 0}), doctest::Contains("least_errors"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.epsilon = 2}), doctest::Contains("epsilon is 2"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)PingPong{.copies = 1}.guide(toy::OpenBook{}, {}, rng), doctest::Contains("copies is 1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.copies = 1}), doctest::Contains("copies is 1"), std::invalid_argument);
}

struct OneRow : toy::Features {
  static constexpr bool one_row = true;
};

TEST_CASE("a search that turns between the two finds the optimum of the table") {
  struct Recipe : toy::Anneal {
    using featurizer = OneRow;
    using sampler = samplers::UncertaintyPingPong<toy::Linear>;
  };
  Tuner<Recipe> tuner{{.explorer = {.elite_factor = 8}, .seed = 3}};
  const auto run = tuner.run(toy::task(), {.trials = 96, .batch = 16});
  REQUIRE(run.best() != nullptr);
  CHECK(run.best()->candidate.config == toy::best);
}
