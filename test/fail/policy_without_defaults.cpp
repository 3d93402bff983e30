// SPDX-License-Identifier: Apache-2.0
// A policy that cannot be made without options, and is not given, is named with the remedy.
// error 1: recipe: the policy of a slot has no default constructor; give it to the tuner by the name of its slot
// error 2: recipe: the policy of a slot has no default constructor; give it to the tuner by the name of its slot
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct Sized : toy::Linear {
  explicit Sized(int) {}
};
struct Bounded : toy::Space {
  explicit Bounded(int) {}
};

struct Recipe : toy::Evolution {
  using space = Bounded;
  using model = Sized;
};

#if !defined(TUNEWRIGHT_SHOULD_FAIL)
tunewright::Tuner<Recipe> tuner{{.space = Bounded(8), .model = Sized(8)}};
#elif TUNEWRIGHT_SHOULD_FAIL == 1
tunewright::Tuner<Recipe> tuner{{.space = Bounded(8)}};
#elif TUNEWRIGHT_SHOULD_FAIL == 2
tunewright::Tuner<Recipe> tuner{{.model = Sized(8)}};
#endif
