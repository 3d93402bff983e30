// SPDX-License-Identifier: Apache-2.0
// What a filter or a draft lacks is named.
// error 1: recipe: slot 'filter' does not model FilterFor<space>: keep must return Kept
// error 2: recipe: slot 'draft' does not model DraftModelFor<space>: it has no score(const Space&
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using Pool = std::span<const toy::Tiles>;

struct Filter {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  std::vector<std::size_t> keep(const toy::Space&, const tunewright::Task&, Pool) const { return {}; }
#else
  tunewright::Kept keep(const toy::Space&, const tunewright::Task&, Pool) const { return {}; }
#endif
};
struct Draft {
#if TUNEWRIGHT_SHOULD_FAIL == 2
  void score(const tunewright::Task&, Pool, std::span<float>) const {}
#else
  void score(const toy::Space&, const tunewright::Task&, Pool, std::span<float>) const {}
#endif
};

struct Recipe : toy::Evolution {
  using filter = Filter;
  using draft = Draft;
};

tunewright::Tuner<Recipe> tuner;
