// SPDX-License-Identifier: Apache-2.0
// Active learning on a dataset, as docs/policies/samplers/biased_diversity.md shows it.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tunewright/data/dataset.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/biased_diversity.hpp"

using namespace tunewright;

namespace manual {

// [snippet-begin round]
/// Moves `n` records of one target from `open` to `measured`, both positions in `pool`.
void next_round(const data::Dataset& pool, models::Gbdt& model, std::vector<std::size_t>& measured,
                std::vector<std::size_t>& open, std::size_t n, Rng& rng) {
  const data::Dataset known = pool.subset(measured), rest = pool.subset(open);
  const std::vector<float> y = known.labels();
  model.fit(known.x, y, known.task);
  std::vector<float> score(rest.size());
  model.predict(rest.x, score);

  // Subsets keep the numbers of their tasks, so those of labelled and open records agree.
  const std::vector<std::size_t> chosen = samplers::BiasedDiversity{}.select(
      model, rest.x, score, n, rng, {.x = known.x, .y = y, .task = known.task, .pool_task = rest.task});
  const std::set<std::size_t> taken(chosen.begin(), chosen.end());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < open.size(); ++i) (taken.count(i) != 0 ? measured : left).push_back(open[i]);
  open = left;
}
// [snippet-end round]

}  // namespace manual

TEST_CASE("rounds of choosing from a pool of tasks spend their budget over all of them") {
  data::Dataset pool;
  pool.x = FeatureBatch(2);
  Rng rng(5);
  for (int task = 0; task < 4; ++task) {
    const std::uint32_t number = pool.task_number({.name = "task " + std::to_string(task)});
    const std::uint32_t target = pool.target_number("toy");
    for (int i = 0; i < 100; ++i) {
      const auto a = static_cast<float>(rng.uniform()), b = static_cast<float>(rng.uniform());
      pool.x.append_program(std::vector<float>{a, b});
      pool.add(number, target,
               Outcome{.result = Timing{.repeats = {}, .median = Seconds(1 + 5 * double{a} + double{b})}});
    }
  }
  std::vector<std::size_t> measured, open;
  for (std::size_t i = 0; i < pool.size(); ++i) (i % 50 == 0 ? measured : open).push_back(i);
  models::Gbdt model{.rounds = 20, .objective = models::gbdt::Objective::Squared, .threads = 1};
  for (int round = 0; round < 3; ++round) manual::next_round(pool, model, measured, open, 16, rng);
  CHECK(measured.size() == 8 + 3 * 16);
  CHECK(open.size() == 400 - measured.size());
  CHECK(std::set<std::size_t>(measured.begin(), measured.end()).size() == measured.size());
  std::vector<int> of_task(4);
  for (const std::size_t i : measured) ++of_task[pool.task[i]];
  for (const int count : of_task) CHECK(count == 14);
}
