// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernel_cases.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/peak.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/tuner.hpp"

/// Tuning one kernel and comparing it with the libraries: what the quick start and the kernel benchmark share.
namespace tunewright::bench {

using KernelTuner = Tuner<recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::OrcJit>>;
using KernelRun = Run<schedule::Schedule>;

/// Ansor with the pairwise ranking loss, which orders noisy latencies better than the squared one.
inline KernelTuner kernel_tuner(std::uint64_t seed) {
  return KernelTuner{
      {.model = {.objective = models::gbdt::Objective::RankPairwise}, .seed = seed, .threads = host_target().threads}};
}

/// The tuned kernel beside the fastest library that ran. The speed of a shared machine changes within seconds and
/// differs between kinds of work, so ratios are medians over pairs that ran right after each other.
struct Comparison {
  double tuned_s = 0;
  std::size_t tuned = 0;  ///< which of the schedules
  std::optional<double> library_s;
  std::string library = "none";
  std::optional<double> ratio;  ///< library time / tuned time, median over the rounds
  double peak = 0;              ///< FMA operations a second, measured between the rounds
  std::vector<std::pair<std::string, std::string>> library_faults;  ///< libraries that failed, and how
};

namespace detail {

/// The fastest of `outcomes`, nothing if none ran.
inline std::optional<std::size_t> fastest(std::span<const Outcome> outcomes) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].valid() && (!best || cost_s(outcomes[i]) < cost_s(outcomes[*best]))) best = i;
  }
  return best;
}

inline void append(std::vector<double>& seconds, const Outcome& outcome) {
  if (!outcome.valid()) throw std::runtime_error("a kernel that ran before failed: " + outcome.failure()->detail);
  for (const Seconds repeat : outcome.timing()->repeats) seconds.push_back(repeat.count());
}

}  // namespace detail

/// Heats: the best schedules of a run and the libraries in turns; the winners of both sides then meet in `blocks`
/// blocks of `rounds`, which alone count, so that being chosen as the fastest by luck helps nobody.
/// Throws `std::runtime_error` when none of the schedules runs.
inline Comparison compare(measurers::OrcJit& measurer, const Task& task, const KernelCase& kernel_case,
                          const std::vector<schedule::Schedule>& best, unsigned rounds = 11, unsigned blocks = 3) {
  std::vector<codegen::Kernel> kernels;
  for (const schedule::Schedule& schedule : best)
    kernels.push_back(measurer.compile_kernel(task, loops::lower(schedule)));
  for (const LibraryKernel& library : kernel_case.libraries) kernels.push_back(library.kernel);
  const std::vector<Outcome> heats = measurer.measure_interleaved(task, kernels, rounds);
  const auto tuned = detail::fastest(std::span(heats).first(best.size()));
  const auto library = detail::fastest(std::span(heats).subspan(best.size()));
  if (!tuned) throw std::runtime_error("no tuned kernel of '" + task.name + "' runs");
  Comparison result;
  result.tuned = *tuned;
  for (std::size_t i = best.size(); i < heats.size(); ++i) {
    if (heats[i].valid()) continue;
    const Failure& failure = *heats[i].failure();
    result.library_faults.emplace_back(kernel_case.libraries[i - best.size()].library,
                                       std::string(name(failure.fault)) + ": " + failure.detail);
  }

  std::vector<codegen::Kernel> finalists{kernels[*tuned]};
  if (library) finalists.push_back(kernels[best.size() + *library]);
  std::vector<double> tuned_s, library_s, ratios, peaks;
  for (unsigned block = 0; block < blocks; ++block) {
    peaks.push_back(measurers::peak_flops_per_second(task.target, {.repeats = 3}));
    const std::vector<Outcome> outcomes = measurer.measure_interleaved(task, finalists, rounds);
    detail::append(tuned_s, outcomes[0]);
    if (library) detail::append(library_s, outcomes[1]);
  }
  for (std::size_t i = 0; i < library_s.size(); ++i) ratios.push_back(library_s[i] / tuned_s[i]);
  result.tuned_s = stats::median(std::move(tuned_s));
  result.peak = stats::median(std::move(peaks));
  if (library) {
    result.library = kernel_case.libraries[*library].library;
    result.library_s = stats::median(std::move(library_s));
    result.ratio = stats::median(std::move(ratios));
  }
  return result;
}

}  // namespace tunewright::bench
