// SPDX-License-Identifier: Apache-2.0
#include "../../bench/study/task_results.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/target.hpp"

using namespace tunewright;

namespace {

/// The conditions of a study that is started with these words.
std::string conditions(std::vector<std::string> words) {
  const study::Plan plan{
      .name = "mine", .options = {"batch=8", "only=all", "records=100", "size"}, .choosing = {"only"}};
  words.insert(words.begin(), "program");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  return study::conditions_of(study::take_options(count, pointers.data(), plan));
}

}  // namespace

TEST_CASE("a run by an option's default is the same whether the option is given or left out") {
  const std::string usual = conditions({});
  CHECK(usual == "tasks=0 threads=0");
  CHECK(conditions({"--batch=8"}) == usual);
  CHECK(conditions({"--records=100", "--batch=8"}) == usual);
  CHECK(conditions({"--batch=9", "--records=100"}) == "tasks=0 threads=0 batch=9");
  CHECK(conditions({"--batch=8", "--batch=9"}) == "tasks=0 threads=0 batch=9");
  CHECK(conditions({"--batch=9", "--batch=8"}) == usual);
}

TEST_CASE("a run that was made before becomes the last line about itself, behind those by other conditions") {
  const support::TemporaryFolder folder;
  const auto runs = [&] { return study::SharedLines<study::FinishedRun>(folder.path(), "tasks", "tasks", 1, 1); };
  auto first = runs();
  for (const char* conditions : {"records=5", "records=2"})
    first.add({.subject = "A",
               .data = "d",
               .seed = 1,
               .conditions = conditions,
               .figures = {{"n", static_cast<double>(first.all().size())}}});
  first.add({.subject = "A", .data = "d", .seed = 2, .conditions = "records=2"});
  auto again = runs();
  CHECK_FALSE(study::find_run(again, "A", "d", 1, "records=3"));
  REQUIRE(study::find_run(again, "A", "d", 1, "records=2"));
  CHECK(again.all().size() == 3);  // it was the last one of seed 1
  REQUIRE(study::find_run(again, "A", "d", 1, "records=5"));
  const auto last = runs();
  REQUIRE(last.all().size() == 4);
  CHECK(last.all().back().conditions == "records=5");
  CHECK(last.all().back().figures.at("n") == 0);
}

TEST_CASE("runs of another study, which may have the same subjects and data, are not taken for the study's own") {
  const support::TemporaryFolder folder;
  study::Options options;
  options.out = folder.path();
  options.study = "pruning";
  study::finished_runs(options).add({.subject = "A", .data = "d", .seed = 1, .conditions = "tasks=0"});
  options.study = "models";
  CHECK_THROWS_WITH_AS(static_cast<void>(study::finished_runs(options)),
                       doctest::Contains("belongs to study 'pruning', not to 'models'"), std::runtime_error);
  CHECK_THROWS_AS(study::add_of_tasks(options, "A", "d", 1, [](auto&) { return study::TaskCounters{}; }),
                  std::runtime_error);
  options.study = "pruning";
  CHECK(study::find_run(study::finished_runs(options), "A", "d", 1, "tasks=0"));
}

TEST_CASE("a run depends on the options that have no default or another value, and not on what was chosen to run") {
  CHECK(conditions({"--size=100"}) == "tasks=0 threads=0 size=100");
  CHECK(conditions({"--tasks=3", "--threads=2", "--records=8"}) == "tasks=3 threads=2 records=8");
  CHECK(conditions({"--only=some", "--minutes=5", "--seeds=9"}) == "tasks=0 threads=0");
}

TEST_CASE("a run on another target, or of data that have grown, is another run") {
  study::Options options;
  Target target;
  target.threads = 2;
  const auto on = [&](const Target& one) {
    return study::conditions_of(study::depending_on(options, "target", stable_hash(one)));
  };
  CHECK(on(target) == "tasks=0 threads=0 target=" + to_hex(stable_hash(target)));
  CHECK(on(target) == on(target));
  CHECK(on(target) != on(target.with_threads(1)));
  Target smaller = target;
  smaller.l2_bytes /= 2;
  CHECK(on(target) != on(smaller));
  const study::Options both = study::depending_on(study::depending_on(options, "target", 1), "collection", 2);
  CHECK(study::conditions_of(both) == "tasks=0 threads=0 collection=0000000000000002 target=0000000000000001");
}

TEST_CASE("a part of a name that no name has is refused with all names") {
  CHECK_NOTHROW(study::check_part("only", "conv", {"v100_conv", "k80_matmul"}));
  CHECK_NOTHROW(study::check_part("only", "", {"v100_conv"}));
  CHECK_THROWS_WITH_AS(study::check_part("only", "covn", {"v100_conv", "k80_matmul"}),
                       "--only=covn: no name has that part; there are v100_conv, k80_matmul", std::invalid_argument);
}
