// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel_cases.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

/// Tuning one kernel and comparing it with the libraries: what the quick start and the kernel benchmark share.
namespace tunewright::bench {

using KernelTuner = Tuner<recipes::Ansor<spaces::MultiLevelTiling, measurers::OrcJit>>;
using KernelRun = Run<schedule::Schedule>;

/// Ansor with the pairwise ranking loss, which orders noisy latencies better than the squared one.
inline KernelTuner kernel_tuner(std::uint64_t seed) {
  return KernelTuner{{.model = {.objective = models::gbdt::Objective::RankPairwise}, .seed = seed, .threads = host_target().threads}};
}

/// Medians of kernels measured in turns. `library` is the fastest one that ran.
struct Comparison {
  double tuned_s = 0;
  std::optional<double> library_s;
  std::string library = "none";
  std::vector<std::pair<std::string, std::string>> library_faults;  ///< libraries that failed, and how
};

/// The best schedules of a run once more, in turns with the libraries. Throws `std::runtime_error` when none of them runs.
inline Comparison compare(measurers::OrcJit& measurer, const Task& task, const KernelCase& kernel_case,
                          const std::vector<schedule::Schedule>& best, unsigned rounds) {
  std::vector<codegen::Kernel> kernels;
  for (const schedule::Schedule& schedule : best) kernels.push_back(measurer.compile_kernel(task, loops::lower(schedule)));
  for (const LibraryKernel& library : kernel_case.libraries) kernels.push_back(library.kernel);
  const std::vector<Outcome> outcomes = measurer.measure_interleaved(task, kernels, rounds);
  Comparison result;
  std::optional<double> tuned;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const bool ours = i < best.size();
    const Timing* timing = outcomes[i].timing();
    if (timing == nullptr) {
      if (!ours) {
        const Failure& failure = *outcomes[i].failure();
        result.library_faults.emplace_back(kernel_case.libraries[i - best.size()].library, std::string(name(failure.fault)) + ": " + failure.detail);
      }
      continue;
    }
    const double seconds = timing->median.count();
    std::optional<double>& fastest = ours ? tuned : result.library_s;
    if (fastest && *fastest <= seconds) continue;
    fastest = seconds;
    if (!ours) result.library = kernel_case.libraries[i - best.size()].library;
  }
  if (!tuned) throw std::runtime_error("no tuned kernel of '" + task.name + "' runs");
  result.tuned_s = *tuned;
  return result;
}

}  // namespace tunewright::bench
