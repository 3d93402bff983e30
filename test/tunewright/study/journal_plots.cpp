// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/journal_plots.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "support/temporary_folder.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright;

namespace {

std::string text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool contains(const std::string& whole, const std::string& part) { return whole.find(part) != std::string::npos; }

/// 2 * 10 * 10 * 50 = 10^4 operations.
Task small_task(std::string name = "a product") {
  return program::make_task(std::move(name), program::operators::matmul_graph({.m = 10, .n = 10, .k = 50}), Target{});
}

/// The i-th of a search that is guided from the 17th record on: each a microsecond faster than the one before, the
/// second of the first failing. The model has every pair wrong in round 1.
Record measured(const Task& task, unsigned i, bool guided = true) {
  Record record{.task = stable_hash(task),
                .target = stable_hash(task.target),
                .task_name = task.name,
                .target_name = task.target.name,
                .key = i,
                .config = "[]",
                .compiler = "none",
                .outcome = {},
                .seed = 7,
                .round = i / 16,
                .slot = i % 16};
  record.timestamp = Seconds(1000 + i);
  record.outcome.compile_time = Seconds(0.25);
  record.outcome.run_time = Seconds(0.5);
  if (i == 1)
    record.outcome.result = Failure{Fault::RunError, "crashed"};
  else
    record.outcome.result = Timing{.repeats = {}, .median = Seconds(1e-6 * (100 - i))};
  if (guided && i >= 16) record.predicted = -static_cast<float>(i);
  if (guided && i == 16) {
    record.search_time = Seconds(5);
    record.learn_time = Seconds(3);
  }
  return record;
}

std::string write(const support::TemporaryFolder& folder, const char* name, const Task& task, unsigned records,
                  bool guided = true) {
  std::vector<Record> all;
  for (unsigned i = 0; i < records; ++i) all.push_back(measured(task, i, guided));
  const std::string path = folder.file(name);
  std::ofstream out(path);
  data::write_journal(out, all, std::array{task});
  return path;
}

}  // namespace

TEST_CASE("a journal becomes five scripts whose numbers are those of its records") {
  const support::TemporaryFolder folder;
  const std::vector<std::string> journals{write(folder, "m.jsonl", small_task(), 32)};
  const auto plots = study::plot_journals(journals, folder.file("plots"),
                                          {.lines = {{"a library", 50e-6}}, .peak_gflops = 2, .peak_gb_per_s = 4});
  CHECK(plots.remarks.empty());
  REQUIRE(plots.scripts.size() == 5);

  // 10^4 operations in 100 us are 0.1 GFLOP/s, in 69 us 0.145, in 50 us 0.2.
  const std::string best = text(folder.file("plots/a_product.best_so_far.gp"));
  CHECK(contains(best, "\n1 0 0.1\n3 2 0.102041\n4 3 0.103093\n"));
  CHECK(contains(best, "\n32 31 0.144928\n32 31 0.144928\nEOD"));
  CHECK(contains(best, "0.2 with lines dashtype 2 linewidth 2 title 'a library'"));
  CHECK(contains(best, "title 'm.jsonl, seed 7'"));
  CHECK_FALSE(contains(best, ", \n"));  // gnuplot warns of a comma behind the last curve

  CHECK(contains(text(folder.file("plots/a_product.model_accuracy.gp")), "\n32 0\nEOD"));

  // 16 s measuring, 8 s compiling, 5 s searching, 3 s learning.
  const std::string split = text(folder.file("plots/a_product.time_split.gp"));
  CHECK(contains(split, "\n1 0.5 0.75 0.75 0.75\n"));
  CHECK(contains(split, "\n32 16 24 29 32\nEOD"));
  CHECK(contains(split, "'measure 16 s, 50 %'"));
  CHECK(contains(split, "'learn 3 s, 9 %'"));

  const std::string explored = text(folder.file("plots/a_product.explored_space.gp"));
  CHECK(contains(explored, "\n0 0 69\n"));  // one program, so one place; 100 us are 69 % of the speed of 69 us
  CHECK(contains(explored, "\n0 0 100\nEOD"));
  CHECK(contains(explored, "title 'failed'"));

  const std::string roofline = text(folder.file("plots/a_product.roofline.gp"));
  CHECK(contains(roofline, " 0.1\n"));
  CHECK(contains(roofline, "\n0.5 2\n"));  // the ridge: 2 GFLOP/s over 4 GB/s
  CHECK(contains(roofline, "'2 GFLOP/s, 4 GB/s'"));
}

TEST_CASE("what a journal has no numbers for is left out, and said") {
  const support::TemporaryFolder folder;
  const std::vector<std::string> journals{write(folder, "old.jsonl", small_task(), 20, false)};
  const auto plots = study::plot_journals(journals, folder.file("plots"));
  CHECK(plots.scripts.size() == 4);
  REQUIRE(plots.remarks.size() == 3);
  CHECK(contains(plots.remarks[0], "a product: no accuracy of the model"));
  CHECK(contains(plots.remarks[1], "has no search and no learning"));
  CHECK(contains(plots.remarks[2], "no roof"));
}

TEST_CASE("tasks of one name have pictures of their own, journals of one task a line each") {
  const support::TemporaryFolder folder;
  const Task other =
      program::make_task("a product", program::operators::matmul_graph({.m = 10, .n = 10, .k = 5}), Target{});
  const std::vector<std::string> journals{write(folder, "a.jsonl", small_task(), 4),
                                          write(folder, "b.jsonl", small_task(), 4),
                                          write(folder, "c.jsonl", other, 4)};
  const auto plots = study::plot_journals(journals, folder.file("plots"));
  const std::string best = text(folder.file("plots/a_product.best_so_far.gp"));
  CHECK(contains(best, "'a.jsonl, seed 7'"));
  CHECK(contains(best, "'b.jsonl, seed 7'"));
  CHECK(contains(text(folder.file("plots/a_product-2.best_so_far.gp")), "'c.jsonl, seed 7'"));
}

TEST_CASE("a picture of candidates has no more points than allowed, and a search without a program one of time") {
  const support::TemporaryFolder folder;
  const Task task = small_task();
  std::vector<std::string> journals{write(folder, "m.jsonl", task, 32)};
  (void)study::plot_journals(journals, folder.file("plots"), {.max_points = 5});
  const std::string explored = text(folder.file("plots/a_product.explored_space.gp"));
  CHECK(std::count(explored.begin(), explored.end(), '\n') < 25);

  Record failed = measured(task, 1);
  journals = {folder.file("failed.jsonl")};
  {
    std::ofstream out(journals[0]);
    data::write_journal(out, std::array{failed}, std::array{task});
  }
  const auto plots = study::plot_journals(journals, folder.file("failed"));
  REQUIRE(plots.scripts.size() == 1);
  CHECK(plots.scripts[0].filename() == "a_product.time_split.gp");
  CHECK(contains(plots.remarks[0], "no program ran"));
}

TEST_CASE("bad lines are skipped and reported; no journals, nothing to draw and impossible options are refused") {
  const support::TemporaryFolder folder;
  const std::vector<std::string> journals{write(folder, "m.jsonl", small_task(), 20)};
  std::ofstream(journals[0], std::ios::app) << "garbage\n";
  const auto plots = study::plot_journals(journals, folder.file("plots"));
  CHECK(plots.report.skipped() == 1);
  REQUIRE(plots.report.listed.size() == 1);
  CHECK(plots.report.listed[0].number == 22);

  const auto refused = [&](const std::vector<std::string>& files, const study::PlotOptions& options, const char* why) {
    CHECK_THROWS_WITH((void)study::plot_journals(files, folder.file("plots"), options), doctest::Contains(why));
  };
  refused({}, {}, "no journals were named");
  refused({folder.file("none.jsonl")}, {}, "there is no journal");
  refused(journals, {.lines = {{"zero", 0}}}, "line 'zero' is 0;");
  refused(journals, {.peak_gflops = -1}, "peak_gflops is -1");
  refused(journals, {.peak_gb_per_s = std::numeric_limits<double>::infinity()}, "peak_gb_per_s is inf");
  refused(journals, {.max_points = 0}, "max_points is 0");
  CHECK_THROWS_WITH((void)study::plot_journals(journals, journals[0]), doctest::Contains("m.jsonl' cannot be made"));
  const std::string untold = folder.file("untold.jsonl");
  std::ofstream(untold) << data::to_line(measured(small_task(), 0)) << '\n';
  refused({untold}, {}, "give journals that describe their tasks");
}

TEST_CASE("the command refuses what it does not understand") {
  const auto status = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "tunewright-plot");
    return study::plot_command(static_cast<int>(arguments.size()), arguments.data());
  };
  CHECK(status({}) == 2);
  CHECK(status({"--colour=red", "m.jsonl"}) == 2);
  CHECK(status({"--peak=fast", "m.jsonl"}) == 2);
  CHECK(status({"--line=0.3", "m.jsonl"}) == 2);
  CHECK(status({"--line=x:-1", "m.jsonl"}) == 2);
  CHECK(status({"--line=x:inf", "m.jsonl"}) == 2);
  CHECK(status({"--peak=inf", "m.jsonl"}) == 2);
  CHECK(status({"--bandwidth=nan", "m.jsonl"}) == 2);
  CHECK(status({"/nowhere/m.jsonl"}) == 1);
  CHECK(status({"--help"}) == 0);
}
