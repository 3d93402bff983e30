// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tunewright/core/knob.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// One knob of a table: its name and possible values, in the order of the source, which defines adjacency.
struct Parameter {
  std::string name{};
  std::vector<std::string> values{};  ///< whole numbers without fraction or exponent
  bool operator==(const Parameter&) const = default;

  /// The value as a number; NaN for a word.
  [[nodiscard]] double number(std::size_t choice) const;
  /// True when every value is a number.
  [[nodiscard]] bool numeric() const;
};

/// Measurements of one kernel on one device: N configurations of K parameters with their outcomes. Failed
/// configurations are rows; configurations that violate a restriction of the kernel are absent.
///
/// Units: seconds, whatever the unit of the source.
struct Table {
  std::string kernel;
  std::string problem;  ///< size of the problem, as text
  std::string device;
  double flops = 0;  ///< of one run; 0 if the source does not tell

  std::vector<Parameter> parameters;   // [K]
  std::vector<std::uint16_t> choices;  // (N, K), positions in `Parameter::values`
  std::vector<Outcome> outcomes;       // [N]

  [[nodiscard]] std::size_t size() const noexcept { return outcomes.size(); }  // N
  [[nodiscard]] std::span<const std::uint16_t> row(std::size_t i) const {      // [K]
    return std::span(choices).subspan(i * parameters.size(), parameters.size());
  }
  [[nodiscard]] const std::string& value(std::size_t i, std::size_t parameter) const {
    return parameters[parameter].values[row(i)[parameter]];
  }
  /// Latency in seconds; infinite for a failure.
  [[nodiscard]] double cost_s(std::size_t i) const;

  /// The values of a row, separated by commas: identifies a configuration on every device.
  [[nodiscard]] std::string text(std::size_t i) const;
};

/// Throws `std::invalid_argument` unless every outcome has a choice for each parameter, among the values of it.
void check(const Table& table);

/// The parameters as knobs for featurizers, each with the values that occur. Words are categories, numbered as in
/// `Parameter::values`; numbers get a suitable scale. Throws as `check`.
[[nodiscard]] std::vector<Knob> knobs_of(const Table& table);

/// The values of row `i` for `knobs_of`, [K].
[[nodiscard]] std::vector<double> knob_values(const Table& table, std::size_t i);

/// Canonical key of a configuration in the form of `Table::text`.
[[nodiscard]] std::uint64_t row_key(std::string_view text);

/// The tuning task of a table. Only the name of the device is known, so it is used as the architecture, and tasks on
/// different devices differ.
[[nodiscard]] Task task_of(const Table& table);

/// Row `i` as a record. `task` is the task of the record, usually `task_of(table)`. Throws `std::out_of_range` for a
/// row that does not exist.
[[nodiscard]] Record record_of(const Table& table, std::size_t i, const Task& task);

/// All rows, for `measurers::Replay::load` and journals. Throws as `check`.
[[nodiscard]] std::vector<Record> records_of(const Table& table, const Task& task);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/hash.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE double Parameter::number(std::size_t choice) const {
  const std::string& text = values.at(choice);
  if (text == "true") return 1;
  if (text == "false") return 0;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && stop == text.data() + text.size();
  return whole && std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

TUNEWRIGHT_INLINE bool Parameter::numeric() const {
  for (std::size_t choice = 0; choice < values.size(); ++choice)
    if (std::isnan(number(choice))) return false;
  return true;
}

TUNEWRIGHT_INLINE double Table::cost_s(std::size_t i) const {
  const Timing* timing = outcomes[i].timing();
  return timing != nullptr ? timing->median.count() : std::numeric_limits<double>::infinity();
}

TUNEWRIGHT_INLINE std::string Table::text(std::size_t i) const {
  std::string line;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (k > 0) line += ',';
    line += value(i, k);
  }
  return line;
}

TUNEWRIGHT_INLINE void check(const Table& table) {
  const std::size_t columns = table.parameters.size();
  if (table.choices.size() != table.size() * columns) {
    throw std::invalid_argument("Table: " + std::to_string(table.choices.size()) + " choices for " +
                                std::to_string(table.size()) + " outcomes of " + std::to_string(columns) +
                                " parameters; give each outcome one choice a parameter");
  }
  for (std::size_t at = 0; at < table.choices.size(); ++at) {
    const Parameter& parameter = table.parameters[at % columns];
    if (table.choices[at] < parameter.values.size()) continue;
    throw std::invalid_argument("Table: row " + std::to_string(at / columns) + " has choice " +
                                std::to_string(table.choices[at]) + " of parameter '" + parameter.name +
                                "', which has " + std::to_string(parameter.values.size()) +
                                " values; choices are positions in them, from 0");
  }
}

TUNEWRIGHT_INLINE std::vector<Knob> knobs_of(const Table& table) {
  check(table);
  std::vector<Knob> knobs;
  for (std::size_t k = 0; k < table.parameters.size(); ++k) {
    const Parameter& parameter = table.parameters[k];
    Knob& knob = knobs.emplace_back(Knob{.name = parameter.name});
    if (!parameter.numeric()) {
      knob.scale = KnobScale::Category;
      knob.categories = parameter.values;
      for (std::size_t choice = 0; choice < parameter.values.size(); ++choice)
        knob.values.push_back(static_cast<double>(choice));
      continue;
    }
    std::vector<bool> occurs(parameter.values.size());
    for (std::size_t i = 0; i < table.size(); ++i) occurs[table.row(i)[k]] = true;
    for (std::size_t choice = 0; choice < occurs.size(); ++choice)
      if (occurs[choice]) knob.values.push_back(parameter.number(choice));
    std::sort(knob.values.begin(), knob.values.end());
    knob.scale = suitable_scale(knob.values);
  }
  return knobs;
}

TUNEWRIGHT_INLINE std::vector<double> knob_values(const Table& table, std::size_t i) {
  std::vector<double> values;
  for (std::size_t k = 0; k < table.parameters.size(); ++k) {
    const std::size_t choice = table.row(i)[k];
    const double number = table.parameters[k].number(choice);
    values.push_back(std::isnan(number) || !table.parameters[k].numeric() ? static_cast<double>(choice) : number);
  }
  return values;
}

TUNEWRIGHT_INLINE std::uint64_t row_key(std::string_view text) { return StableHash{}.add(text).value(); }

TUNEWRIGHT_INLINE Task task_of(const Table& table) {
  Task task;
  task.name = table.kernel + (table.problem.empty() ? "" : " " + table.problem);
  StableHash workload;
  workload.add(table.kernel).add(table.problem);
  for (const Parameter& parameter : table.parameters) workload.add(parameter.name);
  task.workload_hash = workload.value();
  task.flops = table.flops;
  task.target = Target{.name = table.device, .kind = DeviceKind::Gpu, .architecture = table.device};
  return task;
}

TUNEWRIGHT_INLINE Record record_of(const Table& table, std::size_t i, const Task& task) {
  if (i >= table.size()) {
    throw std::out_of_range("record_of: row " + std::to_string(i) + " of " + std::to_string(table.size()) +
                            " was asked for; give a row below that");
  }
  Record record;
  record.task = stable_hash(task);
  record.target = stable_hash(task.target);
  record.task_name = task.name;
  record.target_name = task.target.name;
  record.config = table.text(i);
  record.key = row_key(record.config);
  record.outcome = table.outcomes[i];
  return record;
}

TUNEWRIGHT_INLINE std::vector<Record> records_of(const Table& table, const Task& task) {
  check(table);
  std::vector<Record> records;
  records.reserve(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) records.push_back(record_of(table, i, task));
  return records;
}

}  // namespace tunewright

#endif
