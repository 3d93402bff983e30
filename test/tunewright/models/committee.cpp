// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/committee.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/model_answers.hpp"
#include "support/recording_model.hpp"
#include "tunewright/models/gaussian_process.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/linear.hpp"

using namespace tunewright;
using models::Committee;
using models::GaussianProcess;
using models::Gbdt;
using models::Linear;
using test::Answer;
using test::ask;
using test::one_column;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Scores every program the mean label, whatever its rows.
struct Constant {
  std::uint64_t seed = 0;
  std::vector<float> learned = {0};

  void predict(const FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p) score[p] = x.program(p).empty() ? -infinity : learned[0];
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    seen = x.programs();
    groups.assign(group.begin(), group.end());
    learned = {0};
    for (const float label : y) {
      if (label > 1) throw std::invalid_argument("a label above 1");
      learned[0] += label / static_cast<float>(y.size());
    }
  }
  std::span<float> parameters() { return learned; }

  std::size_t seen = 0;
  std::vector<std::uint32_t> groups{};
};

static_assert(UncertainCostModel<Committee<Constant, 3>> && ParametricCostModel<Committee<Constant, 3>>);
static_assert(!EmbeddingCostModel<Committee<Constant, 3>> && !PersistentCostModel<Committee<Constant, 3>>);
static_assert(UncertainCostModel<Committee<Gbdt>> && EmbeddingCostModel<Committee<Gbdt>> &&
              PersistentCostModel<Committee<Gbdt>> && !ParametricCostModel<Committee<Gbdt>>);

// Is stored, and embeds every program as what it learned.
struct Stored : Constant {
  void save(std::ostream& out, std::uint64_t feature_schema) const {
    models::save_tensors("Stored", out, feature_schema, std::vector{data::Tensor::of("learned", learned)});
  }
  void load(std::istream& in, std::uint64_t feature_schema) {
    learned = models::load_tensors("Stored", in, feature_schema,
                                   [](const data::TensorFile& file) { return file.at("learned").values<float>(); });
  }
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const {
    FeatureBatch out(1);
    for (std::size_t p = 0; p < x.programs(); ++p) {
      out.append_row()[0] = learned[0];
      out.close_program();
    }
    return out;
  }
};
static_assert(EmbeddingCostModel<Stored> && PersistentCostModel<Stored> && ParametricCostModel<Stored>);

// Notes how many threads it was trained with.
struct Threaded : Constant {
  unsigned threads = 0, used = 0;
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    used = threads;
    Constant::fit(x, y, group);
  }
};

struct Session {
  FeatureBatch x{3};
  std::vector<float> y;
  std::vector<std::uint32_t> group;
};
Session make_session(std::size_t programs) {
  Session session;
  Rng rng(21);
  for (std::size_t p = 0; p < programs; ++p) {
    for (std::uint64_t rows = p % 20 == 7 ? 0 : 1 + rng.below(2); rows > 0; --rows) {
      for (float& value : session.x.append_row()) value = static_cast<float>(rng.uniform());
    }
    session.x.close_program();
    session.y.push_back(static_cast<float>(rng.uniform()));
    session.group.push_back(static_cast<std::uint32_t>(p % 4));
  }
  return session;
}

}  // namespace

TEST_CASE("committee: mean and deviation by hand") {
  // Members say 1, 2 and 6: mean 3, deviation sqrt((4 + 1 + 9) / 3).
  Committee<Constant, 3> model;
  model.members = {Constant{0, {1}}, Constant{0, {2}}, Constant{0, {6}}};
  FeatureBatch x = one_column({5});
  x.close_program();
  const Answer answer = ask(model, x);
  CHECK(answer.score == std::vector<float>{3, -infinity});
  CHECK(answer.deviation[0] == doctest::Approx(std::sqrt(14.0 / 3)));
  CHECK(answer.deviation[1] == infinity);
  std::vector<float> score(2);
  model.predict(x, score);
  CHECK(score == answer.score);

  // Weights of all members are one vector; writing through it takes effect.
  CHECK(std::vector<float>(model.parameters().begin(), model.parameters().end()) == std::vector<float>{1, 2, 6});
  model.parameters()[2] = 3;
  CHECK(ask(model, x).score[0] == 2);
  CHECK(ask(model, x).deviation[0] == doctest::Approx(std::sqrt(2.0 / 3)));
}

TEST_CASE("committee: members draw with replacement within groups and have seeds of their own") {
  FeatureBatch x(1);
  std::vector<float> y;
  std::vector<std::uint32_t> group;
  for (int p = 0; p < 400; ++p) {
    x.append_program(std::vector<float>{1});
    y.push_back(p % 2 == 0 ? 1.0F : 0.0F);
    group.push_back(p < 100 ? 9 : 4);
  }
  Committee<Constant, 4> model;
  model.fit(x, y, group);
  for (const Constant& one : model.members) {
    CHECK(one.seen == 400);
    CHECK(std::count(one.groups.begin(), one.groups.end(), 9U) == 100);
    CHECK(one.learned[0] == doctest::Approx(0.5).epsilon(0.25));  // standard error 0.5 / sqrt(400) = 0.025
    CHECK(one.learned[0] != 0.5F);
  }
  CHECK(model.members[0].seed != model.members[1].seed);
  const Answer drawn = ask(model, one_column({1}));
  CHECK(drawn.deviation[0] > 0.002F);
  CHECK(drawn.deviation[0] < 0.1F);
  model.seed = 44;
  model.fit(x, y, group);
  CHECK(ask(model, one_column({1})) != drawn);

  model.bootstrap = false;
  model.fit(x, y, group);
  CHECK(ask(model, one_column({1})).score[0] == doctest::Approx(0.5));
  CHECK(ask(model, one_column({1})).deviation[0] == 0);
  CHECK(model.members[0].seed != model.members[1].seed);
}

TEST_CASE("committee: the same bits at any number of threads, and once kept") {
  const Session train = make_session(300);
  using Trees = Committee<Gbdt, 3>;
  Trees one{.member = {.rounds = 10, .program_share = 0.7F, .column_share = 0.7F}, .threads = 1};
  Trees four = one, loaded;
  four.threads = 4;
  one.fit(train.x, train.y, train.group);
  four.fit(train.x, train.y, train.group);
  const Answer answer = ask(one, train.x);
  CHECK(ask(four, train.x) == answer);
  CHECK(one.members[0].ensemble != one.members[1].ensemble);
  CHECK(one.members[0].threads == 0);
  const FeatureBatch embedded = one.embed(train.x), member = one.members[0].embed(train.x);
  CHECK(std::equal(embedded.values().begin(), embedded.values().end(), member.values().begin()));

  std::stringstream file;
  one.save(file, 5);
  const std::string text = file.str();
  loaded.load(file, 5);
  CHECK(ask(loaded, train.x) == answer);
  std::istringstream other_schema(text), other_size(text), cut(text.substr(0, text.size() / 2));
  CHECK_THROWS_AS(loaded.load(other_schema, 6), std::runtime_error);
  CHECK_THROWS_AS(loaded.load(cut, 5), std::runtime_error);
  Committee<Gbdt, 2> pair;
  CHECK_THROWS_WITH_AS(pair.load(other_size, 5),
                       "models::Committee::load: the file holds 3 members, this committee has 2; train the model "
                       "again or give the file that save wrote",
                       std::runtime_error);
  CHECK(pair.members.empty());
  std::stringstream unfitted;
  pair.save(unfitted, 5);
  pair.load(unfitted, 5);
  CHECK(pair.members.empty());
}

TEST_CASE("committee: drawn programs keep their labels, their groups and their order") {
  FeatureBatch x(1);
  std::vector<float> y;
  std::vector<std::uint32_t> group;
  for (std::uint32_t p = 0; p < 300; ++p) {
    const auto number = static_cast<float>(p);
    x.append_program(std::span(&number, 1));
    y.push_back(number / 300);
    group.push_back(7 - p % 3);
  }
  Committee<test::RecordingModel, 2> model;
  model.fit(x, y, group);
  for (const test::RecordingModel& one : model.members) {
    REQUIRE(one.y.size() == 300);
    std::vector<float> drawn;
    for (std::size_t i = 0; i < 300; ++i) {
      drawn.push_back(one.x.program(i)[0]);
      CHECK(one.y[i] == drawn[i] / 300);
      CHECK(one.group[i] == 7 - static_cast<std::uint32_t>(drawn[i]) % 3);
    }
    CHECK(std::is_sorted(drawn.begin(), drawn.end()));
    for (const std::uint32_t one_group : {5U, 6U, 7U})
      CHECK(std::count(one.group.begin(), one.group.end(), one_group) == 100);
  }
}

TEST_CASE("committee: members share the threads") {
  const std::vector<float> y{0.5F, 0.5F};
  for (const auto& [threads, each] : {std::pair(8U, 2U), {6U, 1U}, {2U, 1U}}) {
    Committee<Threaded, 4> model{.threads = threads};
    model.fit(one_column({1, 2}), y, {});
    for (const Threaded& one : model.members) {
      CHECK(one.used == each);
      CHECK(one.threads == 0);
    }
  }
}

TEST_CASE("committee: written weights are embedded and stored; a fit and a file replace them") {
  const FeatureBatch x = one_column({1});
  const auto score = [&](const auto& model) { return ask(model, x).score[0]; };
  Committee<Stored, 2> model, loaded;
  model.members = {Stored{{0, {1}}}, Stored{{0, {2}}}};
  std::stringstream before, after;
  model.save(before, 3);
  model.parameters()[0] = 5;
  CHECK(model.embed(x).row(0)[0] == 5);
  model.save(after, 3);
  loaded.load(after, 3);
  CHECK(loaded.members[0].learned[0] == 5);
  CHECK(score(loaded) == 3.5F);
  model.load(before, 3);
  CHECK(score(model) == 1.5F);
  model.parameters()[0] = 5;
  model.fit(x, std::vector<float>{0.25F}, {});
  CHECK(score(model) == 0.25F);
  CHECK(model.parameters()[0] == 0.25F);
}

TEST_CASE("committee: trained as its members are") {
  Committee<Gbdt, 2> model{.member = {.rounds = 2, .threads = 1}};
  CHECK_FALSE(model.trained());
  const Session train = make_session(60);
  model.fit(train.x, train.y, train.group);
  CHECK(model.trained());
  model.members[0] = {};
  CHECK(model.trained());  // one of them is
  model.member = model.members[1];
  model.members.clear();
  CHECK(model.trained());
}

TEST_CASE("committee: members that could only be equal are refused") {
  const Session train = make_session(20);
  Committee<Linear, 2> model{.bootstrap = false};
  CHECK_THROWS_WITH_AS(model.fit(train.x, train.y, train.group),
                       "models::Committee: bootstrap is 0; give true: members without a seed would all be equal",
                       std::invalid_argument);
  CHECK(model.members.empty());
}

TEST_CASE("committee: members disagree most where they saw least") {
  std::vector<float> at, y;
  Rng rng(2);
  for (int p = 0; p < 60; ++p) {
    at.push_back(static_cast<float>(rng.uniform()));
    y.push_back(static_cast<float>(0.5 + 0.3 * at.back() + 0.02 * rng.normal()));
  }
  Committee<Linear, 8> model;
  model.fit(one_column(at), y, {});
  const Answer answer = ask(model, one_column({0.5F, 3}));
  CHECK(answer.score[0] == doctest::Approx(0.65).epsilon(0.03));
  CHECK(answer.deviation[1] > 3 * answer.deviation[0]);
}

TEST_CASE_TEMPLATE("committee: members that saw failures alone are as unsure as before", M, Linear, GaussianProcess) {
  const FeatureBatch x = one_column({1, 2, 3, 4}), asked = one_column({2, 9});
  Committee<M, 3> model, loaded;
  model.fit(x, std::vector<float>(4, 0.0F), {});
  CHECK(ask(model, asked) == Answer{{0, 0}, {1, 1}});
  std::stringstream file;
  model.save(file, 3);
  loaded.load(file, 3);
  CHECK(ask(loaded, asked) == Answer{{0, 0}, {1, 1}});
  model.bootstrap = false;
  if constexpr (requires { model.member.seed; }) {
    model.fit(x, std::vector<float>(4, 0.0F), {});
    CHECK(ask(model, asked).deviation[0] == 1);
  }
  model.bootstrap = true;
  model.fit(x, std::vector<float>{0.1F, 0.2F, 0.3F, 0.4F}, {});
  CHECK(ask(model, asked).deviation[0] < 0.5F);
  std::stringstream taught;
  model.save(taught, 3);
  loaded.load(taught, 3);
  CHECK(ask(loaded, asked) == ask(model, asked));
  model.fit(FeatureBatch(1), {}, {});
  CHECK(ask(model, asked).deviation == std::vector<float>{1, 1});
  FeatureBatch nothing(1);
  nothing.close_program();
  model.fit(nothing, std::vector<float>{1}, {});  // a success that cannot be described
  CHECK(ask(model, asked).deviation == std::vector<float>{1, 1});
}

TEST_CASE("committee: a label or a feature that is no number is refused, though no member may draw it") {
  for (std::size_t wrong = 0; wrong < 200; ++wrong) {
    CAPTURE(wrong);
    std::vector<float> at, y;
    for (int p = 0; p < 200; ++p) {
      at.push_back(static_cast<float>(p));
      y.push_back(static_cast<float>(p % 7) / 7);
    }
    std::vector<float> bad_at = at, bad_y = y;
    bad_at[wrong] = bad_y[wrong] = std::numeric_limits<float>::quiet_NaN();
    Committee<Linear, 2> model{.threads = 1};
    CHECK_THROWS_AS(model.fit(one_column(at), bad_y, {}), std::invalid_argument);
    CHECK_THROWS_AS(model.fit(one_column(bad_at), y, {}), std::invalid_argument);
    CHECK(model.members.empty());
  }
}

TEST_CASE("committee: laws of every model") {
  FeatureBatch x = one_column({1});
  x.close_program();
  Committee<Constant, 2> model;
  CHECK(ask(model, x) == Answer{{0, -infinity}, {1, infinity}});
  CHECK(model.parameters().empty());
  model.fit(one_column({1, 2}), std::vector<float>{0.5F, 0.5F}, {});
  const Answer before = ask(model, x);
  CHECK(before == Answer{{0.5F, -infinity}, {0, infinity}});
  CHECK_THROWS_AS(model.fit(one_column({1, 2}), std::vector<float>{2, 2}, {}), std::invalid_argument);
  CHECK(ask(model, x) == before);
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{1}, {}), std::invalid_argument);
  std::vector<float> score(1), deviation(2);
  CHECK_THROWS_AS(model.predict(x, score), std::invalid_argument);
  CHECK_THROWS_AS(model.predict_with_deviation(x, deviation, score), std::invalid_argument);
  model.fit(FeatureBatch(1), {}, {});
  CHECK(ask(model, x).score[0] == 0);
}

namespace {

struct Brief : Constant {
  int steps = 300;
  static Brief quick() {
    Brief brief;
    brief.steps = 3;
    return brief;
  }
};
template <class M>
concept CanBeQuick = requires { Committee<M, 2>::quick(); };

}  // namespace

TEST_CASE("a quick committee is one of quick members, where they can be quick") {
  CHECK(Committee<Brief, 2>{}.member.steps == 300);
  CHECK(Committee<Brief, 2>::quick().member.steps == 3);
  static_assert(CanBeQuick<Brief> && !CanBeQuick<Constant>);
}
