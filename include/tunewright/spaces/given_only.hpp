// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tunewright/spaces/concept.hpp"

namespace tunewright::spaces {

/// A space that draws nothing: a search measures only the configurations that it gets at its start (`Parts::starts`),
/// and ends with `Stop::Exhausted`.
///
/// Keys, limits, lowering and everything else are those of `Space`.
///
/// Models:      SearchSpace, and every other concept that `Space` models.
/// Errors:      without start configurations for a task, a search ends with the error of a space without
///              configurations.
/// Determinism: a function of the start configurations.
template <SearchSpace Space>
struct GivenOnly : Space {
  [[nodiscard]] std::optional<config_t<Space>> sample(const Task&, Rng&) const { return std::nullopt; }
  [[nodiscard]] std::optional<config_t<Space>> mutate(const Task&, const config_t<Space>&, Rng&) const {
    return std::nullopt;
  }
};

}  // namespace tunewright::spaces
