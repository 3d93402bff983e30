// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "ideas/paired_seeds.hpp"
#include "ideas/simulated_programs.hpp"
#include "tunewright/features/primitives.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/primitive_attention.hpp"

// Zhai et al., TLP: the schedule alone, read as a sequence of primitives, says how fast a program is.
namespace {

using namespace tunewright;

/// Two cores with AVX2.
Target two_cores() {
  Target target;
  target.isa = Isa::Avx2;
  target.threads = 2;
  target.l3_bytes = 8 << 20;
  return target;
}

/// Learns 192 random schedules and orders 150 others: its pairwise accuracy.
template <class Model>
double accuracy(Model model, std::uint64_t seed) {
  const std::vector<Task> task{test::gpu_product(256, 1024, 256, two_cores())};
  const auto taught = test::random_programs(task, 192, 2 * seed, features::Primitives::cpu());
  const auto judged = test::random_programs(task, 150, 2 * seed + 1, features::Primitives::cpu());
  model.threads = 1;
  model.seed = seed;
  model.fit(taught.x, taught.y, taught.group);
  return test::accuracy_of(model, judged);
}

/// The accuracy of any order that does not look at the programs.
double guess(std::uint64_t) { return 0.5; }

TEST_CASE("TLP's network orders schedules that it was not taught better than a guess") {
  const auto network = [](std::uint64_t seed) {
    models::PrimitiveAttention model{.width = 16, .attention_heads = 2};
    model.training.batch_programs = 16;
    model.training.epochs = 1;
    model.training.least_steps = 200;
    model.training.learning_rate = 3e-3F;
    return accuracy(model, seed);
  };
  const auto accuracies = test::on_seeds(40, network, guess).more([](double of_seed) { return of_seed; });
  CAPTURE(accuracies);
  CHECK(accuracies.idea_is_better());
}

TEST_CASE("TLP's rows tell trees enough to order schedules as well") {
  const auto trees = [](std::uint64_t seed) { return accuracy(models::Gbdt{}, seed); };
  const auto accuracies = test::on_seeds(8, trees, guess).more([](double of_seed) { return of_seed; });
  CAPTURE(accuracies);
  CHECK(accuracies.idea_is_better());
  CHECK(accuracies.gain().low > 0.15);
}

}  // namespace
