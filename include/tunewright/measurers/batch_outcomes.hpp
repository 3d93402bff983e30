// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/concept.hpp"

namespace tunewright::measurers {

/// Collects the outcomes of a batch as they arrive, independently of the type of its programs. B = size of the batch, L
/// = number of its candidates that were lowered.
class BatchOutcomes {
 public:
  /// `sink` may be empty and must outlive this.
  BatchOutcomes(std::size_t batch, const OutcomeSink& sink) : outcomes_(batch), sink_(sink) {}

  /// Records the failure of a candidate that is not measured.
  void fail(std::size_t slot, Failure failure);
  /// Says that the next program belongs to the candidate at `slot`.
  void add_program(std::size_t slot);

  /// Records the measurer's outcome of program `i`, with numbers that journals take. A latency that is not positive and
  /// finite, or is beside another time that is negative or not finite, becomes `Unknown`; such a cost becomes 0. Throws
  /// `std::logic_error` for a program that does not exist and for one that was reported before.
  void take(std::size_t i, Outcome run);

  /// Throws `std::logic_error` unless the measurer returned, or reported, one outcome for each program.
  void require_all(std::size_t given, const char* verb) const;
  [[nodiscard]] std::size_t known() const noexcept { return known_; }

  [[nodiscard]] std::vector<Outcome> release() && { return std::move(outcomes_); }

 private:
  void report(std::size_t slot) const {
    if (sink_) sink_(slot, outcomes_[slot]);
  }

  std::vector<Outcome> outcomes_;  // [B]
  const OutcomeSink& sink_;
  std::vector<std::size_t> origin_;  // [L], positions in the batch
  std::vector<char> is_known_;       // [L]
  std::size_t known_ = 0;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/latency.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE void BatchOutcomes::fail(std::size_t slot, Failure failure) {
  outcomes_[slot].result = std::move(failure);
  report(slot);
}

TUNEWRIGHT_INLINE void BatchOutcomes::add_program(std::size_t slot) {
  origin_.push_back(slot);
  is_known_.push_back(false);
}

TUNEWRIGHT_INLINE void BatchOutcomes::take(std::size_t i, Outcome run) {
  if (i >= origin_.size() || is_known_[i] != 0) {
    throw std::logic_error("the measurer reported outcome " + std::to_string(i) + (i < origin_.size() ? " twice" : "") +
                           " for " + std::to_string(origin_.size()) + " programs; it owes one each, counted from 0");
  }
  is_known_[i] = true;
  ++known_;
  if (std::string number = impossible_number(run); run.valid() && !number.empty())
    run.result = Failure{Fault::Unknown, std::move(number)};
  for (Seconds* cost : {&run.compile_time, &run.run_time})
    if (!is_duration(*cost)) *cost = Seconds(0);
  outcomes_[origin_[i]] = std::move(run);
  report(origin_[i]);
}

TUNEWRIGHT_INLINE void BatchOutcomes::require_all(std::size_t given, const char* verb) const {
  if (given == origin_.size()) return;
  throw std::logic_error("the measurer " + std::string(verb) + " " + std::to_string(given) + " outcomes for " +
                         std::to_string(origin_.size()) + " programs; it owes one each, in order");
}

}  // namespace tunewright::measurers

#endif
