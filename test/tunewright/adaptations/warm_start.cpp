// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/warm_start.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>

#include "support/recording_model.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using adaptations::Transferred;
using adaptations::WarmStart;
using test::one_column;
using test::RecordingModel;
using test::refusal;
using Labels = std::vector<float>;

namespace {

/// Knows the labels of the programs it was fitted to.
struct Memory {
  std::map<float, float> label{};
  void predict(const FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const auto found = label.find(x.row(p)[0]);
      score[p] = found == label.end() ? 0.5F : found->second;
    }
  }
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t>) {
    label.clear();
    for (std::size_t p = 0; p < x.programs(); ++p) label[x.row(p)[0]] = y[p];
  }
};

template <class M>
Labels scores(const M& model, const FeatureBatch& x) {
  Labels score(x.programs());
  model.predict(x, score);
  return score;
}

static_assert(CostModel<Transferred<RecordingModel>>);
static_assert(AdaptationFor<WarmStart, Transferred<RecordingModel>>);
static_assert(!AdaptationFor<WarmStart, RecordingModel>);  // there is no source in it

}  // namespace

TEST_CASE("the source counts for half at 64 programs and for nothing from 277 on") {
  const WarmStart warm;
  CHECK(warm.share(0) == 1);
  CHECK(warm.share(64) == 0.5);
  CHECK(warm.share(128) == 0.25);
  CHECK(warm.share(276) == doctest::Approx(0.0503).epsilon(0.001));
  CHECK(warm.share(277) == 0);
  CHECK(WarmStart{.least_share = 0.5}.share(64) == 0.5);
  CHECK(WarmStart{.half_life_programs = std::numeric_limits<double>::infinity()}.share(1000000) == 1);
}

TEST_CASE("until something is known the source scores alone") {
  Transferred<RecordingModel> model;
  WarmStart warm;
  CHECK(scores(model, one_column({1, 3})) == Labels{1, 3});
  warm.update(model, FeatureBatch(1), Labels{}, {});
  warm.update(model, one_column({1, 2}), Labels{0, 0}, {});  // all failed: nothing to compare
  CHECK(model.own.fits == 0);
  CHECK(scores(model, one_column({1, 3})) == Labels{1, 3});
  CHECK(model.trained());
}

TEST_CASE("a blend by hand") {
  Transferred<RecordingModel> model;
  model.own.slope = -1;
  WarmStart warm{.form = WarmStart::Form::Blended, .half_life_programs = 2};
  // y has mean 0.75, deviation 0.25. Source: 1, 3 to 0.5, 1. Own: -0.25, -2.25 to 1, 0.5. Half of each.
  warm.update(model, one_column({1, 3}), Labels{0.5F, 1}, {});
  CHECK(model.own.y == Labels{0.5F, 1});
  CHECK(scores(model, one_column({1, 3})) == Labels{0.75F, 0.75F});
  CHECK(scores(model, one_column({5}))[0] == doctest::Approx(0.5 * 1.5 + 0.5 * 0));
  // A quarter of the source at four programs.
  model.own.slope = 1;
  warm.update(model, one_column({1, 3, 1, 3}), Labels{0.5F, 1, 0.5F, 1}, {});
  CHECK(model.of_source == doctest::Approx(0.25 * 0.25));
}

TEST_CASE("a discounted source by hand") {
  Transferred<RecordingModel> model;
  model.own.slope = 0;
  WarmStart warm{.form = WarmStart::Form::Discounted, .half_life_programs = 2};
  // The source says 0.5 and 1. Half of it leaves 0.25, 0 to be learned, as (g + 1) / 2.
  warm.update(model, one_column({0.5F, 1}), Labels{0.5F, 0.5F + 0x1p-6F}, {});
  CHECK(model.own.y == Labels{0.625F, 0.5F + 0x1p-7F});
  // The own model says their mean, that is g = 1/8 + 1/128.
  const Labels score = scores(model, one_column({0.5F, 1}));
  CHECK(score[0] == doctest::Approx(0.25 + 0.125 + 1.0 / 128));
  CHECK(score[1] == doctest::Approx(0.5 + 0.125 + 1.0 / 128));
}

TEST_CASE("a discounted source keeps its own scale, whatever a few labels say of it") {
  // Lines of least squares through these would have slopes of 100 and of less than 0.
  for (const Labels& y : {Labels{0, 1}, Labels{1, 0.5F}}) {
    Transferred<RecordingModel, Memory> model;
    WarmStart warm{.form = WarmStart::Form::Discounted, .half_life_programs = 2};
    warm.update(model, one_column({0.5F, 0.51F}), y, {});
    CHECK(model.of_source == 0.5);
    const Labels score = scores(model, one_column({0.5F, 0.51F, 0.9F}));
    CHECK(score[0] == doctest::Approx(y[0]));
    CHECK(score[1] == doctest::Approx(y[1]));
    CHECK(score[2] == doctest::Approx(0.45));  // nothing is known to correct
  }
}

TEST_CASE("corrections by hand: they may be negative, and half of them is heard at the half-life") {
  // Least squares through (1, 0), (2, 1), (3, 0.125): slope 0.0625, mean 0.375 at 2, so K = 0.3125, 0.375, 0.4375.
  const Labels y{0, 1, 0.125F}, k{0.3125F, 0.375F, 0.4375F};
  for (const double half_life : {0.1, 3.0}) {
    const double heard = half_life == 3 ? 0.5 : 1;
    Transferred<RecordingModel, Memory> model;
    WarmStart warm{.half_life_programs = half_life};
    warm.update(model, one_column({1, 2, 3}), y, {});
    CHECK(model.of_source == doctest::Approx(0.0625));
    const Labels score = scores(model, one_column({1, 2, 3, 4}));
    for (std::size_t p = 0; p < 3; ++p)
      CHECK(score[p] == doctest::Approx(static_cast<double>(k[p]) + heard * static_cast<double>(y[p] - k[p])));
    CHECK(score[3] == doctest::Approx(0.5));  // nothing is known to correct
  }
}

TEST_CASE("a source that says the contrary is not turned round") {
  Transferred<RecordingModel, Memory> model;
  WarmStart warm;
  warm.update(model, one_column({1, 3}), Labels{1, 0.5F}, {});
  CHECK(model.of_source == 0);
}

TEST_CASE("with many programs, and after an ordinary fit, the own model is alone") {
  Transferred<RecordingModel> model;
  for (const auto form : {WarmStart::Form::Discounted, WarmStart::Form::Blended}) {
    WarmStart warm{.form = form, .half_life_programs = 0.4};  // 2 programs: 2^-5
    warm.update(model, one_column({1, 3}), Labels{0.5F, 1}, {});
    CHECK(model.of_source == 0);
    CHECK(scores(model, one_column({1})) == Labels{1.75F});
  }
  Transferred<RecordingModel> refitted;
  refitted.fit(one_column({1, 3}), Labels{0.5F, 1}, {});
  CHECK(scores(refitted, one_column({1})) == Labels{1.75F});
}

TEST_CASE("programs without rows come last, and do not disturb the rest") {
  Transferred<RecordingModel> model;
  FeatureBatch x = one_column({1, 3});
  x.close_program();
  WarmStart{}.update(model, x, Labels{0.5F, 1, 0}, {});
  const Labels score = scores(model, x);
  CHECK(std::isfinite(score[0]));
  CHECK(score[2] == -std::numeric_limits<float>::infinity());
  CHECK(model.own.y[2] == 0.5F);  // the source says nothing of it, so that all of its label, 0, is to be learned
}

TEST_CASE("few new programs are not worth a fit") {
  Transferred<RecordingModel> model;
  WarmStart warm{.min_growth = 0.5};
  warm.update(model, one_column({1, 2, 3, 4}), Labels{1, 0.5F, 0.5F, 0.5F}, {});
  warm.update(model, one_column({1, 2, 3, 4, 5}), Labels{1, 0.5F, 0.5F, 0.5F, 0.5F}, {});
  CHECK(model.own.fits == 1);
  warm.update(model, one_column({1, 2, 3, 4, 5, 6}), Labels{1, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F}, {});
  CHECK(model.own.fits == 2);
}

TEST_CASE("options out of range are named") {
  Transferred<RecordingModel> model;
  const auto update = [&](WarmStart warm) {
    return refusal([&] { warm.update(model, one_column({1, 3}), Labels{0.5F, 1}, {}); });
  };
  CHECK(update({.half_life_programs = 0}) == "WarmStart: half_life_programs is 0; give a number of programs above 0");
  CHECK(update({.least_share = 1}).find("least_share") != std::string::npos);
  CHECK(update({.min_growth = -1}).find("min_growth") != std::string::npos);
}
