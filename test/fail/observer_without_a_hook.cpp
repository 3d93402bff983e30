// SPDX-License-Identifier: Apache-2.0
// An object that run() would never call is a mistake: here the name of the hook is misspelt.
// error: Observer
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct Log {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  void on_trial(const tunewright::Record&, const tunewright::RunStatus&) {}
#else
  void on_record(const tunewright::Record&, const tunewright::RunStatus&) {}
#endif
};

void search(tunewright::Tuner<toy::RandomSearch>& tuner) { (void)tuner.run(toy::task(), {.trials = 1}, Log{}); }
