// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/data/import_report.hpp"
#include "tunewright/data/table.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/scanner.hpp"

namespace tunewright::data {

/// The latency of a configuration, given the repeats in a file.
enum class Latency : std::uint8_t {
  Median,  ///< as everywhere in this library
  Mean     ///< as in the tuners that write such files, for comparisons with them
};

/// Information that a file lacks or has wrong: a name given here has precedence.
struct TableSource {
  std::string file{};  ///< for messages
  std::string device{}, kernel{}, problem{};
  Latency latency = Latency::Median;  ///< sets `Timing::median` of the table's outcomes
};

/// A table and the report of its import. `report.lines` counts records, because these formats are not line-based; bad
/// records are listed with their first line.
struct ImportedTable {
  Table table;
  ImportReport report;
};

/// Common parts of the importers of tables.
namespace table_import {

/// A value of a parameter as text: words without quotes, integers without fraction or exponent, so that 16, 16.0 and
/// "16" are one value. Non-finite numbers remain words.
void canonical(std::string_view json, std::string& into);

/// Seconds per unit of time, by its name. Throws `FormatError` for an unknown name.
double seconds_in(std::string_view unit);

/// A latency from repeats and the source's summary of them, in units of `unit_s` seconds. Throws `FormatError` for
/// invalid latencies and for a summary in another unit than the repeats.
Timing timing(std::vector<double> repeats, double summary, double unit_s);

/// A cost in seconds that may be absent or zero but not negative.
Seconds price(double value, double unit_s);

/// Builds a table from rows. Parameters are declared, or those of the first row.
class Builder {
 public:
  void declare(Parameter parameter);
  [[nodiscard]] bool declared() const noexcept { return declared_; }

  /// Reserves memory, after all parameters are declared, for `count` rows, and at most for as many as a text of
  /// `text_bytes` can have; more rows may come.
  void expect_rows(std::size_t count, std::size_t text_bytes);

  void begin_row();
  /// False if there is no parameter of that name. Throws `FormatError` for an undeclared value.
  bool set(std::string_view name, std::string_view json);
  /// Adds the current row. Throws `FormatError` if a parameter is missing or the configuration is repeated.
  void end_row(Outcome outcome);

  /// The table, with undeclared values in ascending order.
  Table finish();

 private:
  static constexpr std::uint16_t unset = 0xffff;

  /// Gives each row its choice `c` of parameter `k` as `by[c]`.
  void replace_choices(std::size_t k, std::span<const std::uint16_t> by);
  /// Drops values that only refused records had.
  void keep_recorded_values(std::size_t k);
  void sort_values();

  Table table_;
  std::vector<Parameter> parameters_;
  std::vector<std::uint16_t> row_;
  std::unordered_set<std::uint64_t> known_;
  std::string value_;
  std::size_t next_ = 0;
  bool declared_ = false;
};

/// Counts records and stores the positions of bad ones.
class Records {
 public:
  Records(std::string_view text, ImportReport& report) : text_(text), report_(report) {}

  /// Reads one record with `read(scanner)`. If it throws, the record is skipped and listed; if even skipping fails, the
  /// rest of the text is damaged and the exception propagates.
  template <class Read>
  void one(json::Scanner& in, const Read& read) {
    in.peek();
    const char* from = in.position();
    ++report_.lines;
    try {
      read(in);
      ++report_.records;
    } catch (const FormatError& error) {
      const std::size_t line = line_of(from);
      in.skip_to(from);
      try {
        (void)in.skip_value();
      } catch (const FormatError&) {
        report_.add_bad(line, "cut short or not JSON");
        throw;
      }
      report_.add_bad(line, error.what());
    }
  }

 private:
  std::size_t line_of(const char* position);

  std::string_view text_;
  ImportReport& report_;
  std::size_t counted_ = 0, line_ = 1;
};

/// The last step of all importers. Throws `FormatError` for a file without any record.
ImportedTable finish(Builder& builder, ImportReport report, const TableSource& source, const Table& described);

}  // namespace table_import
}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include "tunewright/core/number_text.hpp"
#include "tunewright/stats/robust.hpp"

namespace tunewright::data::table_import {

TUNEWRIGHT_INLINE void canonical(std::string_view json, std::string& into) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string word;
  if (!json.empty() && json.front() == '"') {
    json::Scanner(json).string(word);
    json = word;
  }
  if (!json.empty() && json.front() != '0' && std::all_of(json.begin(), json.end(), is_digit)) {
    into.assign(json);
    return;
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(json.data(), json.data() + json.size(), value);
  if (error != std::errc() || stop != json.data() + json.size() || !std::isfinite(value)) {
    into.assign(json);
    return;
  }
  char digits[32];
  const bool whole = value == std::trunc(value) && std::abs(value) < 1e15;
  const auto written = whole ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value))
                             : std::to_chars(digits, digits + sizeof digits, value);
  into.assign(digits, written.ptr);
}

TUNEWRIGHT_INLINE double seconds_in(std::string_view unit) {
  std::string name(unit);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (name == "s" || name == "sec" || name == "second" || name == "seconds") return 1;
  if (name == "ms" || name == "millisecond" || name == "milliseconds") return 1e-3;
  if (name == "miliseconds") return 1e-3;  // how the tuner that writes T4 files spells it
  if (name == "us" || name == "microsecond" || name == "microseconds") return 1e-6;
  if (name == "ns" || name == "nanosecond" || name == "nanoseconds") return 1e-9;
  throw FormatError("the unit of time '" + name + "' is unknown; s, ms, us and ns are known");
}

TUNEWRIGHT_INLINE Timing timing(std::vector<double> repeats, double summary, double unit_s) {
  const bool has_repeats = !repeats.empty();
  if (!has_repeats) repeats.push_back(summary);
  for (const double repeat : repeats) {
    if (!(repeat > 0) || !std::isfinite(repeat))
      throw FormatError("a time of " + number_text(repeat) + " is no latency");
  }
  // Mean, median and other summaries lie between them.
  const auto [least, most] = std::minmax_element(repeats.begin(), repeats.end());
  if (!(*least * unit_s > 0)) throw FormatError("a time too short for a number in seconds is no latency");
  if (!(summary < 100 * *most && *least < 100 * summary)) {
    throw FormatError("the time is " + number_text(summary) + " but its repeats are between " + number_text(*least) +
                      " and " + number_text(*most) + ": units are mixed");
  }
  Timing timing;
  timing.repeats.reserve(repeats.size());
  for (const double repeat : repeats) timing.repeats.emplace_back(repeat * unit_s);
  const stats::MedianAndDeviation spread = stats::median_and_deviation(repeats);
  timing.median_absolute_deviation = Seconds(spread.deviation * unit_s);
  timing.median = Seconds(spread.median * unit_s);
  timing.stopped = StopReason::Precise;  // nothing says that its program wanted more repeats than it took
  return timing;
}

TUNEWRIGHT_INLINE Seconds price(double value, double unit_s) {
  if (!(value >= 0) || !std::isfinite(value)) throw FormatError("a price of " + number_text(value) + " is no time");
  return Seconds(value * unit_s);
}

TUNEWRIGHT_INLINE void Builder::declare(Parameter parameter) {
  if (parameter.values.empty()) throw FormatError("parameter '" + parameter.name + "' has no values");
  if (parameter.values.size() > unset) {
    throw FormatError("parameter '" + parameter.name + "' has " + std::to_string(parameter.values.size()) +
                      " values; at most " + std::to_string(unset) + " are read");
  }
  for (const Parameter& known : parameters_)
    if (known.name == parameter.name) throw FormatError("parameter '" + parameter.name + "' is declared twice");
  declared_ = true;
  parameters_.push_back(std::move(parameter));
}

TUNEWRIGHT_INLINE void Builder::expect_rows(std::size_t count, std::size_t text_bytes) {
  // A row takes at least a byte for each parameter; a forged estimate could ask for more memory than there is.
  count = std::min(count, text_bytes / std::max<std::size_t>(parameters_.size(), 1));
  known_.reserve(count);
  table_.outcomes.reserve(count);
  table_.choices.reserve(count * parameters_.size());
}

TUNEWRIGHT_INLINE void Builder::begin_row() {
  if (!declared_ && table_.size() == 0) parameters_.clear();  // those of a first record that was none
  row_.assign(parameters_.size(), unset);
  next_ = 0;
}

TUNEWRIGHT_INLINE bool Builder::set(std::string_view name, std::string_view json) {
  std::size_t k = next_;  // rows mostly name parameters in one order
  if (k >= parameters_.size() || parameters_[k].name != name) {
    for (k = 0; k < parameters_.size() && parameters_[k].name != name;) ++k;
  }
  if (k == parameters_.size()) {
    if (declared_ || table_.size() > 0) return false;
    parameters_.push_back({.name = std::string(name)});
    row_.push_back(unset);
  }
  canonical(json, value_);
  std::vector<std::string>& values = parameters_[k].values;
  const auto found = std::find(values.begin(), values.end(), value_);
  const auto choice = static_cast<std::size_t>(found - values.begin());
  if (found == values.end()) {
    if (declared_) throw FormatError("parameter '" + parameters_[k].name + "' has no value " + value_);
    if (choice >= unset) throw FormatError("parameter '" + parameters_[k].name + "' has too many values");
    values.push_back(value_);
  }
  row_[k] = static_cast<std::uint16_t>(choice);
  next_ = k + 1;
  return true;
}

TUNEWRIGHT_INLINE void Builder::end_row(Outcome outcome) {
  StableHash hash;
  std::uint64_t four = 0;  // choices in one number
  for (std::size_t k = 0; k < row_.size(); ++k) {
    if (row_[k] == unset) throw FormatError("parameter '" + parameters_[k].name + "' has no value");
    four = four << 16U | row_[k];
    if (k % 4 == 3) hash.add(four);
  }
  hash.add(four);
  if (row_.empty()) throw FormatError("the record has no configuration");
  if (!known_.insert(hash.value()).second) throw FormatError("the configuration was recorded before");
  table_.choices.insert(table_.choices.end(), row_.begin(), row_.end());
  table_.outcomes.push_back(std::move(outcome));
}

TUNEWRIGHT_INLINE Table Builder::finish() {
  table_.parameters = std::move(parameters_);
  if (!declared_) sort_values();
  return std::move(table_);
}

TUNEWRIGHT_INLINE void Builder::replace_choices(std::size_t k, std::span<const std::uint16_t> by) {
  for (std::size_t i = k; i < table_.choices.size(); i += table_.parameters.size())
    table_.choices[i] = by[table_.choices[i]];
}

TUNEWRIGHT_INLINE void Builder::keep_recorded_values(std::size_t k) {
  std::vector<std::string>& values = table_.parameters[k].values;
  std::vector<bool> recorded(values.size());
  for (std::size_t i = k; i < table_.choices.size(); i += table_.parameters.size()) recorded[table_.choices[i]] = true;
  std::vector<std::string> kept;
  std::vector<std::uint16_t> place(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (!recorded[v]) continue;
    place[v] = static_cast<std::uint16_t>(kept.size());
    kept.push_back(std::move(values[v]));
  }
  values = std::move(kept);
  replace_choices(k, place);
}

TUNEWRIGHT_INLINE void Builder::sort_values() {
  for (std::size_t k = 0; k < table_.parameters.size(); ++k) {
    Parameter& parameter = table_.parameters[k];
    keep_recorded_values(k);
    std::vector<std::uint16_t> order(parameter.values.size()), rank(order.size());
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    const bool numeric = parameter.numeric();
    std::sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) {
      return numeric ? parameter.number(a) < parameter.number(b) : parameter.values[a] < parameter.values[b];
    });
    std::vector<std::string> sorted;
    for (std::size_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = static_cast<std::uint16_t>(i);
      sorted.push_back(std::move(parameter.values[order[i]]));
    }
    parameter.values = std::move(sorted);
    replace_choices(k, rank);
  }
}

TUNEWRIGHT_INLINE std::size_t Records::line_of(const char* position) {
  const auto to = static_cast<std::size_t>(position - text_.data());
  line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                               text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
  counted_ = to;
  return line_;
}

TUNEWRIGHT_INLINE ImportedTable finish(Builder& builder, ImportReport report, const TableSource& source,
                                       const Table& described) {
  report.file = source.file;
  if (report.records == 0) {
    throw FormatError(
        "'" + source.file + "' holds no measurement" + (report.damage.empty() ? "" : ": " + report.damage) +
        (report.bad_lines.empty()
             ? ""
             : "; line " + std::to_string(report.bad_lines[0].number) + ": " + report.bad_lines[0].reason));
  }
  ImportedTable result{builder.finish(), std::move(report)};
  Table& table = result.table;
  table.device = source.device.empty() ? described.device : source.device;
  table.kernel = source.kernel.empty() ? described.kernel : source.kernel;
  table.problem = source.problem.empty() ? described.problem : source.problem;
  table.flops = described.flops;
  if (table.device.empty()) {
    throw FormatError("'" + source.file + "' names no device; name it in TableSource::device");
  }
  for (Outcome& outcome : table.outcomes) {
    result.report.failed += outcome.valid() ? 0U : 1U;
    Timing* timing = std::get_if<Timing>(&outcome.result);
    if (timing == nullptr || source.latency == Latency::Median) continue;
    timing->median = std::accumulate(timing->repeats.begin(), timing->repeats.end(), Seconds(0)) /
                     static_cast<double>(timing->repeats.size());
  }
  return result;
}

}  // namespace tunewright::data::table_import

#endif
