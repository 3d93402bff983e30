// SPDX-License-Identifier: Apache-2.0
#include "tunewright/session.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/toy_recipes.hpp"

using namespace tunewright;

namespace {

std::vector<Outcome> measured(const auto& batch) {
  std::vector<Outcome> outcomes;
  for (const auto& candidate : batch) outcomes.push_back(toy::outcome(candidate.config));
  return outcomes;
}

std::vector<std::uint64_t> keys(const auto& batch) {
  std::vector<std::uint64_t> all;
  for (const auto& candidate : batch) all.push_back(candidate.key);
  return all;
}

struct ByFirstTile {
  void score(const toy::Space&, const Task&, std::span<const toy::Tiles> configs,
             std::span<float> score) const {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(configs[i][0]);
  }
};

}  // namespace

TEST_CASE("a session asks, is told, and asks for something else") {
  Parts<toy::Evolution> parts{.seed = 2};
  Session<toy::Evolution> session(parts, toy::task());
  const auto first = session.ask(10);
  REQUIRE(first.size() == 10);
  CHECK(keys(session.ask(10)) == keys(first));  // nothing was learned in between
  CHECK(first[3].slot == 3);
  session.tell(first, measured(first));
  CHECK(session.history().size() == 10);
  CHECK(session.round() == 1);
  const auto second = session.ask(10);
  CHECK(second.front().round == 1);
  for (const auto& candidate : second) CHECK_FALSE(session.history().contains(candidate.key));
}

TEST_CASE("until something valid was measured, candidates come straight from the space") {
  struct Untouched : explorers::Evolutionary {
    std::vector<toy::Tiles> explore(const toy::Space&, const Task&, const Guidance<toy::Tiles>&, Rng&) const {
      throw std::logic_error("nothing to be guided by");
    }
  };
  struct Recipe : toy::Evolution {
    using explorer = Untouched;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto batch = session.ask(5);
  std::vector<Outcome> failures(5);
  for (Outcome& outcome : failures) outcome.result = Failure{Fault::RunTimeout, ""};
  session.tell(batch, failures);
  const auto again = session.ask(5);
  CHECK(again.size() == 5);
  session.tell(again, measured(again));
  CHECK_THROWS_AS((void)session.ask(5), std::logic_error);
}

TEST_CASE("a model that says it has learned is used at once") {
  struct Pretrained : toy::Linear {
    bool trained() const { return !weights.empty(); }
  };
  struct Recipe : toy::Evolution {
    using model = Pretrained;
  };
  Parts<Recipe> parts;
  Session<Recipe> untrained(parts, toy::task());
  CHECK(std::none_of(untrained.ask(4).begin(), untrained.ask(4).end(),
                     [](const auto& c) { return c.config == toy::best; }));
  parts.model.weights = {-3,  -3.2, -2,  -0.4, 0.5,
                         0.4, 0.2,  0.1, 17.3};  // the cost of the table, in milliseconds
  Session<Recipe> trained(parts, toy::task());
  CHECK(trained.ask(4).front().config == toy::best);
}

TEST_CASE("a draft guides the first round") {
  struct Recipe : toy::Evolution {
    using draft = ByFirstTile;
    using sampler = samplers::TopK;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  for (const auto& candidate : session.ask(8)) CHECK(candidate.config[0] == 7);
}

TEST_CASE("a learning filter is told every outcome and keeps out what it learned") {
  struct NoUnrolling {
    int largest = 100;
    std::size_t told = 0;
    Kept keep(const toy::Space&, const Task&, std::span<const toy::Tiles> pool) const {
      Kept kept;
      for (std::size_t i = 0; i < pool.size(); ++i) {
        if (pool[i][3] <= largest)
          kept.indices.push_back(i);
        else
          ++kept.rejected["unrolled too far"];
      }
      return kept;
    }
    void learn(const toy::Space&, const Task&, std::span<const toy::Tiles> configs,
               std::span<const Outcome> outcomes) {
      CHECK(configs.size() == outcomes.size());
      told += configs.size();
      largest = 2;
    }
  };
  struct Recipe : toy::Evolution {
    using filter = NoUnrolling;
  };
  Parts<Recipe> parts;
  Session<Recipe> session(parts, toy::task());
  const auto batch = session.ask(8);
  session.tell(batch, measured(batch));
  CHECK(parts.filter.told == 8);
  for (const auto& candidate : session.ask(32)) CHECK(candidate.config[3] <= 2);
  CHECK(session.rejected().at("unrolled too far") > 0);
}

TEST_CASE("a sampler that looks at what was measured is shown all of it") {
  struct Looks : samplers::TopK {
    std::vector<std::size_t> select(const toy::Linear& model, const FeatureBatch& x,
                                    std::span<const float> score, std::size_t n, Rng& rng,
                                    const samplers::Labelled& labelled = {}) const {
      CHECK(labelled.size() == 20);
      CHECK(*std::max_element(labelled.y.begin(), labelled.y.end()) == 1);
      CHECK(labelled.task_of(0) == 0);
      CHECK(labelled.task_of(19) == 1);
      CHECK(labelled.round[9] == 0);
      CHECK(labelled.pool_task.size() == score.size());
      if (labelled.round[19] == 0) {
        CHECK(labelled.pool_task_of(0) == 1);
        CHECK(std::isnan(labelled.predicted[19]));  // the first round is a guess
      }
      return TopK::select(model, x, score, n, rng);
    }
  };
  struct Recipe : toy::Evolution {
    using sampler = Looks;
  };
  static_assert(LabelAwareSamplerFor<Looks, toy::Linear>);
  static_assert(!LabelAwareSamplerFor<samplers::TopK, toy::Linear>);
  Parts<Recipe> parts;
  Session<Recipe> a(parts, toy::task("a", 1));
  Session<Recipe> b(parts, toy::task("b", 2));
  const auto batch_a = a.ask(10);
  a.tell(batch_a, measured(batch_a));
  const auto batch_b = b.ask(10);
  b.tell(batch_b, measured(batch_b));
  const auto guided = b.ask(4);
  REQUIRE(guided.size() == 4);
  b.tell(guided, measured(guided));
  const TrainingSet::Data known = parts.training.assemble();
  CHECK(known.round.back() == 1);
  CHECK(known.predicted.back() == guided.back().predicted);
  CHECK(std::isfinite(guided.back().predicted));
}

TEST_CASE("sessions over the same parts share what the model learns from") {
  Parts<toy::Evolution> parts;
  Session<toy::Evolution> a(parts, toy::task("a", 1));
  Session<toy::Evolution> b(parts, toy::task("b", 2));
  const auto batch_a = a.ask(10);
  a.tell(batch_a, measured(batch_a));
  const auto batch_b = b.ask(10);
  b.tell(batch_b, measured(batch_b));
  CHECK(parts.training.size() == 20);
  const Session<toy::Evolution> again(parts, toy::task("a", 1));
  CHECK(parts.training.size() == 10);  // a new session of a task replaces the old one
}

TEST_CASE("telling what does not fit is refused with the numbers") {
  Parts<toy::RandomSearch> parts;
  Session<toy::RandomSearch> session(parts, toy::task());
  const auto batch = session.ask(4);
  auto outcomes = measured(batch);
  CHECK_THROWS_WITH_AS(session.tell(batch, std::span(outcomes).first(3)),
                       doctest::Contains("3 outcomes for a batch of 4"), std::invalid_argument);
  session.tell(batch, outcomes);
  CHECK_THROWS_WITH_AS(session.tell(batch, outcomes), doctest::Contains("told before"),
                       std::invalid_argument);
}
