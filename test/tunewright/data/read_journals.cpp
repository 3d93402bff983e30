// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/read_journals.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/splits.hpp"
#include "tunewright/data/task_json.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;

Record record(const Task& task, const toy::Tiles& tiles, unsigned slot, double seconds) {
  Record one;
  one.task = stable_hash(task);
  one.target = stable_hash(task.target);
  one.task_name = task.name;
  one.target_name = task.target.name;
  one.key = toy::Space{}.key(tiles);
  one.config = toy::Space{}.encode(tiles);
  one.compiler = "cc 1";
  one.slot = slot;
  one.outcome.result = Timing{.repeats = {Seconds(seconds)}, .median = Seconds(seconds)};
  return one;
}
Record failed(Record one) {
  one.outcome.result = Failure{Fault::RunTimeout, "stopped"};
  return one;
}

/// Writes lines as they are.
std::string file_of(const support::TemporaryFolder& folder, const std::string& name,
                    const std::vector<std::string>& lines) {
  std::ofstream out(folder.file(name), std::ios::binary);
  for (const std::string& line : lines) out << line << '\n';
  return folder.file(name);
}

data::JournalDataset read(const std::vector<std::string>& paths, const data::JournalSelection& selection = {}) {
  return data::read_journals(paths, toy::Space{}, toy::Features{}, selection);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("journals of two tasks on two targets are one dataset, each group with its own best") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("matmul 64", 64), b = toy::task("matmul 96", 96);
  Task far = a;
  far.target.name = "far";
  far.target.threads = 8;
  const std::string first =
      file_of(folder, "first.jsonl",
              {data::to_line(a), data::to_line(record(a, {1, 1, 1, 1}, 1, 4e-3)), data::to_line(b),
               data::to_line(record(b, {1, 1, 1, 1}, 0, 3e-3)), data::to_line(failed(record(b, {2, 2, 2, 2}, 1, 1)))});
  const std::string second = file_of(folder, "second.jsonl",
                                     {data::to_line(far), data::to_line(record(far, {1, 1, 1, 1}, 0, 5e-3)),
                                      data::to_line(record(far, {2, 2, 2, 2}, 1, 10e-3)), data::to_line(a),
                                      data::to_line(record(a, {3, 3, 3, 3}, 0, 1e-3))});
  const auto [dataset, tasks, report] = read({first, second});

  // By task in the order of their first records; within matmul 64 the record of slot 0 comes first.
  CHECK(dataset.size() == 6);
  CHECK(dataset.cost_s[0] == 1e-3);
  CHECK(dataset.cost_s[1] == 4e-3);
  CHECK(dataset.labels() == std::vector<float>{1, 0.25F, 1, 0, 1, 0.5F});
  CHECK(dataset.groups() == std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2});
  CHECK(dataset.task == std::vector<std::uint32_t>{0, 0, 1, 1, 0, 0});
  CHECK(dataset.target == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1});
  CHECK(dataset.targets == std::vector<std::string>{"generic-cpu", "far"});
  CHECK(dataset.tasks[1].name == "matmul 96");
  CHECK(dataset.tasks[1].flops == 2e6);
  CHECK(dataset.fault[3] == Fault::RunTimeout);
  REQUIRE(tasks.size() == 3);
  CHECK(stable_hash(tasks[2]) == stable_hash(far));
  REQUIRE(dataset.x.programs() == 6);
  CHECK(dataset.x.row(0)[0] == 3);
  CHECK(dataset.x.row(1)[0] == 1);

  CHECK(report.files == 2);
  CHECK(report.lines == 10);
  CHECK(report.records == 6);
  CHECK(report.failed == 1);
  CHECK(report.tasks == 4);
  CHECK(report.skipped() == 0);
  CHECK(data::summary(report) == "2 journals: 6 records (1 failed)");

  // The three splits, as of any dataset.
  CHECK(data::within_task(dataset, 0.5, Rng(1)).test.size() == 3);
  CHECK(data::by_task(dataset, 0.3, Rng(1)).test.size() % 2 == 0);
  CHECK(data::by_target(dataset, {"far"}).test == std::vector<std::size_t>{4, 5});
}

TEST_CASE("lines that cannot be used are skipped, counted and listed with file and line") {
  const support::TemporaryFolder folder;
  const Task known = toy::task(), unknown = toy::task("nobody's", 5);
  Record other = record(known, {5, 5, 5, 5}, 4, 1e-3);
  other.compiler = "cc 2";
  Record foreign = record(known, {1, 1, 1, 1}, 5, 1e-3);
  foreign.config = "99";
  const std::string good = data::to_line(record(known, {1, 1, 1, 1}, 0, 1e-3));
  const std::string path = file_of(folder, "j.jsonl",
                                   {good, "", "garbage", data::to_line(record(unknown, {1, 1, 1, 1}, 0, 1e-3)),
                                    data::to_line(other), data::to_line(foreign), data::to_line(known), good,
                                    data::to_line(record(known, {2, 2, 2, 2}, 1, 2e-3)), good.substr(0, 50)});
  const auto report = read({path}).report;
  CHECK(report.lines == 10);
  CHECK(report.records == 2);
  CHECK(report.blank == 1);
  CHECK(report.tasks == 1);
  CHECK(report.reasons == ReasonCounts{{"no record", 2},
                                       {"unknown task", 1},
                                       {"another compiler", 1},
                                       {"not in the search space", 1},
                                       {"measured twice", 1}});
  CHECK(report.lines == report.records + report.tasks + report.blank + report.skipped());
  REQUIRE(report.listed.size() == 6);
  for (const auto& line : report.listed) CHECK(line.file == path);
  CHECK(report.listed[0].number == 3);
  CHECK(report.listed[1].number == 10);
  CHECK(report.listed[2].number == 4);
  CHECK(contains(report.listed[2].reason, "no line describes task 'nobody's'"));
  CHECK(report.listed[3] == data::JournalReport::Line{path, 5, "another compiler"});
  CHECK(report.listed[4] == data::JournalReport::Line{path, 6, "not in the search space"});
  CHECK(report.listed[5] == data::JournalReport::Line{path, 8, "measured twice"});
  CHECK(contains(data::summary(report), "; 6 lines skipped: 1 another compiler, 1 measured twice, 2 no record"));
  CHECK(contains(data::summary(report), "; " + path + ":5: another compiler"));

  const auto brief = read({path}, {.max_listed = 2}).report;
  CHECK(brief.listed.size() == 2);
  CHECK(brief.skipped() == 6);
  CHECK(contains(data::summary(brief), "; and 4 more"));
}

TEST_CASE("old journals, which describe no task, are read with the tasks given") {
  const support::TemporaryFolder folder;
  const Task task = toy::task();
  const std::string path = file_of(folder, "old.jsonl", {data::to_line(record(task, {1, 1, 1, 1}, 0, 1e-3))});
  CHECK(contains(test::refusal<std::runtime_error>([&] { (void)read({path}); }), "1 unknown task"));
  const auto given = read({path}, {.tasks = {task}});
  CHECK(given.dataset.size() == 1);
  CHECK(given.tasks[0].name == task.name);
}

TEST_CASE("of a target the compiler with most records counts, or the one that was asked for") {
  const support::TemporaryFolder folder;
  const Task task = toy::task();
  std::vector<std::string> lines{data::to_line(task)};
  for (int i = 0; i < 5; ++i) {
    Record one = record(task, {i, 1, 1, 1}, static_cast<unsigned>(i), 1e-3);
    if (i < 2) one.compiler = "cc 2";
    lines.push_back(data::to_line(one));
  }
  const std::string path = file_of(folder, "j.jsonl", lines);
  CHECK(read({path}).dataset.size() == 3);
  CHECK(read({path}, {.compilers = {"cc 3", "cc 2"}}).dataset.size() == 2);
  const std::string refused = test::refusal<std::runtime_error>([&] { (void)read({path}, {.compilers = {"cc 3"}}); });
  CHECK(contains(refused, "no record is left"));
  CHECK(contains(refused, "5 another compiler"));
}

TEST_CASE("tasks and targets of one name stay apart") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("matmul", 1);
  Task b = toy::task("matmul", 2);
  b.target.threads = 4;
  const std::string path = file_of(folder, "j.jsonl",
                                   {data::to_line(a), data::to_line(b), data::to_line(record(a, {1, 1, 1, 1}, 0, 1e-3)),
                                    data::to_line(record(b, {1, 1, 1, 1}, 0, 2e-3))});
  const data::Dataset dataset = read({path}).dataset;
  REQUIRE(dataset.tasks.size() == 2);
  CHECK(dataset.tasks[0].name == "matmul");
  CHECK(dataset.tasks[1].name == "matmul (0000000000000002)");
  REQUIRE(dataset.targets.size() == 2);
  CHECK(dataset.targets[1] == "generic-cpu (" + to_hex(stable_hash(b.target)) + ")");
  CHECK(dataset.labels() == std::vector<float>{1, 1});
}

TEST_CASE("files that are missing, unreadable or no journal are named; so is the lack of any") {
  const support::TemporaryFolder folder;
  const std::string missing = folder.file("missing.jsonl");
  const std::string notes = file_of(folder, "notes.txt", {"milk", "bread"});
  const std::string empty = file_of(folder, "empty.jsonl", {});
  CHECK(contains(test::refusal([] { (void)read({}); }), "no journals were named"));
  CHECK(contains(test::refusal<std::runtime_error>([&] { (void)read({missing}); }), missing));
  CHECK(contains(test::refusal<std::runtime_error>([&] { (void)read({notes}); }), "is no journal"));
  CHECK(contains(test::refusal<std::runtime_error>([&] { (void)read({empty}); }), "no record is left"));
  CHECK_THROWS_AS((void)read({folder.path()}), std::runtime_error);
}

TEST_CASE("a featurizer that leaves a record out is refused: labels would be those of others") {
  struct LeavesOut : toy::Features {
    [[nodiscard]] FeatureBatch extract(const toy::Space& space, const Task& task,
                                       std::span<const toy::Tiles> configs) const {
      return toy::Features::extract(space, task, configs.subspan(1));
    }
  };
  const support::TemporaryFolder folder;
  const Task a = toy::task("matmul 64", 64);
  const std::string path = file_of(folder, "m.jsonl",
                                   {data::to_line(a), data::to_line(record(a, {1, 1, 1, 1}, 0, 4e-3)),
                                    data::to_line(record(a, {2, 2, 2, 2}, 1, 2e-3))});
  CHECK_THROWS_WITH_AS((void)data::read_journals({path}, toy::Space{}, LeavesOut{}),
                       doctest::Contains("gave 1 programs for 2 configurations"), std::logic_error);
}

TEST_CASE("a description whose graph cannot be rebuilt leaves its records out") {
  const support::TemporaryFolder folder;
  Task broken = toy::task("broken", 7);
  broken.graph_json = "[3]";
  const Task whole = toy::task();
  const std::string path = file_of(folder, "j.jsonl",
                                   {data::to_line(broken), data::to_line(record(broken, {1, 1, 1, 1}, 0, 1e-3)),
                                    data::to_line(whole), data::to_line(record(whole, {1, 1, 1, 1}, 0, 1e-3))});
  const auto report = read({path}).report;
  CHECK(report.records == 1);
  CHECK(report.reasons == ReasonCounts{{"unknown task", 1}});
  REQUIRE(report.listed.size() == 1);
  CHECK(report.listed[0].number == 2);
  CHECK(contains(report.listed[0].reason, "graph_json is no graph"));
}

TEST_CASE("schedules of tensor programs are described from the journal alone") {
  const support::TemporaryFolder folder;
  const spaces::MultiLevelTiling space;
  const features::PerStatement featurizer;
  const std::string path = folder.file("j.jsonl");
  std::vector<schedule::Schedule> configs;
  const Task matmul = program::make_task("matmul", program::operators::matmul_graph({16, 16, 16}), Target{});
  {
    data::Journal journal({.path = path});
    RunStatus status;
    status.task = matmul;
    Rng rng(5);
    while (configs.size() < 4) {
      auto config = space.sample(matmul, rng);
      if (!config || std::find(configs.begin(), configs.end(), *config) != configs.end()) continue;
      Record one = record(matmul, {}, static_cast<unsigned>(configs.size()), 1e-3);
      one.config = space.encode(*config);
      configs.push_back(*std::move(config));
      journal.on_record(one, status);
    }
  }
  const auto measured = data::read_journals({path}, space, featurizer);
  const FeatureBatch expected = featurizer.extract(space, matmul, std::span<const schedule::Schedule>(configs));
  REQUIRE(measured.dataset.x.programs() == 4);
  for (std::size_t p = 0; p < 4; ++p) {
    const auto own = measured.dataset.x.program(p), told = expected.program(p);
    CHECK(std::vector<float>(own.begin(), own.end()) == std::vector<float>(told.begin(), told.end()));
  }
  CHECK(measured.dataset.tasks[0].operator_class == "matmul");
  CHECK(measured.report.undescribed == 0);
}
