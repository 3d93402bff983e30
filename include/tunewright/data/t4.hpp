// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/latency.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/data/table_builder.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::data {

namespace t4_detail {

/// Inverse of `t4_invalidity`, as far as it exists.
Fault fault(std::string_view invalidity);

/// Times of one result in the unit of the file, and the time among its measurements, which may have another unit.
struct Result {
  std::vector<double> runtimes;
  double compilation = 0, time = std::nan("");
  double time_unit_s = 0;  ///< 0 for that of the file
  std::string invalidity;
};

void read_times(json::Scanner& in, Result& result);

void read_measurement(json::Scanner& in, Result& result);

void record(json::Scanner& in, table_import::Builder& builder, double unit_s);

std::string_view unit_name(std::string_view text);

/// Writes result `i`; `configuration` writes its configuration as a JSON object.
template <class Configuration>
void write_result(std::ostream& out, std::size_t i, const Outcome& outcome, const Configuration& configuration) {
  if (const std::string number = impossible_number(outcome); !number.empty()) {
    throw std::invalid_argument("write_t4: result " + std::to_string(i) + " has " + number +
                                "; give a positive latency and times of 0 or more, or a Failure");
  }
  std::string line = i == 0 ? "\n{\"configuration\": " : ",\n{\"configuration\": ";
  configuration(line);
  line += ", \"times\": {\"compilation\": ";
  json::write(line, outcome.compile_time.count());
  const Timing* timing = outcome.timing();
  if (timing != nullptr) {
    line += ", \"runtimes\": ";
    json::write_array(line, timing->repeats, [&](Seconds repeat) { json::write(line, repeat.count()); });
  }
  line += "}, \"invalidity\": ";
  const std::string_view invalidity = timing != nullptr ? "correct" : t4_invalidity(outcome.failure()->fault);
  json::write(line, invalidity);
  line += timing != nullptr ? ", \"correctness\": 1" : ", \"correctness\": 0";
  line += ", \"measurements\": [{\"name\": \"time\", \"value\": ";
  if (timing != nullptr) {
    json::write(line, timing->median.count());
  } else {
    json::write(line, name(outcome.failure()->fault));
  }
  out << line << ", \"unit\": \"seconds\"}], \"objectives\": [\"time\"]}";
}

inline constexpr std::string_view head = "{\"schema_version\": \"1.0.0\", \"metadata\": {\"timeunit\": \"seconds\"}, ";

void finish(std::ostream& out);

}  // namespace t4_detail

/// Reads the text of a T4 file (results of an auto-tuner in the schema that several tuners share). The schema
/// names neither device nor kernel, so `source` must name the device.
///
/// The latency is the median of `times.runtimes`; running costs their sum, because the schema has nothing better. Times
/// are in `metadata.timeunit`; a measurement may have its own unit.
///
/// Errors: as parse_kernel_tuner. Also throws `FormatError` for a missing or unknown unit of time.
[[nodiscard]] ImportedTable parse_t4(std::string_view text, const TableSource& source = {});

/// Writes a table as T4, in seconds. T4 has no word for the latency of a slow kernel whose result was not checked
/// (`StopReason`); it is written as correct. Throws `std::invalid_argument` for a time that is none and as
/// `check(table)`, and `std::runtime_error` if the stream rejects the data.
void write_t4(std::ostream& out, const Table& table);

/// Writes records of any space as T4, in seconds: the only parameter is the encoded configuration. T4 has no tasks, so
/// the records should be of one task. Throws `std::invalid_argument` for a time that is none, and `std::runtime_error`
/// if the stream rejects the data.
void write_t4(std::ostream& out, std::span<const Record> records);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data::t4_detail {

TUNEWRIGHT_INLINE Fault fault(std::string_view invalidity) {
  if (invalidity == "constraints") return Fault::InvalidSchedule;
  if (invalidity == "compile") return Fault::DeviceCompileError;
  if (invalidity == "runtime") return Fault::RunError;
  if (invalidity == "correctness") return Fault::WrongResult;
  if (invalidity == "timeout") return Fault::RunTimeout;
  return Fault::Unknown;
}

TUNEWRIGHT_INLINE void read_times(json::Scanner& in, Result& result) {
  in.object([&](std::string_view key) {
    if (key == "runtimes") {
      in.array([&] { result.runtimes.push_back(in.number()); });
    } else if (key == "compilation" || key == "compilation_time") {
      result.compilation = in.number();
    } else {
      (void)in.skip_value();
    }
  });
}

TUNEWRIGHT_INLINE void read_measurement(json::Scanner& in, Result& result) {
  std::string name, unit;
  double value = std::nan("");
  in.object([&](std::string_view key) {
    if (key == "name") {
      in.string(name);
    } else if (key == "unit") {
      in.string(unit);
    } else if (key == "value" && in.peek() != '"') {
      value = in.number();
    } else {
      (void)in.skip_value();
    }
  });
  if (name != "time") return;
  result.time = value;
  if (!unit.empty()) result.time_unit_s = table_import::seconds_in(unit);
}

TUNEWRIGHT_INLINE void record(json::Scanner& in, table_import::Builder& builder, double unit_s) {
  Result result;
  builder.begin_row();
  in.object([&](std::string_view key) {
    if (key == "configuration") {
      in.object([&](std::string_view name) {
        if (!builder.set(name, in.skip_value()))
          throw FormatError("parameter '" + std::string(name) + "' is not one of the first result's");
      });
    } else if (key == "times") {
      read_times(in, result);
    } else if (key == "invalidity") {
      in.string(result.invalidity);
    } else if (key == "measurements") {
      in.array([&] { read_measurement(in, result); });
    } else {
      (void)in.skip_value();
    }
  });
  Outcome outcome;
  outcome.compile_time = table_import::price(result.compilation, unit_s);
  const double running = std::accumulate(result.runtimes.begin(), result.runtimes.end(), 0.0);
  outcome.run_time = table_import::price(running, unit_s);
  if (result.invalidity.empty()) throw FormatError("the result has no 'invalidity'");
  if (result.invalidity != "correct") {
    outcome.result = Failure{fault(result.invalidity), result.invalidity};
  } else {
    if (std::isnan(result.time) && result.runtimes.empty()) throw FormatError("the result has no time");
    const double time_s = result.time * (result.time_unit_s > 0 ? result.time_unit_s : unit_s);
    const double summary = std::isnan(time_s) ? running / static_cast<double>(result.runtimes.size()) : time_s / unit_s;
    outcome.result = table_import::timing(std::move(result.runtimes), summary, unit_s);
  }
  builder.end_row(std::move(outcome));
}

TUNEWRIGHT_INLINE std::string_view unit_name(std::string_view text) {  // "metadata" may follow the results
  json::Scanner in(text);
  std::string_view unit;
  in.object([&](std::string_view key) {
    if (key != "metadata") return (void)in.skip_value();
    in.object([&](std::string_view name) {
      if (name == "timeunit") {
        unit = in.plain_string();
      } else {
        (void)in.skip_value();
      }
    });
  });
  return unit;
}

TUNEWRIGHT_INLINE void finish(std::ostream& out) {
  out << "\n]}\n";
  out.flush();
  if (!out) throw std::runtime_error("writing T4 failed; is the file open, is there space on the disk?");
}

}  // namespace tunewright::data::t4_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE ImportedTable parse_t4(std::string_view text, const TableSource& source) {
  ImportReport report;
  table_import::Builder builder;
  table_import::Records records(text, report);
  std::optional<double> unit_s;
  json::Scanner in(text);
  try {
    in.object([&](std::string_view key) {
      if (key == "metadata") {
        in.object([&](std::string_view name) {
          if (name == "timeunit") {
            unit_s = table_import::seconds_in(in.string());
          } else {
            (void)in.skip_value();
          }
        });
      } else if (key == "results") {
        if (!unit_s) unit_s = table_import::seconds_in(t4_detail::unit_name(text));
        in.array([&] { records.one(in, [&](json::Scanner& at) { t4_detail::record(at, builder, *unit_s); }); });
      } else {
        (void)in.skip_value();
      }
    });
  } catch (const FormatError& error) {
    report.damage = error.what();
  }
  return table_import::finish(builder, std::move(report), source, {});
}

TUNEWRIGHT_INLINE void write_t4(std::ostream& out, const Table& table) {
  check(table);
  out << t4_detail::head << "\"results\": [";
  std::vector<bool> words;
  for (const Parameter& parameter : table.parameters) words.push_back(!parameter.numeric());
  for (std::size_t i = 0; i < table.size(); ++i) {
    t4_detail::write_result(out, i, table.outcomes[i], [&](std::string& line) {
      for (std::size_t k = 0; k < table.parameters.size(); ++k) {
        line += k == 0 ? '{' : ',';
        json::write(line, std::string_view(table.parameters[k].name));
        line += ": ";
        if (words[k]) {
          json::write(line, std::string_view(table.value(i, k)));
        } else {
          line += table.value(i, k);
        }
      }
      line += '}';
    });
  }
  t4_detail::finish(out);
}

TUNEWRIGHT_INLINE void write_t4(std::ostream& out, std::span<const Record> records) {
  out << t4_detail::head << "\"results\": [";
  for (std::size_t i = 0; i < records.size(); ++i) {
    t4_detail::write_result(out, i, records[i].outcome, [&](std::string& line) {
      line += "{\"config\": ";
      json::write(line, std::string_view(records[i].config));
      line += '}';
    });
  }
  t4_detail::finish(out);
}

}  // namespace tunewright::data

#endif
