// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tunewright/measurers/concept.hpp"

namespace tunewright::test {

/// Programs of a task, and which of them can be measured; some of either kind.
template <class P>
struct KnownPrograms {
  Task task;
  std::vector<P> programs;
  std::vector<bool> works;
};

/// Whether measuring gives what is known of the programs, one outcome each.
template <class P>
bool as_known(const std::vector<Outcome>& outcomes, const KnownPrograms<P>& known) {
  if (outcomes.size() != known.works.size()) return false;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (outcome.valid() != known.works[i] || !(outcome.run_time.count() >= 0 && outcome.compile_time.count() >= 0))
      return false;
    const Timing* timing = outcome.timing();
    if (timing == nullptr) {
      if (outcome.failure()->detail.find('\n') != std::string::npos) return false;
    } else if (!(timing->median.count() > 0) || !std::isfinite(timing->median.count()) || timing->repeats.empty()) {
      return false;
    }
  }
  return true;
}

/// What every measurer owes, whatever it is: see measurers/concept.hpp. `exact`: it gives the same outcome again.
template <class M, class P>
void check_measurer(M measurer, const KnownPrograms<P>& known, bool exact) {
  static_assert(MeasurerFor<M, P>);
  REQUIRE(std::count(known.works.begin(), known.works.end(), true) > 0);
  REQUIRE(std::count(known.works.begin(), known.works.end(), false) > 0);
  const std::span<const P> programs(known.programs);

  const std::vector<Outcome> outcomes = measurer.measure(known.task, programs);
  CHECK(as_known(outcomes, known));
  CHECK(measurer.measure(known.task, programs.first(0)).empty());
  if (exact) CHECK(measurer.measure(known.task, programs) == outcomes);
  if (exact) CHECK(M(measurer).measure(known.task, programs) == outcomes);

  // In another order each keeps its own, and a program that fails takes no other with it.
  KnownPrograms<P> reversed = known;
  std::ranges::reverse(reversed.programs);
  std::reverse(reversed.works.begin(), reversed.works.end());
  std::vector<Outcome> backwards = measurer.measure(known.task, std::span<const P>(reversed.programs));
  CHECK(as_known(backwards, reversed));
  std::ranges::reverse(backwards);
  if (exact) CHECK(backwards == outcomes);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::vector<Outcome> alone = measurer.measure(known.task, programs.subspan(i, 1));
    REQUIRE(alone.size() == 1);
    CHECK(alone[0].valid() == known.works[i]);
    if (exact) CHECK(alone[0] == outcomes[i]);
    if (!alone[0].valid() && !outcomes[i].valid()) CHECK(alone[0].failure()->fault == outcomes[i].failure()->fault);
  }

  if constexpr (StreamingMeasurerFor<M, P>) {
    std::vector<std::vector<Outcome>> reported(programs.size());
    const auto returned = measurer.measure(known.task, programs, [&](std::size_t i, const Outcome& outcome) {
      REQUIRE(i < reported.size());
      reported[i].push_back(outcome);
    });
    REQUIRE(returned.size() == programs.size());
    for (std::size_t i = 0; i < programs.size(); ++i) CHECK(reported[i] == std::vector<Outcome>{returned[i]});
  }
  if constexpr (IdentifiedMeasurer<M>) {
    const std::string identity = measurer.identity();
    CHECK_FALSE(identity.empty());
    CHECK(identity.find('\n') == std::string::npos);
    CHECK(measurer.identity() == identity);
    CHECK(M(measurer).identity() == identity);
  }
  if constexpr (BestAwareMeasurer<M>) {
    measurer.note_best(known.task, Seconds(1e-12));  // all are far slower
    const std::vector<Outcome> slower = measurer.measure(known.task, programs);
    CHECK(as_known(slower, known));
    for (const Outcome& outcome : slower)
      if (outcome.valid()) CHECK(outcome.timing()->stopped == StopReason::FarSlower);
  }
  if constexpr (ConfirmingMeasurerFor<M, P>) {
    CHECK(as_known(std::vector<Outcome>(measurer.confirm(known.task, programs)), known));
    CHECK(measurer.confirm(known.task, programs.first(0)).empty());
  }
}

}  // namespace tunewright::test
