// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/data_file.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/measurers/replay.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/tuner.hpp"

namespace tunewright::test {

using RecordedReplay = measurers::Replay<spaces::TableRow>;

/// A convolution kernel measured on one GPU.
struct RecordedTask {
  spaces::RecordedTable space;
  Task task;
  RecordedReplay replay;
};

/// On an A100, or one of the other GPUs of test/data.
inline RecordedTask recorded_convolution(const std::string& gpu = "A100") {
  RecordedTask result;
  auto imported = data::read_table(support::data_file("kernel_tuner_convolution_" + gpu + ".json.gz"));
  result.space = spaces::RecordedTable(std::make_shared<const data::Table>(std::move(imported.table)));
  result.task = data::task_of(result.space.table());
  result.replay.load(data::records_of(result.space.table(), result.task));
  return result;
}

template <class Recipe>
Parts<Recipe> recorded_parts(const RecordedTask& source, std::uint64_t seed, unsigned threads = 1) {
  Parts<Recipe> parts{
      .space = source.space, .measurer = source.replay, .seed = seed, .threads = threads, .clock = source.replay.clock};
  if constexpr (requires { parts.explorer.chains; }) {
    parts.explorer.chains = 16;
    parts.explorer.steps = 20;
  }
  return parts;
}

/// Key and latency of every trial, in order, in batches of 16.
template <class Recipe>
std::vector<std::pair<std::uint64_t, double>> recorded_trace(Parts<Recipe> parts, const Task& task,
                                                             std::size_t trials) {
  std::vector<std::pair<std::uint64_t, double>> all;
  const auto run = Tuner<Recipe>(std::move(parts)).run(task, {.trials = trials, .batch = 16});
  for (const auto& trial : run.history.trials()) all.emplace_back(trial.candidate.key, trial.cost_s());
  return all;
}

}  // namespace tunewright::test
