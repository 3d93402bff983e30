// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/guarded.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "support/descent_line.hpp"
#include "support/recording_model.hpp"
#include "support/refusal.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/adaptations/warm_start.hpp"

using namespace tunewright;
using test::DescentLine;
using test::one_column;
using test::refusal;
using Labels = std::vector<float>;

using Guarded = adaptations::Guarded<adaptations::FineTune, DescentLine>;
static_assert(AdaptationFor<Guarded, DescentLine>);
static_assert(!AdaptationFor<Guarded, test::RecordingModel>);

namespace {

/// Larger is faster here; a model of slope -1 has it the wrong way round.
struct Own {
  FeatureBatch x;
  Labels y;
};
Own programs(std::size_t n) {
  Labels x(n), y(n);
  for (std::size_t p = 0; p < n; ++p) {
    x[p] = static_cast<float>(p % 11) / 10;
    y[p] = 0.1F + 0.8F * x[p];
  }
  return {one_column(x), y};
}
DescentLine source(float slope) {
  DescentLine model;
  model.training = DescentLine::steps(200, 0.5F);
  model.weights = {slope, 1};
  return model;
}

/// Turns round what a model says, once.
struct TurnOnce {
  bool turned = false;
  void update(DescentLine& model, const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) {
    if (!turned) model.weights[0] = -model.weights[0];
    turned = true;
  }
};

/// Counts the programs that it and its copies were fitted to.
struct Counted {
  std::size_t* learned;
  std::size_t* scored;
  void predict(const FeatureBatch& x, std::span<float> score) const {
    *scored += x.programs();
    for (std::size_t p = 0; p < x.programs(); ++p) score[p] = x.row(p)[0];
  }
  void fit(const FeatureBatch& x, std::span<const float>, std::span<const std::uint32_t>) { *learned += x.programs(); }
};

}  // namespace

TEST_CASE("a source that has it the wrong way round is found out, and one's own model takes over") {
  DescentLine model = source(-1);
  Guarded guarded{.transfer = {.training = DescentLine::steps(1, 1e-3F)}};
  const Own few = programs(16), many = programs(64);
  guarded.update(model, few.x, few.y, {});
  CHECK(!guarded.fell_back);  // too few for a verdict
  CHECK(model.weights[0] < 0);
  guarded.update(model, many.x, many.y, {});
  CHECK(guarded.fell_back);
  CHECK(guarded.accuracy_with == 0);
  CHECK(guarded.accuracy_without == 1);
  CHECK(model.weights[0] == doctest::Approx(0.8).epsilon(0.05));
}

TEST_CASE("a transfer whose training diverges is found out") {
  struct Diverges {
    void update(DescentLine& model, const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) const {
      model.weights[0] = std::numeric_limits<float>::quiet_NaN();
    }
  };
  DescentLine model = source(1);
  adaptations::Guarded<Diverges, DescentLine> guarded;
  const Own many = programs(64);
  guarded.update(model, many.x, many.y, {});
  CHECK(guarded.fell_back);
  CHECK(model.weights[0] == doctest::Approx(0.8).epsilon(0.05));
}

TEST_CASE("a source that helps is kept, as far as the margin says") {
  DescentLine model = source(1);
  Guarded guarded{.transfer = {.training = DescentLine::steps(1, 1e-3F)}};
  const Own own = programs(64);
  guarded.update(model, own.x, own.y, std::vector<std::uint32_t>(64, 3));
  CHECK(!guarded.fell_back);
  CHECK(guarded.accuracy_with == 1);
  CHECK(model.weights[1] == doctest::Approx(1).epsilon(0.01));

  DescentLine wrong = source(-1);
  Guarded patient{.transfer = {.training = DescentLine::steps(1, 1e-3F)}, .margin = 1};
  patient.update(wrong, own.x, own.y, {});
  CHECK(!patient.fell_back);
}

TEST_CASE("a verdict is asked for again when there is enough more") {
  DescentLine model = source(-1);
  Guarded guarded{.transfer = {.training = DescentLine::steps(1, 1e-3F)}, .margin = 1};
  const Own own = programs(64), little_more = programs(90), enough = programs(96);
  guarded.update(model, own.x, own.y, {});
  guarded.margin = 0;
  guarded.update(model, little_more.x, little_more.y, {});
  CHECK(!guarded.fell_back);
  guarded.update(model, enough.x, enough.y, {});
  CHECK(guarded.fell_back);
}

TEST_CASE("with infinite growth there is one verdict, and fewer programs are another session's") {
  DescentLine model = source(-1);
  Guarded guarded{.transfer = {.training = DescentLine::steps(1, 1e-3F)},
                  .margin = 1,
                  .min_growth = std::numeric_limits<double>::infinity()};
  const Own own = programs(64), more = programs(1000), fewer = programs(48);
  guarded.update(model, own.x, own.y, {});
  CHECK(guarded.judged_candidates == 64);
  guarded.margin = 0;
  guarded.update(model, more.x, more.y, {});
  CHECK(!guarded.fell_back);
  guarded.update(model, fewer.x, fewer.y, {});
  CHECK(guarded.fell_back);
  CHECK(guarded.judged_candidates == 48);
}

TEST_CASE("another session's few programs are not judged by the verdict on the last session's") {
  DescentLine model = source(-1);
  Guarded guarded{.transfer = {.training = DescentLine::steps(1, 1e-3F)}};
  const Own many = programs(64), few = programs(16), more = programs(31);
  guarded.update(model, many.x, many.y, {});
  REQUIRE(guarded.fell_back);
  guarded.update(model, few.x, few.y, {});
  CHECK(!guarded.fell_back);
  CHECK(model.weights[0] < 0);
  guarded.update(model, more.x, more.y, {});
  CHECK(!guarded.fell_back);
  guarded.update(model, many.x, many.y, {});
  CHECK(guarded.fell_back);
}

TEST_CASE("each comparison transfers anew from the source, whatever was transferred since") {
  DescentLine model = source(-1);
  adaptations::Guarded<TurnOnce, DescentLine> guarded;
  const Own few = programs(16), many = programs(64);
  guarded.update(model, few.x, few.y, {});
  CHECK(model.weights[0] == 1);
  guarded.update(model, many.x, many.y, {});
  CHECK(guarded.accuracy_with == 1);  // the one turned before would be turned back, or stay the source's
  CHECK(!guarded.fell_back);
  CHECK(model.weights[0] == 1);
}

TEST_CASE("each program is scored by models of the other folds, as soon as there are enough") {
  std::size_t learned = 0, scored = 0;
  Counted model{&learned, &scored};
  adaptations::Guarded<adaptations::Refit, Counted> guarded{.folds = 4};
  const Own own = programs(32);
  guarded.update(model, one_column(std::span(own.y).first(31)), std::span(own.y).first(31), {});
  CHECK(learned == 31);  // no comparison, one transfer
  CHECK(scored == 0);
  learned = 0;
  guarded.update(model, own.x, own.y, {});
  CHECK(learned == 2 * 3 * 32 + 32);  // with and without, three quarters four times; and the transfer
  CHECK(scored == 2 * 32);
}

TEST_CASE("it guards other adaptations too") {
  using Model = adaptations::Transferred<DescentLine>;
  Model model{.source = source(-1), .own = source(0)};
  adaptations::Guarded<adaptations::WarmStart, Model> guarded{
      .transfer = {.form = adaptations::WarmStart::Form::Blended, .half_life_programs = 1e6}};
  const Own own = programs(64);
  guarded.update(model, own.x, own.y, {});
  CHECK(guarded.fell_back);
  CHECK(model.of_source == 0);
}

TEST_CASE("options out of range are named") {
  DescentLine model = source(1);
  const Own own = programs(64);
  CHECK(refusal([&] { Guarded{.folds = 1}.update(model, own.x, own.y, {}); }) ==
        "Guarded: folds is 1; give at least 2");
  CHECK(refusal([&] { Guarded{.min_growth = -1}.update(model, own.x, own.y, {}); }).find("min_growth") !=
        std::string::npos);
  CHECK(refusal([&] {
          Guarded{.margin = std::numeric_limits<double>::quiet_NaN()}.update(model, own.x, own.y, {});
        }).find("Guarded: margin is") == 0);
}

TEST_CASE("labels and groups of other programs are refused before any is read") {
  DescentLine model = source(1);
  const Own own = programs(64);
  CHECK(refusal([&] { Guarded{}.update(model, own.x, Labels(63, 1.0F), {}); }) ==
        "adaptations::Guarded::fit: 63 labels for 64 programs; pass one y a program, 0 for a failed one");
  const std::vector<std::uint32_t> few{1, 2};
  CHECK(refusal([&] { Guarded{}.update(model, own.x, own.y, few); }).find("2 group numbers for 64 programs") !=
        std::string::npos);
}
