// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/draft_and_trees.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>

#include "recipes/pretrained.hpp"
#include "tunewright/recipes/pruner.hpp"

namespace {

using namespace tunewright;
using DraftAndTrees = recipes::DraftAndTrees<spaces::MultiLevelTiling, measurers::Simulated>;
using PrunerQuick = recipes::PrunerQuick<spaces::MultiLevelTiling, measurers::Simulated>;

template <class Recipe>
Parts<Recipe> small(std::uint64_t seed, unsigned threads) {
  Parts<Recipe> parts = test::small_parts<Recipe>(seed, threads);
  parts.explorer.size = 64;
  parts.explorer.explorer.population = 128;
  return parts;
}

TEST_CASE("drafts and trees: same seed, same history, with one and with two threads") {
  const Task task = test::small_conv2d();
  const test::Trace one = test::searched_trace(small<DraftAndTrees>(5, 1), task, 24);
  CHECK(one.size() == 24);
  CHECK(one == test::searched_trace(small<DraftAndTrees>(5, 2), task, 24));
  CHECK(one != test::searched_trace(small<DraftAndTrees>(6, 1), task, 24));
}

TEST_CASE("drafts and trees begin with the batch that Pruner begins with, where no model has learned yet") {
  const Task task = test::small_matmul();
  CHECK(test::searched_trace(small<DraftAndTrees>(5, 1), task, 8) ==
        test::searched_trace(small<PrunerQuick>(5, 1), task, 8));
}

TEST_CASE(
    "trees as the library has them, which start from the recipe's draft; drafts and mutations of Pruner's quick form") {
  const Parts<DraftAndTrees> parts;
  CHECK(parts.draft.form == drafts::SymbolAnalyzer::Form::Hierarchical);
  CHECK(parts.explorer.size == 512);
  CHECK(parts.explorer.refresh_rounds == 2);
  CHECK(parts.explorer.mutated_factor == 20);
  CHECK(parts.sampler.epsilon == 0.1);
  CHECK(parts.model.trees.rounds == models::Gbdt{}.rounds);
  CHECK(parts.model.trees.max_depth == models::Gbdt{}.max_depth);
  CHECK(std::get<1>(parts.featurizer.parts).draft.form == parts.draft.form);
  CHECK(parts.adaptation.min_growth == 0);
}

}  // namespace
