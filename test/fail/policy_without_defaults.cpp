// SPDX-License-Identifier: Apache-2.0
// A policy or scheduler that cannot be made without options, and is not given, is named with the remedy.
// error 1: recipe: the policy of a slot has no default constructor; give it to the tuner by the name of its slot
// error 2: recipe: the policy of a slot has no default constructor; give it to the tuner by the name of its slot
// error 3: scheduler: it has no default constructor; give one behind the parts of the tuner
#include "support/toy_recipes.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/schedulers/round_robin.hpp"
#include "tunewright/tuner.hpp"

struct Sized : toy::Linear {
  explicit Sized(int) {}
};
struct Bounded : toy::Space {
  explicit Bounded(int) {}
};
struct EveryFew : tunewright::schedulers::RoundRobin {
  explicit EveryFew(int) {}
};

struct Recipe : toy::Evolution {
  using space = Bounded;
  using model = Sized;
};

#if !defined(TUNEWRIGHT_SHOULD_FAIL)
tunewright::Tuner<Recipe> tuner{{.space = Bounded(8), .model = Sized(8)}};
tunewright::MultiTaskTuner<toy::Evolution, EveryFew> of_network{{.seed = 7}, EveryFew(8)};
#elif TUNEWRIGHT_SHOULD_FAIL == 1
tunewright::Tuner<Recipe> tuner{{.space = Bounded(8)}};
#elif TUNEWRIGHT_SHOULD_FAIL == 2
tunewright::Tuner<Recipe> tuner{{.model = Sized(8)}};
#elif TUNEWRIGHT_SHOULD_FAIL == 3
tunewright::MultiTaskTuner<toy::Evolution, EveryFew> of_network{{.seed = 7}};
#endif
