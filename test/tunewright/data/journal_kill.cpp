// SPDX-License-Identifier: Apache-2.0
// A tuner that is killed at random moments and started again loses no completed measurement and repeats none.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "support/killed_tuner.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

namespace {

constexpr std::size_t trials = 400;

void tune(const std::string& journal_path, const std::string& witness_path) {
  Tuner<recipes::Random<toy::Space, support::Witnessed>> tuner{
      {.measurer = support::Witnessed::to(witness_path), .seed = 5}};
  data::Journal journal({.path = journal_path, .warnings = nullptr});
  (void)tuner.run(toy::task(), {.trials = trials, .batch = 32}, journal);
}

}  // namespace

TEST_CASE("killed twenty times at random moments, a tuner repeats nothing and loses nothing") {
  const support::TemporaryFolder folder;
  const std::string journal_path = folder.file("journal.jsonl");
  const std::string witness_path = folder.file("witness");
  const auto run_on = [&] { tune(journal_path, witness_path); };
  Rng rng(2024);
  unsigned kills = 0;
  for (unsigned run = 0; run < 20; ++run) {
    const auto life = std::chrono::microseconds(3000 + static_cast<int>(rng.below(25000)));
    kills += support::live_for(life, run_on) ? 0 : 1;
  }
  CHECK(kills >= 10);  // a machine under load lives fewer trials, never more

  REQUIRE(support::live_for(std::chrono::microseconds(0), run_on));

  const auto contents = data::read_journal(journal_path);
  CHECK(contents.records.size() == trials);
  CHECK(contents.bad.size() <= kills);  // at most the line being written
  std::set<std::uint64_t> recorded;
  for (const Record& record : contents.records) CHECK(recorded.insert(record.key).second);  // none repeated

  const auto measured = support::witnessed(witness_path);
  for (const auto& [which, times] : measured) {
    CHECK(times == 1);
    CHECK(recorded.contains(which.second));  // none lost
  }
  MESSAGE(kills << " kills, " << contents.bad.size() << " torn lines, " << measured.size()
                << " measurements witnessed");
}
