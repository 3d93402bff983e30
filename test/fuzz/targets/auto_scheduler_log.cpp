// SPDX-License-Identifier: Apache-2.0
// A log of TVM's auto_scheduler, plain or gzip. Every line is a record, blank or bad; a record is written again and
// reads equal, and its outcome is one that journals take. A workload key is refused, unknown, or a computation whose
// JSON reads with the same hash.
#include <memory>
#include <stdexcept>
#include <string>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_log/workloads.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/graph_json.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text(bytes, size));
  data::AutoSchedulerLog log(file.path(), {.max_line_bytes = 4096});
  for (data::AutoSchedulerRecord record; log.next(record);) {
    const std::string line = data::to_line(record);
    fuzz::require(data::parse_auto_scheduler_line(line) == record, "a record reads equal");
    Record kept;
    kept.outcome = data::to_outcome(record.result);
    fuzz::require(data::record_json::refused_number(kept).empty(), "a journal takes the outcome");
    (void)data::ansor::to_target(*record.task, "machine");
    std::shared_ptr<const program::ComputeGraph> graph;
    const bool fits = fuzz::accepts<std::invalid_argument>([&] {
      (void)fuzz::accepts<FormatError>([&] { graph = data::ansor::workload_graph(record.task->workload_key); });
    });
    if (!fits || !graph) continue;
    (void)program::flops(*graph);
    fuzz::require(stable_hash(program::graph_from_json(program::to_json(*graph))) == stable_hash(*graph),
                  "a computation reads with the same hash");
  }
  const data::ImportReport& report = log.report();
  fuzz::require(report.lines == report.records + report.blank + report.bad, "lines are counted once");
  fuzz::require(!data::summary(report).empty(), "a report has a summary");
  return 0;
}
