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
  std::optional<double> benchmark;
  double time_unit_s = 0;  ///< 0 for that of the file
  std::string invalidity;
};

void read_times(json::Scanner& in, Result& result);

void read_measurement(json::Scanner& in, Result& result);

void record(json::Scanner& in, table_import::Builder& builder, double unit_s);

/// What a file says once for all results; empty for what it does not say.
struct Metadata {
  std::optional<double> unit_s;
  std::string device;
};

void read_metadata(json::Scanner& in, Metadata& metadata);

/// The metadata, which may follow the results. Without them the unit is that of the first time with one of its own:
/// some tuners put the metadata into another file, and give all times of a result in one unit.
Metadata find_metadata(std::string_view text);

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
  line += ", \"benchmark\": ";
  json::write(line, outcome.run_time.count());
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
/// names neither device nor kernel, so `source` must name the device unless the file's metadata do.
///
/// The latency is the median of `times.runtimes`; running costs `times.benchmark` or, without it, the sum of the
/// runtimes. Times are in `metadata.timeunit` or, in files without metadata such as those of Kernel Tuner 1.0, in the
/// unit of the measurement `time`; with metadata, that measurement may have its own unit.
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
    } else if (key == "benchmark") {
      result.benchmark = in.number();
    } else {
      (void)in.skip_value();
    }
  });
}

TUNEWRIGHT_INLINE void read_measurement(json::Scanner& in, Result& result) {
  std::string name, unit;
  std::string_view value;  // of other measurements anything
  in.object([&](std::string_view key) {
    if (key == "name") {
      in.string(name);
    } else if (key == "unit") {
      in.string(unit);
    } else if (key == "value") {
      value = in.skip_value();
    } else {
      (void)in.skip_value();
    }
  });
  if (name != "time") return;
  if (!unit.empty()) result.time_unit_s = table_import::seconds_in(unit);
  const bool is_word = value.empty() || value.front() == '"';  // in place of the time of a failure
  if (!is_word) result.time = json::Scanner(value).number();
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
  outcome.run_time = table_import::price(result.benchmark.value_or(running), unit_s);
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

TUNEWRIGHT_INLINE void read_metadata(json::Scanner& in, Metadata& metadata) {
  in.object([&](std::string_view name) {
    if (name == "timeunit") {
      metadata.unit_s = table_import::seconds_in(in.string());
    } else if (name == "device" && in.peek() == '"') {
      in.string(metadata.device);
    } else {
      (void)in.skip_value();
    }
  });
}

TUNEWRIGHT_INLINE Metadata find_metadata(std::string_view text) {
  Result timed;
  std::string_view stored;
  const auto find_unit = [&](std::string_view result) {
    json::Scanner in(result);
    in.object([&](std::string_view key) {
      if (key != "measurements") return (void)in.skip_value();
      in.array([&] { read_measurement(in, timed); });
    });
  };
  const auto unless_damaged = [](const auto& read) {  // reading the results lists what is wrong with them
    try {
      read();
    } catch (const FormatError&) {
    }
  };
  json::Scanner in(text);
  unless_damaged([&] {
    in.object([&](std::string_view key) {
      if (key == "results") {
        in.array([&] {
          const std::string_view result = in.skip_value();
          if (timed.time_unit_s == 0) unless_damaged([&] { find_unit(result); });
        });
      } else {
        const std::string_view value = in.skip_value();
        if (key == "metadata") stored = value;
      }
    });
  });
  Metadata metadata;
  if (!stored.empty()) {
    json::Scanner at(stored);
    read_metadata(at, metadata);
  }
  if (!metadata.unit_s && timed.time_unit_s > 0) metadata.unit_s = timed.time_unit_s;
  return metadata;
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
  t4_detail::Metadata metadata;
  json::Scanner in(text);
  try {
    in.object([&](std::string_view key) {
      if (key == "metadata") {
        t4_detail::read_metadata(in, metadata);
      } else if (key == "results") {
        if (!metadata.unit_s) metadata = t4_detail::find_metadata(text);
        if (!metadata.unit_s) throw FormatError("expected a unit of time, in 'metadata' or of a measurement 'time'");
        in.array(
            [&] { records.one(in, [&](json::Scanner& at) { t4_detail::record(at, builder, *metadata.unit_s); }); });
      } else {
        (void)in.skip_value();
      }
    });
  } catch (const FormatError& error) {
    report.damage = error.what();
  }
  Table described;
  described.device = metadata.device;
  return table_import::finish(builder, std::move(report), source, described);
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
