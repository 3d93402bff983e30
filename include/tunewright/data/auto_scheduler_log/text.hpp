// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/data/auto_scheduler_log/record.hpp"
#include "tunewright/data/repeated_part.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::data::ansor {

namespace detail {

inline void read_field(json::Scanner& in, std::int32_t& field) { field = in.integer<std::int32_t>(); }
inline void read_field(json::Scanner& in, std::int64_t& field) { field = in.integer(); }
void read_field(json::Scanner& in, bool& field);
inline void read_field(json::Scanner& in, std::string& field) { in.string(field); }
void read_field(json::Scanner& in, std::vector<std::int32_t>& field);
void read_field(json::Scanner& in, Annotation& field);

template <class T>
void write_field(std::string& out, const T& field) {
  if constexpr (std::is_same_v<T, Annotation>) {
    json::write(out, static_cast<int>(field));
  } else if constexpr (std::is_same_v<T, bool>) {
    json::write(out, field ? 1 : 0);
  } else if constexpr (std::is_same_v<T, std::vector<std::int32_t>>) {
    json::write_array(out, field);
  } else {
    json::write(out, field);
  }
}

// Programs of one log mostly have the same kinds of steps at the same positions; a step of the right kind is
// overwritten and keeps its memory.
template <std::size_t I = 0>
void read_step(json::Scanner& in, std::string_view tag, Step& step) {
  if constexpr (I == std::variant_size_v<Step>) {
    in.fail("unknown transform step '" + std::string(tag) + "'");
  } else {
    if (tag != std::variant_alternative_t<I, Step>::tag) return read_step<I + 1>(in, tag, step);
    if (step.index() != I) step.emplace<I>();
    std::get<I>(step).each([&in](auto&... fields) { ((in.expect(','), read_field(in, fields)), ...); });
  }
}

}  // namespace detail

/// Reads lines; task text that repeats from line to line is parsed once.
class LineParser {
 public:
  void parse(std::string_view line, AutoSchedulerRecord& record);

 private:
  void read_input(json::Scanner& in, std::string_view line, AutoSchedulerRecord& record);

  static TaskInfo read_task(json::Scanner& in);

  RepeatedPart<TaskInfo> task_;
};

[[nodiscard]] std::string write_line(const AutoSchedulerRecord& record);

}  // namespace tunewright::data::ansor

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data::ansor::detail {

TUNEWRIGHT_INLINE void read_field(json::Scanner& in, bool& field) {
  const char c = in.peek();
  field = c == 't' || c == 'f' ? in.boolean() : in.integer() != 0;
}

TUNEWRIGHT_INLINE void read_field(json::Scanner& in, std::vector<std::int32_t>& field) {
  field.clear();
  in.integers(field);
}

TUNEWRIGHT_INLINE void read_field(json::Scanner& in, Annotation& field) {
  const auto number = in.integer();
  if (number < 0 || number > static_cast<int>(Annotation::Tensorize)) {
    in.fail("expected an annotation from 0 to 11, not " + std::to_string(number));
  }
  field = static_cast<Annotation>(number);
}

}  // namespace tunewright::data::ansor::detail

namespace tunewright::data::ansor {

TUNEWRIGHT_INLINE void LineParser::parse(std::string_view line, AutoSchedulerRecord& record) {
  json::Scanner in(line);
  bool has_input = false, has_result = false;
  record.version.clear();
  in.object([&](std::string_view key) {
    if (key == "i") {
      read_input(in, line, record);
      has_input = true;
    } else if (key == "r") {
      data::detail::read_tvm_result(in, record.result, true);
      has_result = true;
    } else if (key == "v") {
      in.string(record.version);
      if (record.version.size() != 4 || record.version.substr(0, 3) != "v0." || record.version[3] < '2' ||
          record.version[3] > '6') {
        in.fail("expected a format version from v0.2 to v0.6, not " + record.version);
      }
    } else {
      in.skip_value();
    }
  });
  in.expect_end();
  if (!has_input) in.fail("the record has no input \"i\"");
  if (!has_result) in.fail("the record has no result \"r\"");
  if (record.version.empty()) in.fail("the record has no version \"v\"");
}

TUNEWRIGHT_INLINE void LineParser::read_input(json::Scanner& in, std::string_view line, AutoSchedulerRecord& record) {
  in.expect('[');
  record.task = task_.read(in, line, read_task);
  in.expect(',');
  in.expect('[');
  in.expect('[');  // stages: always empty, the steps rebuild them
  in.expect(']');
  in.expect(',');
  std::size_t count = 0;
  in.array([&] {
    if (count == record.steps.size()) record.steps.emplace_back();
    in.expect('[');
    const std::string_view tag = in.plain_string();
    detail::read_step(in, tag, record.steps[count++]);
    in.expect(']');
  });
  record.steps.resize(count);
  in.expect(']');
  in.expect(']');
}

TUNEWRIGHT_INLINE TaskInfo LineParser::read_task(json::Scanner& in) {
  TaskInfo task;
  in.expect('[');
  in.string(task.workload_key);
  in.expect(',');
  in.string(task.target);
  task.fields = 2;
  if (in.accept(',')) {
    std::vector<std::int64_t> h;
    in.integers(h);
    if (h.size() != 8) in.fail("expected 8 hardware parameters, not " + std::to_string(h.size()));
    for (const std::int64_t value : h)
      if (!std::in_range<std::int32_t>(value))
        in.fail("expected hardware parameters of 32 bits, not " + std::to_string(value));
    task.hardware = {h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]};
    ++task.fields;
  }
  if (task.fields == 3 && in.accept(',')) {
    in.string(task.target_host);
    ++task.fields;
  }
  if (task.fields == 4 && in.accept(',')) {
    task.layout_rewrite = in.integer<int>();
    ++task.fields;
  }
  if (task.fields == 5 && in.accept(',')) {
    in.array([&] { task.input_names.push_back(in.string()); });
    ++task.fields;
  }
  in.expect(']');
  return task;
}

TUNEWRIGHT_INLINE std::string write_line(const AutoSchedulerRecord& record) {
  if (!record.task) throw std::invalid_argument("to_line: the AutoSchedulerRecord has no task; give it one");
  const TaskInfo& task = *record.task;
  const HardwareParameters& h = task.hardware;
  std::string out = "{\"i\": [[";
  json::write(out, task.workload_key);
  out += ", ";
  json::write(out, task.target);
  if (task.fields > 2) {
    json::write_array(out += ", ",
                      std::array{h.cores, h.vector_bytes, h.cache_line_bytes, h.shared_memory_per_block_bytes,
                                 h.local_memory_per_block_bytes, h.threads_per_block, h.vthread_extent, h.warp_size});
  }
  if (task.fields > 3) json::write(out += ", ", task.target_host);
  if (task.fields > 4) json::write(out += ", ", task.layout_rewrite);
  if (task.fields > 5) json::write_array(out += ", ", task.input_names);
  out += "], [[], ";
  json::write_array(out, record.steps, [&out](const Step& step) {
    Step copy = step;  // `each` gives mutable access to serve reading as well
    std::visit(
        [&out](auto& s) {
          out += '[';
          json::write(out, std::decay_t<decltype(s)>::tag);
          s.each([&out](const auto&... fields) { (detail::write_field(out += ", ", fields), ...); });
          out += ']';
        },
        copy);
  });
  out += "]], \"r\": ";
  data::detail::write_tvm_result(out, record.result, true);
  out += ", \"v\": ";
  json::write(out, record.version);
  out += '}';
  return out;
}

}  // namespace tunewright::data::ansor

#endif
