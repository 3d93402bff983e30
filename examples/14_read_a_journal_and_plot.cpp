// SPDX-License-Identifier: Apache-2.0
//
// Lesson 14: the journal of a search.
//
// Shows:  a journal read back record by record, its fastest schedule, and its plots: best so far, accuracy of the
//         model, explored space, time split, and a roofline.
// Run:    build/release/examples/14_read_a_journal_and_plot
// Expect: counts, the fastest latency from the run and from its journal, and the names of the plot scripts in
//         lesson_14_plots/, next to the plots. The program fails if journal and run disagree or a
//         plot is missing.
//
// Nothing is run: a simulated machine computes all latencies.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/data/journal.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/journal_plots.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

int main() {
  const std::string path = "lesson_14.jsonl";
  std::filesystem::remove(path);
  const Task task =
      program::make_task("matmul 256x256x256", program::operators::matmul_graph({.m = 256, .n = 256, .k = 256}),
                         Target{.name = "simulated", .threads = 4, .isa = Isa::Avx2, .l3_bytes = 8U << 20});
  double best_s = 0;
  {
    data::Journal journal{{.path = path}};
    Tuner<recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::Simulated>> tuner{{.seed = 7}};
    best_s = tuner.run(task, {.trials = 96, .batch = 16}, journal).best()->cost_s();
  }

  // [snippet-begin read]
  // A line describes the task; every other is a measurement, in order of completion. Damaged ones are counted.
  const data::JournalContents contents = data::read_journal(path);
  std::size_t expected = 0;
  for (const Record& record : contents.records) expected += record.predicted ? 1 : 0;
  std::printf("%zu records, %zu bad lines; of %zu a model had said what to expect\n", contents.records.size(),
              contents.bad.size(), expected);

  // The fastest record of a task, and the schedule decoded from its text.
  const std::optional<Record> best = data::best_record(path, task);
  if (!best) return 1;  // nothing of the task ran, or the path is misspelt
  const auto schedule = spaces::MultiLevelTiling{}.decode(task, best->config);
  // [snippet-end read]
  std::printf("fastest: %.1f us in the journal, %.1f us in the run\n", 1e6 * best->outcome.timing()->median.count(),
              1e6 * best_s);

  // [snippet-begin plot]
  // Plots whole journals; {.lines = {{"OpenBLAS", 210e-6}}} would add a library's latency as a reference line.
  const std::vector<std::string> journals{path};
  const study::JournalPlots plots = study::plot_journals(journals, "lesson_14_plots");
  for (const std::string& remark : plots.remarks) std::printf("%s\n", remark.c_str());
  const auto pictures = study::draw(plots.scripts);  // by gnuplot; empty without it
  // [snippet-end plot]
  for (const auto& script : plots.scripts) std::printf("%s\n", script.c_str());
  const bool drawn = pictures.empty() || pictures.size() == plots.scripts.size();
  return best_s == best->outcome.timing()->median.count() && schedule && plots.scripts.size() == 5 && drawn ? 0 : 1;
}
