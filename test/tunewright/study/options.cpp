// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/options.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"

namespace {

using namespace tunewright;

struct Line {
  std::vector<std::string> words;
  std::vector<char*> pointers;
  int count = 0;

  explicit Line(std::vector<std::string> options) : words(std::move(options)) {
    words.insert(words.begin(), "program");
    for (std::string& word : words) pointers.push_back(word.data());
    count = static_cast<int>(pointers.size());
  }
  study::Options options(const study::Plan& plan = {.name = "mine", .seeds = 7, .options = {"trial_ms", "other"}}) {
    return study::take_options(count, pointers.data(), plan);
  }
};

TEST_CASE("what the command line does not say is the plan's") {
  Line line({});
  const study::Options options = line.options();
  CHECK(options.out == "results-mine");
  CHECK(options.study == "mine");
  CHECK(options.seeds == 7);
  CHECK(options.shards == 1);
  CHECK_FALSE(options.report_only);
}

TEST_CASE("our options are taken, Google Benchmark's and words without a value are left") {
  Line line(
      {"--out=here", "--benchmark_filter=a", "--shard=2/3", "--recipes=A,B", "--report", "--help", "--trial_ms=5"});
  const study::Options options = line.options();
  CHECK(options.out == "here");
  CHECK(options.shard == 2);
  CHECK(options.shards == 3);
  CHECK(options.recipes == std::vector<std::string>{"A", "B"});
  CHECK(options.report_only);
  CHECK(options.number("trial_ms", 1) == 5);
  CHECK(options.number("other", 1) == 1);
  CHECK(line.count == 3);
  CHECK(std::string(line.pointers[1]) == "--benchmark_filter=a");
  CHECK(std::string(line.pointers[2]) == "--help");
}

TEST_CASE("the seeds are as many as asked for, also behind the largest first one") {
  Line line({"--seeds=3", "--first_seed=4294967295"});
  CHECK(line.options().all_seeds() == std::vector<std::uint64_t>{4294967295, 4294967296, 4294967297});
  CHECK(Line({"--seeds=2", "--first_seed=5"}).options().all_seeds() == std::vector<std::uint64_t>{5, 6});
}

TEST_CASE("what searches find depends on options of their own that have another value than the default") {
  const study::Plan plan{.name = "mine", .options = {"pool=8", "size", "set=all"}, .choosing = {"set"}};
  CHECK(Line({}).options(plan).conditions().empty());
  CHECK(Line({"--pool=8", "--set=few", "--minutes=3", "--seeds=9"}).options(plan).conditions().empty());
  CHECK(Line({"--size=2", "--pool=9"}).options(plan).conditions() == " pool=9 size=2");
}

TEST_CASE("the minutes of a study count from when its options are read, and without any it has all the time") {
  study::Options options = Line({"--minutes=2"}).options();
  CHECK_FALSE(options.is_out_of_time());
  options.began -= Seconds(119);
  CHECK_FALSE(options.is_out_of_time());
  options.began -= Seconds(2);
  CHECK(options.is_out_of_time());
  study::Options others = Line({"--seeds=3"}).options();
  others.began -= Seconds(1e9);
  CHECK_FALSE(others.is_out_of_time());
  CHECK_THROWS_WITH_AS((void)Line({"--minutes=soon"}).options(), doctest::Contains("--minutes=soon: give a count"),
                       std::invalid_argument);
}

TEST_CASE("no minutes, threads or tasks are refused, because they could be taken for no limit") {
  const auto refused = [](const char* option) { return test::refusal([&] { (void)Line({option}).options(); }); };
  CHECK(refused("--minutes=0") == "--minutes=0: leave it out for no limit, or give --report, which searches nothing");
  CHECK(refused("--threads=0") == "--threads=0: leave it out for the study's own choice");
  CHECK(refused("--tasks=0") == "--tasks=0: leave it out for the study's own choice");
}

TEST_CASE("values out of range are named") {
  for (const char* bad : {"--shard=0/2", "--shard=3/2", "--shard=1", "--shard=/", "--shard=a/2", "--shard=-1/2"}) {
    Line line({bad});
    CAPTURE(bad);
    CHECK_THROWS_AS((void)line.options(), std::invalid_argument);
  }
  Line line({"--shard=3/2"});
  CHECK_THROWS_WITH_AS((void)line.options(), "--shard=3/2: give i/n with i from 1 to n, such as --shard=2/4",
                       std::invalid_argument);
  Line seeds({"--seeds=-3"});
  CHECK_THROWS_WITH_AS((void)seeds.options(), doctest::Contains("--seeds=-3: give a count"), std::invalid_argument);
  Line many({"--threads=4294967296"});
  CHECK_THROWS_WITH_AS((void)many.options(), doctest::Contains("up to 4294967295"), std::invalid_argument);
}

TEST_CASE("a study that lists no options of its own has none") {
  Line misspelt({"--sedes=5"});
  CHECK_THROWS_WITH_AS((void)misspelt.options({.name = "mine"}),
                       doctest::Contains("--sedes=5: the study has no such option; give --out, --data, --seeds"),
                       std::invalid_argument);
  Line none({});
  const study::Options options = none.options({.name = "mine"});
  CHECK_THROWS_WITH_AS((void)options.number("batch", 7), doctest::Contains("add \"batch\" there"), std::logic_error);
}

TEST_CASE("a list of two options stays two in double braces, which would be two iterators to a string") {
  for (const study::Plan& plan : {study::Plan{.name = "mine", .options = {"batch", "trials"}},
                                  study::Plan{.name = "mine", .options = {{"batch", "trials"}}}}) {
    Line line({"--batch=3", "--trials=4"});
    const study::Options options = line.options(plan);
    CHECK(options.known == std::vector<std::string>{"batch", "trials"});
    CHECK(options.number("trials", 0) == 4);
  }
}

TEST_CASE("an option has the default that the plan states, unless it is given") {
  const study::Plan plan{.name = "mine", .options = {"batch=8", "steps=3", "set=known,unseen", "only=", "size"}};
  Line line({"--batch=4", "--size=5"});
  const study::Options options = line.options(plan);
  CHECK(options.known == std::vector<std::string>{"batch", "steps", "set", "only", "size"});
  CHECK(options.number("batch") == 4);
  CHECK(options.few("steps") == 3);
  CHECK(options.text("set") == "known,unseen");
  CHECK(options.text("only").empty());
  CHECK(options.number("size") == 5);
  Line none({});
  CHECK(none.options(plan).number("batch") == 8);
  Line wrong({"--steps=none"});
  CHECK_THROWS_WITH_AS((void)wrong.options(plan).few("steps"), doctest::Contains("--steps=none: give a count"),
                       std::invalid_argument);
}

TEST_CASE("a default stands in one place: in the plan, or where the option is read") {
  Line line({});
  const study::Options options = line.options({.name = "mine", .options = {"batch=8", "size"}});
  CHECK(options.number("size", 16) == 16);
  CHECK_THROWS_WITH_AS((void)options.number("batch", 8), doctest::Contains("states \"batch=8\"; leave out one"),
                       std::logic_error);
  CHECK_THROWS_WITH_AS((void)options.number("size"), doctest::Contains("make it \"size=default\" there"),
                       std::logic_error);
  CHECK_THROWS_WITH_AS((void)options.number("sizes"), doctest::Contains("add \"sizes\" there"), std::logic_error);
}

TEST_CASE("the help names defaults of the plan and the study's own options") {
  const std::string text = study::usage({.name = "mine", .seeds = 9, .options = {"batch", "trials"}});
  for (const char* part : {"'mine'", "(results-mine)", "(9)", "--report", "  --batch=...\n  --trials=...\n"})
    CHECK(text.find(part) != std::string::npos);
  CHECK(study::usage({.name = "mine"}).find("=...") == std::string::npos);
  CHECK(study::usage({.name = "mine", .options = {"batch=8", "only="}})
            .find("  --batch=...        (8)\n  --only=...\n") != std::string::npos);
}

TEST_CASE("the help and the refusal of an unknown option name the same options, and each of them is read") {
  const study::Plan plan{.name = "mine", .options = {"batch"}};
  std::istringstream help(study::usage(plan));
  std::string named;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  --") || line.find('=') == std::string::npos) continue;
    const std::string option = line.substr(2, line.find('=') - 2);
    named += (named.empty() ? "" : ", ") + option;
    Line one({option + (option == "--shard" ? "=1/2" : "=3")});
    CHECK_NOTHROW((void)one.options(plan));
  }
  CHECK(named.starts_with("--out, --data, --seeds, "));
  Line unknown({"--sedes=5"});
  CHECK(test::refusal([&] { (void)unknown.options(plan); }) ==
        "--sedes=5: the study has no such option; give " + named);
}

TEST_CASE("an option that the study does not read is refused, and in no list") {
  const study::Plan plan{.name = "mine", .options = {"batch"}, .unread = {"tasks", "threads"}};
  for (const char* unread : {"--tasks=3", "--threads=2"}) {
    Line line({unread});
    CHECK(test::refusal([&] { (void)line.options(plan); }) ==
          std::string(unread) +
              ": the study does not read it; leave it out, or choose what runs by --benchmark_filter=REGEX");
  }
  CHECK(study::usage(plan).find("--tasks") == std::string::npos);
  CHECK(study::usage(plan).find("--seeds") != std::string::npos);
  Line unknown({"--sedes=5"});
  const std::string all = test::refusal([&] { (void)unknown.options(plan); });
  CHECK(all.find("--seeds") != std::string::npos);
  CHECK(all.find("--threads") == std::string::npos);
}

TEST_CASE("an option that the study does not have is refused") {
  const study::Plan plan{.name = "mine", .options = {"batch", "trials"}};
  Line known({"--batch=3", "--minutes=5", "--seeds=2", "--benchmark_filter=a"});
  const study::Options options = known.options(plan);
  CHECK(options.number("batch", 1) == 3);
  CHECK(options.number("trials", 7) == 7);
  CHECK_THROWS_WITH_AS((void)options.number("trial", 7), doctest::Contains("reads --trial"), std::logic_error);
  Line misspelt({"--seed=3"});
  CHECK_THROWS_WITH_AS((void)misspelt.options(plan), doctest::Contains("--seed=3: the study has no such option"),
                       std::invalid_argument);
  Line again({"--batches=3"});
  CHECK_THROWS_WITH_AS((void)again.options(plan), doctest::Contains("--minutes, --batch, --trials"),
                       std::invalid_argument);
}

}  // namespace
