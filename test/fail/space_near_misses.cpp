// SPDX-License-Identifier: Apache-2.0
// What a search space lacks is named member by member.
// error 1: recipe: slot 'space' does not model SearchSpace: it does not name its config_type and program_type
// error 2: recipe: slot 'space' does not model SearchSpace: sample is not const
// error 3: recipe: slot 'space' does not model SearchSpace: it has no mutate(const Task&, const config_type&, Rng&) const
// error 4: recipe: slot 'space' does not model SearchSpace: it has no std::uint64_t key(const config_type&) const
// error 5: recipe: slot 'space' does not model SearchSpace: its config_type cannot be copied
// error 6: recipe: slot 'space' does not model SearchSpace: it has no sample(const Task&, Rng&) const
// error 7: recipe: slot 'space' does not model SearchSpace: mutate is not const
// error 8: recipe: slot 'space' does not model SearchSpace: mutate must return std::optional<config_type>
// error 9: recipe: slot 'space' does not model SearchSpace: it has no bool feasible(const Task&, const config_type&) const
// error 10: recipe: slot 'space' does not model SearchSpace: it has no std::string encode(const config_type&) const
// error 11: recipe: slot 'space' does not model SearchSpace: it has no std::optional<config_type> decode(const Task&
// error 12: recipe: slot 'space' does not model SearchSpace: it has no program_type lower(const Task&
#include <memory>

#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using tunewright::Rng;
using tunewright::Task;

struct Faulty : toy::Space {
#if TUNEWRIGHT_SHOULD_FAIL == 2
  std::optional<toy::Tiles> sample(const Task&, Rng&) { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 3
  std::optional<toy::Tiles> mutate(const Task&, Rng&) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 4
  unsigned key(const toy::Tiles&) const { return 0; }
#elif TUNEWRIGHT_SHOULD_FAIL == 5
  using config_type = std::unique_ptr<toy::Tiles>;
#elif TUNEWRIGHT_SHOULD_FAIL == 6
  std::optional<toy::Tiles> sample(Rng&) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 7
  std::optional<toy::Tiles> mutate(const Task&, const toy::Tiles&, Rng&) { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 8
  toy::Tiles mutate(const Task&, const toy::Tiles&, Rng&) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 9
  bool feasible(const toy::Tiles&) const { return true; }
#elif TUNEWRIGHT_SHOULD_FAIL == 10
  const char* encode(const toy::Tiles&) const { return ""; }
#elif TUNEWRIGHT_SHOULD_FAIL == 11
  toy::Tiles decode(const Task&, std::string_view) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 12
  int lower(const Task&, const toy::Tiles&) const { return 0; }
#endif
};
struct Nameless {};

struct Recipe : toy::Evolution {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  using space = Nameless;
#else
  using space = Faulty;
#endif
};

tunewright::Tuner<Recipe> tuner;
