// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "tunewright/core/outcome.hpp"
#include "tunewright/measurers/cpu_compilers.hpp"
#include "tunewright/measurers/sandbox/shared_task.hpp"
#include "tunewright/measurers/task_cache.hpp"

namespace tunewright::measurers::orc {

/// What an `OrcJit` keeps between batches.
struct State {
  TaskCache<SharedTask> tasks;
  std::map<std::uint64_t, Seconds> best;  ///< by task
  CpuCompilers compilers;
};

}  // namespace tunewright::measurers::orc
