// SPDX-License-Identifier: Apache-2.0
#pragma once

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

namespace tunewright::data {

/// Version of the line format. A reader takes every version up to its own.
inline constexpr int record_schema = 1;

/// One line of JSON without its newline. Numbers keep every bit; text that is not UTF-8 is repaired.
///
///   {"schema":1,"task":"<16 hex>","task_name":"matmul 1024","target":"<16 hex>","target_name":"...",
///    "key":"<16 hex>","config":"...","compiler":"...","seed":7,"round":3,"slot":12,"time":1.7e9,
///    "compile_s":0.013,"run_s":0.2,
///    "median_s":1e-3,"mad_s":1e-6,"calls":10,"stopped":"precise","repeats_s":[...]}
///
/// A failure has "fault":"run_error","detail":"..." in place of the last line. Hashes are text because JSON
/// readers of other languages round integers beyond 2^53.
[[nodiscard]] inline std::string to_line(const Record& record) {
  nlohmann::ordered_json json{{"schema", record_schema},
                              {"task", to_hex(record.task)},
                              {"task_name", record.task_name},
                              {"target", to_hex(record.target)},
                              {"target_name", record.target_name},
                              {"key", to_hex(record.key)},
                              {"config", record.config},
                              {"compiler", record.compiler},
                              {"seed", record.seed},
                              {"round", record.round},
                              {"slot", record.slot},
                              {"time", record.timestamp.count()},
                              {"compile_s", record.outcome.compile_time.count()},
                              {"run_s", record.outcome.run_time.count()}};
  if (const Failure* failure = record.outcome.failure()) {
    json["fault"] = name(failure->fault);
    json["detail"] = failure->detail;
  } else {
    const Timing& timing = *record.outcome.timing();
    json["median_s"] = timing.median.count();
    json["mad_s"] = timing.median_absolute_deviation.count();
    json["calls"] = timing.calls_per_repeat;
    json["stopped"] = std::string_view(timing.stopped == StopReason::Precise  ? "precise"
                                       : timing.stopped == StopReason::Budget ? "budget"
                                                                              : "far_slower");
    nlohmann::ordered_json& repeats = json["repeats_s"] = nlohmann::ordered_json::array();
    for (const Seconds repeat : timing.repeats) repeats.push_back(repeat.count());
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

namespace record_json {

inline std::uint64_t from_hex(const nlohmann::json& json, const char* field) {
  const auto& text = json.at(field).get_ref<const std::string&>();
  std::uint64_t value = 0;
  for (const char c : text) {
    const auto digit = std::string_view("0123456789abcdef").find(c);
    if (text.size() != 16 || digit == std::string_view::npos) {
      throw std::runtime_error(std::string("'") + field + "' is '" + text + "', not 16 hexadecimal digits");
    }
    value = value * 16 + digit;
  }
  if (text.empty()) throw std::runtime_error(std::string("'") + field + "' is empty");
  return value;
}

inline Seconds seconds(const nlohmann::json& json, const char* field) {
  const double value = json.at(field).get<double>();
  if (!(value >= 0)) throw std::runtime_error(std::string("'") + field + "' is negative");
  return Seconds(value);
}

inline StopReason stop_reason(const std::string& text) {
  if (text == "precise") return StopReason::Precise;
  if (text == "budget") return StopReason::Budget;
  if (text == "far_slower") return StopReason::FarSlower;
  throw std::runtime_error("'stopped' is '" + text + "'");
}

inline Fault fault(const std::string& text) {
  for (std::size_t i = 0; i < fault_names.size(); ++i) {
    if (fault_names[i] == text) return static_cast<Fault>(i);
  }
  throw std::runtime_error("'fault' is '" + text + "'");
}

}  // namespace record_json

/// Reads one line. Throws `std::exception` with a reason for people when it is not a whole, valid record.
[[nodiscard]] inline Record from_line(std::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  if (const int schema = json.at("schema").get<int>(); schema < 1 || schema > record_schema) {
    throw std::runtime_error("schema " + std::to_string(schema) + " is unknown; this library reads up to " +
                             std::to_string(record_schema));
  }
  Record record;
  record.task = record_json::from_hex(json, "task");
  record.target = record_json::from_hex(json, "target");
  record.key = record_json::from_hex(json, "key");
  json.at("task_name").get_to(record.task_name);
  json.at("target_name").get_to(record.target_name);
  json.at("config").get_to(record.config);
  json.at("compiler").get_to(record.compiler);
  json.at("seed").get_to(record.seed);
  json.at("round").get_to(record.round);
  json.at("slot").get_to(record.slot);
  record.timestamp = record_json::seconds(json, "time");
  record.outcome.compile_time = record_json::seconds(json, "compile_s");
  record.outcome.run_time = record_json::seconds(json, "run_s");
  if (json.contains("fault")) {
    record.outcome.result = Failure{record_json::fault(json.at("fault").get<std::string>()),
                                    json.at("detail").get<std::string>()};
    return record;
  }
  Timing timing;
  timing.median = record_json::seconds(json, "median_s");
  if (timing.median == Seconds(0)) throw std::runtime_error("'median_s' is 0; a latency is above 0");
  timing.median_absolute_deviation = record_json::seconds(json, "mad_s");
  timing.stopped = record_json::stop_reason(json.at("stopped").get<std::string>());
  json.at("calls").get_to(timing.calls_per_repeat);
  for (const nlohmann::json& repeat : json.at("repeats_s")) timing.repeats.emplace_back(repeat.get<double>());
  record.outcome.result = std::move(timing);
  return record;
}

/// Writes records of any source as a journal, which `data::read_journal` reads and tuners resume from. Throws
/// `std::invalid_argument`, before anything is written, for a latency that no reader takes, because it is not above 0 and
/// finite, and `std::runtime_error` when the stream refuses the data.
inline void write_journal(std::ostream& out, std::span<const Record> records) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (const auto latency = impossible_latency(records[i].outcome)) {
      throw std::invalid_argument("write_journal: record " + std::to_string(i) + ", candidate " +
                                  to_hex(records[i].key) + " of task '" + records[i].task_name +
                                  "', has a latency of " + std::to_string(latency->count()) +
                                  " s; give a positive one, or a Failure");
    }
  }
  for (const Record& record : records) out << to_line(record) << '\n';
  out.flush();
  if (!out)
    throw std::runtime_error("writing a journal failed; is the file open, is there space on the disk?");
}

}  // namespace tunewright::data
