// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "tunewright/data/dataset.hpp"

/// Every task on every target, `records` of each with costs of 1, 2, ... s; the feature is the record's number.
inline tunewright::data::Dataset small_dataset(std::size_t tasks, std::size_t targets, std::size_t records) {
  tunewright::data::Dataset data;
  data.x = tunewright::FeatureBatch(1);
  for (std::size_t task = 0; task < tasks; ++task) {
    for (std::size_t target = 0; target < targets; ++target) {
      for (std::size_t record = 0; record < records; ++record) {
        data.x.append_program(std::array{static_cast<float>(data.size())});
        const double cost_s = static_cast<double>(record + 1);
        data.add(data.task_number({.name = "task " + std::to_string(task)}),
                 data.target_number("target " + std::to_string(target)),
                 {.result = tunewright::Timing{.repeats = {}, .median = tunewright::Seconds(cost_s)}});
      }
    }
  }
  return data;
}
