// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "tunewright/data/table_builder.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

namespace ktt_detail {

Failure failure(std::string status);

void record(json::Scanner& in, table_import::Builder& builder, double unit_s, std::string& kernel);

}  // namespace ktt_detail

/// Reads the text of a result file of the Kernel Tuning Toolkit: one kernel on one device.
///
/// The latency is `TotalDuration`, the only time in the format. Compiling costs `CompilationOverhead` or, in files of
/// versions without it, the total overhead without data movement, search, validation and profiling, which count as
/// running. Hardware counters are skipped.
///
/// Errors: as parse_kernel_tuner. Also throws `FormatError` for an unknown unit of time, and if results precede the
///         metadata with the unit.
[[nodiscard]] ImportedTable parse_ktt(std::string_view text, const TableSource& source = {});

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include <cmath>
#include <optional>

namespace tunewright::data::ktt_detail {

TUNEWRIGHT_INLINE Failure failure(std::string status) {
  Fault fault = Fault::Unknown;
  if (status == "CompilationFailed") fault = Fault::DeviceCompileError;
  if (status == "ComputationFailed") fault = Fault::RunError;
  if (status == "ValidationFailed") fault = Fault::WrongResult;
  if (status == "DeviceLimitsExceeded") fault = Fault::InvalidSchedule;
  return {fault, std::move(status)};
}

TUNEWRIGHT_INLINE void record(json::Scanner& in, table_import::Builder& builder, double unit_s, std::string& kernel) {
  std::string status;
  double duration = 0, total_overhead = 0, other_overhead = 0;
  std::optional<double> compilation;
  builder.begin_row();
  in.object([&](std::string_view key) {
    if (key == "Configuration") {
      in.array([&] {
        std::string name;
        std::string_view value;
        in.object([&](std::string_view field) {
          if (field == "Name") {
            in.string(name);
          } else if (field == "Value") {
            value = in.skip_value();
          } else {
            (void)in.skip_value();
          }
        });
        if (!builder.set(name, value)) throw FormatError("parameter '" + name + "' is not one of the first result's");
      });
    } else if (key == "Status") {
      in.string(status);
    } else if (key == "KernelName") {
      in.string(kernel);
    } else if (key == "TotalDuration") {
      duration = in.number();
    } else if (key == "TotalOverhead") {
      total_overhead = in.number();
    } else if (key == "CompilationOverhead") {
      compilation = in.number();
    } else if (key == "DataMovementOverhead" || key == "SearcherOverhead" || key == "ValidationOverhead" ||
               key == "ProfilingOverhead") {
      other_overhead += in.number();
    } else {
      (void)in.skip_value();
    }
  });
  Outcome outcome;
  // Numbers are written in decimals, so the sum of the parts may exceed the whole by a rounding.
  const double compiling = compilation.value_or(total_overhead - other_overhead);
  const bool is_rounding = std::abs(compiling) <= 1e-9 * total_overhead;
  outcome.compile_time = table_import::price(is_rounding ? 0 : compiling, unit_s);
  outcome.run_time = table_import::price(other_overhead + duration, unit_s);
  if (status.empty()) throw FormatError("the result has no 'Status'");
  if (status == "Ok") {
    outcome.result = table_import::timing({}, duration, unit_s);
  } else {
    outcome.result = failure(std::move(status));
  }
  builder.end_row(std::move(outcome));
}

}  // namespace tunewright::data::ktt_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE ImportedTable parse_ktt(std::string_view text, const TableSource& source) {
  ImportReport report;
  table_import::Builder builder;
  table_import::Records records(text, report);
  Table described;
  double unit_s = 0;
  json::Scanner in(text);
  try {
    in.object([&](std::string_view key) {
      if (key == "Metadata") {
        in.object([&](std::string_view name) {
          if (name == "Device") {
            in.string(described.device);
          } else if (name == "TimeUnit") {
            unit_s = table_import::seconds_in(in.string());
          } else {
            (void)in.skip_value();
          }
        });
      } else if (key == "Results") {
        if (unit_s == 0) in.fail("expected 'Metadata' with a 'TimeUnit' before 'Results'");
        in.array([&] {
          records.one(in, [&](json::Scanner& at) { ktt_detail::record(at, builder, unit_s, described.kernel); });
        });
      } else {
        (void)in.skip_value();
      }
    });
  } catch (const FormatError& error) {
    report.damage = error.what();
  }
  return table_import::finish(builder, std::move(report), source, described);
}

}  // namespace tunewright::data

#endif
