// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/data/table_builder.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::data {

namespace autotvm {

/// Calls `set(name, json)` for each number or word of a knob. A split has one per part, "tile_x.1", without the part
/// that takes the rest; an order is one word, annotations are one word per loop.
template <class F>
void for_each_choice(const Knob& knob, const F& set) {
  std::string json;
  switch (knob.kind) {
    case KnobKind::Split:
      for (std::size_t part = 0; part < knob.numbers.size(); ++part) {
        if (knob.numbers[part] == -1) continue;
        set(knob.name + "." + std::to_string(part), std::to_string(knob.numbers[part]));
      }
      break;
    case KnobKind::Reorder:
      for (const std::int64_t axis : knob.numbers) json += (json.empty() ? "\"" : " ") + std::to_string(axis);
      set(knob.name, json + (json.empty() ? "\"\"" : "\""));
      break;
    case KnobKind::Annotate:
      for (std::size_t loop = 0; loop < knob.words.size(); ++loop) {
        json.clear();
        json::write(json, knob.words[loop]);
        set(knob.name + "." + std::to_string(loop), json);
      }
      break;
    case KnobKind::Other:
      json::write(json, knob.value);
      set(knob.name, json);
      break;
  }
}

}  // namespace autotvm

/// Reads an AutoTVM log of one task as a table: every split factor, order, annotation and other value is a
/// parameter, so `knobs_of(table)` gives a vector of fixed width, and `spaces::RecordedTable` with
/// `measurers::Replay` searches it.
///
///   const auto imported = data::read_autotvm_table("conv.log.gz", {.device = "V100"});
///
/// Kernel and problem are the template and its arguments unless `source` names them. Records of another task than the
/// first, and repeated configurations, are listed as bad. Throws `std::runtime_error` if the file cannot be opened and
/// `FormatError` if it has no record or `source.device` is empty, because logs do not name the device.
[[nodiscard]] ImportedTable read_autotvm_table(const std::string& path, TableSource source = {});

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(gzip)

namespace tunewright::data {

TUNEWRIGHT_INLINE ImportedTable read_autotvm_table(const std::string& path, TableSource source) {
  if (source.file.empty()) source.file = path;
  AutoTvmLog log(path);
  table_import::Builder builder;
  std::shared_ptr<const autotvm::TaskInfo> task;
  ImportReport refused;
  for (AutoTvmRecord record; log.next(record);) {
    try {
      if (!task) task = record.task;
      if (record.task != task && *record.task != *task) throw FormatError("belongs to another task than the first");
      builder.begin_row();
      for (const autotvm::Knob& knob : record.knobs) {
        autotvm::for_each_choice(knob, [&](const std::string& name, const std::string& json) {
          if (!builder.set(name, json)) throw FormatError("has knob '" + name + "', which the first record lacks");
        });
      }
      builder.end_row(to_outcome(record.result));
    } catch (const FormatError& error) {
      refused.add_bad(log.line(), error.what());
    }
  }
  ImportReport report = log.report();
  report.records -= refused.bad;
  report.failed = 0;  // counted once the table is complete
  for (BadLine& line : refused.bad_lines) report.bad_lines.push_back(std::move(line));
  std::sort(report.bad_lines.begin(), report.bad_lines.end(),
            [](const BadLine& a, const BadLine& b) { return a.number < b.number; });
  report.bad_lines.resize(std::min(report.bad_lines.size(), report.max_listed));
  report.bad += refused.bad;
  Table described;
  if (task) {
    described.kernel = task->name;
    json::write_array(described.problem, task->arguments);
  }
  return table_import::finish(builder, std::move(report), source, described);
}

}  // namespace tunewright::data

#endif
