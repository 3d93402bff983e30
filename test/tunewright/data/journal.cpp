// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/journal.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <variant>

#include "support/address_space.hpp"
#include "support/full_disk.hpp"
#include "support/refusal.hpp"
#include "support/small_table.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

using namespace tunewright;

namespace {

Record record(const Task& task, const toy::Tiles& tiles, unsigned slot = 0) {
  const toy::Space space;
  return {.task = stable_hash(task),
          .target = stable_hash(task.target),
          .task_name = task.name,
          .target_name = task.target.name,
          .key = space.key(tiles),
          .config = space.encode(tiles),
          .compiler = "",
          .outcome = toy::outcome(tiles),
          .seed = 7,
          .round = 0,
          .slot = slot};
}

data::Journal::Options options(const std::string& path, std::ostream* warnings = nullptr) {
  return {.path = path, .sync_each_line = true, .clock = [] { return Seconds(1234.5); }, .warnings = warnings};
}

void append_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

}  // namespace

TEST_CASE("what is appended is recalled, stamped by the clock given") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  {
    data::Journal journal(options(path));
    journal.append(record(toy::task(), {1, 2, 3, 4}));
    journal.append(record(toy::task(), {4, 3, 2, 1}, 1));
  }
  const auto records = data::Journal(options(path)).recall(toy::task());
  REQUIRE(records.size() == 2);
  Record expected = record(toy::task(), {1, 2, 3, 4});
  expected.timestamp = Seconds(1234.5);
  CHECK(records[0] == expected);
  CHECK(records[1].slot == 1);
}

TEST_CASE("cut, garbage and foreign-version lines are skipped, counted and named by line") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string good = data::to_line(record(toy::task(), {1, 1, 1, 1}));
  append_text(path, good + "\n" + std::string("\x00\xffgarbage", 9) + "\n\n" + good.substr(0, 100) +
                        "\n{\"schema\":99}\n" + good + "\n" + good.substr(0, 40));
  const auto contents = data::read_journal(path);
  CHECK(contents.records.size() == 2);
  CHECK(contents.lines == 7);
  REQUIRE(contents.bad.size() == 4);
  CHECK(contents.bad[0].number == 2);
  CHECK(contents.bad[1].number == 4);
  CHECK(contents.bad[2].number == 5);
  CHECK(contents.bad[2].reason.find("schema 99") != std::string::npos);
  CHECK(contents.bad[3].number == 7);
  CHECK(contents.bad[3].reason.find("cut short") != std::string::npos);

  std::ostringstream warnings;
  CHECK(data::Journal(options(path, &warnings)).recall(toy::task()).size() == 2);
  CHECK(warnings.str().find("4 of 7 lines skipped") != std::string::npos);
  CHECK(warnings.str().find("line 2: ") != std::string::npos);
  CHECK(warnings.str().find("and 1 more") != std::string::npos);
}

TEST_CASE("a writer begins on a fresh line after a torn one, and a whole last line without newline counts") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string good = data::to_line(record(toy::task(), {1, 1, 1, 1}));
  append_text(path, good);
  CHECK(data::read_journal(path).records.size() == 1);
  {
    data::Journal journal(options(path));
    journal.append(record(toy::task(), {2, 2, 2, 2}));
  }
  append_text(path, good.substr(0, 50));
  {
    data::Journal journal(options(path));
    journal.append(record(toy::task(), {3, 3, 3, 3}));
  }
  const auto contents = data::read_journal(path);
  CHECK(contents.records.size() == 3);
  REQUIRE(contents.bad.size() == 1);
  CHECK(contents.bad[0].number == 3);
}

TEST_CASE(
    "opening a journal whose last line has no end changes nothing; with an index or without, it recalls the same") {
  const std::string first = data::to_line(record(toy::task(), {1, 1, 1, 1})) + "\n";
  const std::string last = data::to_line(record(toy::task(), {2, 2, 2, 2}));
  for (const bool whole : {true, false}) {
    const std::string text = first + (whole ? last : last.substr(0, 50));
    for (const bool indexed : {false, true}) {
      CAPTURE(whole);
      CAPTURE(indexed);
      const support::TemporaryFolder folder;
      const std::string path = folder.file("j.jsonl");
      append_text(path, text);
      std::ostringstream warnings;
      data::Journal::Options how = options(path, &warnings);
      if (indexed) how.index_above_bytes = 0;
      data::Journal journal(how);
      CHECK(journal.recall(toy::task()).size() == (whole ? 2 : 1));
      CHECK((warnings.str().find("1 of 2 lines skipped; line 2: cut short") != std::string::npos) == !whole);
      CHECK(std::filesystem::file_size(path) == text.size());
      journal.append(record(toy::task(), {3, 3, 3, 3}));
      journal.append(record(toy::task(), {4, 4, 4, 4}));
      const auto contents = data::read_journal(path);
      CHECK(contents.records.size() == (whole ? 4 : 3));
      CHECK(contents.lines == 4);
      CHECK(contents.blank == 0);
    }
  }
}

TEST_CASE("with an index too, a last line without its end may be all that a journal has: a description or a record") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  data::Journal::Options how = options(path);
  how.index_above_bytes = 0;
  append_text(path, data::to_line(toy::task()));
  data::Journal(how).describe(toy::task());
  CHECK(data::read_journal(path).lines == 1);
  const std::string other = folder.file("other.jsonl");
  Task elsewhere = toy::task();
  elsewhere.name = "elsewhere";
  elsewhere.workload_hash += 1;
  append_text(other, data::to_line(record(elsewhere, {1, 1, 1, 1})));
  how.path = other;
  CHECK(test::refusal<std::runtime_error>([&] {
          (void)data::Journal(how).recall(toy::task());
        }).find("belongs to task 'elsewhere'") != std::string::npos);
}

TEST_CASE("after a disk was full, the same writer goes on with a fresh line and describes its task") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  data::Journal journal(options(path));
  journal.append(record(toy::task(), {1, 1, 1, 1}));
  const auto fails_after = [&](rlim_t bytes, const auto& write) {
    const support::FullDisk full(std::filesystem::file_size(path) + bytes);
    CHECK_THROWS_WITH_AS(write(), doctest::Contains("free some space"), std::runtime_error);
  };
  fails_after(0, [&] { journal.describe(toy::task()); });
  fails_after(20, [&] { journal.append(record(toy::task(), {2, 2, 2, 2})); });
  fails_after(1, [&] { journal.append(record(toy::task(), {2, 2, 2, 2})); });  // the fresh line, and nothing on it
  data::Journal moved(std::move(journal));
  moved.describe(toy::task());
  moved.append(record(toy::task(), {3, 3, 3, 3}));
  const auto contents = data::read_journal(path);
  CHECK(contents.records.size() == 2);
  CHECK(contents.tasks.size() == 1);
  CHECK(contents.bad.size() == 1);
}

TEST_CASE("a writer begins on a fresh line after another that was cut short while both had the file open") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string good = data::to_line(record(toy::task(), {1, 1, 1, 1}));
  data::Journal first(options(path)), second(options(path));
  append_text(path, good.substr(0, 50));
  first.append(record(toy::task(), {2, 2, 2, 2}));
  append_text(path, good.substr(0, 50));
  data::Journal third(options(path));
  second.append(record(toy::task(), {3, 3, 3, 3}));
  third.append(record(toy::task(), {4, 4, 4, 4}));  // the line that it saw has an end meanwhile
  const auto contents = data::read_journal(path);
  CHECK(contents.records.size() == 3);
  CHECK(contents.bad.size() == 2);
  CHECK(contents.lines == 5);
  CHECK(contents.blank == 0);
}

TEST_CASE("a file that is no journal is refused and left as it is") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("notes.txt");
  for (const std::string text : {"Shopping list\nmilk", "{\"name\": \"matmul\"}\n", "[1, 2]\n\n", "{s",
                                 "{\n  \"name\": \"matmul\"\n}\n", "{\n}", "[\n{"}) {
    CAPTURE(text);
    std::ofstream(path, std::ios::binary) << text;
    CHECK_FALSE(data::is_journal(path));
    CHECK_THROWS_WITH_AS(data::Journal(options(path)), doctest::Contains(path.c_str()), std::runtime_error);
    CHECK_THROWS_WITH_AS(data::Journal(options(path)), doctest::Contains("name another file"), std::runtime_error);
    std::ostringstream kept;
    kept << std::ifstream(path, std::ios::binary).rdbuf();
    CHECK(kept.str() == text);
  }
}

TEST_CASE("a journal without a clock is refused before anything is measured for it") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("run.jsonl");
  CHECK_THROWS_WITH_AS(data::Journal({.path = path, .clock = {}}), doctest::Contains("the clock is empty"),
                       std::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a journal stays one wherever its writer was stopped") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string line = data::to_line(record(toy::task(), {1, 1, 1, 1})) + "\n";
  for (std::size_t size = 0; size <= line.size(); ++size) {
    CAPTURE(size);
    std::ofstream(path, std::ios::binary) << line.substr(0, size);
    CHECK(data::is_journal(path));
    append_text(path, "\n" + line.substr(0, 5));  // the next writer began a new line and was stopped as well
    CHECK(data::is_journal(path));
  }
  CHECK(data::is_journal(folder.file("not there yet")));
  std::ofstream(path, std::ios::binary) << "\n\n";
  CHECK(data::is_journal(path));
  append_text(path, "garbage\n" + line);
  CHECK(data::is_journal(path));
}

TEST_CASE("a record with a number that no reader takes is refused with the field, and the file stays as it was") {
  const support::TemporaryFolder folder;
  data::Journal journal(options(folder.file("j.jsonl")));
  const auto refused = [&](const auto& spoil) {
    Record spoilt = record(toy::task(), {1, 1, 1, 1});
    spoil(spoilt, std::get<Timing>(spoilt.outcome.result));
    return test::refusal([&] { journal.append(spoilt); });
  };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const Seconds none(std::numeric_limits<double>::quiet_NaN());
  CHECK(contains(refused([&](Record& one, Timing&) { one.outcome.run_time = none; }), "has 'run_s' = "));
  CHECK(contains(refused([&](Record&, Timing& timing) { timing.median_absolute_deviation = none; }), "'mad_s' = "));
  CHECK(contains(refused([&](Record&, Timing& timing) { timing.median = Seconds(0); }), "'median_s' = "));
  CHECK(contains(refused([&](Record& one, Timing&) { one.outcome.compile_time = Seconds(-1); }), "'compile_s' = -1"));
  CHECK(data::read_journal(journal.path()).lines == 0);
}

TEST_CASE("several tasks share a file; a file of other tasks only is a mistake that names both and the remedy") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("matmul 64", 64);
  const Task b = toy::task("matmul 96", 96);
  const Task c = toy::task("conv 7", 7);
  data::Journal journal(options(folder.file("j.jsonl")));
  CHECK(journal.recall(a).empty());  // an empty journal belongs to nobody
  journal.append(record(a, {1, 1, 1, 1}));
  journal.append(record(b, {1, 1, 1, 1}));
  CHECK(journal.recall(a).size() == 1);
  CHECK(journal.recall(b).size() == 1);
  CHECK_THROWS_WITH_AS((void)journal.recall(c), doctest::Contains("matmul 64"), std::runtime_error);
  CHECK_THROWS_WITH_AS((void)journal.recall(c), doctest::Contains("conv 7"), std::runtime_error);
  CHECK_THROWS_WITH_AS((void)journal.recall(c), doctest::Contains("a journal of its own"), std::runtime_error);
  const auto network = [](std::initializer_list<Task> tasks) {
    std::vector<WeightedTask> all;
    for (const Task& task : tasks) all.push_back({task, 2});
    return all;
  };
  CHECK(journal.recall(network({c, b, a})).size() == 2);
  CHECK(journal.recall(network({c, b, a}))[0] == journal.recall(a)[0]);
  CHECK_THROWS_WITH_AS((void)journal.recall(network({c, toy::task("conv 14", 14)})),
                       doctest::Contains("another of its network of 2 tasks"), std::runtime_error);
  data::Journal::Options shared = options(journal.path());
  shared.many_tasks = true;
  CHECK(data::Journal(shared).recall(c).empty());
}

TEST_CASE("the same workload on another target is another task") {
  const support::TemporaryFolder folder;
  data::Journal journal(options(folder.file("j.jsonl")));
  Task task = toy::task();
  journal.append(record(task, {1, 1, 1, 1}));
  task.target.threads = 2;
  CHECK_THROWS_AS((void)journal.recall(task), std::runtime_error);
}

TEST_CASE("a path that cannot be written gets an error with the path, the cause and the remedy") {
  const support::TemporaryFolder folder;
  const std::string missing = folder.file("no/such/folder/j.jsonl");
  CHECK_THROWS_WITH_AS(data::Journal(options(missing)), doctest::Contains(missing.c_str()), std::runtime_error);
  CHECK_THROWS_WITH_AS(data::Journal(options(missing)), doctest::Contains("No such file"), std::runtime_error);
  CHECK_THROWS_WITH_AS(data::Journal(options(missing)), doctest::Contains("create the folder"), std::runtime_error);
  CHECK_THROWS_AS(data::Journal(options(folder.path())), std::runtime_error);
  CHECK_THROWS_WITH_AS((void)data::read_journal(folder.path()), doctest::Contains("readable file"), std::runtime_error);
  CHECK(data::read_journal(missing).records.empty());
}

TEST_CASE("a file that cannot be read to its end is an error, not a shorter journal") {
  // Its first page is never mapped, so reading there fails as a broken disk does.
  const std::string broken = "/proc/self/mem";
  CHECK_THROWS_WITH_AS((void)data::read_journal(broken), doctest::Contains("'/proc/self/mem' beyond line 0"),
                       std::runtime_error);
}

TEST_CASE("a line that does not reach the disk is an error if that was asked for") {
  CHECK_NOTHROW(data::Journal({.path = "/dev/null"}).append(record(toy::task(), {1, 1, 1, 1})));
  CHECK_THROWS_WITH_AS(
      data::Journal({.path = "/dev/null", .sync_each_line = true}).append(record(toy::task(), {1, 1, 1, 1})),
      doctest::Contains("does not reach the disk"), std::runtime_error);
}

TEST_CASE("the best schedule of a task can be replayed from its journal") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  CHECK(data::best_record(path, toy::task()) == std::nullopt);
  data::Journal journal(options(path));
  journal.append(record(toy::task("other", 1), toy::best));
  journal.append(record(toy::task(), {0, 0, 0, 7}));  // crashes
  CHECK(data::best_record(path, toy::task()) == std::nullopt);
  journal.append(record(toy::task(), {7, 4, 5, 2}));
  journal.append(record(toy::task(), {3, 4, 5, 3}));
  journal.append(record(toy::task(), {1, 1, 1, 1}));
  append_text(path, "\n" + data::to_line(toy::task()) + "\nno record\n");
  const auto best = data::best_record(path, toy::task());
  REQUIRE(best);
  CHECK(toy::Space{}.decode(toy::task(), best->config) == toy::Tiles{3, 4, 5, 3});
}

TEST_CASE("the best of a journal is found in memory for a few of its records") {
  if (!support::limits_address_space) {
    MESSAGE("skipped: a sanitizer needs the address space");
    return;
  }
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 32; ++i) {
      const bool is_last = i == 31;
      Record one = record(toy::task(), is_last ? toy::best : toy::Tiles{7, 4, 5, 2});
      one.config.assign(std::size_t{1} << 20, is_last ? 'b' : 's');
      file << data::to_line(one) << '\n';
    }
  }
  const auto find_best = [&] {
    const auto best = data::best_record(path, toy::task());
    return best && best->config.front() == 'b' ? 0 : 1;
  };
  CHECK(support::status_with_room_for(rlim_t{12} << 20, find_best) == 0);
}

TEST_CASE("records of a published table written as a journal are the trials a tuner goes on from") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("table.jsonl");
  const data::Table table = small_table();
  const Task task = data::task_of(table);
  const std::vector<Record> records = data::records_of(table, task);
  {
    std::ofstream file(path);
    data::write_journal(file, records);
  }
  CHECK(data::read_journal(path).records == records);
  std::ofstream closed;
  CHECK_THROWS_WITH_AS(data::write_journal(closed, records), doctest::Contains("writing a journal failed"),
                       std::runtime_error);
  CHECK(data::Journal({.path = path}).recall(task).size() == 11);
  CHECK(data::best_record(path, task)->config == "2,1");
}

TEST_CASE("a run describes its task once, before its first record, however often it goes on") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const Task a = toy::task("matmul 64", 64), b = toy::task("matmul 96", 96);
  for (int run = 0; run < 2; ++run) {
    data::Journal journal(options(path));
    for (const Task& task : {a, b}) {
      RunStatus status;
      status.task = task;
      journal.on_record(record(task, {1, 1, 1, run}), status);
      journal.on_record(record(task, {2, 2, 2, run}), status);
    }
    CHECK(data::read_journal(path).lines == (run == 0 ? 6 : 10));
  }
  const auto contents = data::read_journal(path);
  CHECK(contents.bad.empty());
  REQUIRE(contents.tasks.size() == 2);
  CHECK(stable_hash(contents.tasks[0]) == stable_hash(a));
  CHECK(contents.tasks[1].name == "matmul 96");
  CHECK(contents.record_lines == std::vector<std::size_t>{2, 3, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("a description that was cut short is written again") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string line = data::to_line(toy::task());
  for (const bool indexed : {false, true}) {
    for (std::size_t size = 1; size < line.size(); ++size) {
      CAPTURE(indexed);
      CAPTURE(size);
      std::ofstream(path, std::ios::binary) << line.substr(0, size);
      CHECK(data::is_journal(path));
      data::Journal::Options how = options(path);
      if (indexed) how.index_above_bytes = 0;
      for (int run = 0; run < 2; ++run) data::Journal(how).describe(toy::task());
      const auto contents = data::read_journal(path);
      CHECK(contents.lines == 2);
      CHECK(contents.bad.size() == 1);
      CHECK(contents.tasks.size() == 1);
    }
  }
}

TEST_CASE("a journal that was replaced or removed while it is open takes no more records") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  data::Journal journal(options(path));
  journal.append(record(toy::task(), {1, 2, 3, 4}));
  std::filesystem::rename(path, folder.file("moved.jsonl"));  // is the same file still
  journal.append(record(toy::task(), {4, 3, 2, 1}));
  CHECK(data::read_journal(folder.file("moved.jsonl")).records.size() == 2);
  std::filesystem::remove(folder.file("moved.jsonl"));
  CHECK_THROWS_WITH_AS(journal.append(record(toy::task(), {2, 2, 2, 2})), doctest::Contains("was replaced or removed"),
                       std::runtime_error);
}

TEST_CASE("tasks with numbers that readers reject are not written") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  Task weightless = toy::task(), endless = toy::task();
  weightless.weight = 0;
  endless.flops = std::numeric_limits<double>::infinity();
  std::ostringstream out;
  data::Journal journal(options(path));
  for (const Task& task : {weightless, endless}) {
    CHECK_THROWS_AS(journal.describe(task), std::invalid_argument);
    CHECK_THROWS_AS(data::write_journal(out, {}, std::span(&task, 1)), std::invalid_argument);
  }
  CHECK(out.str().empty());
  CHECK(data::read_journal(path).lines == 0);
}

TEST_CASE("records are written behind the tasks that they are of") {
  const std::vector<Task> tasks{toy::task()};
  const std::vector<Record> records{record(toy::task(), {1, 1, 1, 1})};
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  {
    std::ofstream file(path);
    data::write_journal(file, records, tasks);
  }
  const auto contents = data::read_journal(path);
  CHECK(contents.records == records);
  CHECK(contents.record_lines == std::vector<std::size_t>{2});
  REQUIRE(contents.tasks.size() == 1);
  CHECK(contents.tasks[0].name == toy::task().name);
}
