// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernel_cases.hpp"
#include "measured_bandwidth.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/peak.hpp"
#include "tunewright/measurers/stream_bandwidth.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/draft_and_trees.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/tuner.hpp"
#include "tuning_options.hpp"

/// Tuning one kernel and comparing it with the libraries: what the quick start and the kernel benchmark share.
namespace tunewright::bench {

/// The recipe to start from; what it gains over Ansor's search on these kernels: docs/studies/schedules.md.
using KernelTuner = Tuner<recipes::DraftAndTrees<spaces::MultiLevelTiling, measurers::OrcJit>>;
using KernelRun = Run<schedule::Schedule>;

/// One that may search with `threads` threads, whatever the kernels use.
inline KernelTuner kernel_tuner(std::uint64_t seed, unsigned threads) {
  return KernelTuner{{.seed = seed, .threads = threads}};
}

/// Tunes a kernel on its own, whatever the tuner learned before; it goes on from the journal if there is one.
inline KernelRun tune_alone(KernelTuner& tuner, const Task& task, const TuningOptions& settings) {
  tuner.parts().training = {};
  tuner.parts().model.trees.ensemble = {};
  Budget budget{.trials = settings.trials};
  if (settings.seconds_per_kernel) budget.time = *settings.seconds_per_kernel;
  if (!settings.journal) return tuner.run(task, budget, Progress{});
  data::Journal journal{{.path = *settings.journal, .many_tasks = true}};
  return tuner.run(task, budget, journal, Progress{});
}

/// The fastest schedules of a run after measuring more of them again in turns, up to four that ran.
inline std::vector<schedule::Schedule> finalists(KernelTuner& tuner, const Task& task, const KernelRun& run) {
  std::vector<schedule::Schedule> best;
  for (Trial<schedule::Schedule>& trial : tuner.confirm(task, run))
    if (trial.outcome.valid() && best.size() < 4) best.push_back(std::move(trial.candidate.config));
  return best;
}

/// The tuned kernel beside the fastest library that ran. The speed of a shared machine changes within seconds and
/// differs between kinds of work, so ratios are medians over pairs that ran right after each other.
struct Comparison {
  double tuned_s = 0;
  std::size_t tuned = 0;  ///< which of the schedules
  std::optional<double> library_s;
  std::string library = "none";
  std::optional<double> ratio;      ///< library time / tuned time, median over the rounds
  double peak = 0;                  ///< FMA operations a second of the target, the highest measured between the rounds
  double bytes = 0;                 ///< read and written at least, each element once
  std::optional<double> bandwidth;  ///< bytes a second over as many bytes, where memory bounds, as `bandwidth_of`
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

/// A graph whose outputs are less than a tenth of its bytes is compared with reading: no copy has so few writes.
inline measurers::Traffic traffic_of(const program::ComputeGraph& graph) {
  double written = 0;
  for (program::TensorId id = 0; id < graph.size(); ++id) {
    if (program::is_output(graph, id)) written += program::bytes(graph.op(id));
  }
  return written < 0.1 * program::bytes(graph) ? measurers::Traffic::Reads : measurers::Traffic::ReadsAndWrites;
}

}  // namespace detail

/// Appends the repeats of an outcome. Throws `std::runtime_error` if it failed.
inline void append(std::vector<double>& seconds, const Outcome& outcome) {
  for (const Seconds repeat : timing_of(outcome).repeats) seconds.push_back(repeat.count());
}

/// The median of the ratios of as many times, each measured right after the one that it is divided by or before it.
inline double median_ratio(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < over.size(); ++i) ratios.push_back(over[i] / under[i]);
  return stats::median(std::move(ratios));
}

/// Heats: the best schedules of a run and the libraries in turns; the winners of both sides then meet in `blocks`
/// blocks of `rounds`, which alone count, so that being chosen as the fastest by luck helps nobody. A library whose
/// speed the target's instructions do not allow has failed.
/// Throws `std::runtime_error` when none of the schedules runs.
inline Comparison compare(measurers::OrcJit& measurer, const Task& task, const KernelCase& kernel_case,
                          const std::vector<schedule::Schedule>& best, unsigned rounds = 11, unsigned blocks = 3) {
  std::vector<codegen::Kernel> kernels;
  for (const schedule::Schedule& schedule : best)
    kernels.push_back(measurer.compile_kernel(task, loops::lower(schedule)));
  for (const LibraryKernel& library : kernel_case.libraries) kernels.push_back(library.kernel);
  double peak = highest_peak(task.target);
  std::vector<Outcome> heats = measurer.measure_interleaved(task, kernels, rounds);
  peak = std::max(peak, highest_peak(task.target));
  for (std::size_t i = best.size(); i < heats.size() && kernel_case.all_operations; ++i) {
    if (!heats[i].valid()) continue;
    const auto objection_now = [&] { return objection_to_speed(task.flops / cost_s(heats[i]) / peak, task.target); };
    // A busy machine may have shown less of its peak than of the library.
    for (int again = 0; again < 10 && !objection_now().empty(); ++again)
      peak = std::max(peak, highest_peak(task.target));
    const std::string objection = objection_now();
    if (!objection.empty()) heats[i].result = Failure{Fault::RunError, objection};
  }
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
  std::vector<double> tuned_s, library_s;
  std::optional<double> bandwidth;
  const auto bytes = static_cast<std::uint64_t>(program::bytes(*kernel_case.graph));
  const measurers::Traffic traffic = detail::traffic_of(*kernel_case.graph);
  for (unsigned block = 0; block < blocks; ++block) {
    peak = std::max(peak, highest_peak(task.target));
    if (kernel_case.memory_bound) bandwidth = std::max(bandwidth, bandwidth_of(task.target, bytes, traffic));
    const std::vector<Outcome> outcomes = measurer.measure_interleaved(task, finalists, rounds);
    append(tuned_s, outcomes[0]);
    if (library) append(library_s, outcomes[1]);
  }
  if (library) result.ratio = median_ratio(library_s, tuned_s);
  result.tuned_s = stats::median(std::move(tuned_s));
  result.peak = peak;
  result.bandwidth = bandwidth;
  result.bytes = static_cast<double>(bytes);
  if (library) {
    result.library = kernel_case.libraries[*library].library;
    result.library_s = stats::median(std::move(library_s));
  }
  return result;
}

}  // namespace tunewright::bench
