// SPDX-License-Identifier: Apache-2.0
#include "../../bench/collection.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;

namespace {

Target target(Isa isa, unsigned threads) {
  Target made;
  made.name = "machine";
  made.isa = isa;
  made.threads = threads;
  return made;
}

networks::Network small_network(const char* name, double width) {
  networks::Network network = networks::squeezenet1_1({.image_size = 32, .width = width});
  network.name = name;
  return network;
}

Record record(const Task& task, std::uint64_t key, double seconds) {
  Record made;
  made.task = stable_hash(task);
  made.target = stable_hash(task.target);
  made.key = key;
  made.outcome.compile_time = Seconds(0.5);
  made.outcome.run_time = Seconds(0.25);
  if (seconds > 0)
    made.outcome.result = Timing{.repeats = {Seconds(seconds)}, .median = Seconds(seconds)};
  else
    made.outcome.result = Failure{Fault::WrongResult, ""};
  return made;
}

}  // namespace

TEST_CASE("a task of two networks is collected once, on every target") {
  const std::vector<networks::Network> networks{small_network("a", 0.125), small_network("b", 0.125)};
  const std::vector<Target> targets{target(Isa::Avx2, 1), target(Isa::Avx2, 2)};
  const auto tasks = bench::tasks_of(networks, targets);
  const std::size_t each = networks::partition(networks[0], targets[0]).tasks.size();
  REQUIRE(tasks.size() == 2 * each);
  const double times = networks::partition(networks[0], targets[0]).tasks.front().weight;
  CHECK(tasks.front().networks == bench::Occurrences{{"a", times}, {"b", times}});
  CHECK(tasks.front().task.target.threads == 1);
  CHECK(tasks.back().task.target.threads == 2);
  CHECK_THROWS_AS(static_cast<void>(bench::tasks_of({}, targets)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(bench::tasks_of(networks, {})), std::invalid_argument);
}

TEST_CASE("targets that differ in anything have folders of their own") {
  Target other = target(Isa::Avx2, 1);
  other.l2_bytes *= 2;
  CHECK(bench::folder_name(target(Isa::Avx2, 1)).starts_with("avx2-1-"));
  CHECK(bench::folder_name(target(Isa::Avx2, 1)) != bench::folder_name(other));
}

TEST_CASE("the index counts programs, faults and seconds, and tells spread and repeatability") {
  const support::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  const Task task =
      program::make_task("matmul", program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}), target(Isa::Avx2, 1));
  const bench::CollectedFiles files(folder, task);
  std::filesystem::create_directories(files.measured.parent_path());
  const auto write = [&](const std::filesystem::path& path, const std::vector<Record>& records) {
    data::Journal journal{{.path = path.string()}};
    journal.describe(task);
    for (const Record& one : records) journal.append(one);
  };
  write(files.measured, {record(task, 1, 1e-3), record(task, 2, 4e-3), record(task, 3, 0), record(task, 4, 2e-3)});
  write(files.again, {record(task, 1, 1.1e-3), record(task, 2, 4e-3), record(task, 4, 1e-3), record(task, 9, 1)});

  const bench::CollectedTask collected{task, {{"a", 1}, {"b", 3}}};
  const bench::CollectedTask missing{
      program::make_task("other", program::operators::matmul_graph({.m = 8, .n = 8, .k = 9}), task.target), {{"a", 1}}};
  const auto index = bench::write_index(folder, std::vector{collected, missing});
  REQUIRE(index.size() == 1);
  const bench::IndexEntry& entry = index.front();
  CHECK(entry.programs == 4);
  CHECK(entry.faults.at("wrong_result") == 1);
  CHECK(entry.seconds == doctest::Approx(3));
  CHECK(entry.best_s == 1e-3);
  CHECK(entry.median_s == 2e-3);
  CHECK(entry.slowest_s == 4e-3);
  // Ratios 1.1, 1 and 1/2: the distances are 10 %, 0 and 100 %.
  REQUIRE(entry.repeated.size() == 3);
  CHECK(bench::repeatability(entry.repeated) == doctest::Approx(0.1));
  CHECK(bench::repeatability({}) == 0);
  CHECK(bench::to_line(entry).find("\"faults\": {\"wrong_result\": 1}, \"partly\": 0") != std::string::npos);
  CHECK(bench::read_index(folder) ==
        std::map<std::string, bench::IndexedJournal>{{entry.file, {entry.file, {{"a", 1}, {"b", 3}}, 200}}});
  CHECK(bench::summary(index).find("\n    1         4       1       0        3.0           4.0         2.00") !=
        std::string::npos);

  // A later collection of another task keeps the line, and the same one replaces it.
  const auto lines = [&] {
    std::ifstream in(folder / "index.jsonl");
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  };
  const bench::CollectedFiles others(folder, missing.task);
  data::Journal journal{{.path = others.measured.string()}};
  journal.describe(missing.task);
  journal.append(record(missing.task, 1, 1e-3));
  CHECK(bench::write_index(folder, std::vector{missing}).size() == 1);
  CHECK(lines() == 2);
  CHECK(bench::write_index(folder, std::vector{collected, missing}).size() == 2);
  CHECK(lines() == 2);

  // One for other networks leaves those that it is not of, and counts its own anew.
  const auto networks = [&] { return bench::read_index(folder).at(entry.file).networks; };
  CHECK(bench::write_index(folder, std::vector{bench::CollectedTask{task, {{"c", 2}}}}).front().task.networks ==
        bench::Occurrences{{"a", 1}, {"b", 3}, {"c", 2}});
  CHECK(networks() == bench::Occurrences{{"a", 1}, {"b", 3}, {"c", 2}});
  CHECK(bench::write_index(
            folder, std::vector{bench::CollectedTask{task, {{"a", 5}}}, bench::CollectedTask{missing.task, {{"b", 1}}}})
            .size() == 2);
  CHECK(networks() == bench::Occurrences{{"a", 5}, {"c", 2}});
  // Half a line has no networks.
  std::ofstream(folder / "index.jsonl") << "{\"file\": \"" << entry.file << "\", \"networks\": {\"d\"\n";
  CHECK(bench::write_index(folder, std::vector{collected}).size() == 1);
  CHECK(networks() == bench::Occurrences{{"a", 1}, {"b", 3}});

  CHECK(bench::draw_records(files.measured, 10, Rng(1)).size() == 3);
  CHECK(bench::draw_records(files.measured, 2, Rng(1)) == bench::draw_records(files.measured, 2, Rng(1)));
}

TEST_CASE("the index tells how many programs of a journal were drawn at random before a search began") {
  const support::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  bench::CollectedTask collected{
      program::make_task("matmul", program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}), target(Isa::Avx2, 1)),
      {{"a", 1}}};
  const bench::CollectedFiles files(folder, collected.task);
  std::filesystem::create_directories(files.measured.parent_path());
  data::Journal journal{{.path = files.measured.string()}};
  journal.append(record(collected.task, 1, 1e-3));
  const auto drawn = [&](std::size_t programs) {
    collected.drawn = programs;
    bench::write_index(folder, std::vector{collected});
    return bench::read_index(folder).begin()->second.drawn;
  };
  CHECK(drawn(300) == 300);
  const std::uint64_t hash = bench::index_hash(folder);
  CHECK(bench::index_hash(folder) == hash);
  // Those that a later run draws stand behind what a search found.
  CHECK(drawn(50) == 50);
  CHECK(drawn(200) == 50);
  CHECK(bench::index_hash(folder) != hash);
}

TEST_CASE("a folder without an index, and lines that are none of an index, are refused by name") {
  const support::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  CHECK_THROWS_WITH_AS(static_cast<void>(bench::read_index(folder)), doctest::Contains("writes it when it ends"),
                       std::runtime_error);
  const auto with = [&](const char* second) {
    std::ofstream(folder / "index.jsonl") << "{\"file\": \"a.jsonl\", \"networks\": {\"n\": 2}}\n" << second << '\n';
    return bench::read_index(folder);
  };
  CHECK(with(R"({"networks": {"m": 1, "n": 2}, "file": "b.jsonl", "programs": 4})").at("b.jsonl") ==
        bench::IndexedJournal{"b.jsonl", {{"m", 1}, {"n", 2}}, 200});
  CHECK(with(R"({"file": "b.jsonl", "networks": {"n": 1}, "programs": 4, "drawn": 2})").at("b.jsonl").drawn == 2);
  for (const char* bad : {R"({"file": "b.jsonl", "networks": ["n"]})", R"({"file": "b.jsonl", "networks": {}})",
                          R"({"networks": {"n": 1}})", R"({"file": "b.jsonl", "networks": {"n": 1})", ""}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(static_cast<void>(with(bad)), doctest::Contains("index.jsonl:2: "), FormatError);
  }
}
