// SPDX-License-Identifier: Apache-2.0
// A store of schedules that somebody shares: the first byte is the kind of target, the first line a computation, and
// each other line a configuration of a record. What is stored is saved and reads equal, and starts of a search come of
// it that the space takes, whatever the configurations are.
#include "tunewright/data/schedule_store.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"
#include "tunewright/program/graph_json.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;

namespace {

Target machine(bool has_gpu) {
  if (has_gpu) return gpu_target("V100");
  Target target;
  target.name = "machine";
  target.isa = Isa::Avx2;
  target.threads = 4;
  return target;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  static const fuzz::Folder folder;
  const std::string journal = (folder.path / "journal").string(), saved = (folder.path / "saved").string();
  std::istringstream lines(std::string(fuzz::text(bytes + 1, size - 1)));
  std::string line;
  std::getline(lines, line);
  Task task;
  const bool is_task = fuzz::accepts<std::invalid_argument>([&] {
    (void)fuzz::accepts<FormatError>([&] {
      task = program::make_task("task", std::make_shared<const program::ComputeGraph>(program::graph_from_json(line)),
                                machine(bytes[0] == 'g'));
    });
  });
  if (!is_task || !task.graph || task.graph->size() > 64) return 0;
  std::ofstream out(journal, std::ios::binary);
  out << data::to_line(task) << '\n';
  for (std::size_t count = 1; count <= 8 && std::getline(lines, line); ++count) {
    Record record;
    record.task = stable_hash(task);
    record.key = count;
    record.config = line;
    Timing timing;
    timing.median = Seconds(static_cast<double>(count));
    timing.repeats = {timing.median};
    record.outcome.result = timing;
    out << data::to_line(record) << '\n';
  }
  out.close();

  data::ScheduleStore store(4), again(4);
  store.add({journal});
  store.save(saved);
  if (store.tasks().empty()) return 0;
  again.add({saved});
  fuzz::require(again.tasks().size() == 1 && again.tasks()[0].records == store.tasks()[0].records,
                "a store reads equal");
  const spaces::MultiLevelTiling space;
  const auto check_starts = [&] {
    const data::StoredCandidates found = store.candidates(space, task, 4, 4);
    for (const schedule::Schedule& start : found.schedules) {
      fuzz::require(space.feasible(task, start), "a start of a search is one of its space");
      const auto decoded = space.decode(task, space.encode(start));
      fuzz::require(decoded && space.key(*decoded) == space.key(start), "a start reads equal");
      (void)space.lower(task, start);
    }
  };
  // The task that is searched for is its owner's, not the store's, and its sketches grow with its operators.
  if (task.graph->size() <= 8) (void)fuzz::accepts<std::invalid_argument>(check_starts);
  for (const Record& record : store.tasks()[0].records) {
    if (const auto config = space.decode(task, record.config))
      fuzz::require(space.decode(task, space.encode(*config)).has_value(), "a configuration reads again");
  }
  return 0;
}
