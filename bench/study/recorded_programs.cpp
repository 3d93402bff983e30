// SPDX-License-Identifier: Apache-2.0
#include "recorded_programs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../collection.hpp"
#include "recorded_files.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_programs.hpp"
#include "tunewright/data/read_journals.hpp"
#include "tunewright/features/dataflow.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/features/primitives.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

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

// What the index of a collection tells of a task's journal.
const bench::IndexedJournal& journal_of(const Task& task, const std::filesystem::path& folder,
                                        const std::map<std::string, bench::IndexedJournal>& index) {
  const std::string file = bench::CollectedFiles(folder, task).measured.lexically_relative(folder).string();
  const auto known = index.find(file);
  if (known == index.end()) {
    throw std::runtime_error((folder / "index.jsonl").string() + " has no " + file + ", the journal of '" + task.name +
                             "'; journals keep the names that `collect` gives them");
  }
  return known->second;
}

RecordedPrograms collected_programs(const std::filesystem::path& folder, const Selection& selection, const Rng& rng) {
  std::map<std::string, std::vector<std::string>> of_target;
  const std::map<std::string, bench::IndexedJournal> index = bench::read_index(folder);
  for (const auto& [file, journal] : index)
    of_target[std::filesystem::path(file).parent_path().string()].push_back(folder / file);
  std::vector<std::string> paths;
  for (auto& [target, own] : of_target) {
    rng.split(1).shuffle(std::span(own));
    if (selection.tasks > 0 && selection.tasks < own.size()) own.resize(selection.tasks);
    std::sort(own.begin(), own.end());
    paths.insert(paths.end(), own.begin(), own.end());
  }
  const spaces::MultiLevelTiling space;
  const auto read = [&](const auto& featurizer) { return data::read_journals(paths, space, featurizer); };
  data::JournalDataset all;
  switch (selection.rows) {
    case Selection::Rows::Statements: all = read(features::PerStatement{}); break;
    case Selection::Rows::StatementsAndDataflow:
      all = read(features::Joined<features::PerStatement, features::Dataflow>{});
      break;
    case Selection::Rows::Steps: all = read(features::Primitives::cpu()); break;
  }

  RecordedPrograms programs;
  programs.left_out = all.report.undescribed + all.report.skipped();
  const std::vector<std::vector<std::size_t>> groups = all.dataset.by_group();
  std::vector<std::size_t> taken;
  std::vector<bool> drawn(all.dataset.size());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const Task& task = all.tasks[group];
    const bench::IndexedJournal& journal = journal_of(task, folder, index);
    const std::size_t first = groups[group].front();
    add_networks(programs.networks, all.dataset.tasks[all.dataset.task[first]].name, journal.networks);
    // Programs that cannot be described were drawn, too.
    for (std::size_t place = 0; place < std::min(journal.drawn, groups[group].size()); ++place)
      drawn[groups[group][place]] = true;
    all.dataset.targets[all.dataset.target[first]] = bench::folder_name(task.target);
    std::vector<std::size_t> described;
    for (const std::size_t i : groups[group])
      if (!all.dataset.x.program(i).empty()) described.push_back(i);
    if (!selection.first) rng.split(2).split(group).shuffle(std::span(described));
    if (described.size() > selection.records) described.resize(selection.records);
    std::sort(described.begin(), described.end());
    taken.insert(taken.end(), described.begin(), described.end());
  }
  programs.records = all.dataset.subset(taken);
  for (const std::size_t i : taken) programs.drawn.push_back(drawn[i]);
  return programs;
}

}  // namespace

RecordedPrograms recorded_programs(const std::filesystem::path& root, const std::string& which,
                                   const Selection& selection, std::uint64_t seed) {
  RecordedPrograms programs;
  const Rng rng(seed);
  if (which == collection_folder) return collected_programs(root / collection_folder, selection, rng.split(14));
  if (which != "x86") {
    append_logs(programs, root, "roller-tvm-logs/v100/ansor", "V100", selection, rng.split(11));
    append_logs(programs, root, "roller-tvm-logs/k80/ansor", "K80", selection, rng.split(12));
  }
  if (which != "gpu") append_logs(programs, root, "bennu-ansor/x86", "x86", selection, rng.split(13));
  return programs;
}

}  // namespace tunewright::study
