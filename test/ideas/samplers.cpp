// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ideas/paired_seeds.hpp"
#include "ideas/recorded_searches.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/models/random.hpp"
#include "tunewright/samplers/cluster_centres.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"

// Chen et al., Learning to Optimize Tensor Programs, section 3.3 (diverse batches); Ahn et al., Chameleon (one
// candidate a cluster). That searches get better by it could not be shown, see docs/studies/ideas.md; here is what the
// samplers do.
namespace {

using namespace tunewright;

/// 128 random configurations, scored by their true speed.
struct Pool {
  FeatureBatch x;
  std::vector<float> score;
  Pool(const test::RecordedTask& source, std::uint64_t seed) {
    const std::vector<float> labels = test::recorded_labels(source.space);
    std::vector<spaces::TableRow> rows;
    for (std::size_t row = 0; row < labels.size(); ++row) rows.push_back(source.space.at(row));
    Rng rng(seed);
    rng.shuffle(std::span(rows));
    rows.resize(128);
    for (const spaces::TableRow& row : rows) score.push_back(labels[row.row]);
    x = features::Knobs{.knobs = source.space.knobs()}.extract(source.space, source.task,
                                                               std::span<const spaces::TableRow>(rows));
  }
};

struct Batch {
  double values = 0;      ///< different values of knobs in the batch, summed over the knobs
  double mean_score = 0;  ///< of the batch
};

template <class Sampler>
auto batches(const test::RecordedTask& source, Sampler sampler) {
  return [&source, sampler](std::uint64_t seed) {
    const Pool pool(source, seed);
    Rng rng(seed);
    const auto chosen = sampler.select(models::Random{}, pool.x, pool.score, 16, rng);
    std::set<std::pair<std::size_t, float>> values;
    Batch batch;
    for (const std::size_t i : chosen) {
      const auto row = pool.x.program(i);
      for (std::size_t knob = 0; knob < row.size(); ++knob) values.emplace(knob, row[knob]);
      batch.mean_score += double{pool.score[i]} / static_cast<double>(chosen.size());
    }
    batch.values = static_cast<double>(values.size());
    return batch;
  };
}

TEST_CASE("diverse top k tries more values of the knobs than plain top k") {
  const auto source = test::recorded_convolution("RTX_3090");
  const auto runs = test::on_seeds(20, batches(source, samplers::DiverseTopK{}), batches(source, samplers::TopK{}));
  const auto values = runs.more(&Batch::values);
  const auto mean_score = runs.more(&Batch::mean_score);
  CAPTURE(values);
  CAPTURE(mean_score);
  CHECK(values.idea_is_better());
}

/// Chooses as many candidates as there are clusters, at random.
struct RandomAsMany {
  [[nodiscard]] std::vector<std::size_t> select(const models::Random& model, const FeatureBatch& x,
                                                std::span<const float> score, std::size_t n, Rng& rng) const {
    Rng clusters = rng;
    const std::size_t count = samplers::ClusterCentres{}.select(model, x, score, n, clusters).size();
    return samplers::Random{}.select(model, x, score, count, rng);
  }
};

TEST_CASE("one candidate of each cluster tries more values of the knobs than as many random ones") {
  const auto source = test::recorded_convolution("RTX_3090");
  const auto runs = test::on_seeds(40, batches(source, samplers::ClusterCentres{}), batches(source, RandomAsMany{}));
  const auto values = runs.more(&Batch::values);
  CAPTURE(values);
  CHECK(values.idea_is_better());
}

}  // namespace
