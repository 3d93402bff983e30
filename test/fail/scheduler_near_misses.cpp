// SPDX-License-Identifier: Apache-2.0
// What a scheduler lacks is named.
// error 1: scheduler: it does not model TaskScheduler: next takes no generator
// error 2: scheduler: it does not model TaskScheduler: next must return std::size_t
// error 3: scheduler: it does not model TaskScheduler: it has no std::size_t next(
// error 4: scheduler: it does not model TaskScheduler: it has no std::size_t next(
#include "support/toy_recipes.hpp"
#include "tunewright/multi_task_tuner.hpp"

using tunewright::Rng;
using Tasks = std::span<const tunewright::schedulers::TaskState>;

struct Scheduler {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  std::size_t next(Tasks) { return 0; }
#elif TUNEWRIGHT_SHOULD_FAIL == 2
  int next(Tasks, Rng&) { return 0; }
#elif TUNEWRIGHT_SHOULD_FAIL == 3
  std::size_t choose(Tasks, Rng&) { return 0; }
#else
  std::size_t next(Tasks, Rng&) { return 0; }
#endif
};

#if TUNEWRIGHT_SHOULD_FAIL == 4
tunewright::MultiTaskTuner<toy::Evolution, tunewright::samplers::TopK> tuner;
#else
tunewright::MultiTaskTuner<toy::Evolution, Scheduler> tuner;
#endif
