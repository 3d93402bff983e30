// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/journal_index.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

using namespace tunewright;
using data::JournalIndex;

namespace {

Record record_of(std::uint64_t task, std::uint64_t key) {
  Record record;
  record.task = task;
  record.task_name = "task " + std::to_string(task);
  record.key = key;
  record.config = "[1, 2]";
  Timing timing;
  timing.median = Seconds(1e-3 * static_cast<double>(key));
  timing.repeats = {timing.median};
  record.outcome.result = timing;
  return record;
}
void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}
std::string line_of(std::uint64_t task, std::uint64_t key) { return data::to_line(record_of(task, key)) + "\n"; }
std::vector<std::uint64_t> keys(const JournalIndex::Found& found) {
  std::vector<std::uint64_t> result;
  for (const Record& record : found.records) result.push_back(record.key);
  return result;
}
using Keys = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("records of a task are found in order, with their lines, and new ones when it is opened again") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  append(path, line_of(1, 10) + line_of(1, 11) + line_of(2, 20) + "\n" + line_of(1, 12));
  {
    const JournalIndex index(path);
    CHECK(index.lines() == 5);
    CHECK(index.tasks().at(1).lines == 3);
    CHECK(keys(index.find(1)) == Keys{10, 11, 12});
    CHECK(index.find(1).lines == Keys{1, 2, 5});
    CHECK(keys(index.find(2)) == Keys{20});
    CHECK(index.find(3).records.empty());
    CHECK(index.bytes_read() == std::filesystem::file_size(path));
  }
  CHECK(JournalIndex(path).bytes_read() == 0);
  const std::string more = line_of(2, 21) + line_of(1, 13);
  append(path, more);
  const JournalIndex index(path);
  CHECK(index.bytes_read() == more.size());
  CHECK(keys(index.find(1)) == Keys{10, 11, 12, 13});
  CHECK(keys(index.find(2)) == Keys{20, 21});
  CHECK(index.find(1).lines == Keys{1, 2, 5, 7});
}

TEST_CASE("bad lines are told with their numbers, those of a task and those of none") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string whole = line_of(1, 10);
  append(path, line_of(1, 9) + whole.substr(0, 80) + "\ngarbage\n" + line_of(1, 11) + whole.substr(0, 60));
  const JournalIndex index(path);
  CHECK(index.lines() == 4);  // the last has no end yet
  CHECK(keys(index.find(1)) == Keys{9, 11});
  REQUIRE(index.find(1).bad.size() == 1);
  CHECK(index.find(1).bad[0].number == 2);
  REQUIRE(index.bad_lines().size() == 1);
  CHECK(index.bad_lines()[0].number == 3);
  append(path, whole.substr(60));
  CHECK(keys(JournalIndex(path).find(1)) == Keys{9, 11, 10});
}

TEST_CASE("a task is described by the first line that says all of it; a line cut short is a bad one") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  Task task;
  task.name = "a";
  task.workload_hash = 5;
  const std::uint64_t hash = stable_hash(task);
  const std::string whole = data::to_line(task);
  append(path, whole.substr(0, 100) + "\n");
  CHECK(JournalIndex(path).tasks().empty());
  append(path, line_of(hash, 1) + whole + "\n" + line_of(hash, 2));
  const JournalIndex index(path);
  CHECK(index.tasks().at(hash).described_line == 3);
  REQUIRE(index.description(hash));
  CHECK(index.description(hash)->name == "a");
  CHECK(keys(index.find(hash)) == Keys{1, 2});
  CHECK(index.other_lines() == 1);
  REQUIRE(index.bad_lines().size() == 1);
  CHECK(index.bad_lines()[0] == data::BadLine{1, data::read_journal(path).bad[0].reason});
}

TEST_CASE("lines that other programs wrote, in another order of members, are found") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  std::string line = line_of(7, 70);
  line = "{ " + line.substr(12, line.size() - 14) + ", \"schema\": 1}\n";
  REQUIRE(data::from_line(line).key == 70);
  append(path, line);
  CHECK(keys(JournalIndex(path).find(7)) == Keys{70});
}

TEST_CASE("an index that is damaged, or of another journal, is made again") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  std::string text;
  for (std::uint64_t i = 1; i <= 50; ++i) text += line_of(i % 3, i);
  append(path, text);
  const Keys wanted = keys(JournalIndex(path).find(2));
  REQUIRE(wanted.size() == 17);
  const std::string index_path = JournalIndex::path_of(path);
  std::stringstream good;
  good << std::ifstream(index_path, std::ios::binary).rdbuf();
  for (std::size_t at = 0; at < good.str().size(); at += 13) {
    std::string damaged = good.str();
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    std::ofstream(index_path, std::ios::binary | std::ios::trunc) << damaged;
    try {
      const JournalIndex index(path);
      const JournalIndex::Found found = index.find(2);
      for (const Record& record : found.records) CHECK(record.task == 2);  // a run may be missed, none is made up
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).find("is damaged") != std::string::npos);
    }
    std::ofstream(index_path, std::ios::binary | std::ios::trunc) << good.str().substr(0, at);
    CHECK(keys(JournalIndex(path).find(2)) == wanted);
  }
  std::ofstream(path, std::ios::trunc) << line_of(2, 1);
  CHECK(keys(JournalIndex(path).find(2)) == Keys{1});
  std::ofstream(path, std::ios::trunc) << line_of(2, 5) << line_of(2, 6);
  CHECK(keys(JournalIndex(path).find(2)) == Keys{5, 6});
}

TEST_CASE("what cannot be read or written is refused with its path") {
  const support::TemporaryFolder folder;
  const std::string missing = folder.file("none.jsonl");
  CHECK(test::refusal<std::runtime_error>([&] { const JournalIndex index(missing); }).find(missing) !=
        std::string::npos);
  const std::string path = folder.file("j.jsonl");
  append(path, line_of(1, 1));
  std::filesystem::create_directory(JournalIndex::path_of(path));
  CHECK(test::refusal<std::runtime_error>([&] { const JournalIndex index(path); }).find("j.jsonl.index") !=
        std::string::npos);
}

TEST_CASE("a journal recalls the same with an index as without, and describes a task once") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  Task a, b;
  a.name = "a";
  a.workload_hash = 5;
  b.name = "b";
  b.workload_hash = 6;
  for (int pass = 0; pass < 2; ++pass) {
    data::Journal journal({.path = path, .many_tasks = true, .warnings = nullptr, .index_above_bytes = 0});
    for (const Task* task : {&a, &b}) {
      journal.describe(*task);
      journal.append(record_of(stable_hash(*task), 10 + static_cast<std::uint64_t>(pass)));
    }
  }
  data::Journal indexed({.path = path, .warnings = nullptr, .index_above_bytes = 0});
  data::Journal whole({.path = path, .warnings = nullptr});
  CHECK(indexed.recall(a).size() == 2);
  CHECK(indexed.recall(a) == whole.recall(a));
  const std::vector<WeightedTask> both{{a}, {b}};
  CHECK(indexed.recall(both) == whole.recall(both));
  CHECK(data::read_journal(path).lines == 6);
  REQUIRE(JournalIndex(path).description(stable_hash(b)));
  CHECK(JournalIndex(path).description(stable_hash(b))->name == "b");
  Task other = a;
  other.workload_hash = 9;
  CHECK(test::refusal<std::runtime_error>([&] { static_cast<void>(indexed.recall(other)); }).find("belongs to task") !=
        std::string::npos);
}
