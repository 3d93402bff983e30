// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/concept.hpp"

#include "support/toy_space.hpp"
#include "tunewright/spaces/given_only.hpp"

using namespace tunewright;

namespace {

static_assert(SearchSpace<toy::Space>);
static_assert(SearchSpace<spaces::GivenOnly<toy::Space>>);

struct SampleOwesAnOptional : toy::Space {
  toy::Tiles sample(const Task&, Rng&) const;
};
static_assert(!SearchSpace<SampleOwesAnOptional>);

struct MutateIsNotConst : toy::Space {
  std::optional<toy::Tiles> mutate(const Task&, const toy::Tiles&, Rng&);
};
static_assert(!SearchSpace<MutateIsNotConst>);

struct KeyIsNarrow : toy::Space {
  std::uint32_t key(const toy::Tiles&) const;
};
static_assert(!SearchSpace<KeyIsNarrow>);

struct NoJournalText : toy::Space {
  void encode(const toy::Tiles&) const;
};
static_assert(!SearchSpace<NoJournalText>);

struct DecodeThrowsInstead : toy::Space {
  toy::Tiles decode(const Task&, std::string_view) const;
};
static_assert(!SearchSpace<DecodeThrowsInstead>);

struct LowersToSomethingElse : toy::Space {
  int lower(const Task&, const toy::Tiles&) const;
};
static_assert(!SearchSpace<LowersToSomethingElse>);

struct ConfigCannotBeCopied : toy::Space {
  struct config_type {
    config_type(const config_type&) = delete;
  };
};
static_assert(!SearchSpace<ConfigCannotBeCopied>);
static_assert(!SearchSpace<int>);

}  // namespace
