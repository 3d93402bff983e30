// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Version of the lines that describe tasks. Older readers skip them as lines of a newer schema, and read the records
/// in between.
inline constexpr int task_schema = 2;

/// A task as one line of a journal, without its newline:
///
///   {"schema":2,"task":"<16 hex>","task_name":"matmul 1024","workload":"<16 hex>","flops":2147483648,"weight":1,
///    "target":{"name":"...","kind":"cpu","threads":16, ..},"graph":[..]}
///
/// "graph" is `Task::graph_json`, from which `program::with_graph` rebuilds the computation; it is omitted for a task
/// without a graph. Names that are not UTF-8 are repaired.
[[nodiscard]] std::string to_line(const Task& task);

/// What readers reject about a member of a task, e.g. "'weight' is not above 0 and finite"; empty if nothing.
[[nodiscard]] std::string refused_member(const Task& task);

/// Whether a line begins like those of `to_line(task)`.
[[nodiscard]] bool describes_task(std::string_view line);

/// Whether a line is of a version that this library does not know yet: records and descriptions count theirs together.
[[nodiscard]] bool is_of_newer_schema(std::string_view line);

/// Reads one line: a task with `graph_json` instead of its graph. Unknown members are skipped. Throws `std::exception`
/// with a readable reason unless it is a complete description whose task has the hash in the line.
[[nodiscard]] Task task_from_line(std::string_view line);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/utf8.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::data::task_json {

/// Calls `field(key, member)` for all members of a target.
template <class Target, class F>
void for_each_field(Target& target, const F& field) {
  field("name", target.name);
  field("kind", target.kind);
  field("threads", target.threads);
  field("isa", target.isa);
  field("cache_line_bytes", target.cache_line_bytes);
  field("l1_bytes", target.l1_bytes);
  field("l2_bytes", target.l2_bytes);
  field("l3_bytes", target.l3_bytes);
  field("vector_datapath_bytes", target.vector_datapath_bytes);
  field("shared_memory_per_block_bytes", target.shared_memory_per_block_bytes);
  field("max_shared_memory_per_block_bytes", target.max_shared_memory_per_block_bytes);
  field("shared_memory_per_multiprocessor_bytes", target.shared_memory_per_multiprocessor_bytes);
  field("registers_per_block", target.registers_per_block);
  field("registers_per_multiprocessor", target.registers_per_multiprocessor);
  field("max_registers_per_thread", target.max_registers_per_thread);
  field("max_threads_per_block", target.max_threads_per_block);
  field("max_threads_per_multiprocessor", target.max_threads_per_multiprocessor);
  field("max_blocks_per_multiprocessor", target.max_blocks_per_multiprocessor);
  field("max_vthread_extent", target.max_vthread_extent);
  field("warp_size", target.warp_size);
  field("multiprocessors", target.multiprocessors);
  field("peak_fp32_gflops", target.peak_fp32_gflops);
  field("peak_gb_per_s", target.peak_gb_per_s);
  field("architecture", target.architecture);
  field("peak_tensor_gflops", target.peak_tensor_gflops);
  field("tensor_units", target.tensor_units);
}

template <class T>
void read(json::Scanner& in, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    in.string(value);
  } else if constexpr (std::is_same_v<T, double>) {
    value = in.number();
  } else if constexpr (std::is_same_v<T, DeviceKind>) {
    const std::string written = in.string();
    if (written != "cpu" && written != "gpu") in.fail("expected \"cpu\" or \"gpu\"");
    value = written == "cpu" ? DeviceKind::Cpu : DeviceKind::Gpu;
  } else if constexpr (std::is_same_v<T, Isa>) {
    const std::string written = in.string();
    for (const Isa isa : all_isas) {
      if (tunewright::name(isa) != written) continue;
      value = isa;
      return;
    }
    in.fail("expected the name of an instruction set");
  } else {
    static_assert(std::is_unsigned_v<T>);
    // Scanner's fast path for short numbers needs a comma or a bracket after them.
    const double number = in.number();
    constexpr double most = std::min(0x1p53, static_cast<double>(std::numeric_limits<T>::max()));
    if (!(number >= 0 && number <= most) || number != std::trunc(number)) in.fail("expected a size");
    value = static_cast<T>(number);
  }
}

/// Keys may be followed by white space; `Scanner::object` returns the value.
inline void read_target(json::Scanner& in, Target& target) {
  in.object([&](std::string_view key) {
    bool known = false;
    for_each_field(target, [&](std::string_view own, auto& member) {
      if (own != key) return;
      known = true;
      in.peek();
      read(in, member);
    });
    if (!known) static_cast<void>(in.skip_value());
  });
}

/// The value of a line's "schema" if it comes first, as in all lines of a journal; else 0.
inline int schema_of(std::string_view line) {
  try {
    json::Scanner in(line);
    in.expect('{');
    in.peek();
    if (in.plain_string() != "schema") return 0;
    in.expect(':');
    return in.integer<int>();
  } catch (const FormatError&) {
    return 0;
  }
}

}  // namespace tunewright::data::task_json

namespace tunewright::data {

TUNEWRIGHT_INLINE std::string to_line(const Task& task) {
  std::string line = "{\"schema\":" + std::to_string(task_schema);
  const auto member = [&line](std::string_view key, const auto& value) {
    if (line.back() != '{') line += ',';
    json::write(line, key);
    line += ':';
    json::write(line, value);
  };
  const auto text_member = [&member](std::string_view key, std::string_view value) { member(key, value); };
  text_member("task", to_hex(stable_hash(task)));
  text_member("task_name", task.name);
  text_member("workload", to_hex(task.workload_hash));
  member("flops", task.flops);
  member("weight", task.weight);
  line += ",\"target\":{";
  task_json::for_each_field(task.target, [&](std::string_view key, const auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>)
      text_member(key, value);
    else if constexpr (std::is_same_v<T, DeviceKind>)
      text_member(key, value == DeviceKind::Cpu ? "cpu" : "gpu");
    else if constexpr (std::is_same_v<T, Isa>)
      text_member(key, tunewright::name(value));
    else
      member(key, value);
  });
  line += '}';
  if (!task.graph_json.empty()) line += ",\"graph\":" + task.graph_json;
  return line + '}';
}

TUNEWRIGHT_INLINE bool describes_task(std::string_view line) { return task_json::schema_of(line) == task_schema; }

TUNEWRIGHT_INLINE bool is_of_newer_schema(std::string_view line) {
  int schema = 0;
  try {
    json::Scanner in(line);
    in.object([&](std::string_view key) {
      if (key == "schema")
        schema = in.integer<int>();
      else
        static_cast<void>(in.skip_value());
    });
  } catch (const FormatError&) {  // what was read before counts
  }
  return schema > task_schema;
}

TUNEWRIGHT_INLINE Task task_from_line(std::string_view line) {
  if (!describes_task(line)) {
    throw std::runtime_error("no description of a task; those begin with \"schema\":" + std::to_string(task_schema));
  }
  Task task;
  std::string named, workload;
  bool has_target = false;
  json::Scanner in(line);
  in.object([&](std::string_view key) {
    in.peek();
    if (key == "task") {
      in.string(named);
    } else if (key == "task_name") {
      in.string(task.name);
    } else if (key == "workload") {
      in.string(workload);
    } else if (key == "flops") {
      task.flops = in.number();
    } else if (key == "weight") {
      task.weight = in.number();
    } else if (key == "target") {
      task_json::read_target(in, task.target);
      has_target = true;
    } else if (key == "graph") {
      task.graph_json = json::repaired(in.skip_value());
    } else {
      static_cast<void>(in.skip_value());
    }
  });
  in.expect_end();
  if (!has_target) throw std::runtime_error("'target' is missing");
  task.workload_hash = from_hex(workload, "workload");
  if (from_hex(named, "task") != stable_hash(task)) {
    throw std::runtime_error("describes task " + to_hex(stable_hash(task)) + ", but names " + named);
  }
  if (const std::string refused = refused_member(task); !refused.empty()) throw std::runtime_error(refused);
  return task;
}

TUNEWRIGHT_INLINE std::string refused_member(const Task& task) {
  if (!(task.weight > 0) || !std::isfinite(task.weight)) return "'weight' is not above 0 and finite";
  if (!(task.flops >= 0) || !std::isfinite(task.flops)) return "'flops' is below 0 or not finite";
  // Tasks are told apart by it: repaired, it would be that of another.
  if (const std::string& text = task.target.architecture; json::repaired(text) != text)
    return "'architecture' of the target is not UTF-8: '" + json::repaired(text) + "'; give it in UTF-8";
  return {};
}

}  // namespace tunewright::data

#endif
