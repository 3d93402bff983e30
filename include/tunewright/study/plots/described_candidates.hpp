// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::study {

/// Features of the candidates of a task, computed only from their records, for any space.
struct DescribedCandidates {
  std::vector<std::size_t> records{};  ///< [N], positions among those given
  std::size_t columns = 0;             ///< D
  std::vector<float> features{};       ///< (N, D)
  std::vector<double> bytes{};         ///< [N], memory traffic of a program by the model; 0: unknown
  std::string what{};                  ///< names of the columns, for messages
  std::size_t left_out = 0;            ///< records that could not be described
};

/// Describes candidates. If configurations are schedules of the task's graph: the 164 columns of
/// `features::PerStatement`, summed over the rows of a program, and the bytes that pass the last-level cache, or on a
/// GPU those that blocks fetch and store (as in `drafts::Roofline`). If they are texts with equally many numbers, as
/// those of spaces with knobs: sign(x) log2(1 + |x|) of these, and no bytes.
///
/// If the texts are neither, nothing is described, and `left_out` is the number of records.
/// Cost:        lowering each schedule, milliseconds.
/// Determinism: a pure function of its arguments.
[[nodiscard]] DescribedCandidates described_candidates(const Task& task, std::span<const Record> records);

}  // namespace tunewright::study

#if TUNEWRIGHT_DEFINES(plots)

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <string_view>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_latency.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_symbols.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/schedule/json.hpp"

namespace tunewright::study::described_candidates_detail {

/// Empty unless `config` is a schedule of the graph.
inline std::optional<loops::LoopNest> nest_of(const Task& task, const std::string& config) {
  try {
    return loops::lower(schedule::Schedule{task.graph, schedule::steps_from_json(config)});
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

class ProgramDescriber {
 public:
  explicit ProgramDescriber(const Task& task) : task_(task), cpu_(task.target, {}) {}

  /// Whether the program could be described.
  bool add(const loops::LoopNest& nest, DescribedCandidates& all) {
    FeatureBatch batch(features::per_statement::columns);
    try {
      features_.describe(nest, task_, batch);
    } catch (const std::exception&) {
      return false;
    }
    std::vector<float> sum(batch.columns());
    for (std::size_t r = 0; r < batch.rows(); ++r)
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += batch.row(r)[c];
    all.features.insert(all.features.end(), sum.begin(), sum.end());
    all.bytes.push_back(bytes(nest));
    return true;
  }

 private:
  double bytes(const loops::LoopNest& nest) {
    try {
      if (task_.target.kind == DeviceKind::Cpu) return cpu_.roof(nest).memory_bytes;
      double sum = 0;
      for (const drafts::GpuSymbols& symbols : gpu_.symbols(nest)) sum += symbols.bytes();
      return sum;
    } catch (const std::exception&) {
      return 0;
    }
  }

  const Task& task_;
  features::per_statement::Describer features_;
  drafts::CpuAnalysis cpu_;
  drafts::GpuSymbolReader gpu_;
};

/// All numbers in the text.
inline std::vector<float> knobs_of(const std::string& config) {
  std::vector<float> knobs;
  const char* at = config.c_str();
  while (*at != '\0') {
    if ((*at < '0' || *at > '9') && *at != '-') {
      ++at;
      continue;
    }
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    if (end == at) {
      ++at;
      continue;
    }
    at = end;
    if (std::isfinite(value)) knobs.push_back(static_cast<float>(std::copysign(std::log2(1 + std::abs(value)), value)));
  }
  return knobs;
}

inline DescribedCandidates by_knobs(std::span<const Record> records) {
  std::map<std::size_t, std::size_t> counts;
  for (const Record& record : records) ++counts[knobs_of(record.config).size()];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; });
  DescribedCandidates all;
  if (most != counts.end()) all.columns = most->first;
  all.what = std::to_string(all.columns) + " knobs";
  for (std::size_t i = 0; i < records.size() && all.columns > 0; ++i) {
    const std::vector<float> knobs = knobs_of(records[i].config);
    if (knobs.size() != all.columns) continue;
    all.records.push_back(i);
    all.features.insert(all.features.end(), knobs.begin(), knobs.end());
    all.bytes.push_back(0);
  }
  all.left_out = records.size() - all.records.size();
  return all;
}

}  // namespace tunewright::study::described_candidates_detail

namespace tunewright::study {

TUNEWRIGHT_INLINE DescribedCandidates described_candidates(const Task& task, std::span<const Record> records) {
  using namespace described_candidates_detail;
  if (!task.graph) return by_knobs(records);
  DescribedCandidates all{.columns = features::per_statement::columns, .what = "features of statements"};
  ProgramDescriber describer(task);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto nest = nest_of(task, records[i].config);
    if (nest && describer.add(*nest, all)) all.records.push_back(i);
  }
  if (all.records.empty()) return by_knobs(records);
  all.left_out = records.size() - all.records.size();
  return all;
}

}  // namespace tunewright::study

#endif
