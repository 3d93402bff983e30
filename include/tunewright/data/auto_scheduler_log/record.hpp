// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/data/tvm_result.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/json/literal.hpp"
#include "tunewright/schedule/ansor/steps.hpp"

namespace tunewright::data {

namespace ansor {

using namespace schedule::ansor;  // the steps

/// The eight hardware parameters of the search; -1 or 0 if meaningless, all 0 if not recorded.
struct HardwareParameters {
  std::int64_t cores = 0;
  std::int64_t vector_bytes = 0;
  std::int64_t cache_line_bytes = 0;
  std::int64_t shared_memory_per_block_bytes = 0;
  std::int64_t local_memory_per_block_bytes = 0;
  std::int64_t threads_per_block = 0;
  std::int64_t vthread_extent = 0;
  std::int64_t warp_size = 0;
  bool operator==(const HardwareParameters&) const = default;
};

/// The tuned task and its target.
struct TaskInfo {
  std::string workload_key;  ///< JSON: a list of the function's name or hash and its arguments
  std::string target;        ///< e.g. "llvm -keys=cpu"
  HardwareParameters hardware;
  std::string target_host;
  int layout_rewrite = 0;  ///< 0 none, 1 by an inserted stage, 2 of weights ahead of time
  std::vector<std::string> input_names;
  unsigned fields = 6;  ///< number of the above members in the record: 2 or 3 in early versions
  bool operator==(const TaskInfo&) const = default;
};

/// The parsed workload key: its first element and the others. Throws `FormatError` unless it is a list that starts with
/// a text.
struct Workload {
  std::string name;  ///< of the function, or a hash of the computation
  std::vector<json::Literal> arguments;
};
[[nodiscard]] Workload parse_workload(std::string_view key);

/// The target as described by a log; `name` is for people. Kinds other than "llvm" and "c" are GPUs.
[[nodiscard]] Target to_target(const TaskInfo& task, std::string name);

}  // namespace ansor

/// One measured program of a TVM auto_scheduler log.
struct AutoSchedulerRecord {
  std::shared_ptr<const ansor::TaskInfo> task;  ///< shared by neighbouring records of one task
  std::vector<ansor::Step> steps;
  TvmResult result;
  std::string version;  ///< of the format, e.g. "v0.6"

  friend bool operator==(const AutoSchedulerRecord& a, const AutoSchedulerRecord& b) {
    const bool same_task = a.task == b.task || (a.task && b.task && *a.task == *b.task);
    return same_task && a.steps == b.steps && a.result == b.result && a.version == b.version;
  }
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data::ansor {

TUNEWRIGHT_INLINE Workload parse_workload(std::string_view key) {
  const json::Literal parsed = json::parse_literal(key);
  const json::Literal::Array* elements = parsed.array();
  if (elements == nullptr || elements->empty() || elements->front().text() == nullptr) {
    throw FormatError("workload key " + std::string(key) + " is no list that starts with a name");
  }
  return {*elements->front().text(), {elements->begin() + 1, elements->end()}};
}

TUNEWRIGHT_INLINE Target to_target(const TaskInfo& task, std::string name) {
  const auto positive = [](std::int64_t value) { return value > 0 ? static_cast<unsigned>(value) : 0U; };
  const std::string kind = task.target.substr(0, task.target.find(' '));
  const HardwareParameters& h = task.hardware;
  Target target;
  target.name = std::move(name);
  if (h.cache_line_bytes > 0) target.cache_line_bytes = positive(h.cache_line_bytes);
  if (kind == "llvm" || kind == "c") {
    target.threads = h.cores > 0 ? positive(h.cores) : 1U;
    const bool is_arm = task.target.find("aarch64") != std::string::npos;
    target.isa = is_arm                 ? Isa::Neon
                 : h.vector_bytes >= 64 ? Isa::Avx512
                 : h.vector_bytes >= 32 ? Isa::Avx2
                                        : Isa::Sse42;
  } else {
    target.kind = DeviceKind::Gpu;
    target.shared_memory_per_block_bytes = positive(h.shared_memory_per_block_bytes);
    target.max_threads_per_block = positive(h.threads_per_block);
    target.max_vthread_extent = positive(h.vthread_extent);
    target.warp_size = positive(h.warp_size);
    target.multiprocessors = positive(h.cores);
  }
  return target;
}

}  // namespace tunewright::data::ansor

#endif
