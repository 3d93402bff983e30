// SPDX-License-Identifier: Apache-2.0
#include "recorded_programs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "recorded_files.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_programs.hpp"
#include "tunewright/features/dataflow.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/features/primitives.hpp"

namespace tunewright::study {

namespace {

// Appends the logs below `folder`, measured on a device called `device`.
void append_logs(RecordedPrograms& to, const std::filesystem::path& root, const std::string& folder,
                 const std::string& device, const Selection& selection, const Rng& rng) {
  auto logs = files(root, folder);
  Rng which = rng.split(1);
  if (selection.tasks > 0 && selection.tasks < logs.size()) {
    which.shuffle(std::span(logs));
    logs.resize(selection.tasks);
    std::sort(logs.begin(), logs.end());
  }
  const features::Primitives primitives =
      device == "x86" ? features::Primitives{.max_rows = 40}
                      : features::Primitives{DeviceKind::Gpu, 40, features::Primitives{}.columns, false};
  const features::Joined<features::PerStatement, features::Dataflow> joined;
  if (to.records.x.columns() == 0) {
    switch (selection.rows) {
      case Selection::Rows::Statements: to.records.x = FeatureBatch(features::per_statement::columns); break;
      case Selection::Rows::StatementsAndDataflow: to.records.x = FeatureBatch(joined.schema().columns.size()); break;
      case Selection::Rows::Steps: to.records.x = FeatureBatch(primitives.columns); break;
    }
  }
  auto describer = joined.describer();
  data::AutoSchedulerPrograms programs(device);
  for (std::size_t log = 0; log < logs.size(); ++log) {
    std::map<std::string, std::vector<data::AutoSchedulerRecord>> of_task;
    data::read_log<data::AutoSchedulerLog>(logs[log].string(), [&](const data::AutoSchedulerRecord& record) {
      of_task[record.task->workload_key].push_back(record);
    });
    for (auto& [key, records] : of_task) {
      std::vector<std::size_t> taken = positions(records.size());
      if (!selection.first) rng.split(2).split(log).shuffle(std::span(taken));
      taken.resize(std::min(taken.size(), selection.records));
      std::sort(taken.begin(), taken.end());
      for (const std::size_t i : taken) {
        FeatureBatch one(to.records.x.columns());
        switch (selection.rows) {
          case Selection::Rows::Statements: programs.describe(records[i], one); break;
          case Selection::Rows::StatementsAndDataflow:
            if (const auto nest = programs.lower(records[i]))
              describer.describe(*nest, *programs.task(records[i]), one);
            break;
          case Selection::Rows::Steps:
            if (programs.task(records[i]) != nullptr) primitives.describe(records[i].steps, one);
            break;
        }
        if (one.rows() == 0) {
          ++to.left_out;
          continue;
        }
        to.records.x.append(one);
        programs.append_result(records[i], to.records);
      }
    }
  }
}

}  // namespace

RecordedPrograms recorded_programs(const std::filesystem::path& root, const std::string& which,
                                   const Selection& selection, std::uint64_t seed) {
  RecordedPrograms programs;
  const Rng rng(seed);
  if (which != "x86") {
    append_logs(programs, root, "roller-tvm-logs/v100/ansor", "V100", selection, rng.split(11));
    append_logs(programs, root, "roller-tvm-logs/k80/ansor", "K80", selection, rng.split(12));
  }
  if (which != "gpu") append_logs(programs, root, "bennu-ansor/x86", "x86", selection, rng.split(13));
  return programs;
}

}  // namespace tunewright::study
