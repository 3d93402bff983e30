// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/journal_index.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/file_text.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/positioned_io.hpp"
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
Keys numbers(const std::vector<data::BadLine>& bad) {
  Keys result;
  for (const data::BadLine& line : bad) result.push_back(line.number);
  return result;
}
/// Writes over part of a file.
void overwrite(const std::string& path, std::uint64_t offset, const void* bytes, std::size_t count) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset))
      .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
}
/// What stands at an offset of a file.
template <class T>
T stored_at(const std::string& path, std::uint64_t offset) {
  T value{};
  std::ifstream(path, std::ios::binary)
      .seekg(static_cast<std::streamoff>(offset))
      .read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}
std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("records of a task are found in order, with their lines, and new ones when it is opened again") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  append(path, line_of(1, 10) + line_of(1, 11) + line_of(2, 20) + "\n" + line_of(1, 12));
  {
    const JournalIndex index(path);
    CHECK(index.lines() == 5);
    CHECK(index.bad_lines().empty());  // a blank line is none of any kind
    CHECK(index.other_lines() == 0);
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
  const Task task = toy::task("a", 5);
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
  const std::string good = support::file_text(index_path);
  for (std::size_t at = 0; at < good.size(); at += 13) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    std::ofstream(index_path, std::ios::binary | std::ios::trunc) << damaged;
    try {
      const JournalIndex index(path);
      const JournalIndex::Found found = index.find(2);
      for (const Record& record : found.records) CHECK(record.task == 2);  // a run may be missed, none is made up
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).find("is damaged") != std::string::npos);
    }
    std::ofstream(index_path, std::ios::binary | std::ios::trunc) << good.substr(0, at);
    CHECK(keys(JournalIndex(path).find(2)) == wanted);
  }
  std::ofstream(path, std::ios::trunc) << line_of(2, 1);
  CHECK(keys(JournalIndex(path).find(2)) == Keys{1});
  std::ofstream(path, std::ios::trunc) << line_of(2, 5) << line_of(2, 6);
  CHECK(keys(JournalIndex(path).find(2)) == Keys{5, 6});
}

TEST_CASE("the first record of a task is that of its latest lines, which are one MiB at most") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string whole = line_of(1, 14);
  append(path, line_of(1, 10) + line_of(1, 11) + line_of(2, 20) + whole.substr(0, 80) + "\n" + line_of(1, 12) +
                   line_of(1, 13));
  const JournalIndex index(path);
  REQUIRE(index.first_record(1));
  CHECK(index.first_record(1)->key == 12);
  CHECK(index.find(1).bad.size() == 1);
  CHECK_FALSE(index.first_record(3));

  const std::string large = folder.file("large.jsonl");
  for (std::uint64_t key = 1; key <= 3; ++key) {
    Record record = record_of(1, key);
    record.config = std::string(600 * 1024, 'x');
    append(large, data::to_line(record) + "\n");
  }
  CHECK(JournalIndex(large).first_record(1)->key == 3);
  CHECK(keys(JournalIndex(large).find(1)) == Keys{1, 2, 3});
}

TEST_CASE("a task that is only described has no records; its first description counts") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const Task task = toy::task("a", 5);
  const std::uint64_t hash = stable_hash(task), last = 0xffffffffffffffff;
  append(path, data::to_line(task) + "\n" + data::to_line(task) + "\n");
  CHECK_FALSE(JournalIndex(path).any_record());
  append(path, line_of(last, 7));
  for (int opened = 0; opened < 2; ++opened) {
    const JournalIndex index(path);
    CHECK(index.tasks().at(hash).described_line == 1);
    CHECK(index.description(hash)->name == "a");
    CHECK_FALSE(index.description(last));
    CHECK_FALSE(index.first_record(hash));
    CHECK(index.find(hash).records.empty());
    REQUIRE(index.any_record());
    CHECK(index.any_record()->key == 7);
  }
}

TEST_CASE("lines of no task are told wherever they stand, even beside records of task 0") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  append(path, "garbage\n" + line_of(0, 1) + "garbage\n" + line_of(0, 2));
  // Whole beginnings of records but for a digit.
  append(path, "{\"schema\":1,\"task\":\"000000000000000\n{\"schema\":1,\"task\":\"000000000000000g\n");
  append(path, "{\"schema\":1,\"mask\":\"0000000000000000\n");
  const JournalIndex index(path);
  CHECK(numbers(index.bad_lines()) == Keys{1, 3, 5, 6, 7});
  CHECK(index.other_lines() == 5);
  CHECK(keys(index.find(0)) == Keys{1, 2});
  CHECK(index.find(0).bad.empty());
  CHECK(index.tasks().size() == 1);
}

TEST_CASE("text after the last complete line, also when it was completed meanwhile") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const std::string line = data::to_line(record_of(1, 11));
  append(path, line_of(1, 10));
  const JournalIndex index(path);
  CHECK_FALSE(index.ends_within_a_line());
  CHECK(index.last_text().empty());
  append(path, line.substr(0, 50));
  CHECK(index.ends_within_a_line());
  CHECK(index.last_text() == line.substr(0, 50));
  append(path, line.substr(50));
  CHECK(index.last_text() == line);
  append(path, "\n");
  CHECK(index.last_text() == line);
}

TEST_CASE("a journal is known by 4096 bytes at its beginning and 4096 before the end of what is covered") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  std::string text;
  for (std::uint64_t i = 1; text.size() < 12'000; ++i) text += line_of(1, i);
  const auto read_again = [&](std::size_t changed) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    static_cast<void>(JournalIndex(path));
    const char other = text[changed] == '~' ? '!' : '~';
    overwrite(path, changed, &other, 1);
    return JournalIndex(path).bytes_read();
  };
  CHECK(read_again(0) == text.size());
  CHECK(read_again(4095) == text.size());
  CHECK(read_again(4096) == 0);
  CHECK(read_again(text.size() - 4097) == 0);
  CHECK(read_again(text.size() - 4096) == text.size());
  CHECK(read_again(text.size() - 2) == text.size());
}

TEST_CASE("lines that were edited since are not taken for those of their task") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  const Task task = toy::task("a", 5), other = toy::task("a", 6);
  std::string around;
  for (std::uint64_t i = 1; around.size() < 5000; ++i) around += line_of(3, i);
  const std::string described = data::to_line(task), record = line_of(1, 10);
  append(path, around + described + "\n" + record + around);
  const std::uint64_t hash = stable_hash(task);
  CHECK(JournalIndex(path).description(hash));
  CHECK(keys(JournalIndex(path).find(1)) == Keys{10});

  const std::string edited = data::to_line(other), of_two = line_of(2, 10);
  REQUIRE(edited.size() == described.size());
  REQUIRE(of_two.size() == record.size());
  overwrite(path, around.size(), edited.data(), edited.size());
  overwrite(path, around.size() + described.size() + 1, of_two.data(), of_two.size());
  const JournalIndex index(path);
  REQUIRE(index.bytes_read() == 0);
  CHECK_FALSE(index.description(hash));
  CHECK(index.find(1).records.empty());
  REQUIRE(index.find(1).bad.size() == 1);
  CHECK(index.find(1).bad[0].reason.find("another task") != std::string::npos);
}

TEST_CASE("an index with a wrong number in its header or its tasks is made again") {
  using data::journal_index::Header;
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl"), index_path = JournalIndex::path_of(path);
  append(path, line_of(1, 10) + line_of(2, 20) + data::to_line(toy::task("a", 5)) + "\ngarbage\n" + line_of(1, 11));
  const std::uint64_t size = std::filesystem::file_size(path);
  static_cast<void>(JournalIndex(path));
  const std::string good = support::file_text(index_path);
  const auto header = stored_at<Header>(index_path, 0);
  CHECK(header.runs == 4);
  CHECK(header.tasks == 3);
  const std::size_t tasks = sizeof(Header) + 4 * sizeof(data::journal_index::Run);
  REQUIRE(good.size() == tasks + 3 * sizeof(data::journal_index::StoredTask));
  for (std::size_t at = 0; at < good.size(); at += 8) {
    if (at >= sizeof(Header) && at < tasks) continue;
    CAPTURE(at);
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(index_path, std::ios::binary | std::ios::trunc) << damaged;
    const JournalIndex index(path);
    CHECK(index.bytes_read() == size);
    CHECK(index.lines() == 5);
    CHECK(index.tasks().size() == 3);
    CHECK(support::file_text(index_path) == good);
  }
  Header version = header;
  ++version.magic;
  version.checksum = data::journal_index::checksum_of(version);
  overwrite(index_path, 0, &version, sizeof version);
  CHECK(JournalIndex(path).bytes_read() == size);
}

TEST_CASE("a wrong run of lines is told, and neither followed in a circle nor read beyond the journal") {
  using data::journal_index::Run;
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl"), index_path = JournalIndex::path_of(path);
  append(path, line_of(1, 10) + line_of(2, 20) + line_of(1, 11));
  static_cast<void>(JournalIndex(path));
  const std::uint64_t size = std::filesystem::file_size(path), at = data::journal_index::offset_of_run(2);
  const auto good = stored_at<Run>(index_path, at);
  CHECK(good.previous == 1);
  CHECK(good.line == 3);
  const auto refused = [&](std::uint64_t Run::* number, std::uint64_t value) {
    Run wrong = good;
    wrong.*number = value;
    overwrite(index_path, at, &wrong, sizeof wrong);
    const std::string why = test::refusal<std::runtime_error>([&] { static_cast<void>(JournalIndex(path).find(1)); });
    CHECK(why.find("is damaged") != std::string::npos);
    CHECK(keys(JournalIndex(path).find(1)) == Keys{10, 11});  // by an index that was made again
  };
  refused(&Run::previous, 0);
  refused(&Run::previous, 3);
  refused(&Run::previous, 4);
  refused(&Run::offset, size + 1);
  refused(&Run::offset, good.offset + 1);
  refused(&Run::bytes, good.bytes + 1);
  refused(&Run::bytes, ~std::uint64_t{0});
}

TEST_CASE("a moved index answers, and no file stays open") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  append(path, line_of(1, 10));
  const std::ptrdiff_t before = open_files();
  {
    std::optional<JournalIndex> first(path);
    const JournalIndex second(std::move(*first));
    first.reset();
    CHECK(keys(second.find(1)) == Keys{10});
    CHECK(open_files() == before + 2);
  }
  CHECK(open_files() == before);
}

TEST_CASE("lines that cannot be read are an error, not the end of the file") {
  const int fd = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);  // its first page is never mapped
  REQUIRE(fd >= 0);
  data::LineReader lines(fd, 0);
  std::string_view line;
  std::uint64_t offset = 0;
  CHECK(test::refusal<std::runtime_error>([&] { static_cast<void>(lines.next(line, offset)); }) ==
        "cannot read a journal: Input/output error");
  ::close(fd);
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
  const Task a = toy::task("a", 5), b = toy::task("b", 6);
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

TEST_CASE("where this user may not write, the index is made in memory") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("j.jsonl");
  append(path, line_of(1, 10) + line_of(2, 20) + line_of(1, 11));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  // Permissions do not hold for root, but for whom root acts for.
  const uid_t nobody = 65534;
  const bool is_root = ::geteuid() == 0;
  if (is_root) REQUIRE(::seteuid(nobody) == 0);
  {
    const JournalIndex index(path);
    CHECK(keys(index.find(1)) == Keys{10, 11});
    CHECK(keys(index.find(2)) == Keys{20});
  }
  if (is_root) REQUIRE(::seteuid(0) == 0);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  CHECK_FALSE(std::filesystem::exists(JournalIndex::path_of(path)));
}
