// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/data/table_builder.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

namespace kernel_tuner_detail {

/// The failure for a word in place of a time.
Failure failure(std::string word);

/// Whether a value is a word that Kernel Tuner writes in place of a number where a configuration failed.
bool is_word_for_failure(std::string_view json);

/// One entry of the cache: parameters, times and costs, in milliseconds. `repeats` is working memory.
void record(json::Scanner& in, table_import::Builder& builder, std::vector<double>& repeats, double& flops);

}  // namespace kernel_tuner_detail

/// Reads the text of a Kernel Tuner cache file: one kernel on one device, usually every configuration that its
/// restrictions allow.
///
/// The latency is the median of `times` or, if `source` says so, their mean, the file's own `time`, both including
/// warm-up. Compiling takes `compile_time`, running `benchmark_time`. A word in `time` is a failure, and so is a word
/// for one in place of another objective or in `__error__`. Milliseconds are converted to seconds.
///
/// Errors: a malformed record is skipped and listed in the report, as is a truncated text. A text that is not a cache,
///         or has no record or device, throws `FormatError`.
/// Cost:   some 200 MB per second on one core, without a JSON tree.
[[nodiscard]] ImportedTable parse_kernel_tuner(std::string_view text, const TableSource& source = {});

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data::kernel_tuner_detail {

TUNEWRIGHT_INLINE Failure failure(std::string word) {
  Fault fault = Fault::Unknown;
  if (word == "CompilationFailedConfig") fault = Fault::DeviceCompileError;
  if (word == "RuntimeFailedConfig") fault = Fault::RunError;
  if (word == "InvalidConfig") fault = Fault::InvalidSchedule;
  return {fault, std::move(word)};
}

TUNEWRIGHT_INLINE bool is_word_for_failure(std::string_view json) {
  return json == R"("InvalidConfig")" || json == R"("CompilationFailedConfig")" || json == R"("RuntimeFailedConfig")";
}

TUNEWRIGHT_INLINE void record(json::Scanner& in, table_import::Builder& builder, std::vector<double>& repeats,
                              double& flops) {
  constexpr double unit_s = 1e-3;
  constexpr double old_mark_of_failure = 1e20;
  std::string word;
  double time = std::nan(""), compile = 0, benchmark = 0, giga_flops = 0;
  repeats.clear();
  builder.begin_row();
  in.object([&](std::string_view key) {
    if (key == "time") {
      if (in.peek() == '"') {
        in.string(word);
      } else {
        time = in.number();
      }
    } else if (key == "times") {
      in.array([&] { repeats.push_back(in.number()); });
    } else if (key == "compile_time") {
      compile = in.number();
    } else if (key == "benchmark_time") {
      benchmark = in.number();
    } else if (key == "GFLOP/s" && in.peek() != '"') {
      giga_flops = in.number();
    } else {
      const std::string_view value = in.skip_value();
      const bool is_parameter = builder.set(key, value);
      if (!is_parameter && is_word_for_failure(value)) word = value.substr(1, value.size() - 2);
    }
  });
  Outcome outcome;
  outcome.compile_time = table_import::price(compile, unit_s);
  outcome.run_time = table_import::price(benchmark, unit_s);
  if (!word.empty()) {
    outcome.result = failure(std::move(word));
  } else if (std::isnan(time)) {
    throw FormatError("the record has no 'time'");
  } else if (time >= old_mark_of_failure) {
    outcome.result = Failure{Fault::Unknown, "failed"};
  } else {
    outcome.result = table_import::timing(repeats, time, unit_s);
    const double work = giga_flops * 1e9 * time * unit_s;
    if (flops == 0 && work > 0 && std::isfinite(work)) flops = work;
  }
  builder.end_row(std::move(outcome));
}

}  // namespace tunewright::data::kernel_tuner_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE ImportedTable parse_kernel_tuner(std::string_view text, const TableSource& source) {
  ImportReport report;
  table_import::Builder builder;
  table_import::Records records(text, report);
  Table described;
  std::vector<std::string> order;
  std::vector<Parameter> values;
  std::string_view early_cache;
  std::vector<double> repeats;
  const auto read_cache = [&](json::Scanner& in) {
    for (const std::string& name : order) {
      const auto found = std::find_if(values.begin(), values.end(),
                                      [&](const Parameter& parameter) { return parameter.name == name; });
      if (found == values.end()) in.fail("'tune_params' lacks '" + name + "'");
      builder.declare(*found);
    }
    const char* const from = in.position();
    std::size_t read = 0;
    in.object([&](std::string_view) {
      records.one(in, [&](json::Scanner& at) { kernel_tuner_detail::record(at, builder, repeats, described.flops); });
      // Records have similar lengths.
      if (++read == 16)
        builder.expect_rows(16 * text.size() / static_cast<std::size_t>(in.position() - from), text.size());
    });
  };
  json::Scanner in(text);
  try {
    in.object([&](std::string_view key) {
      if (key == "device_name") {
        in.string(described.device);
      } else if (key == "kernel_name") {
        in.string(described.kernel);
      } else if (key == "problem_size") {
        for (const char c : in.skip_value())
          if (c != ' ' && c != '\n' && c != '\r') described.problem += c == ',' ? 'x' : c;
      } else if (key == "tune_params_keys") {
        in.array([&] { order.push_back(in.string()); });
      } else if (key == "tune_params") {
        in.object([&](std::string_view name) {
          Parameter& parameter = values.emplace_back(Parameter{.name = std::string(name)});
          in.array([&] { table_import::canonical(in.skip_value(), parameter.values.emplace_back()); });
        });
      } else if (key == "cache" && !order.empty() && !values.empty()) {
        read_cache(in);
      } else if (key == "cache") {
        early_cache = in.skip_value();
      } else {
        (void)in.skip_value();
      }
    });
    if (!early_cache.empty() && !order.empty() && !builder.declared()) {
      in.skip_to(early_cache.data());
      read_cache(in);
    }
  } catch (const FormatError& error) {
    report.damage = error.what();
  }
  if (!builder.declared()) {
    throw FormatError("'" + source.file + "' is no Kernel Tuner cache: it lacks 'tune_params_keys', " +
                      "'tune_params' or 'cache'" + (report.damage.empty() ? "" : " (" + report.damage + ")"));
  }
  for (const char mark : {'[', ']', '"'}) std::erase(described.problem, mark);
  return table_import::finish(builder, std::move(report), source, described);
}

}  // namespace tunewright::data

#endif
