// SPDX-License-Identifier: Apache-2.0
// A network on two kinds of rows is given one kind, alone or as a member of a committee; trees that correct a draft are
// given rows without its score.
// error 1: recipe: slot 'model' cannot read the rows of slot 'featurizer'
// error 2: recipe: slot 'model' cannot read the rows of slot 'featurizer'
// error 3: recipe: slot 'model' cannot read the rows of slot 'featurizer'
#include "support/toy_recipes.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gbdt_on_draft.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/tuner.hpp"

/// Some rows a program, all of one kind.
struct Statements : toy::Features {};

struct Recipe : toy::Evolution {
#if TUNEWRIGHT_SHOULD_FAIL == 2
  using model = tunewright::models::Committee<tunewright::models::PatternAware>;
#elif TUNEWRIGHT_SHOULD_FAIL == 3
  using model = tunewright::models::GbdtOnDraft;
#else
  using model = tunewright::models::PatternAware;
#endif
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using featurizer = Statements;
#else
  using featurizer = tunewright::features::Joined<Statements, Statements>;
#endif
};

tunewright::Tuner<Recipe> tuner;
