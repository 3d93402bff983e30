// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"

namespace tunewright::measurers {

/// A kernel that is measured at the start of a run and again at the end, or more often. The kernel does not change, so
/// a changed latency means that the machine changed; it bounds how far latencies taken at different times can be
/// compared.
///
///   measurers::Baseline baseline{.kernel = library};
///   baseline.measure(measurer, task);
///   ... tune ...
///   baseline.measure(measurer, task);
///   if (std::abs(baseline.drift().value_or(0)) > 0.05) ... confirm candidates in turns ...
struct Baseline {
  codegen::Kernel kernel;
  std::vector<Outcome> outcomes = {};  ///< in the order of the measurements

  /// `measurer` has `measure_kernel(task, kernel)`, as `OrcJit` does.
  template <class M>
    requires requires(M& measurer, const Task& task, const codegen::Kernel& k) {
      { measurer.measure_kernel(task, k) } -> std::same_as<Outcome>;
    }
  const Outcome& measure(M& measurer, const Task& task) {
    return outcomes.emplace_back(measurer.measure_kernel(task, kernel));
  }

  /// Last latency over the first, minus 1: 0.1 means that the machine became 10 % slower. Empty before two valid
  /// measurements.
  [[nodiscard]] std::optional<double> drift() const {
    if (outcomes.size() < 2) return std::nullopt;
    const Timing* first = outcomes.front().timing();
    const Timing* last = outcomes.back().timing();
    if (first == nullptr || last == nullptr || !(first->median.count() > 0)) return std::nullopt;
    return last->median / first->median - 1;
  }
};

}  // namespace tunewright::measurers
