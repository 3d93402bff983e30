// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipe/settings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "recipes/recorded_tasks.hpp"
#include "recipes/simulated_tasks.hpp"
#include "support/toy_recipes.hpp"
#include "tunewright/adaptations/none.hpp"
#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/features/curve.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/alt.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/auto_tvm.hpp"
#include "tunewright/recipes/balto.hpp"
#include "tunewright/recipes/chameleon.hpp"
#include "tunewright/recipes/het_feat_transfer.hpp"
#include "tunewright/recipes/meta_schedule.hpp"
#include "tunewright/recipes/moa_pruner.hpp"
#include "tunewright/recipes/one_shot.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/recipes/tenset.hpp"
#include "tunewright/recipes/tlp.hpp"
#include "tunewright/recipes/with_history.hpp"

// The values are those of the papers and of the code their authors released.

namespace {

using namespace tunewright;
using spaces::MultiLevelTiling;
using Machine = measurers::Simulated;

bool same_names(const std::vector<Knob>& a, const std::vector<Knob>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Knob& one, const Knob& other) { return one.name == other.name; });
}

/// What Ansor breeds and learns by, but for the size of a generation, and MetaSchedule as well.
template <class Parts>
void check_evolution_of_ansor(const Parts& parts, std::size_t population) {
  CHECK(parts.explorer.population == population);
  CHECK(parts.explorer.generations == 4);
  CHECK(parts.explorer.mutation_probability == 0.85);
  CHECK(parts.explorer.measured_share == 0.2);
  CHECK(parts.sampler.epsilon == 0.05);
  CHECK(parts.adaptation.warmup_candidates == 100);
  CHECK(parts.model.rounds == 10000);
  CHECK(parts.model.max_depth == 10);
}

TEST_CASE("Ansor: 2,048 candidates a generation, four of them, deep trees; its quick form keeps the policies' own") {
  const Parts<recipes::Ansor<MultiLevelTiling, Machine>> parts;
  check_evolution_of_ansor(parts, 2048);
  CHECK(parts.explorer.elite_factor == 2);
  CHECK(parts.model.early_stopping_rounds == 50);
  CHECK(parts.model.learning_rate == 0.2F);
  CHECK(parts.model.gamma == 0.001F);
  CHECK(parts.model.min_child_weight == 0);
  CHECK(parts.model.seed == 43);
  const Parts<recipes::AnsorQuick<MultiLevelTiling, Machine>> quick;
  CHECK(quick.explorer.population == 512);
  CHECK(quick.model.rounds == 100);
  CHECK(quick.adaptation.warmup_candidates == 0);
}

TEST_CASE("AutoTVM and ALT know the knobs of their space") {
  const auto source = test::recorded_convolution();
  const Parts<recipes::AutoTvm<spaces::RecordedTable, test::RecordedReplay>> auto_tvm{.space = source.space};
  CHECK(same_names(auto_tvm.featurizer.knobs, source.space.knobs()));
  CHECK(auto_tvm.model.max_depth == 3);
  CHECK(auto_tvm.model.objective == models::gbdt::Objective::RankPairwise);
  // XGBoost's 0.3, 1 and 1, whose pairs have twice the hessian of ours.
  CHECK(auto_tvm.model.learning_rate == 0.15F);
  CHECK(auto_tvm.model.min_child_weight == 0.25F);
  CHECK(auto_tvm.model.lambda == 0.25F);
  CHECK(auto_tvm.model.gamma == 1e-4F);
  CHECK(auto_tvm.explorer.chains == 128);
  CHECK(auto_tvm.explorer.steps == 500);
  CHECK(auto_tvm.explorer.patience_steps == 50);
  CHECK(auto_tvm.explorer.elite_factor == 2);
  CHECK(auto_tvm.explorer.first_temperature == 1);
  CHECK(auto_tvm.explorer.last_temperature == 0);
  CHECK(auto_tvm.explorer.least_score == -0.5);
  CHECK(auto_tvm.explorer.random_immigrant_factor == 0.05);
  CHECK(auto_tvm.sampler.epsilon == 0.05);
  CHECK(auto_tvm.sampler.candidates_factor == 2);
  CHECK(auto_tvm.sampler.score_weight == 0);

  const Parts<recipes::AutoTvmRegression<spaces::RecordedTable, test::RecordedReplay>> regression{.space =
                                                                                                      source.space};
  CHECK(regression.model.objective == models::gbdt::Objective::Squared);
  CHECK(regression.model.learning_rate == 0.3F);
  CHECK(regression.model.min_child_weight == 1);
  CHECK(regression.model.lambda == 1);
  CHECK(regression.explorer.least_score == 0);
  CHECK(regression.explorer.random_immigrant_factor == 0.05);

  const Parts<recipes::Alt<spaces::RecordedTable, test::RecordedReplay>> alt{.space = source.space};
  CHECK(same_names(alt.featurizer.knobs, source.space.knobs()));
  const auto& learned = std::get<1>(alt.filter.filters);
  CHECK(same_names(learned.featurizer.knobs, source.space.knobs()));
  CHECK(learned.model.objective == models::gbdt::Objective::Logistic);
  CHECK(learned.log_odds);
  // Failures are half of what ALT learns from: the objective must give them weight.
  for (const models::Gbdt& trees : {alt.model, alt.sampler.error_predictor}) {
    CHECK(trees.objective == models::gbdt::Objective::Squared);
    CHECK(trees.max_depth == 3);
    CHECK(trees.learning_rate == 0.3F);
  }
  CHECK(learned.model.max_depth == 3);
  CHECK(alt.explorer.elite_factor == 4);
  CHECK(alt.explorer.least_score == 0);
  CHECK(alt.explorer.random_immigrant_factor == 0.05);
  CHECK(alt.sampler.epsilon == 0.05);
}

TEST_CASE("a history is learned by 400 trees and counts half after 64 trials") {
  const auto source = test::recorded_convolution();
  using Recipe = recipes::WithHistory<recipes::Alt<spaces::RecordedTable, test::RecordedReplay>>;
  const Parts<Recipe> parts{.space = source.space};
  CHECK(parts.model.source.rounds == 400);
  CHECK(parts.model.own.rounds == 100);
  for (const models::Gbdt& trees : {parts.model.source, parts.model.own}) {
    CHECK(trees.objective == models::gbdt::Objective::Squared);
    CHECK(trees.max_depth == 3);
  }
  CHECK(parts.adaptation.form == adaptations::WarmStart::Form::Discounted);
  CHECK(parts.adaptation.half_life_programs == 64);
  CHECK(parts.adaptation.least_share == 0.05);
  CHECK(parts.explorer.elite_factor == 4);
}

TEST_CASE("Chameleon has AutoTVM's trees, 128 episodes of 500 moves, and clusters in steps of 8") {
  const auto source = test::recorded_convolution();
  const Parts<recipes::Chameleon<spaces::RecordedTable, test::RecordedReplay>> parts{.space = source.space};
  CHECK(same_names(parts.featurizer.knobs, source.space.knobs()));
  CHECK(parts.model.max_depth == 3);
  CHECK(parts.model.objective == models::gbdt::Objective::Squared);
  CHECK(parts.explorer.episodes == 128);
  CHECK(parts.explorer.steps == 500);
  CHECK(parts.explorer.settled_share == 0.75);
  CHECK(parts.explorer.temperature == 0.1);
  CHECK(parts.explorer.discount == 0.9);
  CHECK(parts.explorer.lambda == 0.99);
  CHECK(parts.explorer.updates == 3);
  CHECK(parts.explorer.batch == 32);
  CHECK(parts.explorer.learning_rate == 1e-3);
  CHECK(parts.explorer.loss.clip == 0.2);
  CHECK(parts.explorer.loss.entropy == 0.3);
  CHECK(parts.sampler.step == 8);
  CHECK(parts.sampler.knee == 2.5);
  CHECK(parts.sampler.widest == 2);
}

TEST_CASE("MetaSchedule breeds 512 candidates and trains when the data have grown by a fifth") {
  const Parts<recipes::MetaSchedule<MultiLevelTiling, Machine>> parts;
  check_evolution_of_ansor(parts, 512);
  CHECK(parts.explorer.max_tries == 11);
  CHECK(parts.explorer.one_copy_each);
  CHECK_FALSE(Parts<recipes::Ansor<MultiLevelTiling, Machine>>{}.explorer.one_copy_each);
  CHECK(parts.adaptation.min_growth == 0.2);
}

TEST_CASE("BALTO chooses from a pool, not from a batch") {
  const Parts<recipes::Balto<MultiLevelTiling, Machine>> parts;
  CHECK(parts.explorer.pool == 2048);
  CHECK(parts.model.member.hidden == 256);
  CHECK(parts.sampler.bias == samplers::Bias::High);
  const Parts<recipes::BaltoQuick<MultiLevelTiling, Machine>> quick;
  CHECK(quick.sampler.bias == samplers::Bias::High);
  CHECK(quick.explorer.pool == 2048);
  CHECK(quick.model.member.hidden == 64);
  CHECK(quick.model.member.training.least_steps == 120);
  CHECK(quick.model.member.training.batch_programs == 64);
  CHECK(quick.model.member.training.learning_rate == 3e-3F);
  const Parts<recipes::BaltoQuick<MultiLevelTiling, Machine, models::Mlp>> alone;
  CHECK(alone.model.hidden == 64);
  const Parts<recipes::BaltoQuick<MultiLevelTiling, Machine, models::Gbdt>> trees;
  CHECK(trees.model.rounds == models::Gbdt{}.rounds);
}

TEST_CASE("TenSet fine-tunes in ten steps of 0.04 and has trees of its own, TLP goes on as it was trained") {
  const Parts<recipes::TenSet<MultiLevelTiling, Machine>> tenset;
  CHECK(tenset.explorer.population == 2048);
  REQUIRE(tenset.adaptation.training.has_value());
  CHECK(tenset.adaptation.training->optimiser == nn::Optimiser::Sgd);
  CHECK(tenset.adaptation.training->learning_rate == 0.04F);
  CHECK(tenset.adaptation.training->least_steps == 10);
  const Parts<recipes::TenSet<MultiLevelTiling, Machine, models::Gbdt, adaptations::None>> frozen;
  const Parts<
      recipes::TenSet<MultiLevelTiling, Machine, adaptations::Transferred<models::Gbdt>, adaptations::WarmStart>>
      corrected;
  for (const models::Gbdt& trees : {frozen.model, corrected.model.source, corrected.model.own}) {
    CHECK(trees.objective == models::gbdt::Objective::Squared);
    CHECK(trees.rounds == 300);
    CHECK(trees.early_stopping_rounds == 100);
    CHECK(trees.max_depth == 6);
    CHECK(trees.learning_rate == 0.2F);
    CHECK(trees.gamma == 0.003F);
    CHECK(trees.min_child_weight == 2);
    CHECK(trees.lambda == 1);
  }
  const Parts<recipes::Tlp<MultiLevelTiling, Machine>> tlp;
  CHECK(tlp.explorer.population == 2048);
  REQUIRE(tlp.adaptation.training.has_value());
  for (const nn::Training& training : {tlp.model.training, *tlp.adaptation.training}) {
    CHECK(training.optimiser == nn::Optimiser::Adam);
    CHECK(training.learning_rate == 7e-4F);
    CHECK(training.batch_programs == 1024);
    CHECK(training.epochs_of(1) == 50);
    CHECK(training.patience_epochs == 0);
  }
  const Parts<recipes::TlpQuick<MultiLevelTiling, Machine>> quick;
  CHECK(quick.explorer.population == 512);
  CHECK(quick.model.width == 64);
  CHECK(quick.model.training.batch_programs == 64);
  CHECK(quick.model.training.least_steps == 200);
  REQUIRE(quick.adaptation.training.has_value());
  CHECK(quick.adaptation.training->epochs == 1);
  CHECK(quick.adaptation.training->least_steps == 20);
  CHECK(quick.adaptation.training->batch_programs == 32);
  CHECK(quick.adaptation.min_growth == 0.1);
}

TEST_CASE("Pruner: 512 drafts kept for two rounds, one in ten at random, trained anew after every round") {
  const auto check_training = [](const nn::Training& training) {
    CHECK(training.learning_rate == 7e-4F);
    CHECK(training.batch_programs == 512);
    CHECK(training.epochs_of(1) == 50);
    CHECK(training.patience_epochs == 16);
  };
  const auto check = [&](const auto& parts) {
    CHECK(parts.draft.form == drafts::SymbolAnalyzer::Form::Released);
    CHECK(parts.explorer.size == 512);
    CHECK(parts.explorer.refresh_rounds == 2);
    CHECK(parts.explorer.mutated_factor == 0);
    CHECK(parts.sampler.epsilon == 0.1);
    CHECK(parts.model.hidden == 256);
    CHECK(parts.explorer.explorer.measured_share == 0);
    check_training(parts.model.training);
  };
  const Parts<recipes::Pruner<MultiLevelTiling, Machine>> pruner;
  check(pruner);
  CHECK(pruner.adaptation.renewal_factor == 1);
  CHECK(pruner.adaptation.min_growth == 0);
  const Parts<recipes::MoaPruner<MultiLevelTiling, Machine>> moa;
  check(moa);
  CHECK(moa.adaptation.momentum == 0.99);
  CHECK(moa.adaptation.every == 4);
  REQUIRE(moa.adaptation.training.has_value());
  check_training(*moa.adaptation.training);
  const Parts<recipes::PrunerQuick<MultiLevelTiling, Machine>> quick;
  CHECK(quick.draft.form == drafts::SymbolAnalyzer::Form::Hierarchical);
  CHECK(quick.sampler.epsilon == 0.1);
  CHECK(quick.explorer.mutated_factor == 20);
  CHECK(quick.explorer.explorer.measured_share == 0.1);
  CHECK(quick.model.hidden == 128);
  CHECK(quick.model.training.epochs == 4);
  CHECK(quick.model.training.least_steps == 60);
  CHECK(quick.model.training.batch_programs == 16);
  CHECK(quick.model.training.learning_rate == 1e-3F);
  CHECK(quick.model.training.patience_epochs == 0);
  CHECK(quick.adaptation.renewal_factor == adaptations::IncrementalRefit{}.renewal_factor);
}

TEST_CASE("transfer of heterogeneous features trains the head alone, the one-shot tuner walks on 512 chains") {
  const Parts<recipes::HetFeatTransfer<MultiLevelTiling, Machine>> transfer;
  CHECK(transfer.adaptation.trained == std::vector<std::string>{"attention", "output"});
  REQUIRE(transfer.adaptation.training.has_value());
  CHECK(transfer.adaptation.training->learning_rate == 1e-3F);
  CHECK(transfer.adaptation.training->loss == nn::Loss::MeanSquared);
  const Parts<recipes::OneShot<MultiLevelTiling, Machine>> one_shot;
  CHECK(one_shot.explorer.chains == 512);
  CHECK(one_shot.explorer.steps == 160);
  CHECK(std::get<features::Curve>(one_shot.featurizer.parts).width() == 720);
}

struct Careful : toy::Evolution {
  static void set_sampler(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0.5; }
  static void set_explorer(explorers::Evolutionary& evolution) { evolution.population = 32; }
};
struct MoreCareful : Careful {
  static void set_sampler(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0.75; }
};
struct Greedy : Careful {
  using sampler = samplers::TopK;
};

TEST_CASE("a variant keeps the settings of what it derives from, changes some, or takes a policy without any") {
  CHECK(Parts<Careful>{}.sampler.epsilon == 0.5);
  CHECK(Parts<MoreCareful>{}.sampler.epsilon == 0.75);
  CHECK(Parts<MoreCareful>{}.explorer.population == 32);
  CHECK(Parts<Greedy>{}.explorer.population == 32);
}

TEST_CASE("options given to a tuner replace the settings of their policy, and of no other") {
  const Parts<Careful> parts{.explorer = {.generations = 2}};
  CHECK(parts.explorer.generations == 2);
  CHECK(parts.explorer.population == explorers::Evolutionary{}.population);
  CHECK(parts.sampler.epsilon == 0.5);
}

}  // namespace
