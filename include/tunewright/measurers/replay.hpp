// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/measurers/concept.hpp"

namespace tunewright::measurers {

/// Returns recorded measurements instead of running programs, and advances a virtual clock by the time they took:
/// studies of search policies are then exact, repeatable, and need no hardware.
///
///   Replay<Program> replay{.key = [](const Program& p) { return p.key; }};
///   replay.load(data::read_journal("table.jsonl").records);
///   Tuner<...> tuner{{.measurer = replay, .clock = replay.clock}};      // one clock for both
///
/// Programs with a member `key`, such as `spaces::TableRow`, need no function. A program without a record gives a
/// `Fault::Unknown`: the table does not cover the space, or belongs to another task or device.
///
/// Models:      StreamingMeasurerFor<P>.
/// Cost:        one look-up per program. Determinism: bit-identical.
/// Errors:      `std::invalid_argument` without `key`, unless programs have a member of that name.
template <class P>
struct Replay {
  /// Canonical key of a program, as `space.key` returned it for the recorded run.
  std::function<std::uint64_t(const P&)> key = own_key();
  VirtualClock clock{};  ///< advanced by compile and run time of every outcome

  /// Adds records of any tasks; of several records of a candidate the one that says most counts (`says_more`), of
  /// equals the first.
  void load(std::span<const Record> records) {
    for (const Record& record : records) {
      const auto [at, is_new] = answers.try_emplace(place(record.task, record.key), record.outcome);
      if (!is_new && says_more(record.outcome, at->second)) at->second = record.outcome;
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return answers.size(); }

  [[nodiscard]] std::vector<Outcome> measure(const Task& task, std::span<const P> programs,
                                             const OutcomeSink& sink = {}) const {
    if (!key) throw std::invalid_argument("measurers::Replay cannot tell programs apart; set its member `key`");
    std::vector<Outcome> outcomes;
    for (const P& program : programs) {
      const std::uint64_t program_key = key(program);
      const auto answer = answers.find(place(stable_hash(task), program_key));
      outcomes.push_back(answer != answers.end() ? answer->second
                                                 : Outcome{.result = Failure{Fault::Unknown, "no record of candidate " +
                                                                                                 to_hex(program_key)}});
      clock.advance(outcomes.back().compile_time + outcomes.back().run_time);
      if (sink) sink(outcomes.size() - 1, outcomes.back());
    }
    return outcomes;
  }

  std::unordered_map<std::uint64_t, Outcome> answers{};  ///< run-time state

 private:
  static std::function<std::uint64_t(const P&)> own_key() {
    if constexpr (requires(const P& program) { std::uint64_t{program.key}; }) {
      return [](const P& program) { return program.key; };
    } else {
      return {};
    }
  }
  static std::uint64_t place(std::uint64_t task, std::uint64_t candidate) {
    return StableHash{}.add(task).add(candidate).value();
  }
};

}  // namespace tunewright::measurers
