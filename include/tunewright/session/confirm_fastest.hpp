// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/measurers/measure_batch.hpp"
#include "tunewright/recipe.hpp"

namespace tunewright {

/// How many trials are measured again by default. Latencies that a shared machine disturbs differ by more than the
/// programs do, so the fastest one is often not among the first few.
inline constexpr std::size_t default_finalists = 16;

/// Measures the `count` fastest trials of `history` again, alternately; returns them with the new outcomes, fastest
/// first. Checks outcomes as `measurers::confirm_batch` does.
template <class Recipe>
[[nodiscard]] auto confirm_fastest(Parts<Recipe>& parts, const Task& task,
                                   const History<config_t<typename Recipe::space>>& history, std::size_t count) {
  using Config = config_t<typename Recipe::space>;
  std::vector<Trial<Config>> finalists = history.fastest_trials(count);
  std::vector<program_t<typename Recipe::space>> programs;
  for (const Trial<Config>& trial : finalists) programs.push_back(parts.space.lower(task, trial.candidate.config));
  std::vector<Outcome> outcomes =
      measurers::confirm_batch(task, parts.measurer, std::span<const program_t<typename Recipe::space>>(programs));
  for (std::size_t i = 0; i < finalists.size(); ++i) finalists[i].outcome = std::move(outcomes[i]);
  std::sort(finalists.begin(), finalists.end(), [](const Trial<Config>& a, const Trial<Config>& b) {
    return a.cost_s() != b.cost_s() ? a.cost_s() < b.cost_s() : a.candidate.key < b.candidate.key;
  });
  return finalists;
}

}  // namespace tunewright
