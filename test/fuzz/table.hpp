// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <sstream>
#include <string>

#include "fuzz/fuzz.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/t4.hpp"
#include "tunewright/data/table_builder.hpp"

namespace tunewright::fuzz {

/// What holds of a table that an importer made of any text: its rows are whole, journals take its records, and T4 keeps
/// every configuration and latency.
inline void check_table(const data::ImportedTable& imported) {
  const Table& table = imported.table;
  require(imported.report.lines == imported.report.records + imported.report.blank + imported.report.bad,
          "records are counted once");
  require(table.size() == imported.report.records, "each record is a row");
  require(table.choices.size() == table.size() * table.parameters.size(), "rows are whole");
  for (const std::uint16_t* choice = table.choices.data(); const Parameter& parameter : table.parameters) {
    for (std::size_t i = 0; i < table.size(); ++i)
      require(choice[i * table.parameters.size()] < parameter.values.size(), "choices are of their parameter");
    ++choice;
  }
  require(table.flops >= 0 && std::isfinite(table.flops), "work is a number that tasks take");
  for (const Record& record : records_of(table, task_of(table)))
    require(data::record_json::refused_number(record).empty(), "a journal takes the record");
  (void)knobs_of(table);

  std::ostringstream out;
  data::write_t4(out, table);
  const data::ImportedTable again = data::parse_t4(out.str(), {.device = table.device});
  require(again.report.complete() && again.table.size() == table.size(), "T4 keeps every row");
  for (std::size_t i = 0; i < table.size(); ++i) {
    require(again.table.text(i) == table.text(i), "T4 keeps configurations");
    require(again.table.outcomes[i].valid() == table.outcomes[i].valid(), "T4 keeps failures");
  }
}

}  // namespace tunewright::fuzz
