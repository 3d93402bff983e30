// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/fine_tune.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/descent_line.hpp"
#include "support/recording_model.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using adaptations::FineTune;
using test::DescentLine;
using test::one_column;
using test::refusal;
using Labels = std::vector<float>;

static_assert(AdaptationFor<FineTune, DescentLine>);
static_assert(!AdaptationFor<FineTune, test::RecordingModel>);

namespace {

DescentLine source() {
  DescentLine model;
  model.weights = {0, 0};
  return model;
}
void update(FineTune& tune, DescentLine& model) { tune.update(model, one_column({1}), Labels{1}, {}); }

}  // namespace

TEST_CASE("by default a tenth of the model's learning rate, from the source's weights each time") {
  DescentLine model = source();
  FineTune tune;
  update(tune, model);
  CHECK(model.weights == Labels{0.05F, 0.05F});
  update(tune, model);
  CHECK(model.weights == Labels{0.05F, 0.05F});
  CHECK(model.rescaled == 0);
  FineTune goes_on{.training = DescentLine::steps(1, 0.25F), .from_source = false, .refit_input_scale = true};
  model = source();
  update(goes_on, model);
  CHECK(model.weights == Labels{0.25F, 0.25F});
  update(goes_on, model);  // the score is 0.5 now
  CHECK(model.weights == Labels{0.375F, 0.375F});
  CHECK(model.rescaled == 2);
}

TEST_CASE("any subset of layers keeps its weights, named either way") {
  for (const FineTune& options : {FineTune{.frozen = {"line.b"}}, FineTune{.trained = {"line.slope"}}}) {
    DescentLine model = source();
    FineTune tune = options;
    update(tune, model);
    CHECK(model.weights == Labels{0.05F, 0});
  }
  DescentLine model = source();
  FineTune both{.trained = {"line"}};
  update(both, model);
  CHECK(model.weights == Labels{0.05F, 0.05F});
}

TEST_CASE("few new programs are not worth a training") {
  DescentLine model = source();
  FineTune tune{.min_growth = 1};
  update(tune, model);
  model.weights = {7, 7};
  update(tune, model);
  CHECK(model.weights == Labels{7, 7});
  tune.update(model, one_column({1, 1}), Labels{1, 1}, {});
  CHECK(model.weights == Labels{0.05F, 0.05F});
}

TEST_CASE("equal labels under a ranking loss are no update") {
  DescentLine model = source();
  model.training.loss = nn::Loss::LambdaRank;
  FineTune tune{.refit_input_scale = true, .min_growth = 1};
  update(tune, model);
  tune.update(model, one_column({1, 2}), Labels{0, 0}, {});
  FeatureBatch described_once = one_column({1});
  described_once.close_program();
  tune.update(model, described_once, Labels{1, 0}, {});
  CHECK(model.weights == Labels{0, 0});
  CHECK(model.rescaled == 0);
  CHECK(tune.fitted_candidates == 0);
  tune.update(model, one_column({1, 2}), Labels{0, 1}, {});
  CHECK(model.weights != Labels{0, 0});
  CHECK(tune.fitted_candidates == 2);
}

TEST_CASE("what others use") {
  CHECK(adaptations::tenset_fine_tuning().optimiser == nn::Optimiser::Sgd);
  CHECK(adaptations::tenset_fine_tuning().learning_rate == 0.04F);
  CHECK(adaptations::tenset_fine_tuning().epochs_of(1) == 10);  // ten steps
  CHECK(adaptations::tenset_fine_tuning().epochs_of(10) == 1);
  CHECK(adaptations::pruner_fine_tuning().epochs_of(3) == 10);
  CHECK(adaptations::pruner_fine_tuning().weight_decay == 0);
  CHECK(adaptations::pruner_fine_tuning().clip_norm == 0);
}

TEST_CASE("mistakes are named") {
  DescentLine empty, model = source();
  const auto message = [](FineTune tune, DescentLine& of) { return refusal([&] { update(tune, of); }); };
  CHECK(message({}, empty).find("adaptations::FineTune: the model has not learned anything yet") == 0);
  CHECK(message({.trained = {"head"}}, model) ==
        "adaptations::FineTune: no layer is called 'head...'; the model has line.slope, line.bias");
  CHECK(message({.frozen = {"line.s"}, .trained = {"line.b"}}, model).find("name the smaller set") !=
        std::string::npos);
  CHECK(message({.min_growth = -1}, model).find("min_growth") != std::string::npos);
  const FineTune backwards{.training = nn::Training{.learning_rate = -1}};
  CHECK(refusal([&] { backwards.check_options(); }).find("adaptations::FineTune: learning_rate") == 0);
  const std::vector<std::uint32_t> groups{1, 2};
  CHECK(refusal([&] { FineTune{}.update(model, one_column({1}), Labels{1}, groups); }) ==
        "adaptations::FineTune::fit: 2 group numbers for 1 programs; pass one a program, or none for a single task");
}
