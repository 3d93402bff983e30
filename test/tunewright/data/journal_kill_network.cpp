// SPDX-License-Identifier: Apache-2.0
// A tuner of a network that is killed at random moments and started again loses no completed measurement and repeats
// none, and one that was killed between rounds goes on as if it had not been.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/killed_tuner.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_recipes.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/schedulers/gradient.hpp"

using namespace tunewright;

namespace {

static_assert(observers::RecallsNetworks<data::Journal>);

constexpr std::size_t trials = 300;

const std::vector<WeightedTask> network{
    {toy::task("conv", 1), 4}, {toy::task("dense", 2), 1}, {toy::task("pool", 3), 2}};

struct Recipe : toy::Evolution {
  using measurer = support::Witnessed;
};
struct Quick : toy::Evolution {};

void tune(const std::string& journal_path, const std::string& witness_path) {
  MultiTaskTuner<Recipe, schedulers::Gradient> tuner{
      {.explorer = {.population = 64}, .measurer = support::Witnessed::to(witness_path), .seed = 5}};
  data::Journal journal({.path = journal_path, .warnings = nullptr});
  (void)tuner.run(network, {.trials = trials, .batch = 16}, journal);
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> keys(const std::vector<Record>& records) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  for (const Record& record : records) all.emplace_back(record.task, record.key);
  return all;
}

// What the journal holds after a run that goes on from what it holds already.
std::vector<std::pair<std::uint64_t, std::uint64_t>> run_on(const std::string& path) {
  MultiTaskTuner<Quick, schedulers::Gradient> tuner{{.explorer = {.population = 64}, .seed = 5}};
  data::Journal journal({.path = path, .warnings = nullptr});
  (void)tuner.run(network, {.trials = 96, .batch = 8}, journal);
  return keys(data::read_journal(path).records);
}

}  // namespace

TEST_CASE("killed fifteen times at random moments, a tuner of a network repeats nothing and loses nothing") {
  const support::TemporaryFolder folder;
  const std::string journal_path = folder.file("journal.jsonl");
  const std::string witness_path = folder.file("witness");
  const auto tune_on = [&] { tune(journal_path, witness_path); };
  Rng rng(2024);
  unsigned kills = 0;
  for (unsigned run = 0; run < 15; ++run) {
    const auto life = std::chrono::microseconds(5000 + static_cast<int>(rng.below(25000)));
    kills += support::live_for(life, tune_on) ? 0 : 1;
  }
  CHECK(kills >= 7);  // a machine under load lives fewer trials, never more
  REQUIRE(support::live_for(std::chrono::microseconds(0), tune_on));

  const auto contents = data::read_journal(journal_path);
  CHECK(contents.records.size() == trials);
  CHECK(contents.bad.size() <= kills);  // at most the line being written
  std::set<std::pair<std::string, std::uint64_t>> recorded;
  std::map<std::string, std::size_t> of_task;
  for (const Record& record : contents.records) {
    CHECK(recorded.insert({record.task_name, record.key}).second);  // none repeated
    ++of_task[record.task_name];
  }
  CHECK(of_task.size() == 3);

  const auto measured = support::witnessed(witness_path);
  for (const auto& [which, times] : measured) {
    CHECK(times == 1);
    CHECK(recorded.contains(which));  // none lost
  }
  MESSAGE(kills << " kills, " << contents.bad.size() << " torn lines, " << measured.size()
                << " measurements witnessed");
}

TEST_CASE("a journal that was cut at any line goes on without a gap; between rounds, as if it had not been cut") {
  const support::TemporaryFolder folder;
  const auto whole = run_on(folder.file("whole.jsonl"));
  REQUIRE(whole.size() == 96);
  std::vector<std::string> lines;
  std::ifstream in(folder.file("whole.jsonl"));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (const std::size_t kept : {5U, 8U, 16U, 31U, 48U, 71U}) {
    CAPTURE(kept);
    const std::string path = folder.file("cut." + std::to_string(kept) + ".jsonl");
    std::ofstream out(path);
    std::size_t records = 0;
    for (const std::string& line : lines) {
      if (records == kept && kept % 8 != 0) out << line.substr(0, 40);  // torn
      if (records == kept) break;
      out << line << '\n';
      records += line.find("\"config\"") != std::string::npos ? 1 : 0;
    }
    out.close();
    const auto resumed = run_on(path);
    CHECK(resumed.size() == 96);
    CHECK(std::set(resumed.begin(), resumed.end()).size() == 96);
    CHECK(std::equal(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept), resumed.begin()));
    if (kept % 8 == 0) CHECK(resumed == whole);
  }
}
