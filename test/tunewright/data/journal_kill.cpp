// SPDX-License-Identifier: Apache-2.0
// A tuner that is killed at random moments and started again loses no completed measurement and repeats none.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

namespace {

constexpr std::size_t trials = 400;

// Takes its time, so that kills meet it in every state, and writes down by itself which measurement it has
// completed.
struct Witnessed {
  int fd = -1;
  std::vector<Outcome> measure(const Task&, std::span<const toy::Program> programs,
                               const OutcomeSink& sink = {}) const {
    std::vector<Outcome> outcomes;
    for (const toy::Program& program : programs) {
      std::this_thread::sleep_for(std::chrono::microseconds(600));
      outcomes.push_back(toy::outcome(program.tiles));
      if (sink) sink(outcomes.size() - 1, outcomes.back());
      const std::string line = to_hex(program.key) + "\n";  // after the journal: whatever stands here must stand there
      if (::write(fd, line.data(), line.size()) < 0) ::_exit(3);
    }
    return outcomes;
  }
};

[[noreturn]] void tune(const std::string& journal_path, const std::string& witness_path) {
  const int fd = ::open(witness_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  Tuner<recipes::Random<toy::Space, Witnessed>> tuner{{.measurer = {fd}, .seed = 5}};
  data::Journal journal({.path = journal_path, .warnings = nullptr});
  (void)tuner.run(toy::task(), {.trials = trials, .batch = 32}, journal);
  ::_exit(0);
}

// Starts a tuner and kills it after `life`; returns whether it had finished before.
bool live_for(std::chrono::microseconds life, const std::string& journal_path, const std::string& witness_path) {
  const pid_t child = ::fork();
  if (child == 0) tune(journal_path, witness_path);
  std::this_thread::sleep_for(life);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFEXITED(status);
}

}  // namespace

TEST_CASE("killed twenty times at random moments, a tuner repeats nothing and loses nothing") {
  const support::TemporaryFolder folder;
  const std::string journal_path = folder.file("journal.jsonl");
  const std::string witness_path = folder.file("witness");
  Rng rng(2024);
  unsigned kills = 0;
  for (unsigned run = 0; run < 20; ++run) {
    const auto life = std::chrono::microseconds(3000 + static_cast<int>(rng.below(25000)));
    kills += live_for(life, journal_path, witness_path) ? 0 : 1;
  }
  CHECK(kills >= 10);  // a machine under load lives fewer trials, never more

  const pid_t last = ::fork();
  if (last == 0) tune(journal_path, witness_path);
  int status = 0;
  ::waitpid(last, &status, 0);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);

  const auto contents = data::read_journal(journal_path);
  CHECK(contents.records.size() == trials);
  CHECK(contents.bad.size() <= kills);  // at most the line being written
  std::set<std::uint64_t> recorded;
  for (const Record& record : contents.records) CHECK(recorded.insert(record.key).second);  // none repeated

  std::map<std::string, int> measured;
  std::ifstream witness(witness_path);
  for (std::string line; std::getline(witness, line);) ++measured[line];
  for (const auto& [key, times] : measured) {
    CHECK(times == 1);
    CHECK(recorded.count(std::stoull(key, nullptr, 16)) == 1);  // none lost
  }
  MESSAGE(kills << " kills, " << contents.bad.size() << " torn lines, " << measured.size()
                << " measurements witnessed");
}
