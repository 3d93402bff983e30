// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/measurers/compile_team.hpp"
#include "tunewright/measurers/sandbox/shared_task.hpp"
#include "tunewright/measurers/task_cache.hpp"

namespace tunewright::measurers::orc {

using CompileTeam = measurers::CompileTeam<codegen::LlvmCompiler>;

/// What an `OrcJit` keeps between batches.
struct State {
  TaskCache<SharedTask> tasks;
  std::map<std::uint64_t, Seconds> best;                      ///< by task
  std::map<std::uint64_t, CompileTeam::Compilers> compilers;  ///< by target
};

}  // namespace tunewright::measurers::orc
