// SPDX-License-Identifier: Apache-2.0
// Chooses the recipe to start from for schedules, on the operators that drafts know.
//
//   study_draft_and_trees [--machine=real|cores] [--trials=N] [--batch=N] [--seeds=N] [--recipes=A,B]
//
// Variants of `recipes::DraftAndTrees`, each with one thing changed, are searched beside `AnsorQuick` and
// `PrunerQuick`: `--trials` measurements (100) in batches of `--batch` (10), on this machine's CPU or on two simulated
// cores. What wins here is judged by study_schedules, on operators of which none is searched here.

#include "../drafted.hpp"
#include "chosen_machine.hpp"
#include "operators.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/gbdt_on_draft.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/samplers/uncertainty.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Space = spaces::MultiLevelTiling;
using bench::DraftAndTrees;
using bench::TreesAlone;

/// A new set of drafts for every batch: evolution also starts from what the last one found.
template <class Measurer>
struct FreshDrafts : DraftAndTrees<Measurer> {
  static void set_explorer(explorers::DraftSet<>& drafts) {
    DraftAndTrees<Measurer>::set_explorer(drafts);
    drafts.refresh_rounds = 1;
  }
};

/// Four rounds from one set of drafts.
template <class Measurer>
struct RareDrafts : DraftAndTrees<Measurer> {
  static void set_explorer(explorers::DraftSet<>& drafts) {
    DraftAndTrees<Measurer>::set_explorer(drafts);
    drafts.refresh_rounds = 4;
  }
};

/// 60 mutations of the fastest programs for each one measured.
template <class Measurer>
struct MoreMutations : DraftAndTrees<Measurer> {
  static void set_explorer(explorers::DraftSet<>& drafts) {
    DraftAndTrees<Measurer>::set_explorer(drafts);
    drafts.mutated_factor = 60;
  }
};

/// The best 128 of a draft: it has more of a say.
template <class Measurer>
struct FewDrafts : DraftAndTrees<Measurer> {
  static void set_explorer(explorers::DraftSet<>& drafts) {
    DraftAndTrees<Measurer>::set_explorer(drafts);
    drafts.size = 128;
  }
};

/// Nothing at random.
template <class Measurer>
struct Greedy : DraftAndTrees<Measurer> {
  static void set_sampler(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0; }
};

/// Batches whose members differ from each other, from the best twice as many.
template <class Measurer>
struct Diverse : DraftAndTrees<Measurer> {
  using sampler = samplers::DiverseTopK;
  static void set_sampler(samplers::DiverseTopK& sampler) { sampler.epsilon = 0.1; }
};

/// The same for Ansor's search.
template <class Measurer>
struct DiverseAnsor : recipes::AnsorQuick<Space, Measurer> {
  using sampler = samplers::DiverseTopK;
  static void set_sampler(samplers::DiverseTopK& sampler) { sampler.epsilon = 0.05; }
};

/// Shallow trees, of which the sum has less to overfit.
template <class Measurer>
struct ShallowTrees : DraftAndTrees<Measurer> {
  static void set_model(models::GbdtOnDraft& model) { model.trees.max_depth = 3; }
};

/// Expected improvement by a committee that does not know the draft, as `recipes::ExpectedImprovement` has on knobs.
template <class Measurer>
struct DraftAndCommittee : TreesAlone<Measurer> {
  using model = models::Committee<models::Gbdt, 5>;
  using sampler = samplers::Uncertainty;
  static void set_model(model& committee) {
    committee.member.objective = models::gbdt::Objective::Squared;
    committee.member.rounds = 50;
  }
  static void set_sampler(samplers::Uncertainty& sampler) {
    sampler.acquisition = samplers::Acquisition::ExpectedImprovement;
  }
};

template <class M>
void compare(study::Study& study, const Target& target, const M& measurer) {
  study.compare<recipes::AnsorQuick<Space, M>, recipes::PrunerQuick<Space, M>, DraftAndTrees<M>, FreshDrafts<M>,
                RareDrafts<M>, MoreMutations<M>, FewDrafts<M>, Greedy<M>, Diverse<M>, ShallowTrees<M>,
                DraftAndCommittee<M>, TreesAlone<M>, DiverseAnsor<M>>(
      bench::problems(bench::known_operators(), study.options(), target, measurer), bench::budget(study.options()));
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(
      argc, argv, {.name = "draft_and_trees", .seeds = 5, .options = {"machine=real", "trials=100", "batch=10"}},
      [](study::Study& study) {
        bench::with_chosen_machine(
            study.options(), [&](const Target& target, const auto& measurer) { compare(study, target, measurer); });
      });
}
