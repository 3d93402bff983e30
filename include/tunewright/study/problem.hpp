// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::study {

/// A measurer with its own clock.
template <class M>
concept HasOwnClock = requires(const M& measurer) {
  { measurer.clock } -> std::convertible_to<Clock>;
};

/// A problem on which recipes are compared: a task, its space, and a measurer.
///
///   study::Problem<Space, measurers::Simulated> problem{.name = "matmul_512", .task = task};
///
/// `measurer` makes a new measurer for each search, so that searches do not share measurements or time. Searches with a
/// measurer that has a `clock` run on that clock plus the processor time of the search; others run on the wall clock,
/// with a journal.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Problem {
  std::string name;  ///< letters, digits and any of "_.+-@"
  Task task{};
  // Not {}: GCC 12 would warn that its members may be uninitialised.
  Space space = Space();
  std::function<Measurer()> measurer{};  ///< a new one; one by default where there is no function
  std::size_t trials = 0;                ///< of a search, where a problem has a budget of its own
  std::vector<double> latencies_s{};     ///< of all configurations, where all were measured; infinite for failed ones
  std::vector<double> costs_s{};         ///< what measuring each took, in the same order, where that is known

  /// The task alone, as a network of one.
  [[nodiscard]] std::vector<WeightedTask> weighted_tasks() const { return {{task, 1}}; }
};

/// The space and the measurer of a problem.
template <class P>
using space_of = decltype(P::space);
template <class P>
using measurer_of = typename decltype(P::measurer)::result_type;

}  // namespace tunewright::study
