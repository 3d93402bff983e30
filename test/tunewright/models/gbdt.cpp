// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/gbdt.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/predicted.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/safetensors.hpp"
#include "tunewright/models/gbdt/boosting.hpp"

using namespace tunewright;
using models::Gbdt;
using models::gbdt::Objective;
using test::predicted;

static_assert(CostModel<Gbdt> && EmbeddingCostModel<Gbdt> && PersistentCostModel<Gbdt>);
static_assert(!ParametricCostModel<Gbdt> && !UncertainCostModel<Gbdt>);

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Session {
  FeatureBatch x{40};
  std::vector<float> y;
  std::vector<std::uint32_t> group;
};

// Throughput depends on two columns and their product; programs have 0 to 4 rows.
Session make_session(std::size_t programs, std::uint64_t seed) {
  Session session;
  Rng rng(seed);
  for (std::size_t p = 0; p < programs; ++p) {
    const std::size_t rows = p % 50 == 49 ? 0 : 1 + rng.below(4);
    const double a = rng.uniform(), b = rng.uniform();
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = session.x.append_row();
      for (std::size_t c = 3; c < row.size(); ++c)
        row[c] = rng.below(4) == 0 ? static_cast<float>(rng.below(c * 5)) : 0.0F;
      row[0] = static_cast<float>(a);
      row[1] = static_cast<float>(b);
      row[2] = r == 0 ? 1.0F : 0.0F;
    }
    session.x.close_program();
    session.y.push_back(rng.below(20) == 0 ? 0.0F : static_cast<float>(0.1 + 0.4 * a + 0.5 * a * b));
    session.group.push_back(static_cast<std::uint32_t>(p % 3));
  }
  return session;
}

FeatureBatch column(const std::vector<float>& values) {
  FeatureBatch x(1);
  for (const float value : values) x.append_program(std::vector<float>{value});
  return x;
}

}  // namespace

TEST_CASE("one tree of two leaves, by hand") {
  // y = 0, 0, 1, 1: the split after 2 gains 4/3 - 4/5 = 0.5333; leaves are -G / (H + 1): 0 / 3 and 2 / 3.
  const FeatureBatch x = column({1, 2, 3, 4});
  const std::vector<float> y{0, 0, 1, 1};
  Gbdt model{.rounds = 1, .max_depth = 1, .learning_rate = 1, .gamma = 0.53F, .objective = Objective::Squared};
  CHECK_FALSE(model.trained());
  model.fit(x, y, {});
  CHECK(model.trained());
  const auto score = predicted(model, column({1, 2, 2.4F, 2.6F, 3, 100}));  // the threshold is 2.5
  CHECK(score[0] == 0);
  CHECK(score[1] == 0);
  CHECK(score[2] == 0);
  CHECK(score[3] == doctest::Approx(2.0 / 3));
  CHECK(score[4] == doctest::Approx(2.0 / 3));
  CHECK(score[5] == doctest::Approx(2.0 / 3));

  SUBCASE("gamma above the gain leaves the root, -G / (H + 1) = 2 / 5") {
    model.gamma = 0.54F;
    model.fit(x, y, {});
    for (const float s : predicted(model, x)) CHECK(s == doctest::Approx(0.4));
  }
  SUBCASE("without lambda leaves are means") {
    model.lambda = 0;
    model.fit(x, y, {});
    CHECK(predicted(model, x) == y);
  }
  SUBCASE("children must weigh min_child_weight") {
    model.min_child_weight = 2.5F;
    model.fit(x, y, {});
    for (const float s : predicted(model, x)) CHECK(s == doctest::Approx(0.4));
  }
  SUBCASE("the learning rate scales leaves, the second tree starts from them") {
    // First round: 0 and 0.5 * 2/3 = 1/3. Then g = 0, 0, -2/3, -2/3: leaf 0.5 * (4/3) / 3 = 2/9; 1/3 + 2/9 =
    // 5/9.
    model.rounds = 2;
    model.learning_rate = 0.5F;
    model.gamma = 0;
    model.fit(x, y, {});
    CHECK(predicted(model, x)[3] == doctest::Approx(5.0 / 9));
  }
}

TEST_CASE("a split gains more than 1e-6, whatever gamma") {
  // y = 0, d: the split gains d^2 / 2 - d^2 / 3 = d^2 / 6, 1.04e-6 for d = 0.0025 and 0.96e-6 for 0.0024.
  const FeatureBatch x = column({1, 2});
  Gbdt model{.rounds = 1, .learning_rate = 1, .gamma = 0, .objective = Objective::Squared};
  model.fit(x, std::vector<float>{0, 0.0025F}, {});
  CHECK(predicted(model, x)[0] == 0);
  CHECK(predicted(model, x)[1] == doctest::Approx(0.00125));
  model.fit(x, std::vector<float>{0, 0.0024F}, {});
  for (const float score : predicted(model, x)) CHECK(score == doctest::Approx(0.0008));
}

TEST_CASE("summed over statements: rows share the gradient of their program") {
  // One program, two equal rows, y = 0.8. Every row has g = -0.8 * 0.8 and h = 0.8: leaf = rate * 1.28 / 1.6
  // = rate * 0.8, and the program scores twice that.
  FeatureBatch x(1);
  x.append_program(std::vector<float>{1, 1});
  const std::vector<float> y{0.8F};
  Gbdt model{.rounds = 1, .learning_rate = 0.25F, .lambda = 0};
  model.fit(x, y, {});
  CHECK(predicted(model, x)[0] == doctest::Approx(0.4));
  // The second round sees 0.4: g = -0.4 * 0.8, leaf = 0.25 * 0.4, score 0.4 + 0.2.
  model.rounds = 2;
  model.fit(x, y, {});
  CHECK(predicted(model, x)[0] == doctest::Approx(0.6));
}

TEST_CASE("a program of many rows reaches its label and does not swing past it") {
  // 40 equal rows, y = 1, half steps: g = -1, h = 0.5 * 40, so each leaf is 0.5 * 40 / 800 and 40 of them are 1.
  FeatureBatch x(1);
  x.append_program(std::vector<float>(40, 1.0F));
  const std::vector<float> y{1};
  Gbdt model{.rounds = 1, .learning_rate = 0.5F, .lambda = 0};
  model.fit(x, y, {});
  CHECK(predicted(model, x)[0] == doctest::Approx(1));
  model.rounds = 30;
  model.fit(x, y, {});
  CHECK(predicted(model, x)[0] == doctest::Approx(1));
}

TEST_CASE("quantile, by hand") {
  // Two alike programs, y = 1/2 and 1, a = 3/4, whole steps. s = 0: g = -3/4 twice, leaf 3/4. Then g = 1/4 and
  // -3/4, leaf 1/4; at 1 g = 1/4 and 0, leaf -1/8.
  const FeatureBatch x = column({1, 1});
  const std::vector<float> y{0.5F, 1};
  Gbdt model{.learning_rate = 1, .lambda = 0, .objective = Objective::Quantile, .quantile = 0.75F};
  const float after[] = {0.75F, 1, 0.875F};
  for (unsigned rounds = 1; rounds <= 3; ++rounds) {
    model.rounds = rounds;
    model.fit(x, y, {});
    CHECK(predicted(model, x)[0] == doctest::Approx(after[rounds - 1]));
  }
}

TEST_CASE("a quantile has its share of labels below it") {
  Rng rng(11);
  std::vector<float> at, y;
  for (int p = 0; p < 4000; ++p) {
    at.push_back(static_cast<float>(p % 2));
    y.push_back(static_cast<float>(rng.uniform()) * (p % 2 == 0 ? 0.5F : 1.0F));
  }
  for (const float quantile : {0.1F, 0.9F}) {
    Gbdt model{.rounds = 300, .objective = Objective::Quantile, .quantile = quantile};
    model.fit(column(at), y, {});
    const auto score = predicted(model, column({0, 1}));
    CHECK(score[0] == doctest::Approx(0.5F * quantile).epsilon(0.1));
    CHECK(score[1] == doctest::Approx(quantile).epsilon(0.1));
  }
}

TEST_CASE("logistic, by hand") {
  // s = 0: g = +-1/2, h = 1/4. Split after 2; leaves -G / (H + 1) = -1 / 1.5 and 1 / 1.5.
  const FeatureBatch x = column({1, 2, 3, 4});
  Gbdt model{.rounds = 1, .max_depth = 1, .learning_rate = 1, .objective = Objective::Logistic};
  model.fit(x, std::vector<float>{0, 0, 1, 1}, {});
  CHECK(predicted(model, x)[0] == doctest::Approx(-2.0 / 3));
  CHECK(predicted(model, x)[3] == doctest::Approx(2.0 / 3));
  // Three times as heavy: G = -3, H = 1.5, leaf 3 / 2.5.
  model.positive_weight = 3;
  model.fit(x, std::vector<float>{0, 0, 1, 1}, {});
  CHECK(predicted(model, x)[3] == doctest::Approx(1.2));
  // One program in four of alike ones is 1: the odds go to 1/3.
  Gbdt odds{.lambda = 0, .objective = Objective::Logistic};
  odds.fit(column({5, 5, 5, 5}), std::vector<float>{0, 0, 0, 1}, {});
  CHECK(predicted(odds, column({5}))[0] == doctest::Approx(std::log(1.0 / 3)).epsilon(1e-3));
}

TEST_CASE("trees see a share of the programs") {
  // One leaf: the mean of the drawn half of a thousand ones and zeros, standard error 0.5 / sqrt(500) = 0.022.
  std::vector<float> y(1000);
  for (std::size_t p = 0; p < 500; ++p) y[p] = 1;
  const FeatureBatch x = column(std::vector<float>(1000, 1));
  Gbdt model{.rounds = 1, .learning_rate = 1, .lambda = 0, .objective = Objective::Squared, .program_share = 0.5F};
  model.fit(x, y, {});
  const float mean = predicted(model, x)[0];
  CHECK(mean != 0.5F);
  CHECK(mean == doctest::Approx(0.5).epsilon(0.2));
  model.seed = 44;
  model.fit(x, y, {});
  CHECK(predicted(model, x)[0] != mean);
}

TEST_CASE("the share of the columns is rounded up, without the rounding of the share") {
  const auto columns = [](float share, std::size_t of) {
    models::gbdt::BoostingRules rules;
    rules.column_share = share;
    models::gbdt::RoundSample sample(rules, of);
    const auto allowed = sample.columns(Rng(1));
    return allowed.empty() ? of : static_cast<std::size_t>(std::count(allowed.begin(), allowed.end(), 1));
  };
  CHECK(columns(0.1F, 10) == 1);  // which 0.1F * 10 is a little more than
  CHECK(columns(0.3F, 10) == 3);
  CHECK(columns(0.7F, 10) == 7);
  CHECK(columns(0.8F, 10) == 8);
  CHECK(columns(0.8F, 65'530) == 52'424);
  CHECK(columns(0.11F, 10) == 2);
  CHECK(columns(1e-9F, 10) == 1);
  CHECK(columns(1, 10) == 10);
}

TEST_CASE("trees split on a share of the columns") {
  // Stumps may use one of two columns: y follows the first, and the second is tried as often.
  FeatureBatch x(2);
  std::vector<float> y;
  for (int p = 0; p < 64; ++p) {
    x.append_program(std::vector<float>{static_cast<float>(p / 32), static_cast<float>((p * 7) % 16)});
    y.push_back(p < 32 ? 0.0F : 1.0F);
  }
  Gbdt model{.rounds = 40, .max_depth = 1, .gamma = 0, .objective = Objective::Squared, .column_share = 0.5F};
  model.fit(x, y, {});
  std::size_t first = 0, other = 0;
  for (const auto& tree : model.ensemble.trees) {
    const auto& root = model.ensemble.nodes[tree.first];
    if (root.left == 0) continue;  // nothing to gain
    (model.ensemble.used_columns[root.feature] == 0 ? first : other) += 1;
  }
  CHECK(first > 8);  // 20 expected, standard deviation 3.2
  CHECK(first < 32);
  model.column_share = 1;
  model.fit(x, y, {});
  CHECK(model.ensemble.used_columns == std::vector<std::uint32_t>{0});
}

TEST_CASE("shares leave no trace of the number of threads") {
  const Session train = make_session(3000, 8);
  Gbdt one{.rounds = 10, .max_depth = 8, .gamma = 0, .program_share = 0.6F, .column_share = 0.4F, .threads = 1};
  Gbdt three = one;
  three.threads = 3;
  one.fit(train.x, train.y, train.group);
  three.fit(train.x, train.y, train.group);
  CHECK(one.ensemble == three.ensemble);
  CHECK(one.embed(train.x).values().size() == 3000 * 256);
  const FeatureBatch first = one.embed(train.x), second = three.embed(train.x);
  CHECK(std::equal(first.values().begin(), first.values().end(), second.values().begin()));
}

TEST_CASE("embedded: one tree, by hand") {
  // Leaves {1, 2} and {3, 4}. One tree: entries are +-1 / sqrt(2); the leaves lie in different columns.
  Gbdt model{.rounds = 1, .max_depth = 1, .objective = Objective::Squared};
  CHECK(model.embed(column({1})).row(0)[0] == 0);  // nothing is known yet
  CHECK(model.embed(column({1})).columns() == 256);
  model.fit(column({1, 2, 3, 4}), std::vector<float>{0, 0, 1, 1}, {});
  FeatureBatch x = column({1, 2, 3});
  x.close_program();
  x.append_program(std::vector<float>{1, 3});
  const FeatureBatch e = model.embed(x);
  CHECK(e.programs() == 5);
  CHECK(e.rows() == 5);
  double distance = 0;
  for (std::size_t c = 0; c < 256; ++c) {
    CHECK(e.row(0)[c] == e.row(1)[c]);
    CHECK(e.row(3)[c] == 0);
    CHECK(e.row(4)[c] == doctest::Approx(e.row(0)[c] + e.row(2)[c]));  // rows add up
    distance += std::pow(static_cast<double>(e.row(0)[c] - e.row(2)[c]), 2);
  }
  CHECK(distance == doctest::Approx(1));  // one tree of one parts them
}

TEST_CASE("embedded: squared distances are shares of trees that part two programs") {
  Rng rng(12);
  FeatureBatch x(4);
  std::vector<float> y;
  for (int p = 0; p < 300; ++p) {
    std::vector<float> row(4);
    for (float& value : row) value = static_cast<float>(rng.uniform());
    x.append_program(row);
    y.push_back(row[0] * row[1] + 0.3F * row[2]);
  }
  Gbdt model{.rounds = 64, .gamma = 0, .objective = Objective::Squared};
  model.fit(x, y, {});
  const FeatureBatch e = model.embed(x);
  std::vector<std::uint32_t> leaves(300 * 64);
  model.ensemble.reach(x, 0, 300, leaves);
  double ratio = 0;
  for (std::size_t p = 0; p + 1 < 300; ++p) {
    double parted = 0, distance = 0;
    for (std::size_t t = 0; t < 64; ++t) parted += leaves[p * 64 + t] != leaves[(p + 1) * 64 + t] ? 1.0 / 64 : 0.0;
    for (std::size_t c = 0; c < 256; ++c) distance += std::pow(static_cast<double>(e.row(p)[c] - e.row(p + 1)[c]), 2);
    CHECK(distance == doctest::Approx(parted).epsilon(0.45));  // five times sqrt(2 / 256)
    ratio += distance / parted / 299;
  }
  CHECK(ratio == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("it learns what it is shown, under every objective") {
  const Session train = make_session(1500, 1), test = make_session(500, 2);
  for (const auto objective : {Objective::Squared, Objective::SummedOverStatements, Objective::RankPairwise,
                               Objective::LambdaRank, Objective::Quantile}) {
    Gbdt model{.rounds = 60, .objective = objective, .threads = 1};
    model.fit(train.x, train.y, train.group);
    const auto score = predicted(model, test.x);
    std::size_t right = 0, pairs = 0;
    for (std::size_t i = 0; i < 500; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (test.y[i] == 0 || test.y[j] == 0 || score[i] == -infinity || score[j] == -infinity) continue;
        ++pairs;
        right += (score[i] > score[j]) == (test.y[i] > test.y[j]) ? 1U : 0U;
      }
    }
    CAPTURE(static_cast<int>(objective));
    // Under Quantile a step does not know how far it has to go.
    const double wanted = objective == Objective::Quantile ? 0.75 : 0.85;
    CHECK(static_cast<double>(right) > wanted * static_cast<double>(pairs));
  }
}

TEST_CASE("the same bits with one, two and three threads") {
  const Session train = make_session(3000, 3);
  for (const auto objective : {Objective::SummedOverStatements, Objective::LambdaRank}) {
    Gbdt one{.rounds = 10, .max_depth = 8, .gamma = 0, .objective = objective, .threads = 1};
    one.fit(train.x, train.y, train.group);
    for (const unsigned threads : {2U, 3U}) {
      Gbdt many{.rounds = 10, .max_depth = 8, .gamma = 0, .objective = objective, .threads = threads};
      many.fit(train.x, train.y, train.group);
      CHECK(many.ensemble == one.ensemble);
      CHECK(predicted(many, train.x) == predicted(one, train.x));
    }
  }
}

TEST_CASE("scores go with the program, whatever the order and the batch") {
  const Session train = make_session(400, 4);
  Gbdt model{.rounds = 20, .threads = 1};
  model.fit(train.x, train.y, train.group);
  const auto score = predicted(model, train.x);
  FeatureBatch reversed(40);
  for (std::size_t p = 400; p-- > 0;) reversed.append_program(train.x.program(p));
  const auto other = predicted(model, reversed);
  for (std::size_t p = 0; p < 400; ++p) {
    CHECK(other[399 - p] == score[p]);
    CHECK((score[p] == -infinity) == (p % 50 == 49));  // those without rows
    if (p % 37 != 0) continue;
    FeatureBatch alone(40);
    alone.append_program(train.x.program(p));
    CHECK(predicted(model, alone)[0] == score[p]);
  }
}

TEST_CASE("the order in which programs are shown does not matter") {
  const Session train = make_session(300, 5);
  Session reversed;
  for (std::size_t p = 300; p-- > 0;) {
    reversed.x.append_program(train.x.program(p));
    reversed.y.push_back(train.y[p]);
  }
  Gbdt forward{.rounds = 1, .threads = 1}, backward = forward;
  forward.fit(train.x, train.y, {});
  backward.fit(reversed.x, reversed.y, {});
  CHECK(forward.ensemble == backward.ensemble);
}

TEST_CASE("before the first fit all described programs are equal, the others last") {
  FeatureBatch x(3);
  x.append_program(std::vector<float>{1, 2, 3});
  x.close_program();
  x.append_program(std::vector<float>{4, 5, 6});
  CHECK(predicted(Gbdt{}, x) == std::vector<float>{0, -infinity, 0});
  CHECK(predicted(Gbdt{}, FeatureBatch{}).empty());
}

TEST_CASE("degenerate data teaches nothing and harms nothing") {
  Gbdt model{.rounds = 3, .threads = 2};
  FeatureBatch x(2);
  for (int p = 0; p < 4; ++p) x.append_program(std::vector<float>{1, 2});
  SUBCASE("all failed") {
    model.fit(x, std::vector<float>(4, 0.0F), {});
    CHECK(predicted(model, x) == std::vector<float>(4, 0.0F));
    CHECK_FALSE(model.trained());
    model.objective = Objective::Logistic;  // where failures are as informative as their opposite
    model.fit(x, std::vector<float>(4, 0.0F), {});
    CHECK(predicted(model, x)[0] < 0);
  }
  SUBCASE("a label of a program without rows") {
    FeatureBatch one(2);
    one.append_program(std::vector<float>{1, 2});
    one.close_program();
    model.fit(one, std::vector<float>{0, 1}, {});
    CHECK_FALSE(model.trained());
  }
  SUBCASE("all alike") {
    model.fit(x, std::vector<float>(4, 0.5F), {});
    for (const float s : predicted(model, x)) CHECK(s > 0);
  }
  SUBCASE("nothing at all forgets") {
    model.fit(x, std::vector<float>(4, 0.5F), {});
    model.fit(FeatureBatch(2), {}, {});
    CHECK(predicted(model, x) == std::vector<float>(4, 0.0F));
    model.fit(FeatureBatch(), {}, {});
    CHECK(predicted(model, x) == std::vector<float>(4, 0.0F));
  }
  SUBCASE("programs without rows only") {
    FeatureBatch empty(2);
    empty.close_program();
    model.fit(empty, std::vector<float>{0}, {});
    CHECK(predicted(model, empty)[0] == -infinity);
  }
}

TEST_CASE("early stopping keeps the best round") {
  // The training error of one constant program stops falling when the floats are used up.
  Gbdt model{.rounds = 5000, .learning_rate = 0.5F, .lambda = 0, .early_stopping_rounds = 5, .threads = 1};
  model.fit(column({1}), std::vector<float>{0.8F}, {});
  CHECK(model.ensemble.trees.size() < 100);
  CHECK(predicted(model, column({1}))[0] == doctest::Approx(0.8));
}

TEST_CASE("misuse is named") {
  const FeatureBatch x = column({1, 2});
  const std::vector<float> y{0.5F, 1};
  Gbdt model{.rounds = 2, .threads = 1};
  std::vector<float> score(2);
  CHECK_THROWS_WITH_AS(model.fit(x, std::vector<float>{1}, {}),
                       "models::Gbdt::fit: 1 labels for 2 programs; pass one y a program, 0 for a failed one",
                       std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, y, std::vector<std::uint32_t>{0}), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, {}),
                  std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{1, -1}, {}), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{1, infinity}, {}), std::invalid_argument);
  model.fit(x, y, {});
  const auto before = model.ensemble;
  CHECK_THROWS_WITH_AS(model.fit(column({1, std::numeric_limits<float>::quiet_NaN()}), y, {}),
                       "models::Gbdt::fit: feature 0 of row 1 is not a number; leave a program that cannot "
                       "be described without rows",
                       std::invalid_argument);
  CHECK(model.ensemble == before);
  CHECK_THROWS_WITH_AS(model.fit_from(std::vector<float>{0, infinity}, x, y, {}),
                       "models::Gbdt::fit_from: the first score of program 1 is inf; give finite ones, 0 if unknown",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(model.fit_from(std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 0}, x, y, {}),
                       doctest::Contains("the first score of program 0 is"), std::invalid_argument);
  CHECK(model.ensemble == before);
  score.resize(1);
  CHECK_THROWS_AS(model.predict(x, score), std::invalid_argument);
  FeatureBatch wide(2);
  wide.append_program(std::vector<float>{1, 2});
  CHECK_THROWS_WITH_AS(model.predict(wide, score),
                       "models::Gbdt::predict: rows of 2 features, but the model was trained on 1; use the "
                       "featurizer it was trained with",
                       std::invalid_argument);
  CHECK_THROWS_AS((void)model.embed(wide), std::invalid_argument);
  model.embedding_columns = 0;
  CHECK_THROWS_AS((void)model.embed(x), std::invalid_argument);
  model.embedding_columns = 1;
  model.objective = Objective::Logistic;
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{0, 2}, {}), std::invalid_argument);
  for (const Gbdt& wrong : {Gbdt{.rounds = 0},
                            Gbdt{.max_depth = 0},
                            Gbdt{.max_depth = 16},
                            Gbdt{.learning_rate = 0},
                            Gbdt{.learning_rate = 1.5F},
                            Gbdt{.min_child_weight = -1},
                            Gbdt{.gamma = -1},
                            Gbdt{.lambda = -1},
                            Gbdt{.lambda = infinity},
                            Gbdt{.positive_weight = infinity},
                            Gbdt{.max_bins = 1},
                            Gbdt{.max_bins = 257},
                            Gbdt{.pairs_per_program = 0},
                            Gbdt{.quantile = 0},
                            Gbdt{.quantile = 1},
                            Gbdt{.positive_weight = 0},
                            Gbdt{.program_share = 0},
                            Gbdt{.program_share = 1.5F},
                            Gbdt{.column_share = 0},
                            Gbdt{.objective = Objective::LambdaRank, .early_stopping_rounds = 3}}) {
    Gbdt copy = wrong;
    CHECK_THROWS_AS(copy.fit(x, y, {}), std::invalid_argument);
  }
}

TEST_CASE("a kept model predicts the same bits") {
  const Session train = make_session(300, 6);
  Gbdt model{.rounds = 15, .threads = 1}, loaded;
  model.fit(train.x, train.y, {});
  std::stringstream file;
  model.save(file, 7);
  loaded.load(file, 7);
  CHECK(loaded.ensemble == model.ensemble);
  CHECK(predicted(loaded, train.x) == predicted(model, train.x));

  std::stringstream unfitted;
  Gbdt{}.save(unfitted, 7);
  loaded.load(unfitted, 7);
  CHECK(loaded.ensemble == Gbdt{}.ensemble);
}

TEST_CASE("a model that does not fit is refused and nothing changes") {
  const Session train = make_session(50, 7);
  Gbdt model{.rounds = 3, .threads = 1};
  model.fit(train.x, train.y, {});
  std::ostringstream file;
  model.save(file, 7);
  const std::string text = file.str();
  const auto before = model.ensemble;
  const auto refused = [&](const std::string& content, std::uint64_t schema) {
    std::istringstream in(content);
    CHECK_THROWS_AS(model.load(in, schema), std::runtime_error);
    CHECK(model.ensemble == before);
  };
  refused(text, 8);  // another featurizer
  refused("", 7);
  refused("something else entirely", 7);
  for (std::size_t length = 0; length < text.size(); length += 1 + text.size() / 40) refused(text.substr(0, length), 7);

  // One split of column 1 at 0.5: leaves 1 and 2.
  struct Parts {
    std::vector<std::uint32_t> used{1}, depth{1};
    std::vector<std::uint16_t> feature{0, 1, 1}, left{1, 1, 2};
    std::vector<float> threshold{0.5F, 1, 2};
    std::string model = "models::Gbdt";
    [[nodiscard]] std::string file() const {
      using data::Tensor;
      std::ostringstream out;
      data::write_safetensors(
          out,
          std::vector<Tensor>{Tensor::of<std::uint64_t>("columns", {2}), Tensor::of("used_columns", used),
                              Tensor::of<std::uint32_t>("tree_first", {0}), Tensor::of("tree_depth", depth),
                              Tensor::of("threshold", threshold), Tensor::of("feature", feature),
                              Tensor::of("left", left)},
          {{"model", model}, {"feature_schema", "7"}});
      return out.str();
    }
  };
  std::istringstream sound(Parts{}.file());
  Gbdt by_hand;
  by_hand.load(sound, 7);
  FeatureBatch x(2);
  x.append_program(std::vector<float>{9, 0.25F});
  x.append_program(std::vector<float>{9, 0.75F});
  CHECK(predicted(by_hand, x) == std::vector<float>{1, 2});
  refused(Parts{.used = {2}}.file(), 7);                                                      // no such column
  refused(Parts{.left = {2, 1, 2}}.file(), 7);                                                // beyond the tree
  refused(Parts{.left = {0, 1, 2}}.file(), 7);                                                // a circle
  refused(Parts{.depth = {0}}.file(), 7);                                                     // deeper than it says
  refused(Parts{.depth = {1, 1}}.file(), 7);                                                  // not as many as trees
  refused(Parts{.threshold = {0.5F, std::numeric_limits<float>::quiet_NaN(), 2}}.file(), 7);  // no number
  refused(Parts{.model = "models::Mlp"}.file(), 7);
  // The leaves 4 and 5, in depth 2, are also children of 3, to which no walk leads.
  std::istringstream shared(
      Parts{.feature = {0, 1, 0, 0, 1, 1}, .left = {1, 1, 4, 4, 4, 5}, .threshold = {0.5F, 1, 0.5F, 0.5F, 2, 3}}
          .file());
  CHECK_THROWS_WITH_AS(model.load(shared, 7), doctest::Contains("node 4 of tree 0 has two parents"),
                       std::runtime_error);
  CHECK(model.ensemble == before);
  std::istringstream other(text);
  CHECK_THROWS_WITH_AS(model.load(other, 8),
                       "models::Gbdt::load: the model was trained on feature schema 7, but this featurizer has "
                       "8; train the model again or give the file that save wrote",
                       std::runtime_error);
}
