// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "tunewright/core/outcome.hpp"
#include "tunewright/measurers/cpu_compilers.hpp"
#include "tunewright/measurers/sandbox/shared_task.hpp"
#include "tunewright/measurers/steady_measuring.hpp"
#include "tunewright/measurers/task_cache.hpp"

namespace tunewright::measurers::orc {

/// What an `OrcJit` keeps between batches.
struct State {
  TaskCache<SharedTask> tasks;
  std::map<std::uint64_t, Seconds> best;  ///< by task
  CpuCompilers compilers;

  /// That of `task`; only the last task's is kept.
  [[nodiscard]] SpeedWatch& watch_of(const Task& task) {
    if (const std::uint64_t hash = stable_hash(task); hash != watched_) {
      watched_ = hash;
      watch_ = SpeedWatch();
    }
    return watch_;
  }

 private:
  std::uint64_t watched_ = 0;
  SpeedWatch watch_;
};

}  // namespace tunewright::measurers::orc
