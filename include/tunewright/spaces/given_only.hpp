// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tunewright/spaces/concept.hpp"

namespace tunewright::spaces {

/// A space from which nothing is drawn: a search measures the configurations that it is given to start with
/// (`Parts::starts`) and ends, with `Stop::Exhausted`.
///
/// Everything else, such as keys, limits and lowering, is that of `Space`.
///
/// Models:      SearchSpace, and what `Space` models besides.
/// Errors:      a search that is given nothing for a task ends with the error of a space without configurations.
/// Determinism: a function of what is given.
template <SearchSpace Space>
struct GivenOnly : Space {
  [[nodiscard]] std::optional<config_t<Space>> sample(const Task&, Rng&) const { return std::nullopt; }
  [[nodiscard]] std::optional<config_t<Space>> mutate(const Task&, const config_t<Space>&, Rng&) const {
    return std::nullopt;
  }
};

}  // namespace tunewright::spaces
