// SPDX-License-Identifier: Apache-2.0
//
// Lesson 5: active learning on a recorded space.
//
// Shows:  active learning on an exhaustively measured space: a model chooses the next kernels to measure, learns
//         from them and is evaluated on held-out kernels. What a sampler knows about labelled kernels, and what its
//         choice costs or gains compared with random selection.
// Run:    build/release/examples/05_active_learning_on_a_recorded_space
// Expect: by the number of measurements, for both samplers: the pairwise accuracy on held-out kernels, and the speed
//         of the best measured kernel relative to the best of the space. The program fails if the model does not
//         learn, or if its choice finds worse kernels than random selection.
//
// Nothing is run: a 4096 x 4096 convolution was measured on an A100 by others (test/data/README.md).

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/stats/ranking.hpp"

using namespace tunewright;

namespace {

// [snippet-begin laboratory]
/// All kernels of the space with their features; y is the speed relative to the best, 0 for a failed kernel.
struct Laboratory {
  FeatureBatch x;
  std::vector<float> y;

  explicit Laboratory(const std::filesystem::path& file) {
    auto imported = data::read_table(file.string(), {.device = "A100"});
    const spaces::RecordedTable space(std::make_shared<const data::Table>(std::move(imported.table)));
    std::vector<spaces::TableRow> rows;
    double best_s = space.table().cost_s(0);
    for (std::size_t i = 0; i < space.size(); ++i) {
      rows.push_back(space.at(i));
      best_s = std::min(best_s, space.table().cost_s(i));
    }
    const features::Knobs featurizer{.knobs = space.knobs()};
    x = featurizer.extract(space, data::task_of(space.table()), std::span<const spaces::TableRow>(rows));
    for (std::size_t i = 0; i < space.size(); ++i) y.push_back(static_cast<float>(best_s / space.table().cost_s(i)));
  }

  [[nodiscard]] FeatureBatch described(std::span<const std::size_t> which) const {
    FeatureBatch part(x.columns());
    for (const std::size_t i : which) part.append_program(x.program(i));
    return part;
  }
  [[nodiscard]] std::vector<float> measured(std::span<const std::size_t> which) const {
    std::vector<float> part;
    for (const std::size_t i : which) part.push_back(y[i]);
    return part;
  }
};
// [snippet-end laboratory]

constexpr std::array<std::size_t, 5> budgets{16, 32, 48, 64, 96};

struct Result {
  std::array<double, budgets.size()> accuracy{}, best{};
};

/// The mean over draws. Every draw holds out 100 kernels for evaluation and starts with 16 random ones.
template <class Sampler>
Result learn(const Laboratory& laboratory, const Sampler& sampler) {
  constexpr int draws = 20;
  Result result;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    Rng rng(draw);
    std::vector<std::size_t> open = positions(laboratory.y.size());
    rng.shuffle(std::span(open));
    const std::vector<std::size_t> unseen(open.end() - 100, open.end());
    open.resize(open.size() - 100);
    const float best = *std::max_element(laboratory.y.begin(), laboratory.y.end());

    // [snippet-begin rounds]
    std::vector<std::size_t> labelled(open.begin(), open.begin() + budgets[0]);
    open.erase(open.begin(), open.begin() + budgets[0]);
    models::Gbdt model{.objective = models::gbdt::Objective::Squared, .threads = 1};
    for (std::size_t round = 0; round < budgets.size(); ++round) {
      const FeatureBatch known = laboratory.described(labelled);
      const std::vector<float> y = laboratory.measured(labelled);
      model.fit(known, y, std::vector<std::uint32_t>(y.size()));

      std::vector<float> score(unseen.size());
      model.predict(laboratory.described(unseen), score);
      result.accuracy[round] += stats::pairwise_accuracy(score, laboratory.measured(unseen)) / draws;
      result.best[round] += double{*std::max_element(y.begin(), y.end()) / best} / draws;
      if (round + 1 == budgets.size()) break;

      const FeatureBatch pool = laboratory.described(open);
      score.resize(open.size());
      model.predict(pool, score);
      const std::size_t wanted = budgets[round + 1] - budgets[round];
      std::vector<std::size_t> chosen;
      if constexpr (LabelAwareSamplerFor<Sampler, models::Gbdt>)
        chosen = sampler.select(model, pool, score, wanted, rng, {.x = known, .y = y});
      else
        chosen = sampler.select(model, pool, score, wanted, rng);

      for (const std::size_t i : chosen) labelled.push_back(open[i]);
      std::sort(chosen.rbegin(), chosen.rend());  // last first, so that positions stay valid
      for (const std::size_t i : chosen) open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    // [snippet-end rounds]
  }
  return result;
}

void print(const char* name, const Result& result) {
  for (std::size_t i = 0; i < budgets.size(); ++i)
    std::printf("%-16s %3zu labels: %.3f of pairs right, best found %.3f\n", name, budgets[i], result.accuracy[i],
                result.best[i]);
}

}  // namespace

int main() {
  const std::filesystem::path folder = TUNEWRIGHT_TEST_DATA;  // test/data: CMake knows where
  const Laboratory laboratory(folder / "kernel_tuner_convolution_A100.json.gz");
  std::printf("%zu kernels\n", laboratory.y.size());
  const Result random = learn(laboratory, samplers::Random{});
  print("Random", random);
  const Result biased = learn(laboratory, samplers::BiasedDiversity{.bias = samplers::Bias::High});
  print("BiasedDiversity", biased);

  const bool learns = biased.accuracy.back() > biased.accuracy.front() + 0.05;
  const bool finds = biased.best.back() >= random.best.back();
  std::printf("learns: %s, finds better kernels: %s\n", learns ? "yes" : "no", finds ? "yes" : "no");
  return learns && finds ? 0 : 1;
}
