// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/merge_journals.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/file_text.hpp"
#include "support/full_disk.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

using namespace tunewright;

namespace {

Record record_of(const Task& task, std::uint64_t key, double latency, const std::string& compiler = "one") {
  Record record;
  record.task = stable_hash(task);
  record.task_name = task.name;
  record.key = key;
  record.compiler = compiler;
  record.outcome.result = latency > 0
                              ? decltype(record.outcome.result)(Timing{.repeats = {}, .median = Seconds(latency)})
                              : Failure{Fault::Unknown, "the worker was lost"};
  return record;
}
void write(const std::string& path, const std::vector<Record>& records, const std::vector<Task>& tasks = {}) {
  std::ofstream out(path, std::ios::binary);
  data::write_journal(out, records, tasks);
}

}  // namespace

TEST_CASE("shards become one journal that has every key once, and a latency where any has one") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("a", 1), b = toy::task("b", 2);
  const std::vector<std::string> shards = {folder.file("1.jsonl"), folder.file("2.jsonl")};
  write(shards[0], {record_of(a, 10, 1e-3), record_of(a, 11, 0), record_of(b, 10, 2e-3)}, {a});
  write(shards[1], {record_of(a, 11, 3e-3), record_of(a, 10, 4e-3), record_of(a, 10, 5e-3, "two"), record_of(b, 12, 0)},
        {a, b});
  std::ofstream(shards[1], std::ios::app) << "garbage\n";
  const std::string all = folder.file("all.jsonl");
  const data::MergeReport report = data::merge_journals(shards, all);
  CHECK(report.records == 7);
  CHECK(report.written == 5);
  CHECK(report.duplicates == 2);
  CHECK(report.tasks == 2);
  CHECK(report.bad == 1);
  REQUIRE(report.listed.size() == 1);
  CHECK(report.listed[0].starts_with(shards[1] + ":7: "));

  const data::JournalContents merged = data::read_journal(all);
  CHECK(merged.bad.empty());
  CHECK(merged.tasks.size() == 2);
  std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
  for (const Record& record : merged.records) {
    keys.insert({record.task, record.key});
    if (record.task == stable_hash(a) && record.key == 11) CHECK(record.outcome.timing()->median == Seconds(3e-3));
    if (record.task == stable_hash(a) && record.key == 10 && record.compiler == "one")
      CHECK(record.outcome.timing()->median == Seconds(1e-3));
  }
  CHECK(keys.size() == 4);

  // Compact again: nothing changes.
  const std::vector<std::string> only = {all};
  CHECK(data::merge_journals(only, all).written == 5);
  CHECK(data::read_journal(all).records == merged.records);
  CHECK_FALSE(std::filesystem::exists(all + ".unfinished.0"));
}

TEST_CASE("a latency whose result was checked is kept rather than one whose was not") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("a", 1);
  Record estimate = record_of(a, 10, 9e-3);
  std::get<Timing>(estimate.outcome.result).stopped = StopReason::Extrapolated;
  const std::string first = folder.file("1.jsonl"), second = folder.file("2.jsonl"), all = folder.file("all.jsonl");
  write(first, {estimate});
  write(second, {record_of(a, 10, 7.5e-3), record_of(a, 10, 7e-3)});
  data::merge_journals(std::vector<std::string>{first, second}, all);
  const data::JournalContents merged = data::read_journal(all);
  REQUIRE(merged.records.size() == 1);
  CHECK(merged.records[0].outcome.timing()->median == Seconds(7.5e-3));
}

TEST_CASE("of a symbolic link, the journal that it leads to is compacted") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("a", 1);
  const std::string journal = folder.file("journal.jsonl"), link = folder.file("link.jsonl");
  write(journal, {record_of(a, 10, 1e-3), record_of(a, 10, 2e-3)});
  std::filesystem::create_symlink(journal, link);
  data::merge_journals(std::vector<std::string>{link}, link);
  CHECK(std::filesystem::is_symlink(link));
  CHECK(data::read_journal(journal).records.size() == 1);
  const std::string there = folder.file("there.jsonl"), to_nothing = folder.file("to_nothing.jsonl");
  std::filesystem::create_symlink("there.jsonl", to_nothing);
  data::merge_journals(std::vector<std::string>{journal}, to_nothing);
  CHECK(std::filesystem::is_symlink(to_nothing));
  CHECK(data::read_journal(there).records.size() == 1);
}

TEST_CASE("a last line without its newline is merged where it is whole, and counted where it is cut short") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("a", 1), b = toy::task("b", 2), c = toy::task("c", 3);
  const std::vector<std::string> shards = {folder.file("1.jsonl"), folder.file("2.jsonl"), folder.file("3.jsonl")};
  write(shards[0], {record_of(a, 10, 1e-3)}, {a});
  const auto append = [](const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  };
  append(shards[0], data::to_line(record_of(b, 20, 2e-3)));
  write(shards[1], {record_of(a, 11, 1e-3)});
  append(shards[1], data::to_line(c));
  write(shards[2], {record_of(a, 12, 1e-3)});
  append(shards[2], data::to_line(record_of(a, 13, 1e-3)).substr(0, 90));
  const std::string all = folder.file("all.jsonl");
  const data::MergeReport report = data::merge_journals(shards, all);
  CHECK(report.records == 4);
  CHECK(report.written == 4);
  CHECK(report.tasks == 3);
  CHECK(report.bad == 1);
  CHECK(report.listed == std::vector<std::string>{shards[2] + ":2: cut short: the writer was stopped in the middle"});
  const data::JournalContents merged = data::read_journal(all);
  CHECK(merged.bad.empty());
  CHECK(merged.tasks.size() == 2);
  std::set<std::uint64_t> keys;
  for (const Record& record : merged.records) keys.insert(record.key);
  CHECK(keys == std::set<std::uint64_t>{10, 11, 12, 20});
}

TEST_CASE("an output that cannot be written is refused with its path, and nothing is left behind") {
  const support::TemporaryFolder folder;
  const std::vector<std::string> one = {folder.file("1.jsonl")};
  std::vector<Record> records;
  for (std::uint64_t key = 0; key < 200; ++key) records.push_back(record_of(toy::task("a", 1), key, 1e-3));
  write(one[0], records);
  const auto refused = [&](const std::string& output) {
    return test::refusal<std::runtime_error>([&] { data::merge_journals(one, output); });
  };
  CHECK(refused("/no/such/folder/all.jsonl").find("cannot write '/no/such/folder/all.jsonl'") != std::string::npos);
  const std::string full = folder.file("full"), taken = folder.file("taken");
  {
    const support::FullDisk disk(std::filesystem::file_size(one[0]) / 2);  // the index of the input is much smaller
    CHECK(refused(full).find("cannot write '" + full + "'") != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(full + ".unfinished.0"));
  std::filesystem::create_directories(taken + "/by a folder");
  CHECK(refused(taken).find("cannot replace '" + taken + "'") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(taken + ".unfinished.0"));
}

TEST_CASE("an input whose name the unfinished output could have is merged and stays as it is") {
  const support::TemporaryFolder folder;
  const std::string all = folder.file("all.jsonl");
  for (const char* ending : {".partial", ".unfinished.0"}) {
    const std::vector<std::string> one = {all + ending};
    write(one[0], {record_of(toy::task("a", 1), 10, 1e-3)});
    const std::string before = support::file_text(one[0]);
    CHECK(data::merge_journals(one, all).written == 1);
    CHECK(support::file_text(one[0]) == before);
    CHECK(data::read_journal(all).records.size() == 1);
  }
}

TEST_CASE("a journal with lines of a newer schema is not replaced by what this library can read of it") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("1.jsonl"), out = folder.file("out.jsonl");
  const Task a = toy::task("a", 1);
  write(path, {record_of(a, 10, 1e-3)}, {a});
  std::string newer = data::to_line(record_of(a, 11, 1e-3));
  newer.replace(newer.find(":1,"), 3, ":3,");
  std::string end;
  SUBCASE("members in another order") {
    newer = R"({"task":"0000000000000000","schema":3})";
    end = "\n";
  }
  SUBCASE("complete lines") { end = "\n"; }
  SUBCASE("a last line without its newline") {}
  std::ofstream(path, std::ios::app | std::ios::binary) << newer << end;
  const std::string before = support::file_text(path);
  const std::vector<std::string> only = {path};
  const std::string why = test::refusal<std::runtime_error>([&] { data::merge_journals(only, path); });
  CHECK(why.find("'" + path + "' has lines of a newer schema, the first is line 3") != std::string::npos);
  CHECK(support::file_text(path) == before);
  CHECK(data::merge_journals(only, out).bad == 1);
  CHECK(data::read_journal(out).records.size() == 1);
}

TEST_CASE("what is no journal is refused and left as it is") {
  const support::TemporaryFolder folder;
  const std::string notes = folder.file("notes.txt"), out = folder.file("out.jsonl");
  std::ofstream(notes) << "first line\nsecond line\n";
  const auto refused = [&](std::vector<std::string> inputs) {
    return test::refusal<std::exception>([&] { data::merge_journals(inputs, out); });
  };
  CHECK(refused({notes}).find("'" + notes + "' is no journal") != std::string::npos);
  CHECK(refused({folder.file("none")}).find("there is no journal") != std::string::npos);
  CHECK(refused({folder.path()}).find("'" + folder.path() + "' is a folder, not a journal") != std::string::npos);
  CHECK(refused({notes}).find("name a file that data::Journal") != std::string::npos);
  CHECK(refused({}).find("give at least one") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));

  const std::vector<std::string> journal = {folder.file("1.jsonl")};
  const Task a = toy::task("a", 1);
  write(journal[0], {record_of(a, 10, 1e-3)}, {a});
  const std::string why = test::refusal<std::runtime_error>([&] { data::merge_journals(journal, notes); });
  CHECK(why.find("'" + notes + "' is no journal") != std::string::npos);
  CHECK(support::file_text(notes) == "first line\nsecond line\n");
}

#if defined(TUNEWRIGHT_JOURNAL)
TEST_CASE("the command reads a whole last line without its newline, and counts one that is cut short") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("a", 1), b = toy::task("b", 2);
  const std::string path = folder.file("j.jsonl");
  const auto output = [&](const std::string& arguments) {
    static_cast<void>(std::system((TUNEWRIGHT_JOURNAL " " + arguments + " > " + folder.file("out") + " 2>&1").c_str()));
    return support::file_text(folder.file("out"));
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string last_line = data::to_line(record_of(b, 20, 2e-3));
  write(path, {record_of(a, 10, 1e-3)});
  std::ofstream(path, std::ios::app) << last_line;
  const std::string listed = output("list " + path);
  CHECK(has(listed, (to_hex(stable_hash(b)) + "          1  b").c_str()));
  CHECK(has(listed, "2 tasks, 2 lines, 0 of them neither"));
  CHECK(data::from_line(output("best " + path + " --task " + to_hex(stable_hash(b)))).key == 20);
  CHECK(has(output("export npz " + path + " " + folder.file("all.npz")), ": 2 records, 0 bad lines left out"));
  CHECK(has(output("verify " + path), "2 lines, 2 records of 2 tasks, 0 of them failed; 0 bad lines, 0 keys"));

  write(path, {record_of(a, 10, 1e-3)});
  std::ofstream(path, std::ios::app) << data::to_line(record_of(a, 10, 0));
  CHECK(has(output("verify " + path), "2 records of 1 tasks, 1 of them failed; 0 bad lines, 1 keys"));

  write(path, {record_of(a, 10, 1e-3)});
  std::ofstream(path, std::ios::app) << data::to_line(b);
  CHECK(has(output("list " + path), "0  b  [generic-cpu]"));

  write(path, {record_of(a, 10, 1e-3)});
  std::ofstream(path, std::ios::app) << last_line.substr(0, last_line.size() - 1);
  CHECK(has(output("list " + path), "1 tasks, 2 lines, 1 of them neither"));
  CHECK(has(output("best " + path), "j.jsonl: 1 bad lines left out"));
  CHECK(has(output("export npz " + path + " " + folder.file("all.npz")), ": 1 records, 1 bad lines left out"));
  CHECK(has(output("verify " + path), "j.jsonl:2: cut short"));
}

TEST_CASE("of a kernel that failed, the command exports infinite seconds and no fast ones") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("a", 1);
  const std::string path = folder.file("j.jsonl"), out = folder.file("all.npz");
  write(path, {record_of(a, 10, 1e-3), record_of(a, 11, 0)});
  REQUIRE(std::system((TUNEWRIGHT_JOURNAL " export npz " + path + " " + out + " > /dev/null").c_str()) == 0);
  const std::string text = support::file_text(out);
  // An array lies before the next one, whose local header has 30 bytes and then its name.
  const auto last_double_before = [&](const char* next) {
    double value = 0;
    std::memcpy(&value, text.data() + text.find(next) - 30 - sizeof value, sizeof value);
    return value;
  };
  CHECK(std::isinf(last_double_before("mad_s.npy")));  // of median_s
  CHECK(std::isinf(last_double_before("time.npy")));   // of mad_s
}

TEST_CASE("the command lists, chooses, verifies, merges, exports, and refuses what it does not know") {
  const support::TemporaryFolder folder;
  const Task a = toy::task("a", 1);
  const std::string one = folder.file("1.jsonl"), two = folder.file("2.jsonl"), all = folder.file("all.jsonl");
  write(one, {record_of(a, 10, 1e-3), record_of(a, 11, 2e-3)}, {a});
  write(two, {record_of(a, 11, 2e-3), record_of(a, 12, 0.5e-3)});
  const auto status = [&](const std::string& arguments) {
    const int result = std::system((TUNEWRIGHT_JOURNAL " " + arguments + " > " + folder.file("out") + " 2>&1").c_str());
    return WEXITSTATUS(result);
  };
  const auto output = [&] { return support::file_text(folder.file("out")); };
  CHECK(status("merge " + all + " " + one + " " + two) == 0);
  CHECK(output().find("3 of 4 records of 1 tasks; 1 had a key that was there") != std::string::npos);
  CHECK(status("merge " + all + " " + one) == 1);
  CHECK(output().find("exists") != std::string::npos);
  CHECK(status("list " + all) == 0);
  CHECK(output().find("3  a  [generic-cpu]") != std::string::npos);
  CHECK(status("best " + all) == 0);
  CHECK(data::from_line(output()).key == 12);
  CHECK(status("verify " + all) == 0);
  for (const char* format : {"t4", "npz"}) {
    CHECK(status("export " + std::string(format) + " " + all + " " + folder.file("exported")) == 0);
    CHECK(output().find("3 records") != std::string::npos);
    CHECK(std::filesystem::file_size(folder.file("exported")) > 100);
  }
  // A full disk, which the limit stands for, leaves what was exported before.
  const std::string exported = support::file_text(folder.file("exported"));
  const std::string npz = TUNEWRIGHT_JOURNAL " export npz " + all + " " + folder.file("exported");
  CHECK(WEXITSTATUS(std::system(("trap '' XFSZ; ulimit -f 0; " + npz + " > /dev/null 2>&1").c_str())) == 1);
  CHECK(support::file_text(folder.file("exported")) == exported);
  CHECK(status("export npz " + all + " /dev/null") == 0);
  // A pipe has what the file has, and not a line more.
  CHECK(status("export t4 " + all + " " + folder.file("exported")) == 0);
  CHECK(
      std::system((TUNEWRIGHT_JOURNAL " export t4 " + all + " /dev/stdout 2>/dev/null | cat > " + folder.file("piped"))
                      .c_str()) == 0);
  CHECK(support::file_text(folder.file("piped")) == support::file_text(folder.file("exported")));
  CHECK(status("export npz " + all + " " + folder.path()) == 1);
  CHECK(output().find("cannot write '" + folder.path() + "'; name a file you may write") != std::string::npos);
  const std::string several = folder.file("several.jsonl");
  write(several, {record_of(a, 10, 1e-3), record_of(toy::task("b", 2), 10, 1e-3)});
  CHECK(status("export t4 " + several + " " + folder.file("exported")) == 2);
  CHECK(output().find("has 2; choose one by --task HASH") != std::string::npos);
  CHECK(status("export t4 " + several + " " + folder.file("exported") + " --task=" + to_hex(stable_hash(a))) == 0);
  if (std::filesystem::exists("/dev/full"))
    CHECK(WEXITSTATUS(std::system(TUNEWRIGHT_JOURNAL " --help > /dev/full 2>&1")) == 1);
  for (const std::string& journal : {all, two}) {
    const std::string before = support::file_text(journal);
    CHECK(status("export t4 " + all + " " + journal) == 1);
    CHECK(output().find("'" + journal + "' is a journal; name another file") != std::string::npos);
    CHECK(support::file_text(journal) == before);
  }
  std::ofstream(all, std::ios::app) << "{\"schema\":1,\"task\":\"0000";
  CHECK(status("verify " + all) == 1);
  CHECK(output().find("cut short") != std::string::npos);
  CHECK(status("compact " + all) == 0);
  CHECK(status("verify " + all) == 0);
  CHECK(status("best " + all + " --task 0123456789abcdef") == 1);
  CHECK(status("best " + all + " --task 12") == 2);
  CHECK(output().find("'12', not 16 hexadecimal digits; give the hash of a task, as 'list' prints it") !=
        std::string::npos);
  CHECK(status("best " + all + " --task=" + to_hex(record_of(a, 10, 1e-3).task)) == 0);
  CHECK(data::from_line(output()).key == 12);
  CHECK(status("best " + all + " --task 0123456789abcdef --task=0123456789abcdef") == 2);
  CHECK(output().find("--task is given twice") != std::string::npos);
  CHECK(status("best " + all + " --tsk 12") == 2);
  CHECK(output().find("'--tsk' is not an option") != std::string::npos);
  CHECK(status("list --task=" + to_hex(record_of(a, 10, 1e-3).task) + " " + all) == 2);
  CHECK(output().find("'list' takes no --task") != std::string::npos);
  CHECK(status("frobnicate " + all) == 2);
  CHECK(output().find("unknown command 'frobnicate'") != std::string::npos);
  CHECK(status("export tvm " + all + " x") == 2);
  CHECK(status("list " + folder.file("nothing")) == 1);
  CHECK(status("list " + folder.path()) == 1);
  CHECK(status("") == 2);
  CHECK(status("--help") == 0);
}
#endif
