// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/core/clock.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/data/table.hpp"
#include "tunewright/measurers/replay.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/study/problem.hpp"
#include "tunewright/study/random_search.hpp"

namespace tunewright::study {

using RecordedProblem = Problem<spaces::RecordedTable, measurers::Replay<spaces::TableRow>>;

namespace recorded_problem_detail {

/// The problem of a table with measurements.
[[nodiscard]] inline RecordedProblem problem_of(std::string name, const std::shared_ptr<const data::Table>& table) {
  RecordedProblem problem{
      .name = std::move(name), .task = data::task_of(*table), .space = spaces::RecordedTable(table)};
  measurers::Replay<spaces::TableRow> replay;
  replay.load(data::records_of(*table, problem.task));
  problem.measurer = [replay] {
    measurers::Replay<spaces::TableRow> fresh = replay;
    fresh.clock = VirtualClock();
    return fresh;
  };
  for (std::size_t row = 0; row < table->size(); ++row) {
    problem.latencies_s.push_back(table->cost_s(row));
    problem.costs_s.push_back((table->outcomes[row].compile_time + table->outcomes[row].run_time).count());
  }
  // Some files do not tell what a measurement took; their searches have no score over seconds.
  if (std::all_of(problem.costs_s.begin(), problem.costs_s.end(), [](double cost_s) { return cost_s == 0; }))
    problem.costs_s.clear();
  problem.trials = RandomSearch(problem.latencies_s).range().last;
  return problem;
}

}  // namespace recorded_problem_detail

/// A published space from a file for `data::read_table`, searched by replaying its measurements on recorded time. Every
/// search has its own clock, and as many trials as its score needs (`RandomSearch::range`).
///
/// `source.latency` selects the latency of a configuration: programs that write such files use the mean of the repeats,
/// `data::Latency::Mean`; the default of this library is the median. Throws as `data::read_table` does, and
/// `std::invalid_argument` with the file for a space that cannot be searched or scored.
[[nodiscard]] inline RecordedProblem recorded_problem(std::string name, const std::string& path,
                                                      data::TableSource source = {}) {
  const auto table = std::make_shared<const data::Table>(data::read_table(path, std::move(source)).table);
  try {
    return recorded_problem_detail::problem_of(std::move(name), table);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("'" + path + "': " + error.what());
  }
}

}  // namespace tunewright::study
