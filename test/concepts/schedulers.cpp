// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/concept.hpp"

#include "tunewright/schedulers/bandit.hpp"
#include "tunewright/schedulers/fixed.hpp"
#include "tunewright/schedulers/flops_first.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"

using namespace tunewright;

namespace {

static_assert(TaskScheduler<schedulers::RoundRobin>);
static_assert(TaskScheduler<schedulers::FlopsFirst>);
static_assert(TaskScheduler<schedulers::Fixed>);
static_assert(TaskScheduler<schedulers::Gradient>);
static_assert(TaskScheduler<schedulers::Bandit>);
static_assert(!TaskScheduler<int>);

struct NarrowPosition {
  unsigned next(std::span<const schedulers::TaskState>, Rng&);
};
static_assert(!TaskScheduler<NarrowPosition>);

struct WithoutGenerator {
  std::size_t next(std::span<const schedulers::TaskState>);
};
static_assert(!TaskScheduler<WithoutGenerator>);

struct ChangesTasks {
  std::size_t next(std::span<schedulers::TaskState>, Rng&);
};
static_assert(!TaskScheduler<ChangesTasks>);

struct KeepsState {
  std::size_t next(std::span<const schedulers::TaskState>, Rng&);
};
static_assert(TaskScheduler<KeepsState>);

}  // namespace
