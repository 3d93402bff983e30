// SPDX-License-Identifier: Apache-2.0
// A tuner of a network that is killed at random moments and started again loses no completed measurement and repeats
// none, and one that was killed between rounds goes on as if it had not been.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

// Takes its time, so that kills meet it in every state, and writes down by itself which measurement it has completed.
struct Witnessed {
  int fd = -1;
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs,
                               const OutcomeSink& sink = {}) const {
    std::vector<Outcome> outcomes;
    for (const toy::Program& program : programs) {
      std::this_thread::sleep_for(std::chrono::microseconds(600));
      outcomes.push_back(toy::outcome(program.tiles));
      if (sink) sink(outcomes.size() - 1, outcomes.back());
      const std::string line = task.name + " " + to_hex(program.key) + "\n";  // after the journal
      if (::write(fd, line.data(), line.size()) < 0) ::_exit(3);
    }
    return outcomes;
  }
};

struct Recipe : toy::Evolution {
  using measurer = Witnessed;
};
struct Quick : toy::Evolution {};

[[noreturn]] void tune(const std::string& journal_path, const std::string& witness_path) {
  const int fd = ::open(witness_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  MultiTaskTuner<Recipe, schedulers::Gradient> tuner{{.explorer = {.population = 64}, .measurer = {fd}, .seed = 5}};
  data::Journal journal({.path = journal_path, .warnings = nullptr});
  (void)tuner.run(network, {.trials = trials, .batch = 16}, journal);
  ::_exit(0);
}

// Starts a tuner and kills it after `life`, or waits for its end; returns whether it had finished.
bool live_for(std::chrono::microseconds life, const std::string& journal_path, const std::string& witness_path) {
  const pid_t child = ::fork();
  if (child == 0) tune(journal_path, witness_path);
  if (life.count() > 0) {
    std::this_thread::sleep_for(life);
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFEXITED(status);
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
  Rng rng(2024);
  unsigned kills = 0;
  for (unsigned run = 0; run < 15; ++run) {
    const auto life = std::chrono::microseconds(5000 + static_cast<int>(rng.below(25000)));
    kills += live_for(life, journal_path, witness_path) ? 0 : 1;
  }
  CHECK(kills >= 7);  // a machine under load lives fewer trials, never more
  REQUIRE(live_for(std::chrono::microseconds(0), journal_path, witness_path));

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

  std::map<std::pair<std::string, std::string>, int> measured;
  std::ifstream witness(witness_path);
  for (std::string task, key; witness >> task >> key;) ++measured[{task, key}];
  for (const auto& [which, times] : measured) {
    CHECK(times == 1);
    CHECK(recorded.contains({which.first, std::stoull(which.second, nullptr, 16)}));  // none lost
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
