// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/schedule/step.hpp"

/// How far the copies of a tile are prefetched.
namespace tunewright::spaces::decisions {

/// The choices of a target: no prefetching; the next tile, through registers; and, if the device copies asynchronously,
/// one to three tiles.
[[nodiscard]] inline std::vector<schedule::Pipelining> pipelinings(const Target& target) {
  std::vector<schedule::Pipelining> choices{{1, false}, {2, false}};
  if (target.copies_asynchronously()) {
    for (const std::uint32_t depth : {2U, 3U, 4U}) choices.push_back({depth, true});
  }
  return choices;
}

inline void draw_pipelining(std::vector<schedule::Step>& steps, Rng& rng) {
  for (schedule::Step& step : steps) {
    auto* pipeline = std::get_if<schedule::Pipeline>(&step);
    if (pipeline != nullptr && !pipeline->choices.empty())
      pipeline->selected = static_cast<std::uint32_t>(rng.below(pipeline->choices.size()));
  }
}

/// Number of tiles of an operand of `stage` that are in shared memory at a time.
[[nodiscard]] inline std::int64_t tiles_kept(const std::vector<schedule::Step>& steps, program::TensorId stage) {
  std::int64_t most = 1;
  for (const schedule::Step& step : steps) {
    const auto* pipeline = std::get_if<schedule::Pipeline>(&step);
    if (pipeline == nullptr || pipeline->stage != stage || pipeline->selected >= pipeline->choices.size()) continue;
    most = std::max<std::int64_t>(most, pipeline->choices[pipeline->selected].depth);
  }
  return most;
}

}  // namespace tunewright::spaces::decisions
