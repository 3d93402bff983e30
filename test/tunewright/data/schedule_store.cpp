// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/schedule_store.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/full_disk.hpp"
#include "support/refusal.hpp"
#include "support/small_table.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/table.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

namespace {

using namespace tunewright;
using RandomSearch = recipes::Random<spaces::MultiLevelTiling, measurers::Simulated>;

Target machine(unsigned threads = 2) {
  Target target;
  target.name = "machine";
  target.isa = Isa::Avx2;
  target.threads = threads;
  return target;
}

Task product(std::int64_t m, std::int64_t n, std::int64_t k, const Target& target = machine()) {
  const std::string name = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  return program::make_task(name, program::operators::matmul_graph({.m = m, .n = n, .k = k}), target);
}

/// Appends what a random search of `trials` measures to a journal.
void search(const Task& task, const std::string& path, std::size_t trials = 24) {
  data::Journal journal{{.path = path, .many_tasks = true, .warnings = nullptr}};
  Tuner<RandomSearch> tuner{{.seed = 3}};
  (void)tuner.run(task, {.trials = trials, .batch = 8}, journal);
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a store keeps the fastest of each task and gives the nearest shape's first") {
  const support::TemporaryFolder folder;
  const std::string journal = folder.file("journal");
  for (const Task& task : {product(64, 64, 64), product(512, 512, 512), product(128, 128, 128)}) search(task, journal);
  search(program::make_task("dense", program::operators::dense_graph({.batch = 8, .in = 16, .out = 24}), machine()),
         journal);
  data::ScheduleStore store(4);
  store.add({journal});
  REQUIRE(store.tasks().size() == 4);
  for (const data::StoredTask& stored : store.tasks()) {
    REQUIRE(stored.records.size() == 4);
    for (std::size_t r = 1; r < 4; ++r)
      CHECK(stored.records[r - 1].outcome.timing()->median <= stored.records[r].outcome.timing()->median);
  }

  const spaces::MultiLevelTiling space;
  const Task wanted = product(120, 128, 100);
  const data::StoredCandidates found = store.candidates(space, wanted, 6);
  REQUIRE(found.schedules.size() >= 3);
  REQUIRE(found.sources.size() == found.schedules.size());
  CHECK(found.sources[0].task == "128x128x128");
  for (std::size_t i = 0; i < found.schedules.size(); ++i) {
    CHECK(space.feasible(wanted, found.schedules[i]));
    CHECK(found.sources[i].task != "dense");
    if (i > 0) CHECK(found.sources[i - 1].distance <= found.sources[i].distance);
  }

  // The task itself comes first, as it was measured.
  const data::StoredCandidates exact = store.candidates(space, product(512, 512, 512), 1);
  REQUIRE(exact.schedules.size() == 1);
  CHECK(exact.sources[0].distance == 0);
  CHECK(space.encode(exact.schedules[0]) == store.tasks()[1].records[0].config);

  // Nothing is known of other structures.
  const Task transposed = program::make_task(
      "t", program::operators::matmul_graph({.m = 8, .n = 8, .k = 8, .transpose_b = true}), machine());
  CHECK(store.candidates(space, transposed).schedules.empty());
}

TEST_CASE("a store is saved as a journal and read again, alone or with more") {
  const support::TemporaryFolder folder;
  search(product(64, 64, 64), folder.file("a"));
  search(product(32, 48, 64), folder.file("b"));
  data::ScheduleStore store(3);
  store.add({folder.file("a")});
  store.save(folder.file("store"));
  data::ScheduleStore again(3);
  again.add({folder.file("store")});
  REQUIRE(again.tasks().size() == 1);
  CHECK(again.tasks()[0].records == store.tasks()[0].records);
  CHECK(again.report().records == 3);

  again.add({folder.file("b"), folder.file("a")});  // what is there already does not count twice
  REQUIRE(again.tasks().size() == 2);
  CHECK(again.tasks()[0].records == store.tasks()[0].records);
  again.save(folder.file("store"));
  data::ScheduleStore third;
  third.add({folder.file("store")});
  CHECK(third.tasks().size() == 2);
  CHECK(third.report().records == 6);
}

TEST_CASE("lines that are no record and records of other spaces are counted") {
  const support::TemporaryFolder folder;
  search(product(64, 64, 64), folder.file("journal"));
  std::ofstream(folder.file("journal"), std::ios::app) << "{\"garbage\n";
  data::ScheduleStore store(2);
  store.add({folder.file("journal")});
  CHECK(store.report().skipped() == 1);
  CHECK(store.report().listed[0].number == store.report().lines);

  data::ScheduleStore broken(2);
  data::JournalReport report;
  const Task task = product(64, 64, 64);
  std::vector<Record> records = store.tasks()[0].records;
  records[0].config = "[1, 2]";
  records[1].config = "[[\"unroll_limit\",2,[0,16],1]]";
  std::ofstream file(folder.file("broken"));
  data::write_journal(file, records, {&task, 1});
  file.close();
  broken.add({folder.file("broken")});
  const data::StoredCandidates found = broken.candidates(spaces::MultiLevelTiling{}, task);
  CHECK(found.schedules.empty());
  CHECK(found.unfitted == ReasonCounts{{"no list of steps", 1}, {"no sketch of the space has these steps", 1}});
}

TEST_CASE("records of a task without a program are counted, and those beside them are stored") {
  const support::TemporaryFolder folder;
  const data::Table table = small_table();
  const Task task = data::task_of(table);
  const std::vector<Record> records = data::records_of(table, task);
  std::ofstream file(folder.file("journal"));
  data::write_journal(file, records, {&task, 1});
  file.close();
  search(product(64, 64, 64), folder.file("journal"));
  data::ScheduleStore store(2);
  store.add({folder.file("journal")});
  REQUIRE(store.tasks().size() == 1);
  CHECK(store.tasks()[0].task.name == "64x64x64");
  const data::JournalReport& report = store.report();
  CHECK(report.reasons == ReasonCounts{{"no program", records.size()}});
  CHECK(report.lines == report.records + report.tasks + report.blank + report.skipped());
  REQUIRE_FALSE(report.listed.empty());
  CHECK(report.listed[0].number == 2);
  CHECK(contains(report.listed[0].reason, "'" + task.name + "' is described without a program"));
}

TEST_CASE("a store of another target is refused with both named") {
  const support::TemporaryFolder folder;
  search(product(64, 64, 64), folder.file("journal"));
  data::ScheduleStore store;
  store.add({folder.file("journal")});
  const spaces::MultiLevelTiling space;
  const std::string message = test::refusal([&] { (void)store.candidates(space, product(64, 64, 64, machine(8))); });
  CHECK(contains(message, "the store has schedules for 'machine' (2 threads, "));
  CHECK(contains(message, "task '64x64x64' is for 'machine' (8 threads, "));
  CHECK(data::ScheduleStore().candidates(space, product(8, 8, 8)).schedules.empty());

  CHECK(contains(test::refusal([] { data::ScheduleStore none(0); }), "per_task is 0"));
  CHECK(contains(test::refusal([&] { (void)store.candidates(space, Task{}); }), "has no program to look up"));
  CHECK_THROWS_AS(store.add({folder.file("missing")}), std::runtime_error);
}

TEST_CASE("a store that cannot be written says which, and leaves nothing behind") {
  const support::TemporaryFolder folder;
  search(product(64, 64, 64), folder.file("journal"));
  data::ScheduleStore store;
  store.add({folder.file("journal")});
  const auto refused = [&](const std::string& path) {
    return test::refusal<std::runtime_error>([&] { store.save(path); });
  };
  CHECK(contains(refused("/no/such/folder/store"), "cannot write '/no/such/folder/store'"));

  const std::string full = folder.file("full"), taken = folder.file("taken");
  {
    const support::FullDisk disk(0);
    CHECK(contains(refused(full), "cannot write '" + full + "'"));
  }
  CHECK_FALSE(std::filesystem::exists(full + ".unfinished.0"));
  CHECK_FALSE(std::filesystem::exists(full));

  std::filesystem::create_directories(taken + "/by a folder");
  CHECK(contains(refused(taken), "cannot replace '" + taken + "'"));
  CHECK_FALSE(std::filesystem::exists(taken + ".unfinished.0"));
}

TEST_CASE("a search that starts from a store measures its schedules first and goes on from them") {
  const support::TemporaryFolder folder;
  search(product(128, 128, 128), folder.file("journal"), 200);
  // [snippet-begin store]
  data::ScheduleStore store;
  store.add({folder.file("journal")});
  using Recipe = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::Simulated>;
  Tuner<Recipe> tuner{{.seed = 7, .starts = store.starts<Recipe::space>()}};
  const auto run = tuner.run(product(128, 128, 512), {.trials = 16, .batch = 8});
  // [snippet-end store]
  const data::StoredCandidates known = store.candidates(tuner.space, product(128, 128, 512));
  REQUIRE(known.schedules.size() >= 2);
  for (std::size_t i = 0; i < known.schedules.size(); ++i)
    CHECK(run.history.trials()[i].candidate.config == known.schedules[i]);
  Tuner<Recipe> alone{{.seed = 7}};
  const auto without = alone.run(product(128, 128, 512), {.trials = 16, .batch = 8});
  CHECK(run.best()->cost_s() < without.best()->cost_s());
}

TEST_CASE("a promise weighs the classes of a network by the square root of what is stored of them") {
  const support::TemporaryFolder folder;
  const auto dense = [](std::int64_t out) {
    return program::make_task("dense", program::operators::dense_graph({.batch = 8, .in = 16, .out = out}), machine());
  };
  for (const Task& task : {product(64, 64, 64), product(32, 64, 64), product(64, 32, 64), product(64, 64, 32)})
    search(task, folder.file("journal"), 8);
  search(dense(24), folder.file("journal"), 8);
  data::ScheduleStore store(1);
  store.add({folder.file("journal")});

  // Products take 2 * 3 s of 10 s and have four schedules, layers take 4 s and have one: 0.6 * 2 + 0.4 * 1.
  const std::vector<WeightedTask> network{{product(128, 96, 64), 2}, {dense(40), 1}};
  CHECK(store.promise(network, std::vector{Seconds(3), Seconds(4)}) == doctest::Approx(1.6));
  // Two tasks of a class are one class.
  const std::vector<WeightedTask> products{{product(128, 96, 64), 1}, {product(16, 16, 16), 1}};
  CHECK(store.promise(products, std::vector{Seconds(3), Seconds(5)}) == doctest::Approx(2));
  CHECK(data::ScheduleStore().promise(network, std::vector{Seconds(3), Seconds(4)}) == 0);

  const auto refused = [&](const std::vector<WeightedTask>& tasks, const std::vector<Seconds>& seconds) {
    return test::refusal([&] { (void)store.promise(tasks, seconds); });
  };
  CHECK(contains(refused(network, {Seconds(3)}), "1 times for 2 tasks"));
  CHECK(contains(refused({}, {}), "0 times for 0 tasks"));
  CHECK(contains(refused(products, {Seconds(3), Seconds(0)}), "task '16x16x16' takes"));
  CHECK(contains(refused({{product(8, 8, 8, machine(7)), 1}}, {Seconds(1)}), "7 threads"));
  Task without_program = product(8, 8, 8);
  without_program.graph = nullptr;
  CHECK(contains(refused({{without_program, 1}}, {Seconds(1)}), "has no program"));
}
