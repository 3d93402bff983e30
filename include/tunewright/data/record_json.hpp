// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Version of the lines with records. A reader accepts every version up to its own; see also `task_schema`.
inline constexpr int record_schema = 1;

/// One line of JSON without its newline. Numbers keep every bit; text that is not UTF-8 is repaired.
///
///   {"schema":1,"task":"<16 hex>","task_name":"matmul 1024","target":"<16 hex>","target_name":"...",
///    "key":"<16 hex>","config":"...","compiler":"...","seed":7,"round":3,"slot":12,"time":1.7e9,
///    "compile_s":0.013,"run_s":0.2,
///    "median_s":1e-3,"mad_s":1e-6,"calls":10,"stopped":"precise","repeats_s":[...]}
///
/// If known, "predicted":0.93 (the model's score), "search_s":0.04 and "learn_s":0.1 (time of the run besides measuring
/// since the previous record) follow "run_s". In a failure, "fault":"run_error","detail":"..." replaces the last line.
/// Hashes are text because JSON readers of other languages round integers beyond 2^53.
[[nodiscard]] std::string to_line(const Record& record);

namespace record_json {

inline std::uint64_t hash_at(const nlohmann::json& json, const char* field) {
  return from_hex(std::string_view(json.at(field).get_ref<const std::string&>()), field);
}

Seconds seconds(const nlohmann::json& json, const char* field);
inline Seconds seconds_at(const nlohmann::json& json, const char* field) { return seconds(json.at(field), field); }

/// A model's score; throws unless it is a number in range.
float score_at(const nlohmann::json& json, const char* field);

/// An error message for a number of a record that readers reject; empty if there is none.
[[nodiscard]] std::string refused_number(const Record& record);

StopReason stop_reason(const std::string& text);

Fault fault(const std::string& text);

}  // namespace record_json

/// Reads one line. Throws `std::exception` with a readable reason unless it is a complete, valid record.
[[nodiscard]] Record from_line(std::string_view line);

/// Writes records of any source as a journal, for `data::read_journal` and for tuners to resume from, after their
/// tasks, which may be omitted. Throws `std::invalid_argument`, before writing anything, for a number that readers
/// reject (a latency that is not positive, any other negative time, and non-finite numbers) and for a target whose
/// architecture is not UTF-8, and `std::runtime_error` if the stream rejects the data.
void write_journal(std::ostream& out, std::span<const Record> records, std::span<const Task> tasks = {});

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

#include <limits>
#include <optional>
#include <type_traits>

#include "tunewright/data/journal_index/line_head.hpp"
#include "tunewright/data/task_json.hpp"
#include "tunewright/data/whole_number.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::data::record_json {

/// JSON has no non-finite numbers.
inline void write(std::string& line, double value) {
  if (std::isfinite(value))
    json::write(line, value);
  else
    line += "null";
}

}  // namespace tunewright::data::record_json

namespace tunewright::data {

// Written directly rather than through a tree of values, which takes several times as long: with a thousand workers, a
// tuner writes tens of thousands of lines per second.
TUNEWRIGHT_INLINE std::string to_line(const Record& record) {
  std::string line;
  line.reserve(640 + record.config.size());
  line += "{\"schema\":" + std::to_string(record_schema);
  const auto member = [&line](std::string_view key, const auto& value) {
    line += ",\"";
    line += key;
    line += "\":";
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, Seconds>)
      record_json::write(line, value.count());
    else if constexpr (std::is_same_v<T, double>)
      record_json::write(line, value);
    else if constexpr (std::is_integral_v<T>)
      json::write(line, value);
    else
      json::write(line, std::string_view(value));
  };
  member("task", to_hex(record.task));
  member("task_name", record.task_name);
  member("target", to_hex(record.target));
  member("target_name", record.target_name);
  member("key", to_hex(record.key));
  member("config", record.config);
  member("compiler", record.compiler);
  member("seed", record.seed);
  member("round", record.round);
  member("slot", record.slot);
  member("time", record.timestamp);
  member("compile_s", record.outcome.compile_time);
  member("run_s", record.outcome.run_time);
  if (record.predicted) member("predicted", static_cast<double>(*record.predicted));
  if (record.search_time != Seconds(0)) member("search_s", record.search_time);
  if (record.learn_time != Seconds(0)) member("learn_s", record.learn_time);
  if (const Failure* failure = record.outcome.failure()) {
    member("fault", name(failure->fault));
    member("detail", failure->detail);
  } else {
    const Timing& timing = *record.outcome.timing();
    member("median_s", timing.median);
    member("mad_s", timing.median_absolute_deviation);
    member("calls", timing.calls_per_repeat);
    member("stopped", name(timing.stopped));
    line += ",\"repeats_s\":[";
    for (const Seconds repeat : timing.repeats) {
      if (line.back() != '[') line += ',';
      record_json::write(line, repeat.count());
    }
    line += ']';
  }
  return line + '}';
}

}  // namespace tunewright::data

namespace tunewright::data::record_json {

TUNEWRIGHT_INLINE Seconds seconds(const nlohmann::json& json, const char* field) {
  const Seconds time(json.get<double>());
  if (!is_duration(time)) throw std::runtime_error(std::string("'") + field + "' is negative");
  return time;
}

/// Throws unless the field is a whole number that `Whole` holds.
template <class Whole>
Whole whole_at(const nlohmann::json& json, const char* field) {
  const nlohmann::json& value = json.at(field);
  if (const std::optional<Whole> number = whole_number<Whole>(value)) return *number;
  throw std::runtime_error(std::string("'") + field + "' is " + value.dump() + ", not a whole number from " +
                           std::to_string(std::numeric_limits<Whole>::min()) + " to " +
                           std::to_string(std::numeric_limits<Whole>::max()));
}

TUNEWRIGHT_INLINE float score_at(const nlohmann::json& json, const char* field) {
  const auto score = json.at(field).get<float>();
  if (!std::isfinite(score)) throw std::runtime_error(std::string("'") + field + "' is not finite");
  return score;
}

TUNEWRIGHT_INLINE std::string refused_number(const Record& record) {
  std::string found;
  const auto check = [&](const std::string& field, Seconds time, bool taken, const char* instead) {
    if (!found.empty() || taken) return;
    found = "'" + field + "' = ";
    json::write(found, time.count());
    found += std::string("; give ") + instead;
  };
  if (record.predicted && !std::isfinite(*record.predicted)) found = "'predicted' that is not finite; leave it out";
  const auto check_duration = [&](const std::string& field, Seconds time) {
    check(field, time, is_duration(time), "a finite number of seconds, 0 or more");
  };
  check_duration("time", record.timestamp);
  check_duration("compile_s", record.outcome.compile_time);
  check_duration("run_s", record.outcome.run_time);
  check_duration("search_s", record.search_time);
  check_duration("learn_s", record.learn_time);
  if (const Timing* timing = record.outcome.timing()) {
    check("median_s", timing->median, is_duration(timing->median) && timing->median > Seconds(0),
          "a latency that is finite and above 0, or a Failure");
    check_duration("mad_s", timing->median_absolute_deviation);
    for (std::size_t i = 0; i < timing->repeats.size(); ++i)
      check_duration("repeats_s[" + std::to_string(i) + "]", timing->repeats[i]);
  }
  return found;
}

TUNEWRIGHT_INLINE StopReason stop_reason(const std::string& text) {
  for (std::size_t i = 0; i < stop_names.size(); ++i)
    if (stop_names[i] == text) return static_cast<StopReason>(i);
  throw std::runtime_error("'stopped' is '" + text + "'");
}

TUNEWRIGHT_INLINE Fault fault(const std::string& text) {
  for (std::size_t i = 0; i < fault_names.size(); ++i) {
    if (fault_names[i] == text) return static_cast<Fault>(i);
  }
  throw std::runtime_error("'fault' is '" + text + "'");
}

}  // namespace tunewright::data::record_json

namespace tunewright::data {

TUNEWRIGHT_INLINE Record from_line(std::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  if (const int schema = record_json::whole_at<int>(json, "schema"); schema < 1 || schema > record_schema) {
    throw std::runtime_error("schema " + std::to_string(schema) + " is unknown; this library reads up to " +
                             std::to_string(record_schema));
  }
  Record record;
  record.task = record_json::hash_at(json, "task");
  if (const auto head = journal_index::head_of(line); head.schema != 0 && head.task != record.task) {
    throw std::runtime_error("names two tasks, " + to_hex(head.task) + " and " + to_hex(record.task));
  }
  record.target = record_json::hash_at(json, "target");
  record.key = record_json::hash_at(json, "key");
  json.at("task_name").get_to(record.task_name);
  json.at("target_name").get_to(record.target_name);
  json.at("config").get_to(record.config);
  json.at("compiler").get_to(record.compiler);
  record.seed = record_json::whole_at<std::uint64_t>(json, "seed");
  record.round = record_json::whole_at<unsigned>(json, "round");
  record.slot = record_json::whole_at<unsigned>(json, "slot");
  record.timestamp = record_json::seconds_at(json, "time");
  record.outcome.compile_time = record_json::seconds_at(json, "compile_s");
  record.outcome.run_time = record_json::seconds_at(json, "run_s");
  if (json.contains("predicted")) record.predicted = record_json::score_at(json, "predicted");
  if (json.contains("search_s")) record.search_time = record_json::seconds_at(json, "search_s");
  if (json.contains("learn_s")) record.learn_time = record_json::seconds_at(json, "learn_s");
  if (json.contains("fault")) {
    record.outcome.result =
        Failure{record_json::fault(json.at("fault").get<std::string>()), json.at("detail").get<std::string>()};
    return record;
  }
  Timing timing;
  timing.median = record_json::seconds_at(json, "median_s");
  if (timing.median == Seconds(0)) throw std::runtime_error("'median_s' is 0; a latency is above 0");
  timing.median_absolute_deviation = record_json::seconds_at(json, "mad_s");
  timing.stopped = record_json::stop_reason(json.at("stopped").get<std::string>());
  timing.calls_per_repeat = record_json::whole_at<unsigned>(json, "calls");
  for (const nlohmann::json& repeat : json.at("repeats_s"))
    timing.repeats.push_back(record_json::seconds(repeat, "repeats_s"));
  record.outcome.result = std::move(timing);
  return record;
}

TUNEWRIGHT_INLINE void write_journal(std::ostream& out, std::span<const Record> records, std::span<const Task> tasks) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (const std::string refused = record_json::refused_number(records[i]); !refused.empty()) {
      throw std::invalid_argument("write_journal: record " + std::to_string(i) + ", candidate " +
                                  to_hex(records[i].key) + " of task '" + records[i].task_name + "', has " + refused);
    }
  }
  for (const Task& task : tasks) {
    if (const std::string refused = refused_member(task); !refused.empty())
      throw std::invalid_argument("write_journal: of task '" + task.name + "', " + refused);
  }
  for (const Task& task : tasks) out << to_line(task) << '\n';
  for (const Record& record : records) out << to_line(record) << '\n';
  out.flush();
  if (!out) throw std::runtime_error("writing a journal failed; is the file open, is there space on the disk?");
}

}  // namespace tunewright::data

#endif
