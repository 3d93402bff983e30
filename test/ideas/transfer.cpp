// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ideas/paired_seeds.hpp"
#include "ideas/recorded_searches.hpp"
#include "tunewright/adaptations/feature_map.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/mlp.hpp"

// What an RTX A4000 taught is worth something on an A100: Verma et al., Transfer Learning Across Heterogeneous
// Features, and Qiao et al., Pruner, section 4.3 (momentum online adaptation).
namespace {

using namespace tunewright;
using adaptations::LabelledPrograms;

/// All configurations of a recorded space.
LabelledPrograms recorded_programs(const std::string& gpu) {
  const auto source = test::recorded_convolution(gpu);
  std::vector<spaces::TableRow> rows;
  for (std::size_t row = 0; row < source.space.size(); ++row) rows.push_back(source.space.at(row));
  const features::Knobs knobs{.knobs = source.space.knobs()};
  return {.x = knobs.extract(source.space, source.task, std::span<const spaces::TableRow>(rows)),
          .y = test::recorded_labels(source.space),
          .group = std::vector<std::uint32_t>(rows.size(), 0)};
}

/// Two devices, and the target's configurations in the order of a seed: what is measured first comes first, the last
/// 200 are ranked.
struct Devices {
  LabelledPrograms source = recorded_programs("A4000"), target = recorded_programs("A100");

  [[nodiscard]] std::vector<std::size_t> order(std::uint64_t seed) const {
    std::vector<std::size_t> all(target.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    Rng(seed).shuffle(std::span(all));
    return all;
  }
  /// The first `count` of them, labelled as a search labels: by the best that it has seen.
  [[nodiscard]] LabelledPrograms measured(std::uint64_t seed, std::size_t count) const {
    const std::vector<std::size_t> all = order(seed);
    LabelledPrograms known = target.subset(std::span(all).first(count));
    const float best = *std::max_element(known.y.begin(), known.y.end());
    for (float& label : known.y) label /= best;
    return known;
  }
  template <class Model>
  [[nodiscard]] double accuracy(const Model& model, std::uint64_t seed) const {
    const std::vector<std::size_t> all = order(seed);
    const LabelledPrograms held_out = target.subset(std::span(all).last(200));
    std::vector<float> score(held_out.size());
    model.predict(held_out.x, score);
    return stats::pairwise_accuracy(score, held_out.y);
  }
};

/// Squared errors in mini-batches of 32.
template <class Model>
Model small(Model model, std::uint64_t seed, unsigned steps) {
  model.training.loss = nn::Loss::MeanSquared;
  model.training.batch_programs = 32;
  model.training.epochs = 1;
  model.training.least_steps = steps;
  model.training.learning_rate = 2e-3F;
  model.threads = 1;
  model.seed = seed;
  return model;
}

/// Accuracy after each of 8 batches of 12 measurements.
struct Followed {
  double mean = 0, first = 0, last = 0;
};
template <class Adaptation>
Followed followed(const Devices& devices, models::Mlp model, Adaptation adaptation, std::uint64_t seed) {
  constexpr std::size_t batches = 8, batch = 12;
  Followed result;
  for (std::size_t b = 1; b <= batches; ++b) {
    const LabelledPrograms known = devices.measured(seed, b * batch);
    adaptation.update(model, known.x, known.y, known.group);
    result.last = devices.accuracy(model, seed);
    if (b == 1) result.first = result.last;
    result.mean += result.last / batches;
  }
  return result;
}

models::Mlp perceptron(std::uint64_t seed) { return small(models::Mlp{.hidden = 32}, seed, 200); }
models::Mlp taught_perceptron(const Devices& devices, std::uint64_t seed) {
  models::Mlp model = perceptron(seed);
  model.fit(devices.source.x, devices.source.y, devices.source.group);
  return model;
}

TEST_CASE("momentum follows a new device better than training on and on, and than fine-tuning at last") {
  const Devices devices;
  const auto from_source = [&](auto adaptation) {
    return test::each_of(
        20, [&](std::uint64_t seed) { return followed(devices, taught_perceptron(devices, seed), adaptation, seed); });
  };
  const auto slow = from_source(adaptations::Momentum{.every = 1});
  // Slow weights that forget at once are those of the last training.
  const auto on_and_on = from_source(adaptations::Momentum{.momentum = 0, .every = 1});
  const auto paper = from_source(adaptations::Momentum{});
  const auto fine_tuned = from_source(adaptations::FineTune{});
  const auto scratch = test::each_of(
      20, [&](std::uint64_t seed) { return followed(devices, perceptron(seed), adaptations::Refit{}, seed); });

  const test::Runs<Followed> beside_on_and_on{slow, on_and_on}, beside_scratch{paper, scratch},
      beside_fine_tuned{paper, fine_tuned};
  const auto mean = beside_on_and_on.more(&Followed::mean);
  const auto last = beside_on_and_on.more(&Followed::last);
  const auto last_fine_tuned = beside_fine_tuned.more(&Followed::last);
  // Not claimed: with the first labels momentum is ahead of scratch by too few seeds, and behind fine-tuning; over all
  // batches a quarter of the trainings is a little behind all of them from scratch.
  const auto first_scratch = beside_scratch.more(&Followed::first);
  const auto mean_scratch = beside_scratch.more(&Followed::mean);
  const auto first_fine_tuned = beside_fine_tuned.more(&Followed::first);
  CAPTURE(mean);
  CAPTURE(last);
  CAPTURE(first_scratch);
  CAPTURE(last_fine_tuned);
  CAPTURE(mean_scratch);
  CAPTURE(first_fine_tuned);
  CHECK(mean.idea_is_better());
  CHECK(last_fine_tuned.idea_is_better());
}

/// Accuracy after 8 measurements.
template <class Adaptation>
double after_eight(const Devices& devices, models::BiLstmAttention model, Adaptation adaptation, std::uint64_t seed) {
  const LabelledPrograms known = devices.measured(seed, 8);
  adaptation.update(model, known.x, known.y, known.group);
  return devices.accuracy(model, seed);
}
models::BiLstmAttention recurrent(std::uint64_t seed) {
  return small(models::BiLstmAttention{.width = 16, .layers = 1}, seed, 100);
}

TEST_CASE("with eight labels the other device's network, or its data by the map of features, beats scratch") {
  const Devices devices;
  const auto number = [](double accuracy) { return accuracy; };
  const auto scratch = [&](std::uint64_t seed) {
    return after_eight(devices, recurrent(seed), adaptations::Refit{}, seed);
  };
  const auto head = [&](std::uint64_t seed) {
    models::BiLstmAttention model = recurrent(seed);
    model.fit(devices.source.x, devices.source.y, devices.source.group);
    return after_eight(devices, model, adaptations::FineTune{.trained = {"attention", "output"}}, seed);
  };
  const auto mapped = [&](std::uint64_t seed) {
    return after_eight(devices, recurrent(seed), adaptations::FeatureMap{.source = devices.source}, seed);
  };
  const auto attention_head = test::on_seeds(12, head, scratch).more(number);
  const auto feature_map = test::on_seeds(12, mapped, scratch).more(number);
  CAPTURE(attention_head);
  CAPTURE(feature_map);
  CHECK(attention_head.idea_is_better());
  CHECK(feature_map.idea_is_better());
}

}  // namespace
