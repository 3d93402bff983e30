// SPDX-License-Identifier: Apache-2.0
// A log of TVM's auto_scheduler as programs. Steps are primitives of whole rows; replayed on the computation of their
// workload they are refused or make a schedule whose steps read equal and whose program is also that of its own steps
// as a log. Every record becomes one of the dataset, with a row for each statement or none.
#include "tunewright/data/auto_scheduler_programs.hpp"

#include <cstddef>
#include <string>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_log/replay.hpp"
#include "tunewright/features/primitives.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/schedule/ansor/from_schedule.hpp"
#include "tunewright/schedule/json.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text(bytes, size));
  data::AutoSchedulerLog log(file.path(), {.max_line_bytes = 4096});
  data::AutoSchedulerPrograms programs("device");
  data::Dataset dataset;
  for (data::AutoSchedulerRecord record; log.next(record);) {
    for (const features::Primitives& primitives : {features::Primitives::cpu(), features::Primitives::gpu()}) {
      FeatureBatch rows(primitives.columns);
      primitives.describe(record.steps, rows);
      fuzz::require(rows.programs() == 1 && rows.rows() <= primitives.max_rows, "primitives are as many as fit");
    }
    programs.append(record, dataset);
    const Task* task = programs.task(record);
    if (task == nullptr) continue;
    fuzz::require(task->target.kind == DeviceKind::Gpu || task->target.threads > 0, "a processor has threads");
    schedule::Schedule replayed;
    std::string text;
    if (!fuzz::accepts<schedule::ScheduleError>([&] {
          replayed = data::ansor::to_schedule(task->graph, record.steps);
          text = loops::to_string(loops::lower(replayed));
        }))
      continue;
    fuzz::require(schedule::steps_from_json(schedule::to_json(replayed.steps)) == replayed.steps, "steps read equal");
    const auto again = data::ansor::to_schedule(task->graph, schedule::ansor::from_schedule(replayed));
    fuzz::require(loops::to_string(loops::lower(again)) == text,
                  "steps that are written again are of the same program");
  }
  dataset.check();
  fuzz::require(dataset.size() == log.report().records, "each record is one of the dataset");
  fuzz::require(dataset.size() == 0 || dataset.x.programs() == dataset.size(), "each record has its features");
  return 0;
}
