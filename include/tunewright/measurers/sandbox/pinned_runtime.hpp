// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "tunewright/codegen/pinned_team.hpp"
#include "tunewright/measurers/sandbox/worker_parts.hpp"

namespace tunewright::measurers {

/// The `RuntimeFactory` of workers whose kernels have parallel loops: a `codegen::PinnedTeam`.
[[nodiscard]] inline HostRuntime pinned_runtime(unsigned threads, std::span<const int> processors) {
  const auto team = std::make_shared<codegen::PinnedTeam>(threads, processors);
  return {team->runtime(), team->dividing_runtime(), team};
}

}  // namespace tunewright::measurers
