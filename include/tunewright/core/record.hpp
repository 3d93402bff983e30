// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tunewright/core/outcome.hpp"

namespace tunewright {

/// One measurement as text and numbers, independent of any search space: the unit of journals and observers.
struct Record {
  std::uint64_t task = 0;    ///< `stable_hash(Task)`
  std::uint64_t target = 0;  ///< `stable_hash(Target)`
  std::string task_name;     ///< for people
  std::string target_name;   ///< for people
  std::uint64_t key = 0;     ///< canonical key of the candidate in its space
  std::string config;        ///< `space.encode(config)`
  std::string compiler;      ///< identity of the compiler and machine; empty if the measurer has none
  Outcome outcome;
  std::uint64_t seed = 0;  ///< of the run
  unsigned round = 0;
  unsigned slot = 0;                 ///< position in the batch of the round
  Seconds timestamp{0};              ///< since 1970; zero until a journal stamps it
  std::optional<float> predicted{};  ///< prediction of the model before the measurement; larger is better
  /// Time that the run spent besides measuring since its previous record: choosing this batch, and learning from the
  /// previous one. Zero except for the first record of a round.
  Seconds search_time{0};
  Seconds learn_time{0};
  bool operator==(const Record&) const = default;
};

}  // namespace tunewright
