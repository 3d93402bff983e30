// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/data/log_reader.hpp"
#include "tunewright/data/repeated_part.hpp"
#include "tunewright/data/tvm_result.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/literal.hpp"
#include "tunewright/json/scanner.hpp"

namespace tunewright::data {

namespace autotvm {

/// The tuned task: a template, its arguments (tensors are ["TENSOR", shape, type]), and the target.
struct TaskInfo {
  std::string target;
  std::string name;  ///< of the template, e.g. "conv2d_nchw.cuda"
  std::vector<json::Literal> arguments;
  std::string keywords = "{}";  ///< keyword arguments as text; no known template has any
  bool operator==(const TaskInfo&) const = default;
};

enum class KnobKind : std::uint8_t {
  Split,     ///< "sp": extents of the parts, outermost first; -1 stands for the rest
  Reorder,   ///< "re": order of the axes
  Annotate,  ///< "an": a word for each axis
  Other      ///< "ot": one of a list of values
};

/// One decision of a configuration; its kind determines the member that holds it.
struct Knob {
  std::string name;
  KnobKind kind = KnobKind::Other;
  std::vector<std::int64_t> numbers;  ///< of Split and Reorder
  std::vector<std::string> words;     ///< of Annotate
  json::Literal value;                ///< of Other
  bool operator==(const Knob&) const = default;
};

}  // namespace autotvm

/// One measured configuration of an AutoTVM log.
struct AutoTvmRecord {
  std::shared_ptr<const autotvm::TaskInfo> task;  ///< shared by neighbouring records of one task
  std::int64_t index = 0;                         ///< of the configuration in the template's space
  std::string code_hash;                          ///< empty if missing in the record
  std::vector<autotvm::Knob> knobs;
  TvmResult result;
  std::string version;      ///< of the format: "0.2"
  std::string tvm_version;  ///< empty if missing in the record

  friend bool operator==(const AutoTvmRecord& a, const AutoTvmRecord& b) {
    const bool same_task = a.task == b.task || (a.task && b.task && *a.task == *b.task);
    return same_task && a.index == b.index && a.code_hash == b.code_hash && a.knobs == b.knobs &&
           a.result == b.result && a.version == b.version && a.tvm_version == b.tvm_version;
  }
};

namespace autotvm {

/// Reads lines; task text that repeats from line to line is parsed once.
class LineParser {
 public:
  void parse(std::string_view line, AutoTvmRecord& record);

 private:
  void read_input(json::Scanner& in, std::string_view line, AutoTvmRecord& record);

  [[nodiscard]] static TaskInfo read_task(json::Scanner& in);

  static void read_config(json::Scanner& in, AutoTvmRecord& record);

  static void read_knob(json::Scanner& in, Knob& knob);

  RepeatedPart<TaskInfo> task_;
};

void write_knob(std::string& out, const Knob& knob);

[[nodiscard]] std::string write_line(const AutoTvmRecord& record);

}  // namespace autotvm

/// Reads AutoTVM logs of format 0.2, plain or gzip, record by record:
///
///   data::AutoTvmLog log("conv.log.gz");
///   for (data::AutoTvmRecord record; log.next(record);) use(record);
///   std::cout << summary(log.report());
///
/// A line that is not a record is counted and listed with its reason, never thrown. Memory is bounded by the longest
/// line. Units: seconds, as in the format.
using AutoTvmLog = LogReader<AutoTvmRecord, autotvm::LineParser>;

/// Parses one line. Throws `FormatError` with the column and what was expected there.
[[nodiscard]] AutoTvmRecord parse_autotvm_line(std::string_view line);

/// The record as one line of a log, without the line end; reading it gives an equal record. Throws
/// `std::invalid_argument` for a record without a task.
[[nodiscard]] inline std::string to_line(const AutoTvmRecord& record) { return autotvm::write_line(record); }

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(gzip)

#include "tunewright/json/utf8.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::data::autotvm {

TUNEWRIGHT_INLINE void LineParser::parse(std::string_view line, AutoTvmRecord& record) {
  json::Scanner in(line);
  bool has_input = false, has_config = false, has_result = false;
  record.version.clear();
  record.tvm_version.clear();
  in.object([&](std::string_view key) {
    if (key == "input") {
      read_input(in, line, record);
      has_input = true;
    } else if (key == "config") {
      read_config(in, record);
      has_config = true;
    } else if (key == "result") {
      data::detail::read_tvm_result(in, record.result, false);
      has_result = true;
    } else if (key == "version") {
      record.version = in.skip_value();
      if (record.version != "0.2") in.fail("expected format version 0.2, not " + record.version);
    } else if (key == "tvm_version") {
      in.string(record.tvm_version);
    } else {
      in.skip_value();
    }
  });
  in.expect_end();
  if (!has_input) in.fail("the record has no \"input\"");
  if (!has_config) in.fail("the record has no \"config\"");
  if (!has_result) in.fail("the record has no \"result\"");
  if (record.version.empty()) in.fail("the record has no \"version\"");
}

TUNEWRIGHT_INLINE void LineParser::read_input(json::Scanner& in, std::string_view line, AutoTvmRecord& record) {
  record.task = task_.read(in, line, read_task);
}

TUNEWRIGHT_INLINE TaskInfo LineParser::read_task(json::Scanner& in) {
  TaskInfo task;
  in.expect('[');
  in.string(task.target);
  in.expect(',');
  in.string(task.name);
  in.expect(',');
  in.array([&] { task.arguments.push_back(json::read_literal(in)); });
  if (in.accept(',')) task.keywords = json::repaired(in.skip_value());
  in.expect(']');
  return task;
}

TUNEWRIGHT_INLINE void LineParser::read_config(json::Scanner& in, AutoTvmRecord& record) {
  bool has_entity = false;
  record.index = 0;
  record.code_hash.clear();
  in.object([&](std::string_view key) {
    if (key == "index") {
      record.index = in.integer();
    } else if (key == "code_hash") {
      in.peek() == 'n' ? in.null() : in.string(record.code_hash);
    } else if (key == "entity") {
      has_entity = true;
      std::size_t count = 0;
      in.array([&] {
        if (count == record.knobs.size()) record.knobs.emplace_back();
        read_knob(in, record.knobs[count++]);
      });
      record.knobs.resize(count);
    } else {
      in.skip_value();
    }
  });
  if (!has_entity) in.fail("the configuration has no \"entity\"");
}

TUNEWRIGHT_INLINE void LineParser::read_knob(json::Scanner& in, Knob& knob) {
  knob.numbers.clear();
  knob.words.clear();
  knob.value = {};
  in.expect('[');
  in.string(knob.name);
  in.expect(',');
  in.peek();
  const std::string_view kind = in.plain_string();
  in.expect(',');
  if (kind == "sp" || kind == "re") {
    knob.kind = kind == "sp" ? KnobKind::Split : KnobKind::Reorder;
    in.integers(knob.numbers);
  } else if (kind == "an") {
    knob.kind = KnobKind::Annotate;
    in.array([&] { knob.words.push_back(in.string()); });
  } else if (kind == "ot") {
    knob.kind = KnobKind::Other;
    knob.value = json::read_literal(in);
  } else {
    in.fail("unknown kind of knob '" + std::string(kind) + "'");
  }
  in.expect(']');
}

TUNEWRIGHT_INLINE void write_knob(std::string& out, const Knob& knob) {
  constexpr std::string_view kinds[] = {"sp", "re", "an", "ot"};
  out += '[';
  json::write(out, knob.name);
  json::write(out += ", ", kinds[static_cast<std::size_t>(knob.kind)]);
  out += ", ";
  switch (knob.kind) {
    case KnobKind::Split:
    case KnobKind::Reorder: json::write_array(out, knob.numbers); break;
    case KnobKind::Annotate: json::write_array(out, knob.words); break;
    case KnobKind::Other: json::write(out, knob.value); break;
  }
  out += ']';
}

TUNEWRIGHT_INLINE std::string write_line(const AutoTvmRecord& record) {
  if (!record.task) throw std::invalid_argument("to_line: the AutoTvmRecord has no task; give it one");
  std::string out = "{\"input\": [";
  json::write(out, record.task->target);
  json::write(out += ", ", record.task->name);
  json::write_array(out += ", ", record.task->arguments);
  (out += ", ") += record.task->keywords;
  json::write(out += "], \"config\": {\"index\": ", record.index);
  out += ", \"code_hash\": ";
  record.code_hash.empty() ? void(out += "null") : json::write(out, record.code_hash);
  json::write_array(out += ", \"entity\": ", record.knobs, [&out](const Knob& knob) { write_knob(out, knob); });
  out += "}, \"result\": ";
  data::detail::write_tvm_result(out, record.result, false);
  (out += ", \"version\": ") += record.version;
  if (!record.tvm_version.empty()) json::write(out += ", \"tvm_version\": ", record.tvm_version);
  out += '}';
  return out;
}

}  // namespace tunewright::data::autotvm

namespace tunewright::data {

TUNEWRIGHT_INLINE AutoTvmRecord parse_autotvm_line(std::string_view line) {
  AutoTvmRecord record;
  autotvm::LineParser().parse(line, record);
  return record;
}

}  // namespace tunewright::data

#endif
