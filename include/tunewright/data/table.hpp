// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/table.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

// Importers produce tables and spaces consume them, so tables are in core; their names are also available here.
using tunewright::knob_values;
using tunewright::knobs_of;
using tunewright::Parameter;
using tunewright::record_of;
using tunewright::records_of;
using tunewright::row_key;
using tunewright::Table;
using tunewright::task_of;

/// Appends the rows of a table to a dataset, as records of the task `task_of(table).name` on the target `table.device`.
/// The caller featurizes them, before or after. Throws `std::invalid_argument` for a table without a device, because
/// records of different devices must not mix.
void append(Dataset& dataset, const Table& table);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include <cstdint>
#include <stdexcept>

namespace tunewright::data {

TUNEWRIGHT_INLINE void append(Dataset& dataset, const Table& table) {
  if (table.device.empty()) {
    throw std::invalid_argument("table '" + table.kernel + "' names no device; set its member `device`");
  }
  const std::uint32_t task = dataset.task_number(
      {.name = task_of(table).name, .operator_class = table.kernel, .flops = table.flops, .weight = 1});
  const std::uint32_t target = dataset.target_number(table.device);
  for (const Outcome& outcome : table.outcomes) dataset.add(task, target, outcome);
}

}  // namespace tunewright::data

#endif
