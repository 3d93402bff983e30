// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/scanner.hpp"

namespace tunewright::data {

/// A measurement in TVM's two log formats: `[[seconds, ...], error, price, Unix time]`.
struct TvmResult {
  std::vector<Seconds> run_times;  ///< one per repeat; for a failed record the tool's placeholder
  std::optional<Fault> fault;      ///< empty for a valid record
  Seconds price{0};                ///< spent building and running
  double timestamp = 0;            ///< seconds since 1970
  bool operator==(const TvmResult&) const = default;

  [[nodiscard]] bool valid() const noexcept { return !fault; }
  /// Mean of the repeats; infinite for a failed record.
  [[nodiscard]] double mean_seconds() const noexcept;
  /// Median of the repeats; infinite for a failed record.
  [[nodiscard]] double median_seconds() const;
};

/// The result as an outcome. The formats have one cost, which goes to `run_time`.
[[nodiscard]] Outcome to_outcome(const TvmResult& result);

namespace detail {

void read_tvm_result(json::Scanner& in, TvmResult& result, bool whole_seconds);

void write_tvm_result(std::string& out, const TvmResult& result, bool whole_seconds);

}  // namespace detail
}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include "tunewright/json/writer.hpp"
#include "tunewright/stats/robust.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE double TvmResult::mean_seconds() const noexcept {
  if (fault) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const Seconds& s : run_times) sum += s.count();
  return sum / static_cast<double>(run_times.size());
}

TUNEWRIGHT_INLINE double TvmResult::median_seconds() const {
  if (fault) return std::numeric_limits<double>::infinity();
  std::vector<double> seconds;
  for (const Seconds& s : run_times) seconds.push_back(s.count());
  return stats::median(std::move(seconds));
}

TUNEWRIGHT_INLINE Outcome to_outcome(const TvmResult& result) {
  Outcome outcome;
  outcome.run_time = result.price;
  if (result.fault) {
    outcome.result = Failure{*result.fault, ""};
    return outcome;
  }
  std::vector<double> seconds;
  for (const Seconds& s : result.run_times) seconds.push_back(s.count());
  outcome.result = Timing{.repeats = result.run_times,
                          .median = Seconds(stats::median(seconds)),
                          .median_absolute_deviation = Seconds(stats::median_absolute_deviation(seconds)),
                          .stopped = StopReason::Precise};  // nothing says that TVM wanted more repeats than it took
  return outcome;
}

}  // namespace tunewright::data

namespace tunewright::data::detail {

TUNEWRIGHT_INLINE void read_tvm_result(json::Scanner& in, TvmResult& result, bool whole_seconds) {
  result.run_times.clear();
  in.expect('[');
  in.array([&] { result.run_times.emplace_back(in.number()); });
  in.expect(',');
  const auto error = in.integer();
  if (error < 0 || error > 8) in.fail("expected an error number from 0 to 8, not " + std::to_string(error));
  result.fault.reset();
  if (error != 0) result.fault = static_cast<Fault>(error - 1);
  in.expect(',');
  result.price = Seconds(in.number());
  if (!(result.price.count() >= 0 && std::isfinite(result.price.count()))) in.fail("expected a price in seconds");
  in.expect(',');
  result.timestamp = whole_seconds ? static_cast<double>(in.integer()) : in.number();
  if (!(result.timestamp >= 0 && result.timestamp < 1e15)) in.fail("expected a Unix time");
  in.expect(']');
  for (const Seconds s : result.run_times) {
    if (result.fault && !std::isfinite(s.count())) in.fail("expected finite run times");
  }
  if (result.valid()) {
    if (result.run_times.empty()) in.fail("expected a run time, as the record reports no error");
    for (const Seconds s : result.run_times) {
      // 1e9 and 1e10 are the tools' placeholders for failures; invalid times are rejected too.
      if (!(s.count() > 0 && s.count() < 1e9)) in.fail("expected run times above 0 and below 1e9 s");
    }
  }
}

TUNEWRIGHT_INLINE void write_tvm_result(std::string& out, const TvmResult& result, bool whole_seconds) {
  out += '[';
  json::write_array(out, result.run_times, [&](const Seconds s) { json::write(out, s.count()); });
  out += ", ";
  json::write(out, result.fault ? ansor_error_number(*result.fault) : 0);
  out += ", ";
  json::write(out, result.price.count());
  out += ", ";
  if (whole_seconds) {
    json::write(out, static_cast<std::int64_t>(result.timestamp));
  } else {
    json::write(out, result.timestamp);
  }
  out += ']';
}

}  // namespace tunewright::data::detail

#endif
