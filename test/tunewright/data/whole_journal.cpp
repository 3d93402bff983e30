// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/whole_journal.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

using namespace tunewright;
using data::WholeJournal;

namespace {

using Numbers = std::vector<std::uint64_t>;
using Tasks = std::set<std::uint64_t>;

Record record_of(std::uint64_t task, std::uint64_t key) {
  Record record;
  record.task = task;
  record.key = key;
  record.config = "[1, 2]";
  record.outcome.result = Timing{.repeats = {}, .median = Seconds(1e-3)};
  return record;
}
std::string line_of(std::uint64_t task, std::uint64_t key) { return data::to_line(record_of(task, key)); }
Numbers keys(const data::JournalIndex::Found& found) {
  Numbers result;
  for (const Record& record : found.records) result.push_back(record.key);
  return result;
}

/// A file of lines, of which the last has no newline.
struct File {
  support::TemporaryFolder folder;
  std::string path = folder.file("j.jsonl");
  explicit File(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
};

}  // namespace

TEST_CASE("a whole record without its newline is one of its task, behind the others") {
  const File file(line_of(1, 10) + "\n" + line_of(2, 20) + "\n" + line_of(1, 11));
  const WholeJournal journal(file.path);
  CHECK(journal.lines() == 3);
  CHECK(journal.index().lines() == 2);
  CHECK(journal.tasks() == Tasks{1, 2});
  CHECK(journal.lines_of(1) == 2);
  CHECK(journal.lines_of(2) == 1);
  CHECK(journal.lines_of(3) == 0);
  CHECK(keys(journal.find(1)) == Numbers{10, 11});
  CHECK(journal.find(1).lines == Numbers{1, 3});
  CHECK(keys(journal.find(2)) == Numbers{20});
  CHECK(journal.find(2).lines == Numbers{2});
  CHECK(journal.find(3).records.empty());
  CHECK(journal.described_tasks().empty());
  CHECK(journal.bad_lines().empty());
  CHECK(journal.bad_count() == 0);
}

TEST_CASE("the records that the index finds come before that of the last line") {
  const File known(line_of(1, 10) + "\n" + line_of(1, 11));
  CHECK(WholeJournal(known.path).first_record(1)->key == 10);
  CHECK(WholeJournal(known.path).any_record()->key == 10);
  const File only(line_of(1, 11));
  CHECK(WholeJournal(only.path).tasks() == Tasks{1});
  CHECK(WholeJournal(only.path).lines_of(1) == 1);
  CHECK(WholeJournal(only.path).first_record(1)->key == 11);
  CHECK(WholeJournal(only.path).any_record()->key == 11);
  CHECK_FALSE(WholeJournal(only.path).first_record(2));
}

TEST_CASE("a whole description without its newline describes its task, which has no records by it") {
  const Task a = toy::task("a", 5), b = toy::task("b", 6);
  const std::uint64_t of_a = stable_hash(a), of_b = stable_hash(b);
  const File file(data::to_line(a) + "\n" + line_of(1, 10) + "\n" + data::to_line(b));
  const WholeJournal journal(file.path);
  CHECK(journal.tasks() == Tasks{1, of_a, of_b});
  CHECK(journal.described_tasks() == Tasks{of_a, of_b});
  CHECK(journal.description(of_a)->name == "a");
  REQUIRE(journal.description(of_b));
  CHECK(journal.description(of_b)->name == "b");
  CHECK_FALSE(journal.description(1));
  CHECK(journal.lines() == 3);
  CHECK(journal.lines_of(of_b) == 0);
  CHECK(journal.find(of_b).records.empty());
  CHECK_FALSE(journal.first_record(of_b));
  CHECK(journal.bad_count() == 0);
  const File alone(data::to_line(b));
  CHECK_FALSE(WholeJournal(alone.path).any_record());
}

TEST_CASE("a last line that is cut short is a bad one of no task, behind the others") {
  for (const std::string& line : {line_of(1, 11), data::to_line(toy::task("a", 5))}) {
    const File file("garbage\n" + line_of(1, 10) + "\n" + line.substr(0, line.size() - 1));
    const WholeJournal journal(file.path);
    CHECK(journal.lines() == 3);
    CHECK(journal.tasks() == Tasks{1});
    CHECK(journal.described_tasks().empty());
    CHECK(journal.lines_of(1) == 1);
    CHECK(keys(journal.find(1)) == Numbers{10});
    CHECK(journal.find(1).bad.empty());
    REQUIRE(journal.bad_lines().size() == 2);
    CHECK(journal.bad_lines()[0].number == 1);
    CHECK(journal.bad_lines()[1] == data::BadLine{3, "cut short: the writer was stopped in the middle"});
    CHECK(journal.bad_count() == 2);
  }
}

TEST_CASE("a journal whose last line is complete has nothing that its index lacks") {
  const File file(line_of(1, 10) + "\n" + line_of(2, 20) + "\n");
  const WholeJournal journal(file.path);
  CHECK(journal.lines() == 2);
  CHECK(journal.tasks() == Tasks{1, 2});
  CHECK(journal.lines_of(2) == 1);
  CHECK(keys(journal.find(2)) == Numbers{20});
  CHECK(journal.bad_count() == 0);
}

TEST_CASE("a journal that is not there is refused with its path") {
  const support::TemporaryFolder folder;
  const std::string missing = folder.file("none.jsonl");
  CHECK(test::refusal<std::runtime_error>([&] { const WholeJournal journal(missing); }).find(missing) !=
        std::string::npos);
}
