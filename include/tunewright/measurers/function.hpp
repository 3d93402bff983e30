// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/measurers/concept.hpp"

namespace tunewright::measurers {

/// Measures by calling a function: for tests with known costs, and for programs that the library cannot run itself.
///
///   Function<MyProgram> measurer{[](const Task&, const MyProgram& program) { return Outcome{...}; }};
///
/// A journal is reused where workload, target and `name` are those of the search: change one of them with everything
/// that latencies depend on, or results of an edited kernel or of another device are taken for those of this one.
///
/// Models:      StreamingMeasurerFor<P>: each outcome is reported before the next program is started;
///              IdentifiedMeasurer.
/// Cost, determinism: those of the function.
template <class P>
struct Function {
  std::function<Outcome(const Task&, const P&)> run;
  std::string name{};  ///< of what `run` measures and with what, in journals: "my kernel 3, nvcc 12.4, H100"

  /// The name; functions without one are not told apart.
  [[nodiscard]] std::string identity() const { return name; }

  [[nodiscard]] std::vector<Outcome> measure(const Task& task, std::span<const P> programs,
                                             const OutcomeSink& sink = {}) const {
    if (!run) throw std::invalid_argument("measurers::Function has no function; set its member `run`");
    std::vector<Outcome> outcomes;
    for (const P& program : programs) {
      outcomes.push_back(run(task, program));
      if (sink) sink(outcomes.size() - 1, outcomes.back());
    }
    return outcomes;
  }
};

}  // namespace tunewright::measurers
