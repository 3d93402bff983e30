// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/pruner.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ideas/paired_seeds.hpp"
#include "ideas/simulated_programs.hpp"
#include "tunewright/drafts/none.hpp"

// Qiao et al., Pruner: candidates that a few symbols of the program think good are worth more than those that a network
// finds among random ones, and the network ranks better if it is told how data move.
namespace {

using namespace tunewright;
using adaptations::LabelledPrograms;
using test::SimulatedSearch;

models::PatternAware small_network(std::uint64_t seed = 43) {
  models::PatternAware network{.hidden = 32, .threads = 1, .seed = seed};
  network.training.epochs = 1;
  network.training.least_steps = 150;
  network.training.batch_programs = 64;
  network.training.learning_rate = 1e-3F;
  return network;
}

/// The draft in the form of the paper's code, which knows nothing of the simulated machine but the target's numbers.
struct Drafting : recipes::PrunerQuick<test::SimulatedSpace, measurers::Simulated> {
  static void set_draft(drafts::SymbolAnalyzer& draft) { draft.form = drafts::SymbolAnalyzer::Form::Released; }
  static void set_explorer(explorers::DraftSet<>& drafts) {
    drafts.explorer.population = 128;
    drafts.size = 64;
    drafts.mutated_factor = 8;
  }
  static void set_model(models::PatternAware& network) { network = small_network(); }
};
/// The network ranks the evolution as well.
struct WithoutDraft : Drafting {
  using draft = drafts::None;
};

template <class Recipe>
SimulatedSearch searched(std::uint64_t seed) {
  return test::searched_simulated(Parts<Recipe>{}, test::searched_product(), seed, 16, 8);
}

TEST_CASE("Pruner's draft finds fast programs sooner than its network alone") {
  const auto runs = test::on_seeds(20, searched<Drafting>, searched<WithoutDraft>);
  const auto first_batch = runs.more(&SimulatedSearch::first_batch);
  const auto soon = runs.more(&SimulatedSearch::mean_best);
  const auto best = runs.more(&SimulatedSearch::best);
  CAPTURE(first_batch);
  CAPTURE(soon);
  CAPTURE(best);
  CHECK(first_batch.idea_is_better());
  CHECK(soon.idea_is_better());
}

using Rows = recipes::Pruner<test::SimulatedSpace, measurers::Simulated>::featurizer;

/// The same programs without the rows of data movements, whose column 0 is 1.
LabelledPrograms without_movements(const LabelledPrograms& programs) {
  LabelledPrograms statements = programs;
  const std::size_t columns = programs.x.columns();
  statements.x = FeatureBatch(columns);
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const std::span<const float> rows = programs.x.program(p);
    std::vector<float> kept;
    for (std::size_t first = 0; first < rows.size(); first += columns) {
      const auto row = rows.subspan(first, columns);
      if (row[0] == 0) kept.insert(kept.end(), row.begin(), row.end());
    }
    statements.x.append_program(kept);
  }
  return statements;
}

/// Accuracy of the network on 192 other programs of each of four products, taught 96 of each.
double accuracy(const LabelledPrograms& taught, const LabelledPrograms& judged, std::uint64_t seed) {
  models::PatternAware network = small_network(seed);
  network.fit(taught.x, taught.y, taught.group);
  return test::accuracy_of(network, judged);
}

TEST_CASE("Pruner's network ranks programs better with rows of data movements than by statements alone") {
  const std::vector<Task> products = test::other_products();
  test::PairedSeeds accuracies;
  for (std::uint64_t seed = test::first_seed; seed < test::first_seed + 20; ++seed) {
    const auto programs = [&](std::uint64_t stream, std::size_t count) {
      return test::random_programs(std::span(products).first(4), count, 2 * seed + stream, Rows{});
    };
    const LabelledPrograms taught = programs(0, 96), judged = programs(1, 192);
    accuracies.idea.push_back(accuracy(taught, judged, seed));
    accuracies.ablation.push_back(accuracy(without_movements(taught), without_movements(judged), seed));
  }
  CAPTURE(accuracies);
  CHECK(accuracies.idea_is_better());
}

}  // namespace
